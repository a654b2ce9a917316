//! Where values come from.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use super::flags::SettingFlags;
use super::settings::{Preset, SETTINGS, Setting, by_name, nearest};
use crate::failure::Failure;

/// The file that is read if it is there and no other is named.
const FILE: &str = "anabranch.toml";
const PREFIX: &str = "ANABRANCH_";
const FILE_VARIABLE: &str = "ANABRANCH_CONFIG";
const SERVER_VARIABLE: &str = "ANABRANCH_SERVER";
/// Letters by which a name may differ from the one that was meant.
const MISSPELT_BY: usize = 2;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// It follows from the data folder.
    DataDir,
    /// The configuration file.
    File(PathBuf),
    /// An environment variable.
    Variable(String),
    /// A flag.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => formatter.write_str("default"),
            Origin::DataDir => formatter.write_str("default, in data-dir"),
            Origin::File(path) => write!(formatter, "file {}", path.display()),
            Origin::Variable(name) => write!(formatter, "variable {name}"),
            Origin::Flag(name) => write!(formatter, "flag --{name}"),
        }
    }
}

/// A setting with its value.
#[derive(Clone, Debug)]
pub struct Found {
    pub(super) setting: &'static Setting,
    pub(super) value: Option<String>,
    pub(super) origin: Origin,
}

impl Found {
    /// Whether someone set it.
    pub(super) fn is_chosen(&self) -> bool {
        !matches!(self.origin, Origin::Default | Origin::DataDir)
    }
}

/// Everything that was set.
pub struct Sources {
    file: PathBuf,
    in_file: HashMap<&'static str, String>,
    variables: HashMap<String, String>,
    in_flags: HashMap<&'static str, String>,
}

impl Sources {
    /// What this process was given.
    pub fn of_process(flags: &SettingFlags) -> Result<Sources, Failure> {
        let named = flags.file.clone().or_else(|| {
            let variable = std::env::var_os(FILE_VARIABLE)?;
            (!variable.is_empty()).then(|| PathBuf::from(variable))
        });
        let file = named.clone().unwrap_or_else(|| PathBuf::from(FILE));
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
                String::new()
            }
            Err(error) => {
                return Err(Failure::setup(format!(
                    "can't read the configuration file {}: {error}; name another with --config",
                    file.display()
                )));
            }
        };
        let ours = |(name, value): (OsString, OsString)| {
            let name = name.into_string().ok()?;
            let value = value.into_string().ok()?;
            (name.starts_with(PREFIX) && !value.is_empty()).then_some((name, value))
        };
        Ok(Sources {
            in_file: parse_file(&file, &text)?,
            variables: std::env::vars_os().filter_map(ours).collect(),
            in_flags: flags.values.clone(),
            file,
        })
    }

    /// The value of a setting that doesn't follow from another.
    pub fn text(&self, name: &'static str) -> Result<String, Failure> {
        let setting = by_name(name).ok_or_else(|| Failure::setup(format!("no setting {name}")))?;
        let found = self.find(setting, Path::new(""));
        Ok(found.value.unwrap_or_default())
    }

    /// Every setting, with its value.
    pub fn all(&self, data_dir: &Path) -> Result<Vec<Found>, Failure> {
        if data_dir.to_str().is_none() {
            let message = "the setting `data-dir` is not UTF-8; name a folder whose path is";
            return Err(Failure::setup(message));
        }
        let find = |setting| self.find(setting, data_dir);
        Ok(SETTINGS.iter().map(find).collect())
    }

    /// Sentences about variables that look like a setting's and aren't. Others are left alone:
    /// container platforms invent variables with the program's name in front.
    pub fn misspelt(&self) -> impl Iterator<Item = String> {
        let is_known = |name: &str| {
            let mut known = SETTINGS.iter().map(Setting::variable);
            [FILE_VARIABLE, SERVER_VARIABLE].contains(&name) || known.any(|known| known == name)
        };
        let unknown = self.variables.keys().filter(move |name| !is_known(name));
        unknown.filter_map(|name| {
            let meant = SETTINGS
                .iter()
                .map(Setting::variable)
                .find(|known| strsim::damerau_levenshtein(known, name) <= MISSPELT_BY)?;
            Some(format!(
                "the variable {name} sets nothing; is {meant} meant?"
            ))
        })
    }

    fn find(&self, setting: &'static Setting, data_dir: &Path) -> Found {
        let name = setting.name;
        let found = |value: &String, origin| Found {
            setting,
            value: Some(value.clone()),
            origin,
        };
        if let Some(value) = self.in_flags.get(name) {
            return found(value, Origin::Flag(name));
        }
        let variable = setting.variable();
        if let Some(value) = self.variables.get(&variable) {
            return found(value, Origin::Variable(variable));
        }
        if let Some(value) = self.in_file.get(name) {
            return found(value, Origin::File(self.file.clone()));
        }
        let (value, origin) = match setting.preset {
            Preset::Value(text) => (Some(text.to_owned()), Origin::Default),
            Preset::InDataDir(before, behind) => {
                let value = format!("{before}{}{behind}", data_dir.display());
                (Some(value), Origin::DataDir)
            }
            Preset::Unset => (None, Origin::Default),
        };
        Found {
            setting,
            value,
            origin,
        }
    }

    #[cfg(test)]
    pub(super) fn for_test(
        file: &str,
        variables: &[(&str, &str)],
        flags: &[(&'static str, &str)],
    ) -> Result<Sources, Failure> {
        let path = PathBuf::from("test.toml");
        Ok(Sources {
            in_file: parse_file(&path, file)?,
            variables: variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            in_flags: flags
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
            file: path,
        })
    }
}

fn parse_file(path: &Path, text: &str) -> Result<HashMap<&'static str, String>, Failure> {
    let place = path.display();
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(0, |span| {
            let before = text.get(..span.start).unwrap_or(text);
            before.matches('\n').count() + 1
        });
        let problem = error.message();
        Failure::setup(format!("{place}, line {line}: {problem}; mend the file"))
    })?;
    let mut values = HashMap::new();
    for (key, value) in table {
        let Some(setting) = by_name(&key) else {
            let hint = nearest(&key).map_or("", |setting| setting.name);
            return Err(Failure::setup(format!(
                "{place}: there is no setting `{key}`; the nearest is `{hint}`, and `anabranch \
                 config show` lists all"
            )));
        };
        let value = match value {
            toml::Value::String(text) => text,
            toml::Value::Integer(number) => number.to_string(),
            toml::Value::Boolean(value) => value.to_string(),
            _ => {
                return Err(Failure::setup(format!(
                    "{place}: the setting `{key}` is a text, a number or true or false; mend it"
                )));
            }
        };
        values.insert(setting.name, value);
    }
    Ok(values)
}
