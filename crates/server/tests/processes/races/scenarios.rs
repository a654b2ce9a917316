//! What more than two requests, or worse than a race, come to: each scenario in both lock modes,
//! and with a protection taken away, where it has to fail.
//!
//! - [`many`]: many clients on the properties of one namespace.
//! - [`batch`]: a batch of which one is refused.
//! - [`serial`]: three requests that get into each other's way, in every order.
//! - [`rotation`]: commits of three databases, named in rotating order.
//! - [`reader`]: readers of two tables that are merged together, while it happens.
//! - [`clocks`]: servers whose clocks are an hour apart.
//! - [`frozen`]: a server that freezes while it holds a partition.
//! - [`cut`]: a COMMIT that is cut off from its server.

mod batch;
mod clocks;
mod cut;
mod frozen;
mod many;
mod reader;
mod rotation;
mod scenario;
mod serial;

use self::batch::Broken;
use self::clocks::Memory;
use self::cut::Log;
use self::frozen::Idlers;
use self::reader::Look;
pub use self::scenario::unguard;
use self::scenario::{Ended, play};
use self::serial::ends_as_in_one_of_the_orders;
use super::super::wire::Cut;
use super::super::world::Engine;

macro_rules! scenarios {
    ($($name:ident: $scenario:expr;)+) => {
        mod postgres {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                play(Engine::Postgres, $scenario).await.unwrap();
            })+
        }
        mod optimistic {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                play(Engine::Optimistic, $scenario).await.unwrap();
            })+
        }
    };
}

/// A scenario with a protection taken away, and what is wrong then.
macro_rules! controls {
    ($($name:ident: $engine:ident, $scenario:expr, $wrong:literal;)+) => {
        mod unprotected {
            use super::*;
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                fails(play(Engine::$engine, $scenario).await, $wrong);
            })+
        }
    };
}

fn fails(ended: Ended, expected: &str) {
    let wrong = ended.expect_err("a protection was missing");
    println!("{wrong}");
    assert!(wrong.contains(expected), "{wrong}");
}

scenarios! {
    no_property_of_many_is_lost: many::no_property_of_many_is_lost;
    the_refused_one_of_a_batch_leaves_no_trace:
        |world| batch::the_refused_one_leaves_no_trace(world, Broken::Nothing);
    rename_create_and_drop_of_one_name:
        |world| ends_as_in_one_of_the_orders(world, serial::rename_create_and_drop_of_one_name);
    renames_in_a_circle:
        |world| ends_as_in_one_of_the_orders(world, serial::renames_in_a_circle);
    renames_in_a_circle_with_a_gap:
        |world| ends_as_in_one_of_the_orders(world, serial::renames_in_a_circle_with_a_gap);
    renames_to_one_name:
        |world| ends_as_in_one_of_the_orders(world, serial::renames_to_one_name);
    commits_in_rotating_order_all_end: rotation::commits_in_rotating_order_all_end;
    what_is_merged_together_is_seen_together: reader::what_is_merged_together_is_seen_together;
    a_pinned_look_is_as_the_one_before:
        |world| reader::two_looks_with_a_merge_between(world, Look::Pinned);
    a_look_with_a_merge_in_it_is_of_one_state: reader::a_look_with_a_merge_in_it_is_of_one_state;
    servers_an_hour_apart_keep_one_order:
        |world| clocks::servers_an_hour_apart_keep_one_order(world, Memory::Kept);
    what_a_frozen_server_held_is_applied_whole_or_not_at_all:
        |world| frozen::what_it_held_is_applied_whole_or_not_at_all(world, Idlers::Ended);
    what_a_frozen_server_held_is_done_again:
        |world| frozen::what_it_held_is_done_again(world, Idlers::Ended);
    a_commit_whose_answer_is_cut_is_told_as_success:
        |world| cut::a_commit_whose_answer_is_cut_is_told_as_success(world, Log::Kept);
    a_commit_that_never_arrives_is_done_again:
        |world| cut::a_transaction_that_never_arrives_is_done_again(world, Cut::Commit);
    half_a_write_is_done_again:
        |world| cut::a_transaction_that_never_arrives_is_done_again(world, Cut::Write);
    a_begin_that_never_arrives_is_done_again:
        |world| cut::a_transaction_that_never_arrives_is_done_again(world, Cut::Begin);
    a_begin_that_lands_late_changes_nothing: cut::a_begin_that_lands_late_changes_nothing;
    a_commit_that_lands_late_is_waited_for: cut::a_commit_that_lands_late_is_waited_for;
    a_commit_that_lands_after_its_client_gave_up_is_found_by_its_key:
        cut::a_commit_that_lands_after_its_client_gave_up_is_found_by_its_key;
    a_commit_that_lands_in_an_ended_session_changes_nothing:
        cut::a_commit_that_lands_in_an_ended_session_changes_nothing;
    a_write_that_lands_late_is_waited_for_or_fails:
        cut::a_write_that_lands_late_is_waited_for_or_fails;
}

controls! {
    a_property_of_many_is_lost: Unprotected, many::no_property_of_many_is_lost, "lost: only";
    who_does_not_wait_is_in_no_batch: Postgres,
        |world| batch::the_refused_one_leaves_no_trace(world, Broken::Waiting),
        "2 batches instead of one";
    the_file_of_a_refused_one_stays: Optimistic,
        |world| batch::the_refused_one_leaves_no_trace(world, Broken::Deletion),
        "3 metadata files of two tables";
    rename_create_and_drop_of_one_name: Unprotected,
        |world| ends_as_in_one_of_the_orders(world, serial::rename_create_and_drop_of_one_name),
        "which no order does";
    renames_to_one_name: Unprotected,
        |world| ends_as_in_one_of_the_orders(world, serial::renames_to_one_name),
        "which no order does";
    who_goes_against_the_order_makes_a_victim: Postgres,
        rotation::who_goes_against_the_order_makes_a_victim,
        "a deadlock had 1 victims";
    two_looks_without_a_pin_are_of_two_states: Postgres,
        |world| reader::two_looks_with_a_merge_between(world, Look::Unpinned),
        "1 and 2";
    partitions_that_forget_their_clock: Postgres,
        |world| clocks::servers_an_hour_apart_keep_one_order(world, Memory::Lost),
        "behind";
    who_idles_may_hold_for_ever: Postgres,
        |world| frozen::what_it_held_is_done_again(world, Idlers::Endured),
        "the other waits";
    a_frozen_server_takes_away_what_came_meanwhile: Unprotected,
        |world| frozen::what_it_held_is_applied_whole_or_not_at_all(world, Idlers::Ended),
        "the frozen one told [204]";
    a_log_that_lost_the_commit: Postgres,
        |world| cut::a_commit_whose_answer_is_cut_is_told_as_success(world, Log::Lost),
        "file not found";
    a_commit_that_lands_late_is_applied_twice: Unprotected,
        cut::a_commit_that_lands_late_is_waited_for,
        "applied 2 times";
    a_write_that_lands_late_is_applied_twice: Unprotected,
        cut::a_write_that_lands_late_is_waited_for_or_fails,
        "applied 2 times";
}
