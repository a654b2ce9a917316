//! What is in force, and where each value came from.
//!
//! Four sources, the last wins: the default, the file `anabranch.toml`, `ANABRANCH_*` variables,
//! flags. Every setting has one name (`data-dir`), which is its key in the file, its flag
//! (`--data-dir`) and, in capitals, its variable (`ANABRANCH_DATA_DIR`).

mod flags;
mod settings;
mod show;
mod sources;
mod values;

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use anabranch_files::Location;
use tracing_subscriber::filter::LevelFilter;

use crate::failure::Failure;

pub use flags::SettingFlags;
pub use show::{as_json, as_table};
use sources::{Found, Sources};
use values::{boolean, bytes, count, duration};

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Lines for people.
    Human,
    /// One JSON object a line.
    Json,
}

/// The settings in force.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the server listens.
    pub listen: SocketAddr,
    /// The store's URL.
    pub store: String,
    /// The location of the first catalog, at the first start.
    pub warehouse: String,
    /// Whether someone set `warehouse`.
    pub warehouse_is_chosen: bool,
    /// Where catalogs go that name no location; `None` if each has to name its own.
    pub catalogs_location: Option<String>,
    /// How long history and the change log stay readable.
    pub history_retention: Duration,
    /// Local folders, beside the warehouse and the data folder's `catalogs`, that catalogs may lie in.
    pub local_folders: Vec<String>,
    /// How long an operation key protects a request.
    pub idempotency_lifetime: Duration,
    /// From the head of a request to its answer.
    pub request_timeout: Duration,
    /// Open connections.
    pub max_connections: usize,
    /// Requests that run at the same time.
    pub max_requests: usize,
    /// Requests that wait for changes at the same time.
    pub max_followers: usize,
    /// The largest request body, in bytes.
    pub body_limit: usize,
    /// The largest metadata document, in bytes.
    pub document_limit: u64,
    /// Changes that wait for their turn.
    pub queue_limit: usize,
    /// Metadata documents in memory, in bytes.
    pub metadata_cache: u64,
    /// Decoded rows in memory.
    pub row_cache: usize,
    /// Connections to PostgreSQL.
    pub postgres_connections: usize,
    /// How old a file must be before it can count as left over.
    pub sweep_grace: Duration,
    /// How often the recurring jobs run.
    pub job_interval: Duration,
    /// What is logged.
    pub log_level: String,
    /// How it is logged.
    pub log_format: LogFormat,
    /// Where traces go, if anywhere.
    pub otlp_endpoint: Option<String>,
    /// Serve beyond loopback although everyone is let in.
    pub allow_anonymous_access_from_anywhere: bool,
    found: Vec<Found>,
    warnings: Vec<String>,
}

impl Config {
    /// Gathers the settings from all sources and checks them.
    pub fn load(flags: &SettingFlags) -> Result<Config, Failure> {
        Config::from_sources(&Sources::of_process(flags)?)
    }

