//! The table of settings: the only place that knows their names, defaults and descriptions.

/// What counts when no source says anything.
#[derive(Clone, Copy, Debug)]
pub enum Preset {
    /// This text.
    Value(&'static str),
    /// The data folder between these texts.
    InDataDir(&'static str, &'static str),
    /// Nothing.
    Unset,
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its key in the file and its flag.
    pub name: &'static str,
    /// What its value stands for in `--help`; empty for a switch.
    pub value_name: &'static str,
    /// What it does.
    pub help: &'static str,
    /// What counts otherwise.
    pub preset: Preset,
}

impl Setting {
    /// The variable that sets it.
    pub fn variable(&self) -> String {
        format!("ANABRANCH_{}", self.name.replace('-', "_").to_uppercase())
    }

    /// Whether its flag takes no value.
    pub fn is_switch(&self) -> bool {
        self.value_name.is_empty()
    }
}

const fn setting(
    name: &'static str,
    value_name: &'static str,
    preset: Preset,
    help: &'static str,
) -> Setting {
    Setting {
        name,
        value_name,
        help,
        preset,
    }
}

use Preset::{InDataDir, Unset, Value};

/// All settings, in the order in which they are shown.
pub const SETTINGS: &[Setting] = &[
    setting(
        "listen",
        "ADDRESS:PORT",
        Value("127.0.0.1:8181"),
        "where the server listens; port 0 takes a free one",
    ),
    setting(
        "data-dir",
        "FOLDER",
        Value("./anabranch-data"),
        "where the embedded store and warehouse are",
    ),
    setting(
        "store",
        "URL",
        InDataDir("sqlite:", "/catalog.db"),
        "sqlite:PATH, or postgres://user@host/database with ?mode=optimistic for optimistic locking",
    ),
    setting(
        "warehouse",
        "URL",
        InDataDir("file://", "/warehouse"),
        "the location that the catalog `lake` gets at the first start: file:///… or s3://…",
    ),
    setting(
        "local-folders",
        "URLS",
        Unset,
        "further local folders that catalogs may lie in, as file:///… with commas between",
    ),
    setting(
        "history-retention",
        "TIME",
        Value("24h"),
        "how long earlier states and the change feed stay readable",
    ),
    setting(
        "idempotency-lifetime",
        "TIME",
        Value("24h"),
        "how long an Idempotency-Key protects its request",
    ),
    setting(
        "request-timeout",
        "TIME",
        Value("60s"),
        "from the head of a request to its answer",
    ),
    setting(
        "max-connections",
        "NUMBER",
        Value("4096"),
        "open connections; further ones wait",
    ),
    setting(
        "max-requests",
        "NUMBER",
        Value("1024"),
        "requests that run at the same time; one more is answered 503",
    ),
    setting(
        "max-followers",
        "NUMBER",
        Value("1024"),
        "requests that wait for changes at the same time; one more is answered 503",
    ),
    setting(
        "body-limit",
        "SIZE",
        Value("32MiB"),
        "the largest request body",
    ),
    setting(
        "document-limit",
        "SIZE",
        Value("256MiB"),
        "the largest table or view metadata document",
    ),
    setting(
        "queue-limit",
        "NUMBER",
        Value("4096"),
        "changes that wait for their turn; one more is answered 503",
    ),
    setting(
        "metadata-cache",
        "SIZE",
        Value("32MiB"),
        "metadata documents kept in memory",
    ),
    setting(
        "row-cache",
        "NUMBER",
        Value("50000"),
        "decoded catalog rows kept in memory; 0 keeps none",
    ),
    setting(
        "postgres-connections",
        "NUMBER",
        Value("16"),
        "connections to PostgreSQL",
    ),
    setting(
        "sweep-grace",
        "TIME",
        Value("24h"),
        "how old a file must be before it can count as left over",
    ),
    setting(
        "job-interval",
        "TIME",
        Value("5m"),
        "how often background jobs run",
    ),
    setting(
        "log-level",
        "LEVEL",
        Value("info"),
        "error, warn, info, debug or trace, or target=level pairs",
    ),
    setting("log-format", "FORMAT", Value("human"), "human or json"),
    setting(
        "otlp-endpoint",
        "URL",
        Unset,
        "where traces go by OTLP over HTTP, such as http://127.0.0.1:4318",
    ),
    setting(
        "allow-anonymous-access-from-anywhere",
        "",
        Value("false"),
        "listen beyond loopback although nobody has to log in",
    ),
];

/// A setting by its name.
pub fn by_name(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// The setting whose name is most like the given one.
pub fn nearest(name: &str) -> Option<&'static Setting> {
    let likeness = |setting: &&Setting| strsim::damerau_levenshtein(setting.name, name);
    SETTINGS.iter().min_by_key(likeness)
}
