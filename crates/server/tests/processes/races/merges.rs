//! Duels about branches and tags of one database.

use serde_json::{Value, json};

use super::duel::{Afterwards, Duel, REVISION, duel};
use crate::requests::*;
use crate::trees::*;

/// A database with tables, and branches of it.
fn forked(ns: &str, tables: &[&str], branches: &[&str]) -> Vec<Request> {
    let tables = tables.iter().map(|table| create_table(ns, table));
    let branches = branches.iter().map(|name| create_branch(ns, name, "main"));
    let first = std::iter::once(create_namespace(ns));
    first.chain(tables).chain(branches).collect()
}

/// Tables `t` and `u`, and a branch `x` that changed `t`.
fn changed_on_x(ns: &str) -> Vec<Request> {
    let mut setup = forked(ns, &["t", "u"], &["x"]);
    setup.push(set(&on(ns, "x"), "t", "x"));
    setup
}

/// A commit that sets a property.
fn set(ns: &str, table: &str, key: &str) -> Request {
    commit(ns, table, json!([]), set_property(key, "1"))
}

/// Which of the properties `x` and `y` a table has.
fn has_set(ns: &str, table: &str, keys: &[&str]) -> Afterwards {
    let places = [
        ("x", "/metadata/properties/x"),
        ("y", "/metadata/properties/y"),
    ];
    let one = |(key, place)| {
        let value = match keys.contains(&key) {
            true => json!("1"),
            false => Value::Null,
        };
        (load_table(ns, table), place, value)
    };
    places.map(one).to_vec()
}

/// Which tables a namespace has.
fn has_tables(ns: &str, tables: &[&str]) -> Afterwards {
    let levels: Vec<_> = ns.split('.').collect();
    let one = |name: &&str| json!({ "namespace": levels, "name": name });
    let tables = tables.iter().map(one).collect();
    vec![(list_tables(ns), "/identifiers", tables)]
}

/// The commit is before and noticed, or on top of what was merged.
pub fn merge_and_commit_to_a_table_that_the_source_changed(ns: &str) -> Duel {
    let requests = (merge(ns, "x", "main"), set(ns, "t", "y"));
    duel(changed_on_x(ns), requests, (200, 200), (409, 200))
        .if_one_first(has_set(ns, "t", &["x", "y"]))
        .if_other_first(has_set(ns, "t", &["y"]))
}

pub fn merge_and_commit_to_another_table(ns: &str) -> Duel {
    let requests = (merge(ns, "x", "main"), set(ns, "u", "y"));
    duel(changed_on_x(ns), requests, (200, 200), (200, 200))
        .then([has_set(ns, "t", &["x"]), has_set(ns, "u", &["y"])].concat())
}

/// What is merged is as it was asked for, or as the last commit left it.
pub fn merge_and_commit_to_its_source(ns: &str) -> Duel {
    let requests = (merge(ns, "x", "main"), set(&on(ns, "x"), "t", "y"));
    duel(changed_on_x(ns), requests, (200, 200), (200, 200))
        .then(has_set(&on(ns, "x"), "t", &["x", "y"]))
        .if_one_first(has_set(ns, "t", &["x"]))
        .if_other_first(has_set(ns, "t", &["x", "y"]))
}

pub fn merge_a_state_and_commit_to_its_source(ns: &str) -> Duel {
    let mut setup = changed_on_x(ns);
    setup.push(show_reference(ns, "x"));
    let source = json!({ "type": "BRANCH", "name": "x", "revision": REVISION });
    let merge = merge_with(ns, "main", json!({ "source": source }));
    let requests = (merge, set(&on(ns, "x"), "t", "y"));
    duel(setup, requests, (200, 200), (200, 200)).then(has_set(ns, "t", &["x"]))
}

/// The second changes nothing.
pub fn merge_one_source_twice(ns: &str) -> Duel {
    let requests = (merge(ns, "x", "main"), merge(ns, "x", "main"));
    duel(changed_on_x(ns), requests, (200, 200), (200, 200))
        .then(has_set(ns, "t", &["x"]))
        .told_alike("/result/revision")
}

pub fn merge_two_sources_of_different_tables(ns: &str) -> Duel {
    let mut setup = forked(ns, &["t", "u"], &["x", "y"]);
    setup.push(set(&on(ns, "x"), "t", "x"));
    setup.push(set(&on(ns, "y"), "u", "y"));
    let requests = (merge(ns, "x", "main"), merge(ns, "y", "main"));
    duel(setup, requests, (200, 200), (200, 200))
        .then([has_set(ns, "t", &["x"]), has_set(ns, "u", &["y"])].concat())
}

