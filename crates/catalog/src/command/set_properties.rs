//! Changes the properties of a database, a nested namespace or a catalog.

use std::collections::BTreeMap;

use anabranch_partition::{Command, Context, Reason, Refusal, Stop, Subject, View};
use anabranch_store::{BranchId, Key, Read};
use serde::{Deserialize, Serialize};

use crate::body::{self, NamespaceBody};
use crate::place::Container;
use crate::properties;

/// What became of each key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PropertiesChanged {
    /// Keys that were set.
    pub updated: Vec<String>,
    /// Keys that were removed.
    pub removed: Vec<String>,
    /// Keys to be removed that weren't there.
    pub missing: Vec<String>,
}

/// Locks the partition that the row lives in. Each caller's keys are merged into what stands, so
/// that of many callers none loses anything.
pub(crate) struct SetProperties {
    /// The container whose partition the row lives in, and what it is.
    pub(crate) holder: Container,
    pub(crate) holder_subject: Subject,
    /// The row.
    pub(crate) key: Key,
    /// The namespace as the caller named it.
    pub(crate) shown: String,
    pub(crate) removals: Vec<String>,
    pub(crate) updates: BTreeMap<String, String>,
}

impl Command for SetProperties {
    type Outcome = PropertiesChanged;

    fn name(&self) -> &'static str {
        "set_namespace_properties"
    }

    fn branch(&self) -> BranchId {
        self.holder.map().1
    }

    fn reads(&self) -> Vec<Read> {
        vec![self.holder.read(), Read::Point(self.key.clone())]
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<PropertiesChanged, Stop> {
        self.holder.guard(view, self.holder_subject)?;
        let Some(entry) = view.get(&self.key)? else {
            let message = format!("namespace {} does not exist", self.shown);
            let reason = Reason::NotFound(Subject::Namespace);
            return Err(Refusal::new(reason, message).into());
        };
        let mut namespace: NamespaceBody = serde_json::from_str(&entry.body)
            .map_err(|_| Refusal::invalid("the namespace's row can't be read; run doctor"))?;
        let mut changed = PropertiesChanged::default();
        for key in &self.removals {
            match namespace.properties.remove(key) {
                Some(_) => changed.removed.push(key.clone()),
                None => changed.missing.push(key.clone()),
            }
        }
        for (key, value) in &self.updates {
            namespace.properties.insert(key.clone(), value.clone());
            changed.updated.push(key.clone());
        }
        properties::check(&namespace.properties)?;
        if !changed.removed.is_empty() || !changed.updated.is_empty() {
            let written = body::write(&namespace);
            view.put(self.key.clone(), entry.kind, entry.object, written)?;
        }
        Ok(changed)
    }
}
