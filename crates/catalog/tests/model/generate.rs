//! Histories from a seed. Few names, so that clients meet.

use anabranch_store::fault::When;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::words::{Change, Command, Hold, Name, Pin, Place, Step};

pub const SERVERS: usize = 3;
/// Steps that make something to work on.
pub const BEGINNING: usize = 4;
const CATALOGS: [&str; 2] = ["red", "blue"];
const DATABASES: [&str; 2] = ["x", "y"];
const TABLES: [&str; 3] = ["t", "u", "v"];
const KEYS: [&str; 3] = ["k", "l", "m"];

/// Where a command can be stopped without holding anything that the others wait for.
const HOLDS: [(&str, When); 6] = [
    ("begin", When::Before),
    ("begin", When::Before),
    ("begin", When::Before),
    ("resolve", When::After),
    ("ensure_task", When::Before),
    ("read", When::After),
];
const LOSSES: [(&str, When); 9] = [
    ("commit", When::Before),
    ("commit", When::After),
    ("commit", When::After),
    ("begin", When::After),
    ("tx.read", When::After),
    ("lock", When::After),
    ("changed_since", When::After),
    ("resolve", When::After),
    ("holds_commit", When::Before),
];

/// The steps of a seed: `clients` take `each` in turn.
pub fn history(seed: u64, clients: usize, each: usize) -> Vec<Step> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut steps = beginning();
    let mut hopes = Hopes::default();
    for step in &steps {
        hopes.follow(&step.command);
    }
    while steps.len() < clients * each {
        let id = steps.len();
        let command = command(&mut random, id, &hopes);
        hopes.follow(&command);
        let hold = random.random_bool(0.25).then(|| {
            let (call, when) = *HOLDS.choose(&mut random).unwrap();
            let steps = random.random_range(1..=4);
            Hold { call, when, steps }
        });
        let lost = random
            .random_bool(0.08)
            .then(|| *LOSSES.choose(&mut random).unwrap());
        steps.push(Step {
            id,
            client: random.random_range(0..clients),
            server: random.random_range(0..SERVERS),
            keyed: command.changes_something() && random.random_bool(0.3),
            resent: command.changes_something() && random.random_bool(0.15),
            command,
            hold,
            lost,
        });
    }
    steps
}

fn beginning() -> Vec<Step> {
    let database = place("red", &["x"]);
    let commands: [Command; BEGINNING] = [
        Command::CreateCatalog("red"),
        Command::CreateNamespace(database.clone(), None),
        Command::CreateNamespace(place("red", &["x", "n"]), None),
        Command::CreateTable(Name {
            place: database,
            table: "t",
        }),
    ];
    let steps = commands.into_iter().enumerate().map(|(id, command)| Step {
        id,
        client: 0,
        server: id % SERVERS,
        command,
        keyed: false,
        resent: false,
        hold: None,
        lost: None,
    });
    steps.collect()
}

fn place(catalog: &'static str, levels: &[&'static str]) -> Place {
    Place {
        catalog,
        levels: levels.to_vec(),
    }
}

/// What would stand if everything were accepted: most commands are about something of it.
#[derive(Default)]
struct Hopes {
    places: Vec<Place>,
    tables: Vec<Name>,
}

impl Hopes {
    fn follow(&mut self, command: &Command) {
        match command {
            Command::CreateNamespace(place, _) => self.places.push(place.clone()),
            Command::DropNamespace(place) => self.places.retain(|other| other != place),
            Command::CreateTable(name) | Command::CreateStaged(name, _) => {
                self.tables.push(name.clone());
            }
            Command::DropTable(name) => self.tables.retain(|other| other != name),
            Command::RenameTable(name, levels, table) => {
                self.tables.retain(|other| other != name);
                let place = place(name.place.catalog, levels);
                self.tables.push(Name { place, table });
            }
            Command::DropCatalog {
                catalog,
                cascade: true,
            } => {
                self.places.retain(|place| place.catalog != *catalog);
                self.tables.retain(|name| name.place.catalog != *catalog);
            }
            Command::RenameCatalog(from, to) => {
                let places = self.places.iter_mut();
                let named = self.tables.iter_mut().map(|name| &mut name.place);
                for place in places.chain(named) {
                    if place.catalog == *from {
                        place.catalog = to;
                    }
                }
            }
            _ => {}
        }
    }

    fn place(&self, random: &mut StdRng) -> Place {
        match self.places.choose(random) {
            Some(place) if random.random_bool(0.8) => place.clone(),
            _ => any_place(random),
        }
    }

    fn table(&self, random: &mut StdRng) -> Name {
        match self.tables.choose(random) {
            Some(name) if random.random_bool(0.85) => name.clone(),
            _ => self.free(random),
        }
    }

    /// A name that is free, mostly.
    fn free(&self, random: &mut StdRng) -> Name {
        Name {
            place: self.place(random),
            table: TABLES.choose(random).unwrap(),
        }
    }

