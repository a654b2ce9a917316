//! Drops an empty namespace nested in a database.

use anabranch_partition::{Command, Context, Reason, Refusal, Stop, Subject, View};
use anabranch_store::{BranchId, Read};

use crate::name::Namespace;
use crate::place::{Container, nested_key, no_namespace};

/// Locks the database's partition.
pub(crate) struct DropNested {
    pub(crate) database: Container,
    pub(crate) namespace: Namespace,
    pub(crate) scope: String,
    pub(crate) name: String,
}

impl Command for DropNested {
    type Outcome = ();

    fn name(&self) -> &'static str {
        "drop_nested_namespace"
    }

    fn branch(&self) -> BranchId {
        self.database.map().1
    }

    fn reads(&self) -> Vec<Read> {
        let key = nested_key(self.database.map(), &self.scope, &self.name);
        vec![self.database.read(), Read::Point(key)]
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<(), Stop> {
        self.database.guard(view, Subject::Namespace)?;
        let (partition, branch) = self.database.map();
        let key = nested_key((partition, branch), &self.scope, &self.name);
        if view.get(&key)?.is_none() {
            return Err(no_namespace(&self.namespace).into());
        }
        let inside = view.under(partition, branch, &self.namespace.scope(), 1)?;
        if !inside.is_empty() {
            let message = format!(
                "namespace {} is not empty; drop what is in it first",
                self.namespace
            );
            let reason = Reason::NotEmpty(Subject::Namespace);
            return Err(Refusal::new(reason, message).into());
        }
        view.remove(key)?;
        Ok(())
    }
}
