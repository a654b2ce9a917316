//! Access to the files behind tables: metadata documents in a local folder (`file://`) or in an
//! object store that speaks S3.
//!
//! It knows places, bytes and durability. It doesn't know what a metadata document says, which
//! table owns a location, or who may touch it: that is decided above, before a call gets here.
//!
//! The types that matter:
//! - [`Location`]: a parsed URL of a file or folder, compared by place, printed as the caller wrote it;
//! - [`StorageSettings`]: how a catalog's store is reached, and what clients may be told of it;
//! - [`Files`]: the calls. [`Files::put_new`] never overwrites and is durable when it returns;
//! - [`MetadataCache`]: decoded immutable documents in bounded memory, loaded once at a time;
//! - [`FileError`]: what went wrong by what the caller can do, and whether a file may exist now.
//!
//! With the feature `testing`, `Faults` fails, delays or holds chosen calls.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod backend;
mod cache;
mod error;
#[cfg(feature = "testing")]
mod faults;
mod files;
mod gzip;
mod local;
mod local_walk;
mod location;
mod names;
mod remote;
mod remote_http;
mod settings;

pub use backend::{DeleteReport, FileEntry};
pub use cache::{CacheStats, LoadError, MetadataCache};
pub use error::{FileError, FileErrorKind};
#[cfg(feature = "testing")]
pub use faults::{Fault, FaultCall, FaultGate, Faults};
pub use files::{Files, FilesOptions};
pub use location::{Location, Scheme};
pub use names::{MetadataName, sanitize_segment};
pub use settings::StorageSettings;
