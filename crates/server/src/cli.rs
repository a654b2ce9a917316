//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::config::SettingFlags;

mod reference;

pub use reference::{RefCreate, RefDiff, RefKind, RefMerge, RefVerb};

const NAMES: &str = "Names are catalog.database.table, with metalake. in front where it isn't `default`. A part with a \
    dot, slash or quotation mark in it stands in double quotes: 'lake.\"my.db\".orders'. Levels of a nested \
    namespace are separated by slashes: lake.sales/eu.orders.";

const SERVER_VARIABLE: &str = "ANABRANCH_SERVER";
const DEFAULT_SERVER: &str = "http://127.0.0.1:8181";

/// A lakehouse catalog server.
#[derive(Debug, Parser)]
#[command(name = "anabranch", version, about, after_help = NAMES)]
pub struct Cli {
    /// The server, for verbs that talk to one; may also stand behind the verb.
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a server.
    Serve(SettingFlags),
    /// Make the store, or bring it to this program's schema.
    Migrate(SettingFlags),
    /// Check every invariant of the store; exit status 1 if one is broken.
    Doctor(Doctor),
    /// Copy the whole store to a new file while it is in use.
    Backup(Backup),
    /// The configuration.
    #[command(subcommand)]
    Config(ConfigVerb),
    /// Catalogs.
    #[command(subcommand, after_help = NAMES)]
    Catalog(CatalogVerb),
    /// Databases and the namespaces nested in them.
    #[command(subcommand, after_help = NAMES)]
    Database(DatabaseVerb),
    /// Tables.
    #[command(subcommand, after_help = NAMES)]
    Table(TableVerb),
    /// Branches and tags of a database.
    #[command(subcommand, after_help = NAMES)]
    Ref(RefVerb),
    /// Remove files below tables' locations that no version which is kept needs.
    #[command(after_help = NAMES)]
    Gc(Gc),
    /// Show what changed, in order.
    #[command(after_help = NAMES)]
    Changes(Changes),
}

impl Cli {
    /// Takes a server that was named in front of the verb to where the verb looks for it; the
    /// error is one sentence.
    pub fn settle(mut self) -> Result<Verb, String> {
        if let Some(server) = self.server {
            let remote = self.verb.remote().ok_or(
                "--server is for verbs that talk to a server, and this one opens the store itself: \
                 leave it out",
            )?;
            remote.server.get_or_insert(server);
        }
        Ok(self.verb)
    }
}

impl Verb {
    /// Which server this verb talks to, if it talks to one.
    fn remote(&mut self) -> Option<&mut Remote> {
        match self {
            Verb::Serve(_) | Verb::Migrate(_) | Verb::Doctor(_) => None,
            Verb::Backup(_) | Verb::Config(_) => None,
            Verb::Catalog(
                CatalogVerb::List { remote, .. }
                | CatalogVerb::Create { remote, .. }
                | CatalogVerb::Show { remote, .. }
                | CatalogVerb::Rename { remote, .. }
                | CatalogVerb::Drop { remote, .. },
            ) => Some(remote),
            Verb::Database(
                DatabaseVerb::List { remote, .. }
                | DatabaseVerb::Create { remote, .. }
                | DatabaseVerb::Show { remote, .. }
                | DatabaseVerb::Drop { remote, .. },
            ) => Some(remote),
            Verb::Table(
                TableVerb::List { remote, .. }
                | TableVerb::Show { remote, .. }
                | TableVerb::Drop { remote, .. }
                | TableVerb::Rename { remote, .. },
            ) => Some(remote),
            Verb::Ref(verb) => Some(verb.remote()),
            Verb::Gc(gc) => Some(&mut gc.remote),
            Verb::Changes(changes) => Some(&mut changes.remote),
        }
    }
}

/// `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Check the store only, not the metadata documents that it points at.
    #[arg(long)]
    pub skip_files: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Which store.
    #[command(flatten)]
    pub settings: SettingFlags,
}

/// `backup`.
#[derive(Debug, Args)]
pub struct Backup {
    /// The file to write; it must not exist.
    pub target: PathBuf,
    /// Which store.
    #[command(flatten)]
    pub settings: SettingFlags,
}

/// `config …`.
#[derive(Debug, Subcommand)]
pub enum ConfigVerb {
    /// Print each setting in force and where its value came from.
    Show {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// What to show.
        #[command(flatten)]
        settings: SettingFlags,
    },
}

