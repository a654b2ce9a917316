//! Two and three servers on one PostgreSQL.
//!
//! - [`duel`]: two requests that meet, in every order that two servers can give them.
//! - [`duels`]: which requests meet, and what each order must come to.
//! - [`merges`]: the same about branches and tags.
//! - [`scenarios`]: three servers, servers that freeze, clocks apart, a wire that is cut.

mod duel;
mod duels;
mod merges;
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
        const ALL: &[duel::Named] = &[$((stringify!($race), duels::$race)),+];
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

/// Duels that share servers: starting them takes longer than a duel does.
macro_rules! in_groups {
    ($($group:ident: $($race:ident),+;)+) => {
        mod shared {
            mod postgres {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $group() {
                    let duels = super::super::groups::$group;
                    super::super::all_go_well(super::super::Engine::Postgres, duels).await;
                })+
            }
            mod optimistic {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $group() {
                    let duels = super::super::groups::$group;
                    super::super::all_go_well(super::super::Engine::Optimistic, duels).await;
                })+
            }
            mod unprotected {
                $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $group() {
                    super::super::all_go_wrong(super::super::groups::$group).await;
                })+
            }
        }
        #[allow(non_upper_case_globals)]
        mod groups {
            use super::{duel::Named, merges};
            $(pub const $group: &[Named] = &[$((stringify!($race), merges::$race)),+];)+
        }
    };
}

in_groups! {
    merges_and_commits:
        merge_and_commit_to_a_table_that_the_source_changed,
        merge_and_commit_to_another_table,
        merge_and_commit_to_its_source,
        merge_a_state_and_commit_to_its_source,
        force_a_merge_at_a_revision_and_commit,
        merge_and_rename_on_the_source,
        merge_and_rename_in_the_target,
        merge_into_a_namespace_and_drop_it;
    merges_and_merges:
        merge_one_source_twice,
        merge_two_sources_of_different_tables,
        merge_two_sources_of_one_table,
        merge_both_ways;
    references_and_their_ends:
        merge_and_delete_the_source,
        merge_and_delete_the_target,
        create_a_branch_and_delete_its_source,
        create_a_tag_and_delete_its_source,
        commit_to_a_branch_and_delete_it,
        create_a_table_on_a_branch_and_delete_it,
        protect_a_branch_and_delete_it,
        drop_a_database_and_create_a_branch,
        drop_a_database_and_delete_its_last_branch;
    references_and_what_they_show:
        create_a_tag_and_commit_to_its_source,
        create_two_references_of_one_name,
        create_a_table_and_drop_its_namespace_on_a_branch,
        create_a_table_on_a_branch_and_drop_its_namespace_on_main;
}

/// These change nothing of each other's, or refuse and change nothing.
const GO_WELL_TOGETHER: [&str; 6] = [
    "merge_and_commit_to_another_table",
    "merge_a_state_and_commit_to_its_source",
    "merge_two_sources_of_different_tables",
    "merge_both_ways",
    "drop_a_database_and_delete_its_last_branch",
    "create_a_table_on_a_branch_and_drop_its_namespace_on_main",
];

async fn all_go_well(engine: Engine, duels: &'static [duel::Named]) {
    let wrongs = duel::fight_all(engine, duels).await;
    assert!(wrongs.is_empty(), "{wrongs:#?}");
}

/// The negative control: without the lock, and without the keys that stand in for it.
async fn all_go_wrong(duels: &'static [duel::Named]) {
    let wrongs = duel::fight_all(Engine::Unprotected, duels).await;
    let is_luck = |(name, wrong): &(&'static str, duel::Wrong)| {
        println!("{name}: {wrong}");
        (wrong == duel::BY_LUCK).then_some(*name)
    };
    let lucky: Vec<_> = wrongs.iter().filter_map(is_luck).collect();
    let mut expected = GO_WELL_TOGETHER.to_vec();
    expected.retain(|name| duels.iter().any(|(duel, _)| duel == name));
    assert_eq!(lucky, expected);
}
