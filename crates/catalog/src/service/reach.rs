//! What a database's name selects, and what stands there: `db` is `main`, `db$branch_x` a branch,
//! `db$tag_v1` a tag, `db$tag_rev-…` a state.

use anabranch_partition::{Layers, Reason, Refusal, Subject, decide};
use anabranch_store::{
    Answer, BranchRow, BranchState, Class, Entry, Kind, Leaf, PartitionId, Path, Read, Resolved,
    Revision,
};

use crate::body;
use crate::error::CatalogError;
use crate::reference::body::{ReferenceBody, ReferenceKind, state_name};
use crate::reference::find::subject;
use crate::reference::name::{Selector, split_selector};
use crate::service::Core;

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
    /// Nothing: there is no such reference.
    Missing,
}

impl Reach {
    /// The state that is selected, and its layers. A branch is read as it stood when it was
    /// found, so that what is answered is one state.
    pub(crate) fn state(&self) -> Option<(Layers, BranchState)> {
        let (row, state) = match self {
            Reach::Branch { row, .. } => {
                let state = BranchState {
                    branch: row.branch,
                    revision: row.head,
                };
                (row, state)
            }
            Reach::State { row, state, .. } => (row, *state),
            Reach::Missing => return None,
        };
        Some((Layers::at(row, state.revision), state))
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
        located.reach = Some(Reach::Missing);
        let Some(database) = &located.resolved.database else {
            return Ok(());
        };
        let database = PartitionId(database.object.0);
        let partition = located.resolved.partition.as_ref();
        let horizon = partition.map_or(Revision::ZERO, |row| row.horizon);
        let Some(reach) = self
            .selected((database, horizon), &selected.selector, reference)
            .await?
        else {
            return Ok(());
        };
        if let (Some((layers, _)), Some(leaf)) = (reach.state(), &selected.leaf) {
            located.resolved.leaf = self.shown(&layers, leaf).await?;
        }
        located.reach = Some(reach);
        Ok(())
    }

    async fn selected(
        &self,
        (database, horizon): (PartitionId, Revision),
        selector: &Selector,
        reference: Option<Entry>,
    ) -> Result<Option<Reach>, CatalogError> {
        let (name, state) = match selector {
            Selector::Pin(state) => (None, *state),
            Selector::Reference(name) => {
                let wanted = match name.kind {
                    ReferenceKind::Branch => Kind::Branch,
                    ReferenceKind::Tag => Kind::Tag,
                };
                let Some(entry) = reference.filter(|entry| entry.kind == wanted) else {
                    return Ok(None);
                };
                let body: ReferenceBody = body::read(&entry)?;
                let state = BranchState {
                    branch: body.branch,
                    revision: body.revision.unwrap_or_default(),
                };
                (Some(name), state)
            }
        };
        let reads = [
            Read::Branch(database, state.branch),
            Read::Pinned(database, state),
        ];
        let mut answers = self.partitions.read(&reads).await?.into_iter();
        let (Some(Answer::Branch(row)), Some(Answer::Pinned(pinned))) =
            (answers.next(), answers.next())
        else {
            return Ok(None);
        };
        let Some(row) = row else {
            return Ok(None);
        };
        match name {
            Some(name) if name.kind == ReferenceKind::Branch => Ok(Some(Reach::Branch {
                name: name.name.clone(),
                row,
            })),
            Some(name) => Ok(Some(Reach::State {
                subject: subject(name.kind),
                row,
                state,
            })),
            None if state.revision > row.head => Ok(None),
            None if !pinned && (state.revision < row.floor || has_gone(&row, horizon)) => {
                Err(gone(state).into())
            }
            None => Ok(Some(Reach::State {
                subject: Subject::Tag,
                row,
                state,
            })),
        }
    }

    async fn shown(&self, layers: &Layers, leaf: &Leaf) -> Result<Option<Entry>, CatalogError> {
        let reads = layers.point(&leaf.scope, leaf.class, &leaf.name);
        let answers = self.partitions.read(&reads).await?;
        Ok(decide(answers.into_iter().map(|answer| match answer {
            Answer::Entry(entry) => entry,
            _ => None,
        })))
    }
}

/// Whether a branch ended so long ago that what stood on it may be pruned.
fn has_gone(row: &BranchRow, horizon: Revision) -> bool {
    row.ended.is_some_and(|ended| ended <= horizon)
}

fn gone(state: BranchState) -> Refusal {
    Refusal::new(
        Reason::Gone,
        format!(
            "revision {} is older than what is kept; use a newer one, or a tag",
            state_name(state)
        ),
    )
}
