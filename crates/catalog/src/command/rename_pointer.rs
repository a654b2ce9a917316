//! Renames a table or a view, also into another namespace.

use anabranch_partition::{Command, Context, Reason, Refusal, Stop, Subject, View};
use anabranch_store::{BranchId, Class, Kind, PartitionId, Read};

use crate::name::Identifier;
use crate::place::{
    Container, already_exists, guard_scope, not_found, scope_key, subject_of, table_key,
};

/// Locks the databases of both names.
pub(crate) struct RenamePointer {
    pub(crate) kind: Kind,
    pub(crate) subject: Subject,
    pub(crate) from: (Container, Identifier),
    pub(crate) to: (Container, Identifier),
}

impl Command for RenamePointer {
    type Outcome = ();

    fn name(&self) -> &'static str {
        "rename_table"
    }

    fn branch(&self) -> BranchId {
        self.to.0.map().1
    }

    fn reads(&self) -> Vec<Read> {
        let ends = [&self.from, &self.to];
        ends.into_iter()
            .flat_map(|(database, identifier)| {
                let scope = identifier.namespace.scope();
                let own = table_key(database.map(), &scope, &identifier.name);
                let parent = scope_key(database.map(), &scope);
                parent
                    .into_iter()
                    .chain([own])
                    .map(Read::Point)
                    .chain([database.read()])
            })
            .collect()
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<(), Stop> {
        for (database, identifier) in [&self.from, &self.to] {
            database.guard(view, Subject::Namespace)?;
            guard_scope(view, database, &identifier.namespace.scope())?;
        }
        let key = |(database, identifier): &(Container, Identifier)| {
            table_key(
                database.map(),
                &identifier.namespace.scope(),
                &identifier.name,
            )
        };
        let (from, to) = (key(&self.from), key(&self.to));
        let Some(entry) = view.get(&from)?.filter(|entry| entry.kind == self.kind) else {
            return Err(not_found(self.subject, &self.from.1.to_string()).into());
        };
        if let Some(taken) = view.get(&to)? {
            return Err(already_exists(subject_of(&taken), &self.to.1.to_string()).into());
        }
        if from.partition != to.partition && has_references(view, from.partition)? {
            let message = format!(
                "database {} has branches or tags, which show {} and share its files, so it stays \
                 in this database; delete them first, or rename it within the database",
                self.from.0.name, self.from.1.name
            );
            return Err(Refusal::new(Reason::Conflict, message).into());
        }
        view.rename(from, to, entry.body)?;
        Ok(())
    }
}

fn has_references(view: &View<'_>, database: PartitionId) -> Result<bool, Stop> {
    let first = view.range(database, BranchId::MAIN, "", Class::Reference, 1)?;
    Ok(!first.is_empty())
}