    fn from_sources(sources: &Sources) -> Result<Config, Failure> {
        let given_dir = sources.text("data-dir")?;
        let data_dir = std::path::absolute(&given_dir).map_err(|error| {
            let message = format!("the setting `data-dir` ({given_dir:?}): {error}; name a folder");
            Failure::setup(message)
        })?;
        let found = sources.all(&data_dir)?;
        let get = |name: &str| found.iter().find(|found| found.setting.name == name);
        let text = |name: &str| get(name).and_then(|found| found.value.clone());
        let needed = |name: &'static str| Needed {
            found: get(name),
            name,
        };
        let store = needed("store").read(known_store)?;
        let config = Config {
            listen: needed("listen").read(address)?,
            catalogs_location: store
                .starts_with("sqlite:")
                .then(|| format!("file://{}", data_dir.join("catalogs").display())),
            store,
            warehouse: needed("warehouse").read(location)?,
            warehouse_is_chosen: get("warehouse").is_some_and(Found::is_chosen),
            local_folders: text("local-folders")
                .map(|_| needed("local-folders").read(locations))
                .transpose()?
                .unwrap_or_default(),
            history_retention: needed("history-retention").read(duration)?,
            idempotency_lifetime: needed("idempotency-lifetime").read(duration)?,
            request_timeout: needed("request-timeout").read(duration)?,
            max_connections: needed("max-connections").read(count)?,
            max_requests: needed("max-requests").read(count)?,
            max_followers: needed("max-followers").read(count)?,
            body_limit: needed("body-limit").read(bytes)?,
            document_limit: needed("document-limit").read(bytes)? as u64,
            queue_limit: needed("queue-limit").read(count)?,
            metadata_cache: needed("metadata-cache").read(bytes)? as u64,
            row_cache: needed("row-cache").read(values::count_or_none)?,
            postgres_connections: needed("postgres-connections").read(count)?,
            sweep_grace: needed("sweep-grace").read(duration)?,
            job_interval: needed("job-interval").read(duration)?,
            log_level: needed("log-level").read(log_filter)?,
            log_format: needed("log-format").read(log_format)?,
            otlp_endpoint: text("otlp-endpoint")
                .map(|_| needed("otlp-endpoint").read(web_address))
                .transpose()?,
            allow_anonymous_access_from_anywhere: needed("allow-anonymous-access-from-anywhere")
                .read(boolean)?,
            found,
            warnings: sources.misspelt().collect(),
        };
        Ok(config)
    }

    /// What may not be as it was meant.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The folder that must exist for an embedded store, if it is one.
    pub fn store_folder(&self) -> Option<PathBuf> {
        let path = self.store.strip_prefix("sqlite:")?;
        let path = std::path::Path::new(path.strip_prefix("//").unwrap_or(path));
        path.parent().map(std::path::Path::to_owned)
    }

    /// The store's URL without its password.
    pub fn shown_store(&self) -> String {
        values::without_password(&self.store)
    }
}

/// A setting that has a value in every source.
struct Needed<'a> {
    found: Option<&'a Found>,
    name: &'static str,
}

impl Needed<'_> {
    fn read<T>(self, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, Failure> {
        let value = self.found.and_then(|found| found.value.as_deref());
        let origin = self.found.map(|found| found.origin.to_string());
        parse(value.unwrap_or_default()).map_err(|problem| {
            let shown = values::without_password(value.unwrap_or_default());
            let origin = origin.unwrap_or_default();
            let name = self.name;
            Failure::setup(format!(
                "the setting `{name}` is {shown:?} (from {origin}): {problem}"
            ))
        })
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let problem = "write ADDRESS:PORT, such as 127.0.0.1:8181".to_owned();
    let mut addresses = text.to_socket_addrs().map_err(|_| problem.clone())?;
    addresses.next().ok_or(problem)
}

fn known_store(text: &str) -> Result<String, String> {
    let path = text.strip_prefix("sqlite:");
    let is_postgres = text.starts_with("postgres://") || text.starts_with("postgresql://");
    if is_postgres || path.is_some_and(|path| !path.trim_start_matches("//").is_empty()) {
        return Ok(text.to_owned());
    }
    Err("write sqlite:PATH or postgres://user@host:5432/database".to_owned())
}

fn location(text: &str) -> Result<String, String> {
    Location::parse(text).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}

fn locations(text: &str) -> Result<Vec<String>, String> {
    text.split(',').map(|one| location(one.trim())).collect()
}

fn log_filter(text: &str) -> Result<String, String> {
    let is_level = |text: &str| text.parse::<LevelFilter>().is_ok();
    let is_directive = |part: &str| match part.split_once('=') {
        Some((target, level)) => !target.is_empty() && is_level(level),
        None => is_level(part),
    };
    if text.split(',').all(is_directive) {
        return Ok(text.to_owned());
    }
    Err("write error, warn, info, debug or trace, or target=level pairs with commas".to_owned())
}

fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "human" => Ok(LogFormat::Human),
        "json" => Ok(LogFormat::Json),
        _ => Err("write human or json".to_owned()),
    }
}

