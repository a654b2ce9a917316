//! Which requests meet, and what each order must come to. Every duel is on names of its own.

use serde_json::json;

use super::duel::{Duel, duel};
use crate::requests::*;

pub fn create_table_and_drop_its_namespace(ns: &str) -> Duel {
    let requests = (create_table(ns, "t"), drop_namespace(ns));
    duel(vec![create_namespace(ns)], requests, (200, 409), (404, 204))
}

pub fn create_table_and_drop_its_nested_namespace(ns: &str) -> Duel {
    let inner = &format!("{ns}.in");
    let setup = vec![create_namespace(ns), create_namespace(inner)];
    let requests = (create_table(inner, "t"), drop_namespace(inner));
    duel(setup, requests, (200, 409), (404, 204))
}

pub fn create_table_and_drop_its_catalog(catalog: &str) -> Duel {
    let setup = vec![create_catalog(catalog), create_namespace("n").of(catalog)];
    let requests = (create_table("n", "t").of(catalog), drop_catalog(catalog));
    duel(setup, requests, (200, 204), (404, 204))
}

pub fn create_namespace_and_drop_its_parent(ns: &str) -> Duel {
    let requests = (create_namespace(&format!("{ns}.in")), drop_namespace(ns));
    duel(vec![create_namespace(ns)], requests, (200, 409), (400, 204))
}

pub fn create_namespace_and_rename_its_catalog(catalog: &str) -> Duel {
    let renamed = &format!("{catalog}_2");
    let requests = (
        create_namespace("n").of(catalog),
        rename_catalog(catalog, renamed),
    );
    duel(
        vec![create_catalog(catalog)],
        requests,
        (200, 204),
        (404, 204),
    )
}

pub fn create_table_twice(ns: &str) -> Duel {
    let requests = (create_table(ns, "t"), create_table(ns, "t"));
    duel(vec![create_namespace(ns)], requests, (200, 409), (409, 200))
}

pub fn create_table_and_view_of_one_name(ns: &str) -> Duel {
    let requests = (create_table(ns, "t"), create_view(ns, "t"));
    duel(vec![create_namespace(ns)], requests, (200, 409), (409, 200))
}

pub fn create_namespace_twice(ns: &str) -> Duel {
    let requests = (create_namespace(ns), create_namespace(ns));
    duel(vec![], requests, (200, 409), (409, 200))
}

pub fn create_catalog_twice(catalog: &str) -> Duel {
    let requests = (create_catalog(catalog), create_catalog(catalog));
    duel(vec![], requests, (200, 409), (409, 200))
}

pub fn rename_two_tables_to_one_name(ns: &str) -> Duel {
    let setup = vec![
        create_namespace(ns),
        create_table(ns, "t"),
        create_table(ns, "u"),
    ];
    let to_v = |name| rename_table((ns, name), (ns, "v"));
    duel(setup, (to_v("t"), to_v("u")), (204, 409), (409, 204))
}

pub fn rename_two_catalogs_to_one_name(catalog: &str) -> Duel {
    let (first, second) = (&format!("{catalog}_1"), &format!("{catalog}_2"));
    let setup = vec![create_catalog(first), create_catalog(second)];
    let requests = (
        rename_catalog(first, catalog),
        rename_catalog(second, catalog),
    );
    duel(setup, requests, (204, 409), (409, 204))
}

pub fn rename_table_and_create_another_there(ns: &str) -> Duel {
    let setup = vec![create_namespace(ns), create_table(ns, "t")];
    let requests = (rename_table((ns, "t"), (ns, "u")), create_table(ns, "u"));
    duel(setup, requests, (204, 409), (409, 200))
}

pub fn rename_table_into_a_namespace_that_is_dropped(ns: &str) -> Duel {
    let there = &format!("{ns}_2");
    let setup = vec![
        create_namespace(ns),
        create_namespace(there),
        create_table(ns, "t"),
    ];
    let requests = (rename_table((ns, "t"), (there, "t")), drop_namespace(there));
    duel(setup, requests, (204, 409), (404, 204))
}

pub fn drop_table_twice(ns: &str) -> Duel {
    let setup = vec![create_namespace(ns), create_table(ns, "t")];
    duel(
        setup,
        (drop_table(ns, "t"), drop_table(ns, "t")),
        (204, 404),
        (404, 204),
    )
}

pub fn drop_namespace_twice(ns: &str) -> Duel {
    let requests = (drop_namespace(ns), drop_namespace(ns));
    duel(vec![create_namespace(ns)], requests, (204, 404), (404, 204))
}

pub fn drop_catalog_twice(catalog: &str) -> Duel {
    let requests = (drop_catalog(catalog), drop_catalog(catalog));
    duel(
        vec![create_catalog(catalog)],
        requests,
        (204, 404),
        (404, 204),
    )
}

