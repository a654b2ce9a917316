//! The behaviour of every store. A test is an async function of a fresh store; the macros make one
//! `#[tokio::test]` of each for one way to make a store: a path to an async function that takes the
//! test, and calls it with a fresh `Arc<dyn Store>`.
//!
//! [`store_suite!`](crate::store_suite!) is for every store, also for one that loses answers; [`calm_suite!`](crate::calm_suite!) holds what
//! only a store that answers can show.
#![allow(clippy::unwrap_used)]

pub mod commits;
pub mod log;
pub mod reads;
pub mod tasks;
pub mod world;

/// Makes one test of each named property.
#[macro_export]
macro_rules! suite_tests {
    ($with_store:path: $($module:ident { $($name:ident)* })*) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                $with_store($crate::suite::$module::$name).await;
            }
        )*)*
    };
}

/// What every store does, however many answers it loses.
#[macro_export]
macro_rules! store_suite {
    ($with_store:path) => {
        $crate::suite_tests! { $with_store:
            reads {
                odd_names_are_kept_and_listed_in_byte_order
                a_revision_shows_what_stood_then
                pages_at_a_revision_are_complete
                a_page_can_ask_for_kinds
                under_covers_a_scope_and_what_is_below
                answers_come_in_the_order_of_the_reads
                paths_resolve_from_the_top_down
            }
            commits {
                a_commit_is_visible_as_a_whole
                objects_move_between_names_in_one_commit
                one_operation_key_admits_one_writer
                a_dropped_transaction_leaves_nothing
                a_transaction_holds_what_exists
                a_dropped_partition_keeps_its_row
                no_update_is_lost_between_writers
            }
            log {
                a_feed_page_may_end_inside_a_revision
                changes_between_two_revisions
                a_feed_over_partitions_misses_and_repeats_nothing
                changed_since_a_commit_that_is_held
                pruning_ends_at_the_horizon
                a_lost_position_is_told
                history_comes_in_pages
            }
        }
    };
}

/// What a store does that answers.
#[macro_export]
macro_rules! calm_suite {
    ($with_store:path) => {
        $crate::suite_tests! { $with_store:
            commits {
                what_does_not_fit_leaves_no_trace
            }
            tasks {
                a_lease_is_exclusive
                a_lease_takes_what_is_due
                a_lapsed_lease_is_taken_over
                a_saved_task_is_read_by_anyone
                a_queued_task_is_done_once
                a_commit_ends_a_task_with_it
                operation_records_expire
            }
        }
    };
}