fn web_address(text: &str) -> Result<String, String> {
    match reqwest::Url::parse(text) {
        Ok(url) if ["http", "https"].contains(&url.scheme()) => Ok(text.to_owned()),
        _ => Err("write an address such as http://127.0.0.1:4318".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::sources::Origin;
    use super::*;

    fn load(
        file: &str,
        variables: &[(&str, &str)],
        flags: &[(&'static str, &str)],
    ) -> Result<Config, Failure> {
        Config::from_sources(&Sources::for_test(file, variables, flags)?)
    }

    fn origin<'a>(config: &'a Config, name: &str) -> &'a Origin {
        let found = config.found.iter().find(|found| found.setting.name == name);
        &found.expect("a setting").origin
    }

    #[test]
    fn without_any_source_everything_has_its_default() {
        let config = load("", &[], &[]).expect("the defaults fit");
        assert_eq!(config.listen.to_string(), "127.0.0.1:8181");
        assert!(config.store.ends_with("/anabranch-data/catalog.db"));
        assert!(config.warehouse.starts_with("file:///"));
        assert!(!config.warehouse_is_chosen);
        assert_eq!(config.history_retention, Duration::from_secs(24 * 3600));
        assert_eq!(config.otlp_endpoint, None);
    }

    #[test]
    fn the_last_source_wins_and_each_value_knows_its_own() {
        let file = "listen = \"127.0.0.1:1\"\nqueue-limit = 7\nrequest-timeout = \"5s\"";
        let variables = [
            ("ANABRANCH_LISTEN", "127.0.0.1:2"),
            ("ANABRANCH_QUEUE_LIMIT", "8"),
        ];
        let config = load(file, &variables, &[("listen", "127.0.0.1:3")]).expect("fits");
        assert_eq!(config.listen.port(), 3);
        assert_eq!(config.queue_limit, 8);
        assert_eq!(config.request_timeout, Duration::from_secs(5));
        assert_eq!(origin(&config, "listen").to_string(), "flag --listen");
        assert_eq!(
            origin(&config, "queue-limit").to_string(),
            "variable ANABRANCH_QUEUE_LIMIT"
        );
        assert_eq!(
            origin(&config, "request-timeout").to_string(),
            "file test.toml"
        );
        assert_eq!(origin(&config, "body-limit").to_string(), "default");
    }

    #[test]
    fn a_data_folder_moves_the_store_and_the_warehouse() {
        let config = load("", &[], &[("data-dir", "/data")]).expect("fits");
        assert_eq!(config.store, "sqlite:/data/catalog.db");
        assert_eq!(config.warehouse, "file:///data/warehouse");
    }

    #[test]
    fn an_unknown_key_is_named_with_the_nearest_known() {
        let failure = load("lisen = \"127.0.0.1:1\"", &[], &[]).expect_err("unknown");
        let line = failure.to_string();
        assert!(
            line.contains("`lisen`") && line.contains("`listen`"),
            "{line}"
        );
        assert_eq!(failure.status(), 2);
    }

    #[test]
    fn a_misspelt_variable_is_pointed_out_and_others_may_start_alike() {
        let variables = [
            ("ANABRANCH_DATADIR", "/data"),
            ("ANABRANCH_PORT_8181_TCP", "tcp://10.0.0.1:8181"),
            ("ANABRANCH_LISTEN", "127.0.0.1:2"),
        ];
        let config = load("", &variables, &[]).expect("fits");
        assert_eq!(config.warnings().len(), 1);
        assert!(config.warnings()[0].contains("ANABRANCH_DATA_DIR"));
    }

    #[test]
    fn a_value_that_does_not_fit_is_named_with_its_origin() {
        for (name, value) in [
            ("listen", "8181"),
            ("store", "mysql://x"),
            ("warehouse", "warehouse"),
            ("request-timeout", "soon"),
            ("body-limit", "32 bananas"),
            ("max-connections", "0"),
            ("log-format", "xml"),
            ("log-level", "inf"),
            ("otlp-endpoint", "nowhere"),
            ("allow-anonymous-access-from-anywhere", "perhaps"),
        ] {
            let failure = load("", &[], &[(name, value)]).expect_err(name);
            let line = failure.to_string();
            let flag = format!("flag --{name}");
            assert!(line.contains(name) && line.contains(&flag), "{line}");
        }
    }
}
