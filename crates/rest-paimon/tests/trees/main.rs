//! Branches, tags and merges over the Paimon protocol, on an embedded store. Tables are written
//! through Iceberg REST, and `/v1` looks at the same references.

mod calls;
mod errors;
mod merges;
mod reads;
mod server;
