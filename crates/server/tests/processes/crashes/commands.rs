//! Every command that changes something, as data.

use serde_json::json;
use uuid::Uuid;

use crate::requests::{self as ask, Answer, Request};
use crate::trees::{self, at, on};

/// Stands in a body for where the metadata lies that the setup's last answer told of.
pub const METADATA: &str = "METADATA";

const CONFLICT: u16 = 409;

/// A request that changes something, on names of its own.
pub struct Command {
    /// What has to be there. The database of the same name as the command's tag is.
    pub setup: Vec<Request>,
    pub request: Request,
    /// What shows all that the request changes, and what it must not change.
    pub look: Vec<Request>,
    pub repeated: Repeated,
    /// It takes something out of the catalog whose files stay.
    pub leaves_files: bool,
    /// Another one comes to the same points, so only COMMIT is gone through.
    pub is_like_another: bool,
}

/// What the same request is answered when it comes again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeated {
    /// The first answer, because it has a key.
    ByKey,
    /// Success, because what is in it was committed before.
    ByContent,
    /// Success each time: nothing is changed.
    Anew,
    /// The first refusal, because it has a key: a conflict.
    RefusedByKey,
}

fn command(setup: Vec<Request>, request: Request, look: Vec<Request>) -> Command {
    Command {
        setup,
        request: request.keyed(),
        look,
        repeated: Repeated::ByKey,
        leaves_files: false,
        is_like_another: false,
    }
}

impl Command {
    fn leaves_files(self) -> Command {
        Command {
            leaves_files: true,
            ..self
        }
    }

    /// Whether it is answered what it is on a quiet server.
    pub fn is_answered(&self, answer: &Answer) -> bool {
        match self.repeated {
            Repeated::RefusedByKey => answer.status == CONFLICT,
            _ => answer.is_success(),
        }
    }

    /// Whether it changes something that can be seen.
    pub fn changes_something(&self) -> bool {
        !matches!(self.repeated, Repeated::Anew | Repeated::RefusedByKey)
    }

    fn like_another(self) -> Command {
        Command {
            is_like_another: true,
            ..self
        }
    }

    fn without_key(mut self) -> Command {
        self.request.key = None;
        self.repeated = Repeated::ByContent;
        self
    }
}

pub fn create_namespace(ns: &str) -> Command {
    let inner = &format!("{ns}.in");
    command(
        vec![],
        ask::create_namespace(inner),
        vec![ask::load_namespace(inner)],
    )
}

pub fn create_database(ns: &str) -> Command {
    let other = &format!("{ns}_2");
    command(
        vec![],
        ask::create_namespace(other),
        vec![ask::load_namespace(other)],
    )
}

pub fn drop_namespace(ns: &str) -> Command {
    let inner = &format!("{ns}.in");
    let setup = vec![ask::create_namespace(inner)];
    let look = vec![ask::load_namespace(inner), ask::load_namespace(ns)];
    command(setup, ask::drop_namespace(inner), look)
}

pub fn drop_database(ns: &str) -> Command {
    let other = &format!("{ns}_2");
    let setup = vec![ask::create_namespace(other)];
    command(
        setup,
        ask::drop_namespace(other),
        vec![ask::load_namespace(other)],
    )
}

pub fn set_namespace_properties(ns: &str) -> Command {
    let request = ask::set_namespace_property(ns, "owner", "them");
    command(vec![], request, vec![ask::load_namespace(ns)])
}

pub fn create_table(ns: &str) -> Command {
    let look = vec![ask::load_table(ns, "t"), ask::list_tables(ns)];
    command(vec![], ask::create_table(ns, "t"), look)
}

pub fn stage_table(ns: &str) -> Command {
    let look = vec![ask::load_table(ns, "t"), ask::list_tables(ns)];
    let staged = command(vec![], ask::stage_table(ns, "t"), look);
    Command {
        repeated: Repeated::Anew,
        ..staged
    }
}

pub fn finish_staged_table(ns: &str) -> Command {
    let request = ask::finish_table(ns, "t", Uuid::now_v7());
    let look = vec![ask::load_table(ns, "t"), ask::list_tables(ns)];
    command(vec![ask::stage_table(ns, "t")], request, look)
}

pub fn finish_staged_table_without_key(ns: &str) -> Command {
    finish_staged_table(ns).without_key()
}

pub fn register_table(ns: &str) -> Command {
    let setup = vec![
        ask::create_table(ns, "was"),
        ask::unregister_table(ns, "was"),
    ];
    let request = ask::register_table(ns, "t", METADATA, false);
    command(
        setup,
        request,
        vec![ask::load_table(ns, "t"), ask::list_tables(ns)],
    )
}

pub fn register_table_over_another(ns: &str) -> Command {
    let setup = vec![
        ask::create_table(ns, "t"),
        ask::create_table(ns, "was"),
        ask::unregister_table(ns, "was"),
    ];
    let request = ask::register_table(ns, "t", METADATA, true);
    let look = vec![ask::load_table(ns, "t"), ask::list_tables(ns)];
    command(setup, request, look).leaves_files()
}

