//! The sequential catalog: what one command does to one state, written down from the protocol and
//! not from the implementation.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_catalog::PropertiesChanged;
use anabranch_partition::{Reason, Subject};
use anabranch_store::{Action, BranchId, Class, Key, Kind, ObjectId, PartitionId, Revision};

use crate::log::{Body, Line};
use crate::record::Request;
use crate::words::{Change, Command, Place};

/// One version of a thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Thing {
    pub kind: Kind,
    pub object: ObjectId,
    pub version: i64,
    pub from: Revision,
    pub body: Body,
}

/// Everything that stands.
pub type State = BTreeMap<Key, Thing>;

/// What a command does where it is accepted.
#[derive(Debug)]
pub struct Effect {
    pub lines: Vec<Line>,
    pub properties: Option<PropertiesChanged>,
}

/// Why it would be refused; of several reasons any one may be told.
pub type Reasons = Vec<Reason>;

/// The state that a command meets.
pub struct Ground<'a> {
    pub state: &'a State,
    pub metalake: PartitionId,
    /// Which catalog the command's name was resolved to. Names of farther ancestors are as old as
    /// the request, so it may have another name by now.
    pub catalog: Option<PartitionId>,
    /// What the implementation chose itself: ids, uuids and locations of what it made.
    pub chosen: &'a [Line],
}

const NO_CATALOG: Reason = Reason::NotFound(Subject::Catalog);
const NO_NAMESPACE: Reason = Reason::NotFound(Subject::Namespace);
const NO_TABLE: Reason = Reason::NotFound(Subject::Table);

pub fn key(partition: PartitionId, scope: &[&str], class: Class, name: &str) -> Key {
    Key {
        partition,
        branch: BranchId::MAIN,
        scope: scope.join("\u{1f}"),
        class,
        name: name.to_owned(),
    }
}

pub fn partition_of(state: &State, parent: PartitionId, name: &str) -> Option<PartitionId> {
    let thing = state.get(&key(parent, &[], Class::Container, name))?;
    Some(PartitionId(thing.object.0))
}

/// Every catalog that had this name in one of the states; `None` if there was none in one.
pub fn catalogs_named(
    states: &[State],
    metalake: PartitionId,
    name: &str,
) -> BTreeSet<Option<PartitionId>> {
    let named = states
        .iter()
        .map(|state| partition_of(state, metalake, name));
    named.collect()
}

impl Command {
    /// The catalog whose name is resolved before anything is held.
    pub fn catalog(&self) -> Option<&'static str> {
        match self {
            Command::CreateCatalog(_)
            | Command::RenameCatalog(..)
            | Command::DropCatalog { .. }
            | Command::Follow(_) => None,
            Command::CreateNamespace(place, _)
            | Command::DropNamespace(place)
            | Command::SetProperties { place, .. }
            | Command::LoadNamespace(place)
            | Command::ListTables(place) => Some(place.catalog),
            Command::CreateTable(name)
            | Command::CreateStaged(name, _)
            | Command::DropTable(name)
            | Command::RenameTable(name, ..)
            | Command::LoadTable(name) => Some(name.place.catalog),
            Command::Commit(catalog, _)
            | Command::ListNamespaces(catalog, _)
            | Command::ReadPinned(catalog, ..) => Some(catalog),
        }
    }
}

/// Where a namespace's children stand.
struct Shelf<'a> {
    partition: PartitionId,
    scope: Vec<&'a str>,
}

impl<'a> Ground<'a> {
    /// What the command does, or why it is refused.
    pub fn decide(&self, request: &Request) -> Result<Effect, Reasons> {
        let command = &request.step.command;
        match command {
            Command::CreateCatalog(name) => {
                let key = self.catalog_key(name);
                self.must_be_free(&key, Subject::Catalog)?;
                self.create(key, Kind::Catalog, Body::Catalog)
            }
            Command::RenameCatalog(from, to) => {
                let (from, to) = (self.catalog_key(from), self.catalog_key(to));
                if !self.state.contains_key(&from) {
                    return Err(vec![NO_CATALOG]);
                }
                if from == to {
                    return Ok(lines(Vec::new()));
                }
                self.must_be_free(&to, Subject::Catalog)?;
                Ok(lines(self.moved(&from, &to)))
            }
            Command::DropCatalog { catalog, cascade } => {
                let key = self.catalog_key(catalog);
                let Some(thing) = self.state.get(&key) else {
                    return Err(vec![NO_CATALOG]);
                };
                let inside = self.inside(PartitionId(thing.object.0));
                if !cascade && !inside.is_empty() {
                    return Err(vec![Reason::NotEmpty(Subject::Catalog)]);
                }
                let gone = inside.into_iter().chain([key]);
                Ok(lines(gone.map(|key| self.dropped(&key)).collect()))
            }
            _ => {
                let catalog = self.catalog.ok_or_else(|| vec![NO_CATALOG])?;
                self.decide_in(catalog, request)
            }
        }
    }

