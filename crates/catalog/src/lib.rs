//! The catalog: metalakes, catalogs, namespaces, Iceberg tables and views.
//!
//! Rules are pure: commands (one file each under `command`) decide over a view of partitions, and
//! `prepare` computes new metadata from old. The service around them resolves names, reads and
//! writes metadata files outside any lock, and publishes by compare and swap.
//!
//! ```text
//! request ─ resolve names ─ load metadata ─ check + apply (pure) ─ store the files ─ commit_tables
//!              ▲                                                                        │
//!              └──────────────── another version stands: prepare again ◄────────────────┘
//! ```
//!
//! The types that matter:
//! - [`Catalog`]: the service that the protocols call.
//! - [`Caller`]: who asks, under which operation key, and how long the answer may take.
//! - [`Warehouse`], [`Namespace`], [`Identifier`]: names, checked.
//! - [`Pointer`] and [`Document`]: where a table stands and what its metadata says.
//! - [`CatalogError`]: what the caller can do.

mod body;
mod command;
mod error;
mod name;
mod place;
mod properties;
pub mod reference;
mod service;

pub use body::{CatalogBody, Properties};
pub use command::{Merged, MergedTable, PropertiesChanged};
pub use error::CatalogError;
pub use name::{DEFAULT_METALAKE, Identifier, Namespace, Warehouse};
pub use service::{
    Caller, Catalog, CatalogInfo, Changed, Committed, Content, Document, DueGc, FileKind, GcBody,
    GcFile, GcKept, GcReport, GcRun, GcState, GcUnreadable, JobReport, Limits, Listing,
    NamespaceInfo, NewCatalog, NewGc, NewMerge, NewReference, NewTable, NewView, Page, Pointer,
    PointerKind, SourceReference, TableChange, Total, Unregistered, reference_revision,
};