pub fn unregister_table(ns: &str) -> Command {
    let look = vec![ask::load_table(ns, "t"), ask::list_tables(ns)];
    let request = ask::unregister_table(ns, "t");
    command(vec![ask::create_table(ns, "t")], request, look).leaves_files()
}

pub fn append(ns: &str) -> Command {
    let setup = vec![
        ask::create_table(ns, "t"),
        ask::commit(ns, "t", json!([]), ask::append(1, None, 1)),
    ];
    let request = ask::commit(ns, "t", ask::main_at(Some(1)), ask::append(2, Some(1), 2));
    command(setup, request, vec![ask::load_table(ns, "t")])
}

pub fn append_without_key(ns: &str) -> Command {
    append(ns).without_key()
}

pub fn set_table_property(ns: &str) -> Command {
    let request = ask::commit(ns, "t", json!([]), ask::set_property("owner", "them"));
    let look = vec![ask::load_table(ns, "t")];
    command(vec![ask::create_table(ns, "t")], request, look)
}

pub fn rename_table(ns: &str) -> Command {
    let other = &format!("{ns}_2");
    let setup = vec![ask::create_namespace(other), ask::create_table(ns, "t")];
    let look = vec![ask::load_table(ns, "t"), ask::load_table(other, "u")];
    command(setup, ask::rename_table((ns, "t"), (other, "u")), look)
}

pub fn drop_table(ns: &str) -> Command {
    let look = vec![ask::load_table(ns, "t"), ask::list_tables(ns)];
    let setup = vec![ask::create_table(ns, "t"), ask::create_table(ns, "stays")];
    command(setup, ask::drop_table(ns, "t"), look).leaves_files()
}

pub fn purge_table(ns: &str) -> Command {
    let setup = vec![ask::create_table(ns, "t"), ask::create_table(ns, "stays")];
    let look = vec![ask::load_table(ns, "t"), ask::load_table(ns, "stays")];
    command(setup, ask::purge_table(ns, "t"), look)
}

pub fn commit_two_tables(ns: &str) -> Command {
    let other = &format!("{ns}_2");
    let setup = vec![
        ask::create_namespace(other),
        ask::create_table(ns, "t"),
        ask::create_table(other, "u"),
    ];
    let changes = [
        ask::change(ns, "t", ask::main_at(None), ask::append(1, None, 1)),
        ask::change(other, "u", json!([]), ask::set_property("owner", "them")),
    ];
    let look = vec![ask::load_table(ns, "t"), ask::load_table(other, "u")];
    command(setup, ask::commit_many(&changes), look)
}

pub fn commit_two_tables_without_key(ns: &str) -> Command {
    commit_two_tables(ns).without_key()
}

pub fn create_view(ns: &str) -> Command {
    command(
        vec![],
        ask::create_view(ns, "v"),
        vec![ask::load_view(ns, "v")],
    )
}

pub fn register_view(ns: &str) -> Command {
    let setup = vec![ask::create_view(ns, "was"), ask::drop_view(ns, "was")];
    let request = ask::register_view(ns, "v", METADATA);
    command(setup, request, vec![ask::load_view(ns, "v")])
}

pub fn replace_view(ns: &str) -> Command {
    let request = ask::replace_view(ns, "v", "SELECT 2 AS id");
    let look = vec![ask::load_view(ns, "v")];
    command(vec![ask::create_view(ns, "v")], request, look)
}

pub fn rename_view(ns: &str) -> Command {
    let request = ask::rename_view((ns, "v"), (ns, "w"));
    let look = vec![ask::load_view(ns, "v"), ask::load_view(ns, "w")];
    command(vec![ask::create_view(ns, "v")], request, look)
}

pub fn drop_view(ns: &str) -> Command {
    let look = vec![ask::load_view(ns, "v")];
    let setup = vec![ask::create_view(ns, "v")];
    command(setup, ask::drop_view(ns, "v"), look).leaves_files()
}

fn catalog_of(ns: &str) -> String {
    format!("{ns}_c")
}

/// A catalog with a table in it.
fn filled(catalog: &str) -> Vec<Request> {
    vec![
        ask::create_catalog(catalog),
        ask::create_namespace("n").of(catalog),
        ask::create_table("n", "t").of(catalog),
    ]
}

pub fn create_catalog(ns: &str) -> Command {
    let catalog = &catalog_of(ns);
    command(
        vec![],
        ask::create_catalog(catalog),
        vec![ask::load_catalog(catalog)],
    )
}

pub fn rename_catalog(ns: &str) -> Command {
    let catalog = &catalog_of(ns);
    let renamed = &format!("{ns}_d");
    let look = vec![
        ask::load_catalog(catalog),
        ask::load_catalog(renamed),
        ask::load_table("n", "t").of(catalog),
        ask::load_table("n", "t").of(renamed),
    ];
    command(filled(catalog), ask::rename_catalog(catalog, renamed), look)
}