    fn decide_in(&self, catalog: PartitionId, request: &Request) -> Result<Effect, Reasons> {
        match &request.step.command {
            Command::CreateNamespace(place, property) => {
                let key = self.namespace_key(catalog, &place.levels)?;
                if place.levels.len() == 1 {
                    self.must_still_be_named(catalog, place)?;
                }
                self.must_be_free(&key, Subject::Namespace)?;
                let properties = property.iter();
                let properties = properties.map(|(key, value)| ((*key).to_owned(), value.clone()));
                let body = Body::Namespace(properties.collect());
                self.create(key, Kind::Namespace, body)
            }
            Command::DropNamespace(place) => {
                let key = self.namespace_key(catalog, &place.levels)?;
                let shelf = self.shelf(catalog, &place.levels)?;
                if !self.below(&shelf).is_empty() {
                    return Err(vec![Reason::NotEmpty(Subject::Namespace)]);
                }
                Ok(lines(vec![self.dropped(&key)]))
            }
            Command::SetProperties { place, set, unset } => {
                let key = self.namespace_key(catalog, &place.levels)?;
                if place.levels.len() == 1 {
                    self.must_still_be_named(catalog, place)?;
                }
                self.set_properties(key, set.as_ref(), *unset)
            }
            Command::CreateTable(name) | Command::CreateStaged(name, _) => {
                let shelf = self.shelf(catalog, &name.place.levels)?;
                let key = shelf.key(Class::Table, name.table);
                self.must_be_free(&key, Subject::Table)?;
                self.create_table(key)
            }
            Command::DropTable(name) => {
                let shelf = self.shelf(catalog, &name.place.levels);
                let key = shelf
                    .map_err(|_| vec![NO_TABLE])?
                    .key(Class::Table, name.table);
                if !self.state.contains_key(&key) {
                    return Err(vec![NO_TABLE]);
                }
                Ok(lines(vec![self.dropped(&key)]))
            }
            Command::RenameTable(name, levels, table) => {
                let mut reasons = Vec::new();
                let from = self.shelf(catalog, &name.place.levels);
                let to = self.shelf(catalog, levels);
                if from.is_err() || to.is_err() {
                    reasons.push(NO_NAMESPACE);
                }
                let from = from.map(|shelf| shelf.key(Class::Table, name.table));
                let to = to.map(|shelf| shelf.key(Class::Table, table));
                if !from.as_ref().is_ok_and(|key| self.state.contains_key(key)) {
                    reasons.push(NO_TABLE);
                }
                if to.as_ref().is_ok_and(|key| self.state.contains_key(key)) {
                    reasons.push(Reason::AlreadyExists(Subject::Table));
                }
                match (from, to) {
                    (Ok(from), Ok(to)) if reasons.is_empty() => Ok(lines(self.moved(&from, &to))),
                    _ => Err(reasons),
                }
            }
            Command::Commit(_, changes) => self.commit(catalog, request, changes),
            _ => unreachable!("it changes nothing"),
        }
    }

