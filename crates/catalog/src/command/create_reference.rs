//! Creates a branch or a tag from the state of another one.

use anabranch_partition::{Command, Context, Refusal, Stop, Subject, View};
use anabranch_store::{BranchId, BranchRow, BranchState, Kind, ObjectId, Pin, Read};

use crate::place::{Container, already_exists};
use crate::reference::body::{
    ForkBody, MAIN, ReferenceBody, ReferenceKind, ReferenceName, fork_key, reference_key,
};
use crate::reference::find::{
    ReferenceInfo, chosen_state, find, find_source, naming, oldest_name, subject,
};

/// Locks the database's partition. Costs the same however much the source shows.
pub(crate) struct CreateReference {
    pub(crate) database: Container,
    pub(crate) new: ReferenceName,
    pub(crate) source: ReferenceName,
    /// Not what the source shows now, but this state of it.
    pub(crate) state: Option<BranchState>,
    /// What the source has to show.
    pub(crate) expected: Option<String>,
    /// Ids for the reference, and for its branch if it is one.
    pub(crate) object: ObjectId,
    pub(crate) branch: BranchId,
}

impl Command for CreateReference {
    type Outcome = ReferenceInfo;

    fn name(&self) -> &'static str {
        "create_reference"
    }

    fn reads(&self) -> Vec<Read> {
        let partition = self.database.partition;
        let names = [&self.new.name, &self.source.name];
        let keys = names.map(|name| Read::Point(reference_key(partition, name)));
        keys.into_iter().chain([self.database.read()]).collect()
    }

    fn apply(&self, view: &mut View<'_>, context: &Context<'_>) -> Result<ReferenceInfo, Stop> {
        self.database.guard(view, Subject::Namespace)?;
        let partition = self.database.partition;
        if let Some(taken) = find(view, partition, &self.new.name)? {
            let taken = taken.name;
            let refusal = already_exists(subject(taken.kind), &taken.name);
            return Err(naming(&taken, refusal).into());
        }
        let source = find_source(view, partition, &self.source)?;
        source.expect(self.expected.as_deref())?;
        let state = chosen_state(view, &source, self.state)?;
        let mut body = ReferenceBody {
            branch: state.branch,
            revision: Some(state.revision),
            lineage: source.row.lineage.clone(),
            protected: false,
            created_at: context.now.millis(),
            created_by: context.principal.to_owned(),
        };
        let layers = std::iter::once(state).chain(source.row.lineage.iter().copied());
        let kind = match self.new.kind {
            ReferenceKind::Tag => {
                view.pin(layers.map(|state| Pin {
                    partition,
                    state,
                    owner: self.object,
                }));
                Kind::Tag
            }
            ReferenceKind::Branch => {
                let lineage: Vec<BranchState> = layers.collect();
                if lineage.len() > MAX_DEPTH {
                    return Err(too_deep(&self.source.name).into());
                }
                body.branch = self.branch;
                body.lineage.clone_from(&lineage);
                body.revision = None;
                let row = BranchRow {
                    partition,
                    branch: self.branch,
                    // The first change of its own is above it.
                    head: state.revision,
                    lineage,
                    ended: None,
                    floor: state.revision,
                };
                view.create_branch(row, self.object);
                let fork = ForkBody {
                    source: self.source.clone(),
                    state: oldest_name(&source.row, state.revision),
                    by: context.principal.to_owned(),
                };
                let id = ObjectId::new(context.revision.0.unsigned_abs());
                let key = fork_key(partition, self.branch);
                view.put(key, Kind::Fork, id, crate::body::write(&fork))?;
                Kind::Branch
            }
        };
        let key = reference_key(partition, &self.new.name);
        view.put(key, kind, self.object, crate::body::write(&body))?;
        let made = find(view, partition, &self.new.name)?;
        let made = made.ok_or_else(|| Refusal::invalid("the reference is gone"))?;
        Ok(made.info())
    }
}

/// How many forks of forks may lie over each other.
pub(crate) const MAX_DEPTH: usize = 64;

fn too_deep(source: &str) -> Refusal {
    Refusal::invalid(format!(
        "branch {source} is a fork of a fork {MAX_DEPTH} times over; merge it into {MAIN} and \
         branch from there"
    ))
}