pub fn drop_catalog(ns: &str) -> Command {
    let catalog = &catalog_of(ns);
    let look = vec![
        ask::load_catalog(catalog),
        ask::load_table("n", "t").of(catalog),
    ];
    command(filled(catalog), ask::drop_catalog(catalog), look).leaves_files()
}

/// The tables of a database, and what is in some.
fn looks(ns: &str, tables: &[&str]) -> Vec<Request> {
    let tables = tables.iter().map(|table| ask::load_table(ns, table));
    tables.chain([ask::list_tables(ns)]).collect()
}

/// A table `t`, and a branch `x`.
fn forked(ns: &str) -> Vec<Request> {
    vec![
        ask::create_table(ns, "t"),
        trees::create_branch(ns, "x", "main"),
    ]
}

/// Tables `t` and `u`, and a branch `x` that changed the one, dropped the other and made a third.
fn changed_on_x(ns: &str) -> Vec<Request> {
    let there = &on(ns, "x");
    let mut setup = vec![ask::create_table(ns, "u")];
    setup.extend(forked(ns));
    setup.extend([
        ask::commit(there, "t", json!([]), ask::set_property("owner", "them")),
        ask::drop_table(there, "u"),
        ask::create_table(there, "new"),
    ]);
    setup
}

const CHANGED: [&str; 3] = ["t", "u", "new"];

pub fn create_branch(ns: &str) -> Command {
    let mut look = looks(&on(ns, "x"), &["t"]);
    look.push(trees::show_reference(ns, "x"));
    let setup = vec![ask::create_table(ns, "t")];
    command(setup, trees::create_branch(ns, "x", "main"), look)
}

pub fn create_tag(ns: &str) -> Command {
    let mut look = looks(&at(ns, "v"), &["t"]);
    look.push(trees::show_reference(ns, "v"));
    let set = ask::set_property("owner", "them");
    let mut setup = forked(ns);
    setup.push(ask::commit(&on(ns, "x"), "t", json!([]), set));
    command(setup, trees::create_tag(ns, "v", "x"), look).like_another()
}

pub fn delete_branch(ns: &str) -> Command {
    let there = &on(ns, "x");
    let mut look = [looks(there, &["t", "new"]), looks(ns, &["t"])].concat();
    look.push(trees::show_reference(ns, "x"));
    let mut setup = forked(ns);
    setup.push(ask::create_table(there, "new"));
    command(setup, trees::delete_reference(ns, "x"), look).leaves_files()
}

pub fn delete_tag(ns: &str) -> Command {
    let mut look = looks(&at(ns, "v"), &["t"]);
    look.push(trees::show_reference(ns, "v"));
    let setup = vec![
        ask::create_table(ns, "t"),
        trees::create_tag(ns, "v", "main"),
    ];
    command(setup, trees::delete_reference(ns, "v"), look).like_another()
}

/// `main` becomes what the branch is.
pub fn merge_fast_forward(ns: &str) -> Command {
    let look = looks(ns, &CHANGED);
    let merge = command(changed_on_x(ns), trees::merge(ns, "x", "main"), look);
    merge.leaves_files().like_another()
}

/// `main` has a change of its own.
pub fn merge_three_ways(ns: &str) -> Command {
    let mut setup = changed_on_x(ns);
    setup.push(ask::create_table(ns, "own"));
    let look = looks(ns, &[&CHANGED[..], &["own"]].concat());
    command(setup, trees::merge(ns, "x", "main"), look).leaves_files()
}

/// `main` changed one of the tables that the branch changed.
pub fn merge_with_a_conflict(ns: &str) -> Command {
    let set = ask::set_property("owner", "us");
    let mut setup = changed_on_x(ns);
    setup.push(ask::commit(ns, "t", json!([]), set));
    let look = looks(ns, &CHANGED);
    Command {
        repeated: Repeated::RefusedByKey,
        ..command(setup, trees::merge(ns, "x", "main"), look).like_another()
    }
}

pub fn append_on_a_branch(ns: &str) -> Command {
    let there = &on(ns, "x");
    let mut setup = forked(ns);
    setup.push(ask::commit(there, "t", json!([]), ask::append(1, None, 1)));
    let request = ask::commit(
        there,
        "t",
        ask::main_at(Some(1)),
        ask::append(2, Some(1), 2),
    );
    let look = vec![ask::load_table(there, "t"), ask::load_table(ns, "t")];
    command(setup, request, look)
}

pub fn drop_on_a_branch(ns: &str) -> Command {
    let there = &on(ns, "x");
    let look = [looks(there, &["t"]), looks(ns, &["t"])].concat();
    command(forked(ns), ask::drop_table(there, "t"), look)
}
