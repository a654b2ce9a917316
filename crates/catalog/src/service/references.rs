//! Branches and tags of a database.

use anabranch_partition::{Refusal, RunError};
use anabranch_store::{
    Answer, BranchId, BranchRow, BranchState, Class, Entry, Kind, ObjectId, PartitionId, Read,
};

use crate::body;
use crate::command::{CreateReference, DeleteReference, MergeBranch, Merged, ProtectReference};
use crate::error::CatalogError;
use crate::name::{Namespace, Warehouse};
use crate::place::{Container, shortened};
use crate::reference::body::{MAIN, ReferenceBody, ReferenceKind, ReferenceName, named_state};
use crate::reference::find::{Found, Missing, ReferenceInfo, branch_named, no_reference};
use crate::reference::name::{check_reference_name, split_selector};
use crate::reference::plan::Modes;
use crate::service::caller::{Caller, Changed};
use crate::service::listing::{Listing, Page, Shelf};
use crate::service::{Catalog, Core};

/// A reference to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReference {
    /// Its kind and name.
    pub name: ReferenceName,
    /// What it starts from.
    pub source: SourceReference,
    /// The revision that the source has to show.
    pub expected: Option<String>,
}

/// A reference, and maybe an earlier state of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceReference {
    /// Its kind and name.
    pub name: ReferenceName,
    /// Exactly this state of it.
    pub revision: Option<String>,
}

/// A merge to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMerge {
    /// The branch that is merged into.
    pub target: String,
    /// What is merged.
    pub source: SourceReference,
    /// The revision that the target has to show.
    pub expected: Option<String>,
    /// What to do with the source's changes.
    pub modes: Modes,
    /// Only says what would be.
    pub dry_run: bool,
}

impl SourceReference {
    fn state(&self) -> Result<Option<BranchState>, Refusal> {
        let named = |revision: &String| {
            named_state(revision).ok_or_else(|| {
                Refusal::invalid(format!(
                    "`source.revision` is {:?}, which no answer gave out as a revision",
                    shortened(revision)
                ))
            })
        };
        self.revision.as_ref().map(named).transpose()
    }
}

impl Catalog {
    /// Creates a branch or tag. Costs the same however many tables the source shows.
    pub async fn create_reference(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        database: &str,
        new: &NewReference,
    ) -> Result<Changed<ReferenceInfo>, CatalogError> {
        let tried = self.try_create_reference(caller, warehouse, database, new);
        let answered = self.core.answer(caller, tried.await).await?;
        Ok(of_reference(answered.value))
    }

    async fn try_create_reference(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        database: &str,
        new: &NewReference,
    ) -> Result<Changed<ReferenceInfo>, CatalogError> {
        check_reference_name(&new.name.name)?;
        let command = CreateReference {
            database: self.core.versioned(warehouse, database).await?,
            new: new.name.clone(),
            source: new.source.name.clone(),
            state: new.source.state()?,
            expected: new.expected.clone(),
            object: ObjectId::new(rand::random()),
            branch: BranchId::new(rand::random()),
        };
        let partitions = vec![command.database.partition];
        let accepted = self.core.run(caller, partitions, command).await?;
        Ok(of_reference(accepted.outcome))
    }

    /// Deletes a branch or tag; answers what it was.
    pub async fn delete_reference(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        database: &str,
        name: &str,
        kind: Option<ReferenceKind>,
        expected: Option<&str>,
    ) -> Result<Changed<ReferenceInfo>, CatalogError> {
        let tried = async {
            let command = DeleteReference {
                database: self.core.versioned(warehouse, database).await?,
                name: name.to_owned(),
                kind,
                expected: expected.map(str::to_owned),
            };
            let partitions = vec![command.database.partition];
            let accepted = self.core.run(caller, partitions, command).await?;
            Ok(of_reference(accepted.outcome))
        };
        let answered = self.core.answer(caller, tried.await).await?;
        Ok(of_reference(answered.value))
    }

    /// Protects a reference from being deleted, or lets it be.
    pub async fn protect_reference(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        database: &str,
        name: &str,
        protected: bool,
    ) -> Result<Changed<ReferenceInfo>, CatalogError> {
        let tried = async {
            let command = ProtectReference {
                database: self.core.versioned(warehouse, database).await?,
                name: name.to_owned(),
                protected,
            };
            let partitions = vec![command.database.partition];
            let accepted = self.core.run(caller, partitions, command).await?;
            Ok(of_reference(accepted.outcome))
        };
        let answered = self.core.answer(caller, tried.await).await?;
        Ok(of_reference(answered.value))
    }

    /// Merges a state into a branch, in one commit.
    pub async fn merge(
        &self,
        caller: &Caller,
        warehouse: &Warehouse,
        database: &str,
        new: &NewMerge,
    ) -> Result<Changed<Merged>, CatalogError> {
        let tried = async {
            let command = MergeBranch {
                database: self.core.versioned(warehouse, database).await?,
                target: new.target.clone(),
                source: new.source.name.clone(),
                state: new.source.state()?,
                expected: new.expected.clone(),
                modes: new.modes.clone(),
                dry_run: new.dry_run,
            };
            let partitions = vec![command.database.partition];
            let accepted = self.core.run(caller, partitions, command).await?;
            Ok(of_merge(accepted.outcome))
        };
        let answered = self.core.answer(caller, tried.await).await?;
        Ok(of_merge(answered.value))
    }