/// Which server, and how to print.
#[derive(Debug, Args)]
pub struct Remote {
    /// The server; else the variable ANABRANCH_SERVER, else http://127.0.0.1:8181.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

impl Remote {
    /// The server's address.
    pub fn server(&self) -> String {
        let variable = || std::env::var(SERVER_VARIABLE).ok();
        let named = self.server.clone().or_else(variable);
        named.unwrap_or_else(|| DEFAULT_SERVER.to_owned())
    }
}

/// `catalog …`.
#[derive(Debug, Subcommand)]
pub enum CatalogVerb {
    /// List the catalogs of a metalake.
    List {
        /// The metalake.
        #[arg(long, default_value = "default")]
        metalake: String,
        /// Which server.
        #[command(flatten)]
        remote: Remote,
    },
    /// Create a catalog.
    Create {
        /// Its name: catalog or metalake.catalog.
        name: String,
        /// Where its tables go, such as s3://bucket/path.
        #[arg(long, value_name = "URL")]
        location: Option<String>,
        /// A storage setting or a property of your own; may be given again.
        #[arg(long = "property", value_name = "KEY=VALUE", value_parser = property)]
        properties: Vec<(String, String)>,
        /// Which server.
        #[command(flatten)]
        remote: Remote,
    },
    /// Show a catalog.
    Show {
        /// Its name.
        name: String,
        /// Which server.
        #[command(flatten)]
        remote: Remote,
    },
    /// Rename a catalog; it stays in its metalake, and its files where they are.
    Rename {
        /// Its name: catalog or metalake.catalog.
        name: String,
        /// Its new name, without the metalake.
        new_name: String,
        /// Which server.
        #[command(flatten)]
        remote: Remote,
    },
    /// Drop a catalog; its files stay.
    Drop {
        /// Its name.
        name: String,
        /// Also drop what is in it.
        #[arg(long)]
        cascade: bool,
        /// Which server.
        #[command(flatten)]
        remote: Remote,
    },
}

/// `database …`.
#[derive(Debug, Subcommand)]
pub enum DatabaseVerb {
    /// List the databases of a catalog, or the namespaces in a database.
    List {
        /// catalog, or catalog.database.
        name: String,
        /// Which server.
        #[command(flatten)]
        remote: Remote,
    },
    /// Create a database, or a namespace in one.
    Create {
        /// Its name.
        name: String,
        /// A property; may be given again.
        #[arg(long = "property", value_name = "KEY=VALUE", value_parser = property)]
        properties: Vec<(String, String)>,
        /// Which server.
        #[command(flatten)]
        remote: Remote,
    },
    /// Show a database.
    Show {
        /// Its name.
        name: String,
        /// Which server.
        #[command(flatten)]
        remote: Remote,
    },
    /// Drop an empty database.
    Drop {
        /// Its name.
        name: String,
        /// Which server.
        #[command(flatten)]
        remote: Remote,
    },
}

/// `table …`.
#[derive(Debug, Subcommand)]
pub enum TableVerb {
    /// List the tables of a database.
    List {
        /// The database.
        name: String,
        /// Which server.
        #[command(flatten)]
        remote: Remote,
    },
    /// Show a table.
    Show {
        /// Its name.
        name: String,
        /// Which server.
        #[command(flatten)]
        remote: Remote,
    },
    /// Drop a table.
    Drop {
        /// Its name.
        name: String,
        /// Also remove its files, in the background.
        #[arg(long)]
        purge: bool,
        /// Which server.
        #[command(flatten)]
        remote: Remote,
    },
    /// Rename a table, also to another database of the same catalog.
    Rename {
        /// Its name.
        name: String,
        /// Its new name, in full.
        new_name: String,
        /// Which server.
        #[command(flatten)]
        remote: Remote,
    },
}

/// `gc`.
#[derive(Debug, Args)]
pub struct Gc {
    /// catalog, or catalog.database.
    pub name: String,
    /// Only list what would be removed, and why.
    #[arg(long)]
    pub dry_run: bool,
    /// Wait until it has ended.
    #[arg(long)]
    pub wait: bool,
    /// How old a file must be to go; at least the server's sweep-grace [default: 72].
    #[arg(long, value_name = "HOURS")]
    pub grace_hours: Option<u64>,
    /// Which server.
    #[command(flatten)]
    pub remote: Remote,
}

/// `changes`.
#[derive(Debug, Args)]
pub struct Changes {
    /// Only at and below this: catalog, catalog.database, metalake.catalog.database or an id.
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
    /// Go on behind this cursor: the `next` that an earlier call with --json printed at its end.
    #[arg(long, value_name = "CURSOR", conflicts_with = "remember")]
    pub after: Option<String>,
    /// Keep the cursor in this file: go on where the last call with it ended.
    #[arg(long, value_name = "FILE")]
    pub remember: Option<PathBuf>,
    /// Wait for further changes until interrupted.
    #[arg(long)]
    pub follow: bool,
    /// Which server.
    #[command(flatten)]
    pub remote: Remote,
}

fn property(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::Cli;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_server_may_be_named_before_and_behind_the_verb_and_the_last_one_counts() {
        let server = |words: &str| {
            let words = words.split(' ');
            let mut verb = Cli::parse_from(words).settle()?;
            verb.remote()
                .map(|remote| remote.server())
                .ok_or_else(|| "it talks to none".to_owned())
        };
        let before = server("anabranch --server http://a table list lake.shop");
        assert_eq!(before.as_deref(), Ok("http://a"));
        let behind = server("anabranch changes --server http://b");
        assert_eq!(behind.as_deref(), Ok("http://b"));
        let both = server("anabranch --server http://a catalog list --server http://b");
        assert_eq!(both.as_deref(), Ok("http://b"));
        let refused = server("anabranch --server http://a doctor");
        assert!(refused.is_err_and(|reason| reason.contains("opens the store itself")));
    }
}
