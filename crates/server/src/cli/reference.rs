//! `ref …`.

use clap::{Args, Subcommand, ValueEnum};

use super::Remote;

/// `ref …`.
#[derive(Debug, Subcommand)]
pub enum RefVerb {
    /// List the branches and tags of a database.
    List {
        /// The database.
        database: String,
        /// Only branches, or only tags.
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<RefKind>,
        /// Which server.
        #[command(flatten)]
        remote: Remote,
    },
    /// Create a branch, or with --tag a tag; takes no longer however large the database is.
    Create(RefCreate),
    /// Delete a branch or tag; what others need of it stays.
    Delete {
        /// The database.
        database: String,
        /// The branch or tag.
        name: String,
        /// Only if it shows this revision.
        #[arg(long, value_name = "REVISION")]
        expect: Option<String>,
        /// Which server.
        #[command(flatten)]
        remote: Remote,
    },
    /// Protect a branch or tag from being deleted.
    Protect {
        /// The database.
        database: String,
        /// The branch or tag.
        name: String,
        /// Let it be deleted again.
        #[arg(long)]
        off: bool,
        /// Which server.
        #[command(flatten)]
        remote: Remote,
    },
    /// Show what happened to a branch or tag, the last first, as a graph.
    Log {
        /// The database.
        database: String,
        /// The branch or tag.
        #[arg(default_value = "main")]
        name: String,
        /// Entries at most.
        #[arg(long, value_name = "NUMBER", default_value_t = 50)]
        limit: usize,
        /// Which server.
        #[command(flatten)]
        remote: Remote,
    },
    /// Show the tables that a branch or tag has otherwise than another.
    Diff(RefDiff),
    /// Merge a branch or tag into a branch: every table at once, or nothing.
    Merge(RefMerge),
}

/// `ref create`.
#[derive(Debug, Args)]
pub struct RefCreate {
    /// The database.
    pub database: String,
    /// The name of the new branch or tag.
    pub name: String,
    /// Make a tag, which never changes.
    #[arg(long)]
    pub tag: bool,
    /// The branch or tag to start from.
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub from: String,
    /// Start from exactly this revision of it, though it may have moved since.
    #[arg(long, value_name = "REVISION")]
    pub from_revision: Option<String>,
    /// Only if what it starts from shows this revision.
    #[arg(long, value_name = "REVISION")]
    pub expect: Option<String>,
    /// Which server.
    #[command(flatten)]
    pub remote: Remote,
}

/// `ref diff`.
#[derive(Debug, Args)]
pub struct RefDiff {
    /// The database.
    pub database: String,
    /// The branch or tag to compare with.
    pub name: String,
    /// The branch or tag whose differences are shown.
    pub other: String,
    /// Compare with this revision of the first.
    #[arg(long, value_name = "REVISION")]
    pub revision: Option<String>,
    /// Show the differences of this revision of the second.
    #[arg(long, value_name = "REVISION")]
    pub other_revision: Option<String>,
    /// Which server.
    #[command(flatten)]
    pub remote: Remote,
}

/// `ref merge`.
#[derive(Debug, Args)]
pub struct RefMerge {
    /// The database.
    pub database: String,
    /// The branch or tag to merge.
    pub source: String,
    /// The branch to merge into.
    #[arg(long, value_name = "BRANCH", default_value = "main")]
    pub into: String,
    /// Only say what would become of each table.
    #[arg(long)]
    pub dry_run: bool,
    /// What to do with the source's changes.
    #[arg(
        long,
        value_name = "MODE",
        ignore_case = true,
        default_value = "NORMAL"
    )]
    pub mode: MergeMode,
    /// The same for one table, as TABLE=MODE; may be given again.
    #[arg(long = "table", value_name = "TABLE=MODE", value_parser = table_mode)]
    pub tables: Vec<(String, MergeMode)>,
    /// Merge exactly this revision of the source, though it may have moved since.
    #[arg(long, value_name = "REVISION")]
    pub revision: Option<String>,
    /// Only if the branch that is merged into shows this revision.
    #[arg(long, value_name = "REVISION")]
    pub expect: Option<String>,
    /// Which server.
    #[command(flatten)]
    pub remote: Remote,
}

/// A kind of reference.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum RefKind {
    /// Branches.
    Branch,
    /// Tags.
    Tag,
}

/// What a merge does with the source's changes of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum MergeMode {
    /// Take them; a conflict if the target changed the table too.
    Normal,
    /// Take them, whatever the target did.
    Force,
    /// Leave them out.
    Drop,
}

impl RefKind {
    /// As the filter of a listing.
    pub fn filter(self) -> &'static str {
        match self {
            RefKind::Branch => "branch",
            RefKind::Tag => "tag",
        }
    }
}

impl MergeMode {
    /// As servers write it.
    pub fn word(self) -> &'static str {
        match self {
            MergeMode::Normal => "NORMAL",
            MergeMode::Force => "FORCE",
            MergeMode::Drop => "DROP",
        }
    }
}

impl RefVerb {
    /// Which server this verb talks to.
    pub(super) fn remote(&mut self) -> &mut Remote {
        match self {
            RefVerb::List { remote, .. }
            | RefVerb::Delete { remote, .. }
            | RefVerb::Log { remote, .. }
            | RefVerb::Protect { remote, .. } => remote,
            RefVerb::Create(create) => &mut create.remote,
            RefVerb::Diff(diff) => &mut diff.remote,
            RefVerb::Merge(merge) => &mut merge.remote,
        }
    }
}

/// The mode stands behind the last equals sign: names of tables may have some.
fn table_mode(text: &str) -> Result<(String, MergeMode), String> {
    let wanted = "write TABLE=NORMAL, TABLE=FORCE or TABLE=DROP";
    match text.rsplit_once('=') {
        Some((table, mode)) if !table.is_empty() => {
            let mode = MergeMode::from_str(mode, true).map_err(|_| wanted.to_owned())?;
            Ok((table.to_owned(), mode))
        }
        _ => Err(wanted.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_stands_behind_the_last_equals_sign() {
        let force = ("a=b".to_owned(), MergeMode::Force);
        assert_eq!(table_mode("a=b=force"), Ok(force));
        for text in ["a", "=FORCE", "a=", "a=b"] {
            assert!(table_mode(text).is_err(), "{text}");
        }
    }
}
