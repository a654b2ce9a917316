//! What a database's name selects, and what stands there: `db` is `main`, `db$branch_x` a branch,
//! `db$tag_v1` a tag, `db$tag_rev-…` a state.

use anabranch_partition::{Subject, decide};
use anabranch_store::{
    Answer, BranchRow, BranchState, Class, Entry, Leaf, PartitionId, Path, Read, Resolved,
};

use crate::body;
use crate::error::CatalogError;
use crate::reference::body::{ReferenceBody, ReferenceName};
use crate::reference::find::subject;
use crate::reference::name::{Selector, split_selector};
use crate::reference::sides::Side;
use crate::service::Core;
use crate::service::states::gone;

/// What a path led to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Located {
    /// What stands along it; the leaf as what is selected shows it.
    pub(crate) resolved: Resolved,
    /// What is selected of the database; `None` on `main`.
    pub(crate) reach: Option<Reach>,
}

impl Located {
    /// Whether files of its tables may belong to other branches or tags too.
    pub(crate) fn is_shared(&self) -> bool {
        self.reach.is_some() || self.resolved.has_references
    }
}

/// What is selected of a database.
#[derive(Clone, Debug)]
pub(crate) enum Reach {
    /// A branch as it stood when it was found.
    Branch { name: String, row: BranchRow },
    /// A state that never changes: a tag's, or one by its revision.
    State {
        subject: Subject,
        row: BranchRow,
        state: BranchState,
    },
    /// Nothing: there is no such reference or state.
    Missing(Selector),
}

impl Reach {
    /// The state that is selected. A branch is read as it stood when it was found, so that what is
    /// answered is one state.
    pub(crate) fn side(&self) -> Option<Side> {
        let (row, state) = match self {
            Reach::Branch { row, .. } => {
                let state = BranchState {
                    branch: row.branch,
                    revision: row.head,
                };
                (row, state)
            }
            Reach::State { row, state, .. } => (row, *state),
            Reach::Missing(_) => return None,
        };
        Some((row.clone(), state))
    }
}

/// A path whose database has a selector.
struct Selected {
    place: usize,
    selector: Selector,
    leaf: Option<Leaf>,
}

impl Core {
    /// What one path leads to.
    pub(crate) async fn locate_one(&self, path: Path) -> Result<Located, CatalogError> {
        let located = self.locate(vec![path]).await?;
        Ok(located.into_iter().next().unwrap_or_default())
    }

    /// What paths lead to: one statement if nothing is selected.
    pub(crate) async fn locate(&self, mut paths: Vec<Path>) -> Result<Vec<Located>, CatalogError> {
        let mut selected = Vec::new();
        for (place, path) in paths.iter_mut().enumerate() {
            let Some(database) = &path.database else {
                continue;
            };
            let (plain, selector) = split_selector(database)?;
            let plain = plain.to_owned();
            path.database = Some(plain);
            if let Some(selector) = selector {
                let leaf = path.leaf.take();
                if let Selector::Reference(name) = &selector {
                    path.leaf = Some(Leaf {
                        scope: String::new(),
                        class: Class::Reference,
                        name: name.name.clone(),
                    });
                }
                selected.push(Selected {
                    place,
                    selector,
                    leaf,
                });
            }
        }
        let resolved = self.partitions.resolve(&paths).await?;
        let mut located: Vec<Located> = resolved
            .into_iter()
            .map(|resolved| Located {
                resolved,
                reach: None,
            })
            .collect();
        for one in selected {
            self.reach(&mut located[one.place], one).await?;
        }
        Ok(located)
    }

    /// Goes to what is selected.
    async fn reach(&self, located: &mut Located, selected: Selected) -> Result<(), CatalogError> {
        let reference = located.resolved.leaf.take();
        located.reach = Some(Reach::Missing(selected.selector.clone()));
        let Some(database) = &located.resolved.database else {
            return Ok(());
        };
        let database = PartitionId(database.object.0);
        let leaf = selected.leaf.as_ref();
        let found = match &selected.selector {
            Selector::Pin(state) => self.at_pin(database, *state, leaf).await?,
            Selector::Reference(name) => {
                match reference.filter(|entry| entry.kind == name.kind.stored()) {
                    Some(entry) => self.at_reference(database, name, &entry, leaf).await?,
                    None => None,
                }
            }
        };
        if let Some((reach, shown)) = found {
            located.resolved.leaf = shown;
            located.reach = Some(reach);
        }
        Ok(())
    }

    /// What a reference selects, and what it shows under a name: one read, of one snapshot.
    async fn at_reference(
        &self,
        database: PartitionId,
        name: &ReferenceName,
        entry: &Entry,
        leaf: Option<&Leaf>,
    ) -> Result<Option<(Reach, Option<Entry>)>, CatalogError> {
        let body: ReferenceBody = body::read(entry)?;
        let layers = body.layers(database);
        let points = leaf.map(|leaf| layers.point(&leaf.scope, leaf.class, &leaf.name));
        let state = BranchState {
            branch: body.branch,
            revision: body.revision.unwrap_or_default(),
        };
        let mut reads = vec![
            Read::Branch(database, state.branch),
            Read::Pinned(database, state),
        ];
        reads.extend(points.into_iter().flatten());
        let mut answers = self.partitions.read(&reads).await?.into_iter();
        let (Some(Answer::Branch(Some(row))), Some(Answer::Pinned(pinned))) =
            (answers.next(), answers.next())
        else {
            return Ok(None);
        };
        let reach = match body.revision {
            None if row.ended.is_none() => Reach::Branch {
                name: name.name.clone(),
                row,
            },
            Some(revision) if pinned || row.keeps(revision) => Reach::State {
                subject: subject(name.kind),
                row,
                state,
            },
            // It was deleted since it was found.
            _ => return Ok(None),
        };
        Ok(Some((reach, decided(answers))))
    }

    async fn at_pin(
        &self,
        database: PartitionId,
        state: BranchState,
        leaf: Option<&Leaf>,
    ) -> Result<Option<(Reach, Option<Entry>)>, CatalogError> {
        let reads = [
            Read::Branch(database, state.branch),
            Read::Pinned(database, state),
        ];
        let mut answers = self.partitions.read(&reads).await?.into_iter();
        let (Some(Answer::Branch(Some(row))), Some(Answer::Pinned(pinned))) =
            (answers.next(), answers.next())
        else {
            return Ok(None);
        };
        if state.revision > row.head {
            return Ok(None);
        }
        if !pinned && !row.keeps(state.revision) {
            return Err(gone(state).into());
        }
        let side = (row, state);
        let shown = match leaf {
            Some(leaf) => {
                let place = (leaf.scope.clone(), leaf.class, leaf.name.clone());
                self.shown(&side, &place).await?
            }
            None => None,
        };
        let (row, _) = side;
        let reach = Reach::State {
            subject: Subject::Tag,
            row,
            state,
        };
        Ok(Some((reach, shown)))
    }
}

/// What point reads of layers found together.
pub(crate) fn decided(answers: impl IntoIterator<Item = Answer>) -> Option<Entry> {
    decide(answers.into_iter().map(|answer| match answer {
        Answer::Entry(entry) => entry,
        _ => None,
    }))
}
