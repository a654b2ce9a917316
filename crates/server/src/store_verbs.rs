//! Verbs that open the store themselves.

use std::process::ExitCode;

use serde_json::json;

use crate::cli::{Backup, Doctor};
use crate::config::{self, Config, SettingFlags};
use crate::failure::Failure;
use crate::open::{self, Purpose};
use crate::out;

/// Makes the store, or brings it to this program's schema.
pub async fn migrate(flags: &SettingFlags) -> Result<ExitCode, Failure> {
    let config = Config::load(flags)?;
    let store = open::store(&config, Purpose::Serve).await?;
    let engine = store.engine();
    out::sentence(format_args!(
        "{} ({engine}) has this program's schema",
        config.shown_store()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Names each broken invariant; exit status 1 if there is one.
pub async fn doctor(doctor: &Doctor) -> Result<ExitCode, Failure> {
    let config = Config::load(&doctor.settings)?;
    let store = open::store(&config, Purpose::Look).await?;
    let catalog = open::catalog(&config, store);
    let violations = catalog.doctor(!doctor.skip_files).await.map_err(|error| {
        Failure::setup(format!(
            "{}: the checks did not end: {error}; see that the store answers and run them again",
            config.shown_store()
        ))
    })?;
    if doctor.json {
        let list: Vec<_> = violations
            .iter()
            .map(|violation| json!({"invariant": violation.invariant, "detail": violation.detail}))
            .collect();
        out::line(json!({"violations": list}))?;
    } else {
        for violation in &violations {
            out::sentence(format_args!(
                "{}: {}",
                violation.invariant, violation.detail
            ))?;
        }
        match violations.len() {
            0 => out::sentence("every invariant holds")?,
            1 => out::sentence("1 violation")?,
            many => out::sentence(format_args!("{many} violations"))?,
        }
    }
    Ok(match violations.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(1),
    })
}

/// Copies the store to a new file.
pub async fn backup(backup: &Backup) -> Result<ExitCode, Failure> {
    let config = Config::load(&backup.settings)?;
    let store = open::store(&config, Purpose::Look).await?;
    let copied = store.backup(&backup.target).await;
    copied.map_err(|error| Failure::store(&error, &config.shown_store()))?;
    out::sentence(format_args!(
        "{} holds a copy of the store",
        backup.target.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints each setting and where its value came from.
pub fn show_config(flags: &SettingFlags, json: bool) -> Result<ExitCode, Failure> {
    let config = Config::load(flags)?;
    if json {
        out::line(format_args!("{:#}", config::as_json(&config)))?;
    } else {
        config::as_table(&config).print_whole()?;
    }
    Ok(ExitCode::SUCCESS)
}
