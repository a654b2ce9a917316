//! Gives many tables of one branch another version in one commit, without any file.

use anabranch_partition::{Command, Context, Layers, Name, Refusal, Stop, View};
use anabranch_store::{BranchId, Class, Entry, Key, PartitionId, Read};
use serde_json::{Value, json};

/// As many table commits would do it, but for the metadata documents.
pub struct Change {
    pub partition: PartitionId,
    pub branch: BranchId,
    pub tables: Vec<String>,
    /// Tells this version from others.
    pub number: u64,
}

impl Change {
    fn key(&self, name: &str) -> Key {
        Key {
            partition: self.partition,
            branch: self.branch,
            scope: String::new(),
            class: Class::Table,
            name: name.to_owned(),
        }
    }

    fn changed(&self, entry: &Entry) -> Result<String, Stop> {
        let body = serde_json::from_str::<Value>(&entry.body);
        let mut body = body.map_err(|error| Refusal::invalid(error.to_string()))?;
        let location = format!("file:///nowhere/{}.metadata.json", self.number);
        body["metadataLocation"] = json!(location);
        Ok(body.to_string())
    }
}

impl Command for Change {
    type Outcome = ();

    fn name(&self) -> &'static str {
        "change"
    }

    fn reads(&self) -> Vec<Read> {
        let keys = self.tables.iter().map(|name| Read::Point(self.key(name)));
        keys.collect()
    }

    fn apply(&self, view: &mut View<'_>, _: &Context<'_>) -> Result<(), Stop> {
        let absent = || Refusal::invalid("what is to be changed isn't there");
        let row = view.branch(self.partition, self.branch)?;
        let layers = Layers::now(&row.ok_or_else(absent)?);
        let place = |name: &String| (String::new(), Class::Table, name.clone());
        let places: Vec<Name> = self.tables.iter().map(place).collect();
        let found = view.find_all(&layers, &places)?;
        for (name, entry) in self.tables.iter().zip(found) {
            let entry = entry.ok_or_else(absent)?;
            let body = self.changed(&entry)?.into();
            view.put(self.key(name), entry.kind, entry.object, body)?;
        }
        Ok(())
    }
}
