//! From the words of a history to calls of the service, and from its answers to ours.

use std::collections::BTreeMap;
use std::time::Duration;

use anabranch_catalog::{
    Caller, Catalog, CatalogError, Committed, Identifier, NewCatalog, Page, Pointer, PointerKind,
    TableChange,
};
use anabranch_partition::{Reason, RunError, Subject};
use anabranch_store::{Answer as StoreAnswer, BranchId, PartitionId, Read, Revision};
use serde_json::json;
use uuid::Uuid;

use crate::record::{Answer, Asserted, Content, PinnedRead, Request, Seen, SeenTable, Value};
use crate::support::{namespace, new_table, requirement, table, update};
use crate::words::{Change, Command, Name, Pin, Place, Step};
use crate::world::World;

/// Later than the clock of any machine that runs this.
const SNAPSHOT_MILLIS: i64 = 4_102_444_800_000;

/// The request of a step, with what it requires taken from what was seen so far.
pub fn say(world: &World, step: &Step) -> Request {
    let asserted = match &step.command {
        Command::Commit(catalog, changes) => changes
            .iter()
            .map(|change| {
                let place = Place {
                    catalog,
                    levels: change.levels.clone(),
                };
                let name = Name {
                    place,
                    table: change.table,
                };
                let seen = world.saw(&name);
                let content = seen.as_ref().map(|seen| &seen.content);
                Asserted {
                    uuid: content
                        .filter(|_| change.requires_uuid)
                        .map(|content| content.uuid.clone()),
                    main: change
                        .requires_main
                        .then(|| content.and_then(|content| content.main)),
                    sequence: content.map_or(0, |content| content.last_sequence),
                }
            })
            .collect(),
        _ => Vec::new(),
    };
    Request {
        step: step.clone(),
        asserted,
    }
}

pub async fn ask(world: &World, request: &Request, server: usize) -> Answer {
    match &request.step.command {
        Command::Follow(limit) => {
            let partitions = world.servers[server].catalog.partitions();
            match world.follow(partitions, *limit).await {
                Ok(_) => Answer::Seen(Seen::Nothing),
                Err(error) => failed(error.into()),
            }
        }
        Command::ReadPinned(catalog, database, pin) => {
            let pinned = read_pinned(world, server, catalog, *database, *pin).await;
            pinned.unwrap_or_else(failed)
        }
        command if command.changes_something() => {
            change(world, request, server).await.unwrap_or_else(failed)
        }
        command => look(world, command, server).await.unwrap_or_else(failed),
    }
}

fn failed(error: CatalogError) -> Answer {
    match error {
        CatalogError::Run(RunError::Refused(refusal)) => {
            Answer::Refused(refusal.reason, refusal.message)
        }
        CatalogError::Run(RunError::Unknown) => Answer::Unknown,
        CatalogError::Run(error @ (RunError::Overloaded | RunError::Unavailable)) => {
            Answer::NotApplied(error.to_string())
        }
        other => Answer::Broken(other.to_string()),
    }
}

fn done(revision: &str, value: Value) -> Answer {
    let revision = Some(revision_of(revision));
    Answer::Done { revision, value }
}

/// The revision in what the header `Anabranch-Revision` says.
fn revision_of(text: &str) -> Revision {
    let (_, revision) = text.split_once('-').unwrap();
    Revision(i64::from_str_radix(revision, 16).unwrap())
}

/// The same each time that the request is sent. Runs that share a store share no keys.
fn caller(world: &World, request: &Request) -> Caller {
    let principal = request.principal();
    Caller {
        idempotency_key: request
            .step
            .keyed
            .then(|| format!("{principal} of {}", world.metalake)),
        fingerprint: principal.clone(),
        principal,
        patience: Duration::from_secs(60),
    }
}