pub fn drop_namespace_and_its_last_table(ns: &str) -> Duel {
    let setup = vec![create_namespace(ns), create_table(ns, "t")];
    let requests = (drop_namespace(ns), drop_table(ns, "t"));
    Duel {
        one_never_stands: true,
        ..duel(setup, requests, (409, 204), (204, 204))
    }
}

pub fn commit_twice_on_one_snapshot(ns: &str) -> Duel {
    let setup = vec![create_namespace(ns), create_table(ns, "t")];
    let append = |id| commit(ns, "t", main_at(None), append(id, None, 1));
    duel(setup, (append(1), append(2)), (200, 409), (409, 200))
}

pub fn commit_twice_without_requirements(ns: &str) -> Duel {
    let setup = vec![create_namespace(ns), create_table(ns, "t")];
    let set = |key| commit(ns, "t", json!([]), set_property(key, "1"));
    duel(setup, (set("x"), set("y")), (200, 200), (200, 200)).then(vec![
        (load_table(ns, "t"), "/metadata/properties/x", json!("1")),
        (load_table(ns, "t"), "/metadata/properties/y", json!("1")),
    ])
}

pub fn commit_and_drop_the_table(ns: &str) -> Duel {
    let setup = vec![create_namespace(ns), create_table(ns, "t")];
    let set = commit(ns, "t", json!([]), set_property("x", "1"));
    duel(setup, (set, drop_table(ns, "t")), (200, 204), (404, 204))
}

pub fn commit_and_rename_the_table(ns: &str) -> Duel {
    let setup = vec![create_namespace(ns), create_table(ns, "t")];
    let set = commit(ns, "t", json!([]), set_property("x", "1"));
    let rename = rename_table((ns, "t"), (ns, "u"));
    duel(setup, (set, rename), (200, 204), (404, 204))
}

pub fn set_two_properties_of_one_namespace(ns: &str) -> Duel {
    let set = |key| set_namespace_property(ns, key, "1");
    duel(
        vec![create_namespace(ns)],
        (set("x"), set("y")),
        (200, 200),
        (200, 200),
    )
    .then(vec![
        (load_namespace(ns), "/properties/x", json!("1")),
        (load_namespace(ns), "/properties/y", json!("1")),
    ])
}

pub fn set_a_property_and_drop_the_namespace(ns: &str) -> Duel {
    let requests = (set_namespace_property(ns, "x", "1"), drop_namespace(ns));
    duel(vec![create_namespace(ns)], requests, (200, 204), (404, 204))
}

pub fn commit_two_tables_in_opposite_order(ns: &str) -> Duel {
    in_opposite_order(vec![create_namespace(ns)], ns, ns)
}

pub fn commit_tables_of_two_namespaces_in_opposite_order(ns: &str) -> Duel {
    let second = &format!("{ns}_2");
    in_opposite_order(
        vec![create_namespace(ns), create_namespace(second)],
        ns,
        second,
    )
}

fn in_opposite_order(mut setup: Vec<Request>, first: &str, second: &str) -> Duel {
    setup.extend([create_table(first, "t"), create_table(second, "u")]);
    let t = |key| change(first, "t", json!([]), set_property(key, "1"));
    let u = |key| change(second, "u", json!([]), set_property(key, "1"));
    let requests = (
        commit_many(&[t("x"), u("x")]),
        commit_many(&[u("y"), t("y")]),
    );
    duel(setup, requests, (204, 204), (204, 204)).then(vec![
        (load_table(first, "t"), "/metadata/properties/x", json!("1")),
        (load_table(first, "t"), "/metadata/properties/y", json!("1")),
        (
            load_table(second, "u"),
            "/metadata/properties/x",
            json!("1"),
        ),
        (
            load_table(second, "u"),
            "/metadata/properties/y",
            json!("1"),
        ),
    ])
}

/// Each writes its own table if the other's is as it was: both can't be.
pub fn commit_across_by_requirements_only(ns: &str) -> Duel {
    let second = &format!("{ns}_2");
    let setup = vec![
        create_namespace(ns),
        create_namespace(second),
        create_table(ns, "t"),
        create_table(second, "u"),
    ];
    let t_if_u = commit_many(&[
        change(ns, "t", json!([]), append(1, None, 1)),
        change(second, "u", main_at(None), json!([])),
    ]);
    let u_if_t = commit_many(&[
        change(second, "u", json!([]), append(2, None, 1)),
        change(ns, "t", main_at(None), json!([])),
    ]);
    duel(setup, (t_if_u, u_if_t), (204, 409), (409, 204))
}

pub fn commit_many_and_drop_one(ns: &str) -> Duel {
    let setup = vec![
        create_namespace(ns),
        create_table(ns, "t"),
        create_table(ns, "u"),
    ];
    let set = |name| change(ns, name, json!([]), set_property("x", "1"));
    let both = commit_many(&[set("t"), set("u")]);
    duel(setup, (both, drop_table(ns, "u")), (204, 204), (404, 204))
}
