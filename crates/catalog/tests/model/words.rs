//! What a history is made of, in words that stand for themselves: a history from which steps were
//! removed is still a history.

use std::fmt;

use anabranch_store::fault::When;

/// A namespace: catalog, database, and up to two levels nested in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub catalog: &'static str,
    pub levels: Vec<&'static str>,
}

/// A table's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    pub place: Place,
    pub table: &'static str,
}

/// One table of a commit. What is required is what any client saw there last.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub levels: Vec<&'static str>,
    pub table: &'static str,
    pub requires_uuid: bool,
    pub requires_main: bool,
    /// Add a snapshot of this id and make it main's; only with `requires_main`.
    pub append: Option<i64>,
    pub set: Option<(&'static str, String)>,
    pub unset: Option<&'static str>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    CreateCatalog(&'static str),
    RenameCatalog(&'static str, &'static str),
    DropCatalog {
        catalog: &'static str,
        cascade: bool,
    },
    CreateNamespace(Place, Option<(&'static str, String)>),
    DropNamespace(Place),
    SetProperties {
        place: Place,
        set: Option<(&'static str, String)>,
        unset: Option<&'static str>,
    },
    CreateTable(Name),
    /// A commit that creates a table of this uuid.
    CreateStaged(Name, u128),
    DropTable(Name),
    /// To another name in the same catalog.
    RenameTable(Name, Vec<&'static str>, &'static str),
    Commit(&'static str, Vec<Change>),
    LoadNamespace(Place),
    LoadTable(Name),
    ListNamespaces(&'static str, Vec<&'static str>),
    ListTables(Place),
    /// A read of everything in a partition as of a revision; the catalog's own if there is no
    /// database.
    ReadPinned(&'static str, Option<&'static str>, Pin),
    /// The next page of the feed, for the one consumer that goes on where it was.
    Follow(u32),
}

/// Which revision a pinned read asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// Of the partition's last change.
    LastChange,
    /// The store's time: the partition's clock has to be moved up.
    Now,
}

/// A call of the store that is held until some further steps of the history are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    pub call: &'static str,
    pub when: When,
    pub steps: usize,
}

/// One request of one client.
#[derive(Clone, Debug)]
pub struct Step {
    /// Stays the same when other steps are removed.
    pub id: usize,
    pub client: usize,
    pub server: usize,
    pub command: Command,
    /// Whether it is sent with an idempotency key.
    pub keyed: bool,
    /// Whether the client misses the first answer and sends the same request to another server.
    pub resent: bool,
    pub hold: Option<Hold>,
    /// The next time the store is called like this, the request or its answer is lost.
    pub lost: Option<(&'static str, When)>,
}

impl Command {
    pub fn changes_something(&self) -> bool {
        !matches!(
            self,
            Command::LoadNamespace(_)
                | Command::LoadTable(_)
                | Command::ListNamespaces(..)
                | Command::ListTables(_)
                | Command::ReadPinned(..)
                | Command::Follow(_)
        )
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.catalog, self.levels.join("."))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.place, self.table)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.levels.join("."), self.table)?;
        if self.requires_uuid {
            write!(formatter, " if its uuid is as seen")?;
        }
        if self.requires_main {
            write!(formatter, " if main is as seen")?;
        }
        if let Some(snapshot) = self.append {
            write!(formatter, " append {snapshot}")?;
        }
        if let Some((key, value)) = &self.set {
            write!(formatter, " set {key}={value}")?;
        }
        if let Some(key) = self.unset {
            write!(formatter, " unset {key}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::CreateCatalog(name) => write!(formatter, "create catalog {name}"),
            Command::RenameCatalog(from, to) => write!(formatter, "rename catalog {from} to {to}"),
            Command::DropCatalog { catalog, cascade } => {
                let how = if *cascade { " with all in it" } else { "" };
                write!(formatter, "drop catalog {catalog}{how}")
            }
            Command::CreateNamespace(place, property) => {
                write!(formatter, "create namespace {place}")?;
                match property {
                    Some((key, value)) => write!(formatter, " with {key}={value}"),
                    None => Ok(()),
                }
            }
            Command::DropNamespace(place) => write!(formatter, "drop namespace {place}"),
            Command::SetProperties { place, set, unset } => {
                write!(formatter, "properties of {place}")?;
                if let Some((key, value)) = set {
                    write!(formatter, " set {key}={value}")?;
                }
                match unset {
                    Some(key) => write!(formatter, " unset {key}"),
                    None => Ok(()),
                }
            }
            Command::CreateTable(name) => write!(formatter, "create table {name}"),
            Command::CreateStaged(name, uuid) => {
                write!(
                    formatter,
                    "create table {name} of uuid {uuid:x} by a commit"
                )
            }
            Command::DropTable(name) => write!(formatter, "drop table {name}"),
            Command::RenameTable(name, levels, table) => {
                write!(
                    formatter,
                    "rename table {name} to {}.{table}",
                    levels.join(".")
                )
            }
            Command::Commit(catalog, changes) => {
                write!(formatter, "commit in {catalog}:")?;
                let mut joint = "";
                for change in changes {
                    write!(formatter, "{joint} {change}")?;
                    joint = ";";
                }
                Ok(())
            }
            Command::LoadNamespace(place) => write!(formatter, "load namespace {place}"),
            Command::LoadTable(name) => write!(formatter, "load table {name}"),
            Command::ListNamespaces(catalog, levels) => {
                write!(
                    formatter,
                    "list namespaces of {catalog}/{}",
                    levels.join(".")
                )
            }
            Command::ListTables(place) => write!(formatter, "list tables of {place}"),
            Command::ReadPinned(catalog, database, pin) => {
                let database = database.unwrap_or_default();
                write!(formatter, "read {catalog}/{database} as of {pin:?}")
            }
            Command::Follow(limit) => write!(formatter, "follow the feed by {limit}"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "#{:<3} client {} on server {}: {}",
            self.id, self.client, self.server, self.command
        )?;
        if self.keyed {
            write!(formatter, ", keyed")?;
        }
        if self.resent {
            write!(formatter, ", sent again")?;
        }
        if let Some(hold) = self.hold {
            write!(
                formatter,
                ", held at {:?} {} for {} steps",
                hold.when, hold.call, hold.steps
            )?;
        }
        if let Some((call, when)) = self.lost {
            write!(formatter, ", {call} lost ({when:?})")?;
        }
        Ok(())
    }
}