fn pairs(pair: &Option<(&'static str, String)>) -> BTreeMap<String, String> {
    let pair = pair.iter();
    pair.map(|(key, value)| ((*key).to_owned(), value.clone()))
        .collect()
}

async fn change(world: &World, request: &Request, server: usize) -> Result<Answer, CatalogError> {
    let catalog = &world.servers[server].catalog;
    let caller = &caller(world, request);
    let lake = |name: &str| world.warehouse(name);
    let answer = match &request.step.command {
        Command::CreateCatalog(name) => {
            let new = NewCatalog {
                warehouse: lake(name),
                location: world.location(name),
                properties: BTreeMap::new(),
            };
            let created = catalog.create_catalog(caller, &new).await?;
            done(&created.revision, Value::Nothing)
        }
        Command::RenameCatalog(from, to) => {
            let renamed = catalog.rename_catalog(caller, &lake(from), to).await?;
            done(&renamed.revision, Value::Nothing)
        }
        Command::DropCatalog {
            catalog: name,
            cascade,
        } => {
            let dropped = catalog.drop_catalog(caller, &lake(name), *cascade).await?;
            done(&dropped.revision, Value::Nothing)
        }
        Command::CreateNamespace(place, property) => {
            let (lake, namespace) = (lake(place.catalog), namespace(&place.levels));
            let created = catalog
                .create_namespace(caller, &lake, &namespace, pairs(property))
                .await?;
            done(&created.revision, Value::Nothing)
        }
        Command::DropNamespace(place) => {
            let (lake, namespace) = (lake(place.catalog), namespace(&place.levels));
            let dropped = catalog.drop_namespace(caller, &lake, &namespace).await?;
            done(&dropped.revision, Value::Nothing)
        }
        Command::SetProperties { place, set, unset } => {
            let (lake, namespace) = (lake(place.catalog), namespace(&place.levels));
            let removals = unset.iter().map(|key| (*key).to_owned()).collect();
            let changed = catalog
                .update_namespace_properties(caller, &lake, &namespace, removals, pairs(set))
                .await?;
            let properties = Value::Properties(changed.value);
            match namespace.is_database() {
                // They are the catalog's: what the database shows is as it was.
                true => Answer::Done {
                    revision: None,
                    value: properties,
                },
                false => done(&changed.revision, properties),
            }
        }
        Command::CreateTable(name) => {
            let (lake, new) = (lake(name.place.catalog), new_table(identifier(name)));
            tables(vec![catalog.create_table(caller, &lake, new).await?])
        }
        Command::CreateStaged(name, uuid) => {
            // Runs that share a store share no uuids.
            let own = (world.metalake_id.0 as u128) << 64 | uuid;
            let change = staged(identifier(name), Uuid::from_u128(own));
            let lake = lake(name.place.catalog);
            tables(vec![catalog.commit_table(caller, &lake, change).await?])
        }
        Command::DropTable(name) => {
            let (lake, at) = (lake(name.place.catalog), identifier(name));
            let kind = PointerKind::Table;
            let dropped = catalog.drop_pointer(caller, &lake, &at, kind, false);
            done(&dropped.await?.revision, Value::Nothing)
        }
        Command::RenameTable(name, levels, to) => {
            let (lake, from) = (lake(name.place.catalog), identifier(name));
            let to = table(levels, to);
            let kind = PointerKind::Table;
            let renamed = catalog.rename_pointer(caller, &lake, kind, &from, &to);
            done(&renamed.await?.revision, Value::Nothing)
        }
        Command::Commit(name, changes) => {
            let changes = changes.iter().zip(&request.asserted);
            let mut changes: Vec<TableChange> = changes
                .map(|(change, asserted)| table_change(change, asserted))
                .collect();
            match changes.pop() {
                Some(only) if changes.is_empty() => {
                    tables(vec![catalog.commit_table(caller, &lake(name), only).await?])
                }
                last => {
                    changes.extend(last);
                    tables(catalog.commit_tables(caller, &lake(name), changes).await?)
                }
            }
        }
        _ => unreachable!("it changes nothing"),
    };
    Ok(answer)
}

fn identifier(name: &Name) -> Identifier {
    table(&name.place.levels, name.table)
}

fn tables(committed: Vec<Committed>) -> Answer {
    let seen: Vec<SeenTable> = committed
        .iter()
        .map(|one| seen_table(&one.pointer, one.document.bytes()))
        .collect();
    Answer::Done {
        revision: seen.iter().map(|table| table.revision).max(),
        value: Value::Tables(seen),
    }
}

fn seen_table(pointer: &Pointer, document: &[u8]) -> SeenTable {
    SeenTable {
        levels: pointer.identifier.namespace.levels().to_vec(),
        table: pointer.identifier.name.clone(),
        object: pointer.object,
        version: pointer.version,
        revision: revision_of(&pointer.revision),
        metadata_location: pointer.metadata_location.clone(),
        content: Content::read(document),
    }
}

/// A table's name, in the words of histories.
pub fn name_of(catalog: &'static str, table: &SeenTable) -> Name {
    let word = |text: &str| {
        let words = ["x", "y", "n", "o", "t", "u", "v"];
        words.into_iter().find(|word| *word == text).unwrap()
    };
    Name {
        place: Place {
            catalog,
            levels: table.levels.iter().map(|level| word(level)).collect(),
        },
        table: word(&table.table),
    }
}

fn table_change(change: &Change, asserted: &Asserted) -> TableChange {
    let mut requirements = Vec::new();
    if let Some(uuid) = &asserted.uuid {
        requirements.push(requirement(
            json!({"type": "assert-table-uuid", "uuid": uuid}),
        ));
    }
    if let Some(main) = asserted.main {
        requirements.push(requirement(json!({
            "type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": main
        })));
    }
    let mut updates = Vec::new();
    if let Some(snapshot) = change.append {
        let sequence = asserted.sequence + 1;
        let mut added = json!({
            "snapshot-id": snapshot,
            "sequence-number": sequence,
            "timestamp-ms": SNAPSHOT_MILLIS + sequence,
            "manifest-list": format!("file:///nowhere/{snapshot}.avro"),
            "summary": {"operation": "append"},
            "schema-id": 0
        });
        if let Some(Some(parent)) = asserted.main {
            added["parent-snapshot-id"] = json!(parent);
        }
        updates.push(json!({"action": "add-snapshot", "snapshot": added}));
        updates.push(json!({
            "action": "set-snapshot-ref", "ref-name": "main", "type": "branch",
            "snapshot-id": snapshot
        }));
    }
    if let Some((key, value)) = &change.set {
        updates.push(json!({"action": "set-properties", "updates": {*key: value}}));
    }
    if let Some(key) = change.unset {
        updates.push(json!({"action": "remove-properties", "removals": [key]}));
    }
    TableChange {
        identifier: table(&change.levels, change.table),
        requirements,
        updates: updates.into_iter().map(update).collect(),
    }
}

fn staged(identifier: Identifier, uuid: Uuid) -> TableChange {
    let schema = json!({
        "type": "struct", "schema-id": 0,
        "fields": [{"id": 1, "name": "x", "required": false, "type": "long"}]
    });
    let updates = [
        json!({"action": "assign-uuid", "uuid": uuid}),
        json!({"action": "upgrade-format-version", "format-version": 2}),
        json!({"action": "add-schema", "schema": schema, "last-column-id": 1}),
        json!({"action": "set-current-schema", "schema-id": -1}),
        json!({"action": "add-spec", "spec": {"spec-id": 0, "fields": []}}),
        json!({"action": "set-default-spec", "spec-id": -1}),
        json!({"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}}),
        json!({"action": "set-default-sort-order", "sort-order-id": -1}),
    ];
    TableChange {
        identifier,
        requirements: vec![requirement(json!({"type": "assert-create"}))],
        updates: updates.into_iter().map(update).collect(),
    }
}

async fn look(world: &World, command: &Command, server: usize) -> Result<Answer, CatalogError> {
    let catalog: &Catalog = &world.servers[server].catalog;
    let page = Page::default();
    let seen = match command {
        Command::LoadNamespace(place) => {
            let lake = world.warehouse(place.catalog);
            let namespace = namespace(&place.levels);
            let loaded = catalog.load_namespace(&lake, &namespace).await?;
            Seen::Namespace(loaded.properties)
        }
        Command::LoadTable(name) => {
            let lake = world.warehouse(name.place.catalog);
            let at = identifier(name);
            let pointer = catalog.pointer(&lake, &at, PointerKind::Table).await?;
            let document = catalog.document(&pointer).await?;
            Seen::Table(seen_table(&pointer, document.bytes()))
        }
        Command::ListNamespaces(name, levels) => {
            let lake = world.warehouse(name);
            let parent = (!levels.is_empty()).then(|| namespace(levels));
            let listed = catalog.list_namespaces(&lake, parent.as_ref(), &page);
            let items = listed.await?.items.into_iter();
            Seen::Names(
                items
                    .filter_map(|namespace| namespace.levels().last().cloned())
                    .collect(),
            )
        }
        Command::ListTables(place) => {
            let lake = world.warehouse(place.catalog);
            let (within, kind) = (namespace(&place.levels), PointerKind::Table);
            let listed = catalog.list_pointers(&lake, &within, kind, &page).await?;
            Seen::Names(listed.items.into_iter().map(|at| at.name).collect())
        }
        _ => unreachable!("it is no read of the catalog"),
    };
    Ok(Answer::Seen(seen))
}

/// What is read as of a revision.
pub fn everything_in(partition: PartitionId) -> Read {
    Read::Under {
        partition,
        branch: BranchId::MAIN,
        scope: String::new(),
        after: None,
        limit: 10_000,
    }
}

async fn read_pinned(
    world: &World,
    server: usize,
    catalog: &str,
    database: Option<&str>,
    pin: Pin,
) -> Result<Answer, CatalogError> {
    let partitions = world.servers[server].catalog.partitions();
    let path = anabranch_store::Path {
        metalake: world.metalake.clone(),
        catalog: Some(catalog.to_owned()),
        database: database.map(str::to_owned),
        leaf: None,
    };
    let resolved = partitions.resolve(&[path]).await?.remove(0);
    let Some(found) = resolved.catalog else {
        let message = "the catalog is not there".to_owned();
        return Ok(Answer::Refused(Reason::NotFound(Subject::Catalog), message));
    };
    let entry = match database {
        None => found,
        Some(_) => match resolved.database {
            Some(entry) => entry,
            None => {
                let message = "the database is not there".to_owned();
                return Ok(Answer::Refused(
                    Reason::NotFound(Subject::Namespace),
                    message,
                ));
            }
        },
    };
    let partition = PartitionId(entry.object.0);
    let revision = match pin {
        Pin::Now => {
            let now = partitions.store().now().await;
            Revision::at(now.map_err(|error| RunError::from_store(&error))?)
        }
        Pin::LastChange => match partitions.read(&[Read::Partition(partition)]).await?.pop() {
            Some(StoreAnswer::Partition(Some(row))) => row.last_revision,
            _ => return Ok(Answer::Broken("a partition has no row".to_owned())),
        },
    };
    let reads = [everything_in(partition)];
    match partitions.read_at(partition, revision, &reads).await?.pop() {
        Some(StoreAnswer::Entries(rows)) => Ok(Answer::Seen(Seen::Pinned(PinnedRead {
            partition,
            revision,
            rows,
        }))),
        other => Ok(Answer::Broken(format!("no rows but {other:?}"))),
    }
}

impl Answer {
    /// The tables that it shows.
    pub fn tables(&self) -> &[SeenTable] {
        match self {
            Answer::Done {
                value: Value::Tables(tables),
                ..
            } => tables,
            Answer::Seen(Seen::Table(table)) => std::slice::from_ref(table),
            _ => &[],
        }
    }
}