pub fn merge_two_sources_of_one_table(ns: &str) -> Duel {
    let mut setup = forked(ns, &["t"], &["x", "y"]);
    setup.push(set(&on(ns, "x"), "t", "x"));
    setup.push(set(&on(ns, "y"), "t", "y"));
    let requests = (merge(ns, "x", "main"), merge(ns, "y", "main"));
    duel(setup, requests, (200, 409), (409, 200))
        .if_one_first(has_set(ns, "t", &["x"]))
        .if_other_first(has_set(ns, "t", &["y"]))
}

/// What was merged doesn't go with its source.
pub fn merge_and_delete_the_source(ns: &str) -> Duel {
    let requests = (merge(ns, "x", "main"), delete_reference(ns, "x"));
    duel(changed_on_x(ns), requests, (200, 200), (404, 200))
        .if_one_first(has_set(ns, "t", &["x"]))
        .if_other_first(has_set(ns, "t", &[]))
}

pub fn merge_and_delete_the_target(ns: &str) -> Duel {
    let mut setup = changed_on_x(ns);
    setup.push(create_branch(ns, "y", "main"));
    let requests = (merge(ns, "x", "y"), delete_reference(ns, "y"));
    duel(setup, requests, (200, 200), (404, 200)).then(vec![(
        load_table(&on(ns, "y"), "t"),
        "/error/code",
        json!(404),
    )])
}

/// A branch goes on when the one that it was made from is gone.
pub fn create_a_branch_and_delete_its_source(ns: &str) -> Duel {
    let requests = (create_branch(ns, "y", "x"), delete_reference(ns, "x"));
    duel(changed_on_x(ns), requests, (200, 200), (404, 200))
        .if_one_first(has_set(&on(ns, "y"), "t", &["x"]))
        .if_other_first(has_set(&on(ns, "y"), "t", &[]))
}

pub fn create_a_tag_and_delete_its_source(ns: &str) -> Duel {
    let requests = (create_tag(ns, "v", "x"), delete_reference(ns, "x"));
    duel(changed_on_x(ns), requests, (200, 200), (404, 200))
        .if_one_first(has_set(&at(ns, "v"), "t", &["x"]))
        .if_other_first(has_set(&at(ns, "v"), "t", &[]))
}

pub fn create_a_tag_and_commit_to_its_source(ns: &str) -> Duel {
    let requests = (create_tag(ns, "v", "x"), set(&on(ns, "x"), "t", "y"));
    duel(changed_on_x(ns), requests, (200, 200), (200, 200))
        .if_one_first(has_set(&at(ns, "v"), "t", &["x"]))
        .if_other_first(has_set(&at(ns, "v"), "t", &["x", "y"]))
}

pub fn commit_to_a_branch_and_delete_it(ns: &str) -> Duel {
    let requests = (set(&on(ns, "x"), "t", "y"), delete_reference(ns, "x"));
    duel(changed_on_x(ns), requests, (200, 200), (404, 200)).then(has_set(ns, "t", &[]))
}

pub fn create_a_table_on_a_branch_and_delete_it(ns: &str) -> Duel {
    let requests = (create_table(&on(ns, "x"), "v"), delete_reference(ns, "x"));
    duel(changed_on_x(ns), requests, (200, 200), (404, 200)).then(has_tables(ns, &["t", "u"]))
}

pub fn drop_a_database_and_create_a_branch(ns: &str) -> Duel {
    let requests = (drop_namespace(ns), create_branch(ns, "x", "main"));
    duel(vec![create_namespace(ns)], requests, (204, 404), (409, 200))
}

pub fn drop_a_database_and_delete_its_last_branch(ns: &str) -> Duel {
    let setup = forked(ns, &[], &["x"]);
    let requests = (drop_namespace(ns), delete_reference(ns, "x"));
    Duel {
        one_never_stands: true,
        ..duel(setup, requests, (409, 200), (204, 200))
    }
}

pub fn create_a_table_and_drop_its_namespace_on_a_branch(ns: &str) -> Duel {
    let inner = &format!("{ns}.in");
    let mut setup = vec![create_namespace(ns), create_namespace(inner)];
    setup.push(create_branch(ns, "x", "main"));
    let there = &format!("{}.in", on(ns, "x"));
    let requests = (create_table(there, "t"), drop_namespace(there));
    duel(setup, requests, (200, 409), (404, 204)).then(has_tables(inner, &[]))
}

