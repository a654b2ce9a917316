//! The Rust client of the Iceberg project, `iceberg-catalog-rest`, against a server in this process: over HTTP, on a
//! store and a warehouse of the test's own. Every test ends with an audit of the store.
//!
//! What the client says is compared with what the catalog service holds, not with what the protocol answers.
//!
//! What this client does otherwise than others, each shown by a test here:
//!
//! | what | `iceberg-catalog-rest` 0.10.1 |
//! |---|---|
//! | `+` and `%` in the names of a path | sent as they are; the server reads `+` from this client as itself, `%` begins a byte |
//! | a metadata document with a type that it doesn't know | can't be loaded; fields that it doesn't know are passed over |
//! | 409 to the drop of a namespace that isn't empty, 400 to anything | `Unexpected`, with the server's answer in its text |
//! | 404 to a rename into a namespace that isn't there | `TableNotFound` |
//! | `TableCreation::format_version` | never sent; the property `format-version` is |
//! | properties of a namespace that is there | can't be changed |
#![allow(clippy::unwrap_used)]

mod commits;
mod documents;
mod names;
mod namespaces;
#[path = "../support/normal.rs"]
mod normal;
mod races;
mod server;
mod tables;