    fn set_properties(
        &self,
        key: Key,
        set: Option<&(&'static str, String)>,
        unset: Option<&str>,
    ) -> Result<Effect, Reasons> {
        let Some(thing) = self.state.get(&key) else {
            return Err(vec![NO_NAMESPACE]);
        };
        let Body::Namespace(mut properties) = thing.body.clone() else {
            unreachable!("a namespace has properties");
        };
        let mut changed = PropertiesChanged::default();
        if let Some(unset) = unset {
            match properties.remove(unset) {
                Some(_) => changed.removed.push(unset.to_owned()),
                None => changed.missing.push(unset.to_owned()),
            }
        }
        if let Some((set, value)) = set {
            properties.insert((*set).to_owned(), value.clone());
            changed.updated.push((*set).to_owned());
        }
        let is_same = changed.removed.is_empty() && changed.updated.is_empty();
        Ok(Effect {
            lines: if is_same {
                Vec::new()
            } else {
                vec![self.changed(&key, Body::Namespace(properties))]
            },
            properties: Some(changed),
        })
    }

    fn commit(
        &self,
        catalog: PartitionId,
        request: &Request,
        changes: &[Change],
    ) -> Result<Effect, Reasons> {
        let mut reasons = Vec::new();
        let mut done = Vec::new();
        for (change, asserted) in changes.iter().zip(&request.asserted) {
            let Ok(shelf) = self.shelf(catalog, &change.levels) else {
                reasons.extend([NO_TABLE, NO_NAMESPACE]);
                continue;
            };
            let key = shelf.key(Class::Table, change.table);
            let Some(thing) = self.state.get(&key) else {
                reasons.push(NO_TABLE);
                continue;
            };
            let Body::Table { content, .. } = &thing.body else {
                unreachable!("tables only");
            };
            let other_uuid = asserted
                .uuid
                .as_ref()
                .is_some_and(|uuid| *uuid != content.uuid);
            let other_main = asserted.main.is_some_and(|main| main != content.main);
            if other_uuid || other_main {
                reasons.push(Reason::Conflict);
                continue;
            }
            let mut after = content.clone();
            if let Some(snapshot) = change.append {
                after.snapshots.push(snapshot);
                after.main = Some(snapshot);
                after.last_sequence = asserted.sequence + 1;
            }
            if let Some((key, value)) = &change.set {
                after.properties.insert((*key).to_owned(), value.clone());
            }
            if let Some(key) = change.unset {
                after.properties.remove(key);
            }
            if after != *content {
                let metadata_location = self.chosen_document(&key);
                let content = after;
                done.push(self.changed(
                    &key,
                    Body::Table {
                        metadata_location,
                        content,
                    },
                ));
            }
        }
        if reasons.is_empty() {
            Ok(lines(done))
        } else {
            Err(reasons)
        }
    }

    /// Where the new document lies is the implementation's choice; that no other document of the
    /// run lies there is the checker's.
    fn chosen_document(&self, key: &Key) -> String {
        let chosen = self.chosen.iter().find(|line| line.key == *key);
        match chosen.and_then(|line| line.after.as_ref()) {
            Some(Body::Table {
                metadata_location, ..
            }) => metadata_location.clone(),
            _ => String::new(),
        }
    }

    fn create_table(&self, key: Key) -> Result<Effect, Reasons> {
        let chosen = self.chosen.iter().find(|line| line.key == key);
        let body = match chosen.and_then(|line| line.after.clone()) {
            Some(Body::Table {
                metadata_location,
                content,
            }) => Body::Table {
                metadata_location,
                content: crate::record::Content {
                    snapshots: Vec::new(),
                    main: None,
                    last_sequence: 0,
                    ..content
                },
            },
            _ => Body::Catalog,
        };
        self.create(key, Kind::IcebergTable, body)
    }

    fn create(&self, key: Key, kind: Kind, body: Body) -> Result<Effect, Reasons> {
        let chosen = self.chosen.iter().find(|line| line.key == key);
        Ok(lines(vec![Line {
            object: chosen.map_or(ObjectId(0), |line| line.object),
            action: Action::Create,
            kind,
            before: None,
            after: Some(body),
            key,
        }]))
    }

    fn changed(&self, key: &Key, after: Body) -> Line {
        let before = &self.state[key];
        Line {
            key: key.clone(),
            action: Action::Update,
            object: before.object,
            kind: before.kind,
            before: Some(before.body.clone()),
            after: Some(after),
        }
    }

    fn dropped(&self, key: &Key) -> Line {
        let before = &self.state[key];
        Line {
            key: key.clone(),
            action: Action::Drop,
            object: before.object,
            kind: before.kind,
            before: Some(before.body.clone()),
            after: None,
        }
    }

    fn moved(&self, from: &Key, to: &Key) -> Vec<Line> {
        let before = &self.state[from];
        let line = |key: &Key, before_body, after_body| Line {
            key: key.clone(),
            action: Action::Rename,
            object: before.object,
            kind: before.kind,
            before: before_body,
            after: after_body,
        };
        vec![
            line(from, Some(before.body.clone()), None),
            line(to, None, Some(before.body.clone())),
        ]
    }

    fn catalog_key(&self, name: &str) -> Key {
        key(self.metalake, &[], Class::Container, name)
    }

    fn must_be_free(&self, key: &Key, subject: Subject) -> Result<(), Reasons> {
        match self.state.get(key) {
            Some(_) => Err(vec![Reason::AlreadyExists(subject)]),
            None => Ok(()),
        }
    }

    /// What lives in the catalog's own partition is decided under its lock, by its name of then.
    fn must_still_be_named(&self, catalog: PartitionId, place: &Place) -> Result<(), Reasons> {
        match partition_of(self.state, self.metalake, place.catalog) {
            Some(found) if found == catalog => Ok(()),
            _ => Err(vec![NO_CATALOG]),
        }
    }

    fn shelf<'b>(&self, catalog: PartitionId, levels: &[&'b str]) -> Result<Shelf<'b>, Reasons> {
        let key = self.namespace_key(catalog, levels)?;
        let Some(thing) = self.state.get(&key) else {
            return Err(vec![NO_NAMESPACE]);
        };
        Ok(Shelf {
            partition: match levels {
                [_] => PartitionId(thing.object.0),
                _ => key.partition,
            },
            scope: levels[1..].to_vec(),
        })
    }

    /// The key of a namespace whose parents stand.
    fn namespace_key(&self, catalog: PartitionId, levels: &[&str]) -> Result<Key, Reasons> {
        match levels {
            [] => unreachable!("a namespace has a level"),
            [database] => Ok(key(catalog, &[], Class::Container, database)),
            [parents @ .., name] => {
                let shelf = self.shelf(catalog, parents)?;
                Ok(shelf.key(Class::Container, name))
            }
        }
    }

    fn below(&self, shelf: &Shelf<'_>) -> Vec<Key> {
        let scope = shelf.scope.join("\u{1f}");
        let deeper = format!("{scope}\u{1f}");
        let keys = self.state.keys();
        keys.filter(|key| {
            key.partition == shelf.partition
                && (scope.is_empty() || key.scope == scope || key.scope.starts_with(&deeper))
        })
        .cloned()
        .collect()
    }

    /// Everything in a partition and in those below it.
    fn inside(&self, partition: PartitionId) -> Vec<Key> {
        let mut inside = Vec::new();
        for (key, thing) in self.state {
            if key.partition == partition {
                inside.extend(self.inside(PartitionId(thing.object.0)));
                inside.push(key.clone());
            }
        }
        inside
    }

    /// What a read of the catalog shows.
    pub fn look(&self, command: &Command) -> Result<Look, Reasons> {
        let catalog = self.catalog.ok_or_else(|| vec![NO_CATALOG])?;
        let names = |shelf: &Shelf<'_>, class: Class| {
            let scope = shelf.scope.join("\u{1f}");
            let keys = self.state.keys();
            let own = keys.filter(|key| {
                key.partition == shelf.partition && key.scope == scope && key.class == class
            });
            Look::Names(own.map(|key| key.name.clone()).collect())
        };
        match command {
            Command::ListNamespaces(_, levels) if levels.is_empty() => {
                let shelf = Shelf {
                    partition: catalog,
                    scope: Vec::new(),
                };
                Ok(names(&shelf, Class::Container))
            }
            Command::ListNamespaces(_, levels) => {
                Ok(names(&self.shelf(catalog, levels)?, Class::Container))
            }
            Command::ListTables(place) => {
                Ok(names(&self.shelf(catalog, &place.levels)?, Class::Table))
            }
            Command::LoadNamespace(place) => {
                let key = self.namespace_key(catalog, &place.levels)?;
                match self.state.get(&key).map(|thing| &thing.body) {
                    Some(Body::Namespace(properties)) => Ok(Look::Namespace(properties.clone())),
                    _ => Err(vec![NO_NAMESPACE]),
                }
            }
            Command::LoadTable(name) => {
                let shelf = self.shelf(catalog, &name.place.levels);
                let key = shelf
                    .map_err(|_| vec![NO_TABLE])?
                    .key(Class::Table, name.table);
                let thing = self.state.get(&key).ok_or_else(|| vec![NO_TABLE])?;
                Ok(Look::Table(thing.clone()))
            }
            Command::ReadPinned(_, database, _) => match database {
                Some(database) => self.shelf(catalog, &[*database]).map(|_| Look::Nothing),
                None => Ok(Look::Nothing),
            },
            _ => unreachable!("it is no read"),
        }
    }
}

/// What a read of one state shows.
#[derive(Debug, PartialEq)]
pub enum Look {
    Names(Vec<String>),
    Namespace(BTreeMap<String, String>),
    Table(Thing),
    Nothing,
}

impl Shelf<'_> {
    fn key(&self, class: Class, name: &str) -> Key {
        key(self.partition, &self.scope, class, name)
    }
}

fn lines(lines: Vec<Line>) -> Effect {
    Effect {
        lines,
        properties: None,
    }
}

/// The state after the lines of one command.
pub fn after(state: &State, lines: &[Line], revision: Revision) -> State {
    let mut after = state.clone();
    for line in lines {
        // An object keeps its count of versions when its name changes.
        let version = match line.action {
            Action::Create => 0,
            _ => {
                let mut things = state.values();
                let own = things.find(|thing| thing.object == line.object);
                own.map_or(0, |thing| thing.version)
            }
        };
        match &line.after {
            Some(body) => after.insert(
                line.key.clone(),
                Thing {
                    kind: line.kind,
                    object: line.object,
                    version: version + 1,
                    from: revision,
                    body: body.clone(),
                },
            ),
            None => after.remove(&line.key),
        };
    }
    after
}