    /// One reference.
    pub async fn reference(
        &self,
        warehouse: &Warehouse,
        database: &str,
        name: &str,
    ) -> Result<ReferenceInfo, CatalogError> {
        let database = self.core.versioned(warehouse, database).await?;
        let found = self.core.reference(database.partition, name).await?;
        let found = found.ok_or_else(|| no_reference(&branch_named(name), Missing::Target))?;
        Ok(found.info())
    }

    /// References in byte order of their names, `main` among them.
    pub async fn list_references(
        &self,
        warehouse: &Warehouse,
        database: &str,
        kind: Option<ReferenceKind>,
        page: &Page,
    ) -> Result<Listing<ReferenceInfo>, CatalogError> {
        let database = self.core.versioned(warehouse, database).await?;
        let kinds = match kind {
            Some(ReferenceKind::Branch) => vec![Kind::Branch],
            Some(ReferenceKind::Tag) => vec![Kind::Tag],
            None => Vec::new(),
        };
        let shelf = Shelf {
            partition: database.partition,
            scope: String::new(),
            class: Class::Reference,
            kinds,
        };
        let after = page.after()?;
        let shelved = self.core.list(shelf, page).await?;
        let mut named: Vec<(String, Option<Entry>)> = shelved
            .entries
            .into_iter()
            .map(|(key, entry)| (key.name, Some(entry)))
            .collect();
        let is_on_page = after.is_none_or(|after| after.as_str() < MAIN)
            && (shelved.next.is_none()
                || named.last().is_some_and(|(last, _)| MAIN < last.as_str()));
        if is_on_page && kind != Some(ReferenceKind::Tag) {
            let place = named.partition_point(|(name, _)| name.as_str() < MAIN);
            named.insert(place, (MAIN.to_owned(), None));
        }
        let found = self.core.found(database.partition, named).await?;
        Ok(Listing {
            items: found.iter().map(Found::info).collect(),
            next: shelved.next,
            revision: None,
        })
    }
}

fn of_merge(merged: Merged) -> Changed<Merged> {
    Changed {
        revision: merged.revision.clone(),
        value: merged,
    }
}

fn of_reference(info: ReferenceInfo) -> Changed<ReferenceInfo> {
    Changed {
        revision: info.revision.clone(),
        value: info,
    }
}

impl Core {
    /// A database by its plain name.
    pub(crate) async fn versioned(
        &self,
        warehouse: &Warehouse,
        database: &str,
    ) -> Result<Container, CatalogError> {
        let namespace = Namespace::new(vec![database.to_owned()])?;
        if let (plain, Some(_)) = split_selector(database)? {
            let message = format!(
                "{database} selects a reference; name the database alone, {plain}, and the \
                 reference where it is asked for"
            );
            return Err(Refusal::invalid(message).into());
        }
        let (_, found, ..) = self.namespace(warehouse, &namespace).await?;
        Ok(found.container)
    }

    /// The reference of a name, of whichever kind, as it stands now.
    pub(crate) async fn reference(
        &self,
        database: PartitionId,
        name: &str,
    ) -> Result<Option<Found>, CatalogError> {
        let entry = if name == MAIN {
            None
        } else {
            let key = crate::reference::body::reference_key(database, name);
            match self.partitions.read(&[Read::Point(key)]).await?.pop() {
                Some(Answer::Entry(Some(entry))) => Some(entry),
                _ => return Ok(None),
            }
        };
        let found = self.found(database, vec![(name.to_owned(), entry)]).await?;
        Ok(found.into_iter().next())
    }

    /// References with the branches that they show, in one snapshot.
    async fn found(
        &self,
        database: PartitionId,
        named: Vec<(String, Option<Entry>)>,
    ) -> Result<Vec<Found>, CatalogError> {
        let mut bodies = Vec::with_capacity(named.len());
        for (name, entry) in named {
            let body = match &entry {
                Some(entry) => body::read(entry)?,
                None => ReferenceBody {
                    branch: BranchId::MAIN,
                    revision: None,
                    lineage: Vec::new(),
                    protected: true,
                    created_at: 0,
                    created_by: String::new(),
                },
            };
            bodies.push((name, entry, body));
        }
        let reads: Vec<Read> = bodies
            .iter()
            .map(|(.., body)| Read::Branch(database, body.branch))
            .collect();
        let answers = self.partitions.read(&reads).await?;
        let mut found = Vec::with_capacity(bodies.len());
        for ((name, entry, body), answer) in bodies.into_iter().zip(answers) {
            let row = branch_row(answer)?;
            let kind = match entry.as_ref().map(|entry| entry.kind) {
                Some(Kind::Tag) => ReferenceKind::Tag,
                _ => ReferenceKind::Branch,
            };
            found.push(Found {
                name: ReferenceName { kind, name },
                body,
                object: entry.map(|entry| entry.object),
                row,
            });
        }
        Ok(found)
    }
}

fn branch_row(answer: Answer) -> Result<BranchRow, CatalogError> {
    match answer {
        Answer::Branch(Some(row)) => Ok(row),
        _ => {
            tracing::error!("a reference names a branch that has no row");
            Err(RunError::Failed.into())
        }
    }
}
