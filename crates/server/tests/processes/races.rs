//! Two and three servers on one PostgreSQL.
//!
//! - [`duel`]: two requests that meet, in every order that two servers can give them.
//! - [`duels`]: which requests meet, and what each order must come to.
//! - [`scenarios`]: three servers, servers that freeze, clocks apart, a wire that is cut.

mod duel;
mod duels;
mod scenarios;

use super::world::Engine;

macro_rules! in_both_modes {
    ($($race:ident),+ $(,)?) => {
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $race() {
                super::duel::fight(super::Engine::Postgres, super::duels::$race).await.unwrap();
            })+
        }
        mod optimistic {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $race() {
                super::duel::fight(super::Engine::Optimistic, super::duels::$race).await.unwrap();
            })+
        }
        const ALL: &[(&str, fn(&str) -> duel::Duel)] = &[$((stringify!($race), duels::$race)),+];
    };
}

in_both_modes![
    create_table_and_drop_its_namespace,
    create_table_and_drop_its_nested_namespace,
    create_table_and_drop_its_catalog,
    create_namespace_and_drop_its_parent,
    create_namespace_and_rename_its_catalog,
    create_table_twice,
    create_table_and_view_of_one_name,
    create_namespace_twice,
    create_catalog_twice,
    rename_two_tables_to_one_name,
    rename_two_catalogs_to_one_name,
    rename_table_and_create_another_there,
    rename_table_into_a_namespace_that_is_dropped,
    drop_table_twice,
    drop_namespace_twice,
    drop_catalog_twice,
    drop_namespace_and_its_last_table,
    commit_twice_on_one_snapshot,
    commit_twice_without_requirements,
    commit_and_drop_the_table,
    commit_and_rename_the_table,
    set_two_properties_of_one_namespace,
    set_a_property_and_drop_the_namespace,
    commit_two_tables_in_opposite_order,
    commit_tables_of_two_namespaces_in_opposite_order,
    commit_across_by_requirements_only,
    commit_many_and_drop_one,
];

/// These come to one of their orders even so: two that end one version of a row meet in the key of
/// the history, and a refusal changes nothing.
const RIGHT_BY_LUCK: [&str; 10] = [
    "drop_namespace_and_its_last_table",
    "commit_twice_on_one_snapshot",
    "commit_twice_without_requirements",
    "commit_and_drop_the_table",
    "commit_and_rename_the_table",
    "set_two_properties_of_one_namespace",
    "set_a_property_and_drop_the_namespace",
    "commit_two_tables_in_opposite_order",
    "commit_tables_of_two_namespaces_in_opposite_order",
    "commit_many_and_drop_one",
];

/// The negative control: each duel fails without the lock, most by what both are told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_partition_lock_every_duel_fails() {
    for (name, duel) in ALL {
        let wrong = duel::fight(Engine::Unprotected, *duel).await.unwrap_err();
        println!("{name}: {wrong}");
        let is_luck = wrong == duel::BY_LUCK;
        assert_eq!(is_luck, RIGHT_BY_LUCK.contains(name), "{name}: {wrong}");
    }
}
