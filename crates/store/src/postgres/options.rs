//! How a PostgreSQL store is reached, and what its sessions promise.

use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::error::StoreError;

/// How partitions are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockMode {
    /// READ COMMITTED and `SELECT … FOR UPDATE` on the partition rows.
    #[default]
    Pessimistic,
    /// REPEATABLE READ; the partition rows are written at the end, and the loser gets 40001.
    Optimistic,
    /// READ COMMITTED and no lock: what tests use to show that they would notice.
    #[cfg(feature = "testing")]
    Unprotected,
}

/// How a PostgreSQL store is opened. TLS isn't supported: a URL with `sslmode=require` is refused,
/// and `prefer`, the default, means plain text.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// Bring the database to this program's schema.
    pub migrate: bool,
    /// How partitions are held; `?mode=optimistic` or `?mode=pessimistic` in the URL goes first.
    pub mode: LockMode,
    /// The most connections that are open at once.
    pub pool_size: usize,
    /// How long a call waits for a free connection, and a new one for its server.
    pub wait: Duration,
    /// How long a statement waits for a lock.
    pub lock_timeout: Duration,
    /// How long a statement runs.
    pub statement_timeout: Duration,
    /// After this long without a statement PostgreSQL ends a transaction: how the partitions of a
    /// server that hangs become free.
    pub idle_in_transaction_timeout: Duration,
    /// After this long without a sign of life, each side asks the other for one.
    pub keepalive_idle: Duration,
    /// How long apart those questions are.
    pub keepalive_interval: Duration,
    /// After how many questions without an answer the connection is dead.
    pub keepalive_count: u32,
    /// After this long without an acknowledgement of sent data the connection is dead.
    pub tcp_user_timeout: Duration,
}

impl Default for PostgresOptions {
    fn default() -> PostgresOptions {
        PostgresOptions {
            migrate: false,
            mode: LockMode::Pessimistic,
            pool_size: 16,
            wait: Duration::from_secs(5),
            lock_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            idle_in_transaction_timeout: Duration::from_secs(5),
            keepalive_idle: Duration::from_secs(5),
            keepalive_interval: Duration::from_secs(2),
            keepalive_count: 3,
            tcp_user_timeout: Duration::from_secs(10),
        }
    }
}

impl PostgresOptions {
    /// The driver's configuration, the lock mode, and how to name the database to an operator.
    pub(super) fn resolve(&self, url: &str) -> Result<(Config, LockMode, String), StoreError> {
        let (url, mode) = take_mode(url)?;
        let mut config = Config::from_str(&url).map_err(|error| {
            // The driver names the option that it doesn't understand, never a value.
            unusable(format!(
                "cannot read the PostgreSQL URL ({error}); it looks like \
                 postgres://user:password@host:5432/database"
            ))
        })?;
        if config.get_ssl_mode() == SslMode::Require {
            return Err(unusable(
                "this program can't speak TLS to PostgreSQL yet; remove sslmode=require from the \
                 URL and reach the database over a private network or a local tunnel"
                    .to_owned(),
            ));
        }
        let given = config.get_options().unwrap_or_default().to_owned();
        config
            .options(format!("{} {given}", self.session_settings()).trim_end())
            .connect_timeout(self.wait)
            .keepalives(true)
            .keepalives_idle(self.keepalive_idle)
            .keepalives_interval(self.keepalive_interval)
            .keepalives_retries(self.keepalive_count)
            .tcp_user_timeout(self.tcp_user_timeout);
        if config.get_application_name().is_none() {
            config.application_name("anabranch");
        }
        let place = place_of(&config);
        Ok((config, mode.unwrap_or(self.mode), place))
    }

    fn session_settings(&self) -> String {
        let settings = [
            ("lock_timeout", self.lock_timeout.as_millis()),
            ("statement_timeout", self.statement_timeout.as_millis()),
            (
                "idle_in_transaction_session_timeout",
                self.idle_in_transaction_timeout.as_millis(),
            ),
            (
                "tcp_keepalives_idle",
                u128::from(self.keepalive_idle.as_secs().max(1)),
            ),
            (
                "tcp_keepalives_interval",
                u128::from(self.keepalive_interval.as_secs().max(1)),
            ),
            ("tcp_keepalives_count", u128::from(self.keepalive_count)),
            ("tcp_user_timeout", self.tcp_user_timeout.as_millis()),
        ];
        // Every statement here is a walk along an index: with these the plan doesn't depend on
        // statistics, and isn't made again for each set of values.
        const PLANS: [&str; 6] = [
            "plan_cache_mode=force_generic_plan",
            "enable_seqscan=off",
            "enable_bitmapscan=off",
            "enable_hashjoin=off",
            "enable_mergejoin=off",
            "jit=off",
        ];
        let mut all: Vec<String> = settings
            .iter()
            .map(|(name, value)| format!("-c {name}={value}"))
            .collect();
        all.extend(PLANS.iter().map(|setting| format!("-c {setting}")));
        all.join(" ")
    }
}

/// Takes `mode=…` out of the URL's parameters.
fn take_mode(url: &str) -> Result<(String, Option<LockMode>), StoreError> {
    let Some((base, query)) = url.split_once('?') else {
        return Ok((url.to_owned(), None));
    };
    let mut mode = None;
    let mut rest = Vec::new();
    for parameter in query.split('&') {
        match parameter.strip_prefix("mode=") {
            Some("optimistic") => mode = Some(LockMode::Optimistic),
            Some("pessimistic") => mode = Some(LockMode::Pessimistic),
            #[cfg(feature = "testing")]
            Some("unprotected") => mode = Some(LockMode::Unprotected),
            Some(_) => {
                return Err(unusable(
                    "the PostgreSQL URL has an unknown mode; it is optimistic or pessimistic"
                        .to_owned(),
                ));
            }
            None => rest.push(parameter),
        }
    }
    let url = if rest.is_empty() {
        base.to_owned()
    } else {
        format!("{base}?{}", rest.join("&"))
    };
    Ok((url, mode))
}

fn place_of(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = config.get_dbname().unwrap_or("its default database");
    format!("PostgreSQL {database} at {host}:{port}")
}

pub(super) fn unusable(message: String) -> StoreError {
    StoreError::Unusable { message }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn resolve(url: &str) -> Result<(Config, LockMode, String), StoreError> {
        PostgresOptions::default().resolve(url)
    }

    #[test]
    fn the_mode_is_taken_out_and_the_rest_passes_through() {
        let (config, mode, place) =
            resolve("postgres://u:secret@h:6000/d?mode=optimistic&application_name=x").unwrap();
        assert_eq!(mode, LockMode::Optimistic);
        assert_eq!(config.get_application_name(), Some("x"));
        assert_eq!(place, "PostgreSQL d at h:6000");
    }

    #[test]
    fn no_message_names_the_password() {
        for url in [
            "postgres://u:secret@h/d?sslmode=require",
            "postgres://u:secret@h/d?mode=secret",
            "postgres://u:secret@h/d?unknown=secret",
            "postgres://u:secret@h:secret/d",
        ] {
            let error = resolve(url).unwrap_err();
            assert!(matches!(error, StoreError::Unusable { .. }), "{url}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