/// On `main` the namespace may go while the branch still fills it.
pub fn create_a_table_on_a_branch_and_drop_its_namespace_on_main(ns: &str) -> Duel {
    let inner = &format!("{ns}.in");
    let mut setup = vec![create_namespace(ns), create_namespace(inner)];
    setup.push(create_branch(ns, "x", "main"));
    let there = &format!("{}.in", on(ns, "x"));
    let requests = (create_table(there, "t"), drop_namespace(inner));
    duel(setup, requests, (200, 204), (200, 204)).then(has_tables(there, &["t"]))
}

/// Nothing is merged into a namespace that is gone, and none goes that something was merged into.
pub fn merge_into_a_namespace_and_drop_it(ns: &str) -> Duel {
    let inner = &format!("{ns}.in");
    let mut setup = vec![create_namespace(ns), create_namespace(inner)];
    setup.push(create_branch(ns, "x", "main"));
    setup.push(create_table(&format!("{}.in", on(ns, "x")), "t"));
    let requests = (merge(ns, "x", "main"), drop_namespace(inner));
    duel(setup, requests, (200, 409), (409, 204)).if_one_first(has_tables(inner, &["t"]))
}

pub fn create_two_references_of_one_name(ns: &str) -> Duel {
    let requests = (create_branch(ns, "v", "main"), create_tag(ns, "v", "main"));
    let kind = |kind: &str| vec![(show_reference(ns, "v"), "/reference/type", json!(kind))];
    duel(forked(ns, &["t"], &[]), requests, (200, 409), (409, 200))
        .if_one_first(kind("BRANCH"))
        .if_other_first(kind("TAG"))
}

/// The commit is to what the merge would replace: who asked for it as it was must be told.
pub fn force_a_merge_at_a_revision_and_commit(ns: &str) -> Duel {
    let mut setup = changed_on_x(ns);
    setup.push(set(&on(ns, "x"), "u", "x"));
    setup.push(show_reference(ns, "main"));
    let body = json!({
        "source": branch("x"), "defaultMergeMode": "FORCE", "expectedRevision": REVISION,
    });
    let requests = (merge_with(ns, "main", body), set(ns, "t", "y"));
    duel(setup, requests, (200, 200), (409, 200))
        .if_one_first([has_set(ns, "t", &["x", "y"]), has_set(ns, "u", &["x"])].concat())
        .if_other_first([has_set(ns, "t", &["y"]), has_set(ns, "u", &[])].concat())
}

pub fn merge_and_rename_on_the_source(ns: &str) -> Duel {
    let there = &on(ns, "x");
    let requests = (
        merge(ns, "x", "main"),
        rename_table((there, "t"), (there, "v")),
    );
    duel(changed_on_x(ns), requests, (200, 204), (200, 204))
        .then(has_tables(there, &["u", "v"]))
        .if_one_first([has_tables(ns, &["t", "u"]), has_set(ns, "t", &["x"])].concat())
        .if_other_first([has_tables(ns, &["u", "v"]), has_set(ns, "v", &["x"])].concat())
}

/// Under its new name in the target it is a table that both sides changed.
pub fn merge_and_rename_in_the_target(ns: &str) -> Duel {
    let requests = (merge(ns, "x", "main"), rename_table((ns, "t"), (ns, "v")));
    duel(changed_on_x(ns), requests, (200, 204), (409, 204))
        .then(has_tables(ns, &["u", "v"]))
        .if_one_first(has_set(ns, "v", &["x"]))
        .if_other_first(has_set(ns, "v", &[]))
}

pub fn merge_both_ways(ns: &str) -> Duel {
    let mut setup = changed_on_x(ns);
    setup.push(set(ns, "u", "y"));
    let there = &on(ns, "x");
    let requests = (merge(ns, "x", "main"), merge(ns, "main", "x"));
    let both = |ns| [has_set(ns, "t", &["x"]), has_set(ns, "u", &["y"])].concat();
    duel(setup, requests, (200, 200), (200, 200)).then([both(ns), both(there)].concat())
}

pub fn protect_a_branch_and_delete_it(ns: &str) -> Duel {
    let requests = (protect_reference(ns, "x"), delete_reference(ns, "x"));
    duel(changed_on_x(ns), requests, (200, 409), (404, 200))
}