    /// A namespace to be made: mostly in one that stands.
    fn inner(&self, random: &mut StdRng) -> Place {
        let mut place = any_place(random);
        if let Some(outer) = self.places.choose(random)
            && random.random_bool(0.5)
        {
            place = outer.clone();
            match place.levels.len() {
                1 => place.levels.push("n"),
                2 => place.levels.push("o"),
                _ => {}
            }
        }
        place
    }
}

fn some_catalog(random: &mut StdRng) -> &'static str {
    if random.random_bool(0.75) {
        CATALOGS[0]
    } else {
        CATALOGS[1]
    }
}

fn any_place(random: &mut StdRng) -> Place {
    let mut levels = vec![*DATABASES.choose(random).unwrap()];
    if random.random_bool(0.35) {
        levels.push("n");
        if random.random_bool(0.3) {
            levels.push("o");
        }
    }
    Place {
        catalog: some_catalog(random),
        levels,
    }
}

fn some_pair(random: &mut StdRng, id: usize) -> (&'static str, String) {
    (KEYS.choose(random).unwrap(), id.to_string())
}

fn command(random: &mut StdRng, id: usize, hopes: &Hopes) -> Command {
    match random.random_range(0..100) {
        0..2 => Command::CreateCatalog(some_catalog(random)),
        2..4 => Command::RenameCatalog(
            CATALOGS.choose(random).unwrap(),
            CATALOGS.choose(random).unwrap(),
        ),
        4..6 => Command::DropCatalog {
            catalog: some_catalog(random),
            cascade: random.random_bool(0.5),
        },
        6..13 => {
            let property = random.random_bool(0.3).then(|| some_pair(random, id));
            Command::CreateNamespace(hopes.inner(random), property)
        }
        13..17 => Command::DropNamespace(hopes.place(random)),
        17..24 => Command::SetProperties {
            place: hopes.place(random),
            set: Some(some_pair(random, id)),
            unset: None,
        },
        24..26 => Command::SetProperties {
            place: hopes.place(random),
            set: None,
            unset: Some(KEYS.choose(random).unwrap()),
        },
        26..34 => Command::CreateTable(hopes.free(random)),
        34..37 => Command::CreateStaged(hopes.free(random), id as u128),
        37..40 => Command::DropTable(hopes.table(random)),
        40..45 => {
            let to = hopes.free(random);
            Command::RenameTable(hopes.table(random), to.place.levels, to.table)
        }
        45..65 => {
            let name = hopes.table(random);
            let change = some_change(random, id, name.place.levels, name.table);
            Command::Commit(name.place.catalog, vec![change])
        }
        65..76 => several_changes(random, id, hopes),
        76..84 => Command::LoadTable(hopes.table(random)),
        84..87 => Command::LoadNamespace(hopes.place(random)),
        87..90 => Command::ListTables(hopes.place(random)),
        90..93 => {
            let place = hopes.place(random);
            let depth = random.random_range(0..=place.levels.len());
            Command::ListNamespaces(place.catalog, place.levels[..depth].to_vec())
        }
        93..97 => {
            let place = hopes.place(random);
            let database = random.random_bool(0.8).then(|| place.levels[0]);
            let pin = if random.random_bool(0.5) {
                Pin::LastChange
            } else {
                Pin::Now
            };
            Command::ReadPinned(place.catalog, database, pin)
        }
        _ => Command::Follow(random.random_range(1..=8)),
    }
}

fn several_changes(random: &mut StdRng, id: usize, hopes: &Hopes) -> Command {
    let first = hopes.table(random);
    let mut changes = vec![some_change(random, id, first.place.levels, first.table)];
    for _ in 0..random.random_range(1..=2) {
        let Name { place, table } = hopes.table(random);
        let levels = place.levels;
        let is_named = |change: &Change| change.levels == levels && change.table == table;
        if !changes.iter().any(is_named) {
            let mut change = some_change(random, 1000 * (changes.len() + 1) + id, levels, table);
            // Some only state what must hold.
            if random.random_bool(0.5) {
                change.requires_main = true;
                (change.append, change.set, change.unset) = (None, None, None);
            }
            changes.push(change);
        }
    }
    Command::Commit(first.place.catalog, changes)
}

fn some_change(
    random: &mut StdRng,
    id: usize,
    levels: Vec<&'static str>,
    table: &'static str,
) -> Change {
    let mut change = Change {
        levels,
        table,
        requires_uuid: random.random_bool(0.4),
        requires_main: false,
        append: None,
        set: None,
        unset: None,
    };
    match random.random_range(0..10) {
        0..5 => {
            change.requires_main = true;
            change.append = Some(id as i64 + 1);
        }
        5..9 => change.set = Some(some_pair(random, id)),
        _ => change.unset = KEYS.choose(random).copied(),
    }
    change
}
