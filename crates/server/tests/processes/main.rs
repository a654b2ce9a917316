//! Server processes over one store, stopped, failed and killed at named points.
//!
//! - [`races`]: two and three servers on one PostgreSQL, in both lock modes; and without any lock,
//!   where each race has to go wrong.
//! - [`crashes`]: every command that changes something, with a fault at every point it comes to.
#![allow(clippy::unwrap_used)]

mod control;
mod point;
mod requests;
mod server;
#[path = "../support/mod.rs"]
mod support;
mod trees;
mod wire;
mod world;

mod crashes;
mod races;
