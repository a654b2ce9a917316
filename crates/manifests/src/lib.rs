//! Which files an Iceberg table's manifest lists and manifests name: bytes in, paths out, no I/O.
//!
//! Fields are found by their names, so it reads what any format version and any writer wrote;
//! what isn't known is passed over. Whatever can't be read in full is an error: a name that was
//! missed would be a file that nobody seems to need.
//!
//! - [`read_manifest_list`]: the manifests of a snapshot;
//! - [`read_manifest`]: the data and delete files of a manifest, and whether they are live in it.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod container;
mod error;

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

use apache_avro::Reader;
use apache_avro::types::Value;

pub use error::ManifestError;

/// What an entry of a manifest says of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Readers of the snapshot read it.
    Live,
    /// The snapshot that wrote the entry removed it; readers don't look at it.
    Deleted,
}

/// The status of an entry that was removed.
const DELETED: i64 = 2;

/// Names every manifest of a manifest list. More than `limit_bytes`, compressed or not, is an error.
pub fn read_manifest_list(
    bytes: &[u8],
    limit_bytes: usize,
    mut manifest: impl FnMut(&str),
) -> Result<(), ManifestError> {
    each_record(bytes, limit_bytes, |record| {
        manifest(text(record, "manifest_path")?);
        Ok(())
    })
}

/// Names every file of a manifest, those that it only tells to be removed too. More than
/// `limit_bytes`, compressed or not, is an error.
pub fn read_manifest(
    bytes: &[u8],
    limit_bytes: usize,
    mut file: impl FnMut(&str, Status),
) -> Result<(), ManifestError> {
    each_record(bytes, limit_bytes, |record| {
        let status = match number(record, "status")? {
            DELETED => Status::Deleted,
            0 | 1 => Status::Live,
            other => return Err(ManifestError::Status(other)),
        };
        let Value::Record(data_file) = field(record, "data_file")? else {
            return Err(ManifestError::Field("data_file"));
        };
        file(text(data_file, "file_path")?, status);
        Ok(())
    })
}

type Record = [(String, Value)];

fn each_record(
    bytes: &[u8],
    limit_bytes: usize,
    mut read: impl FnMut(&Record) -> Result<(), ManifestError>,
) -> Result<(), ManifestError> {
    let plain = container::uncompressed(bytes, limit_bytes)?;
    // The parser of schemas panics on some that are damaged.
    let opened = catch_unwind(AssertUnwindSafe(|| Reader::new(Cursor::new(plain))));
    let reader = opened
        .map_err(|_| ManifestError::Schema)?
        .map_err(ManifestError::avro)?;
    for value in reader {
        match value.map_err(ManifestError::avro)? {
            Value::Record(record) => read(&record)?,
            _ => return Err(ManifestError::NoRecord),
        }
    }
    Ok(())
}

/// A field's value; what is optional in the schema is looked into.
fn field<'a>(record: &'a Record, name: &'static str) -> Result<&'a Value, ManifestError> {
    let found = record.iter().find(|(known, _)| known == name);
    match found {
        Some((_, Value::Union(_, value))) => Ok(value),
        Some((_, value)) => Ok(value),
        None => Err(ManifestError::Field(name)),
    }
}

fn text<'a>(record: &'a Record, name: &'static str) -> Result<&'a str, ManifestError> {
    match field(record, name)? {
        Value::String(text) if !text.is_empty() => Ok(text),
        _ => Err(ManifestError::Field(name)),
    }
}

fn number(record: &Record, name: &'static str) -> Result<i64, ManifestError> {
    match field(record, name)? {
        Value::Int(number) => Ok(i64::from(*number)),
        Value::Long(number) => Ok(*number),
        _ => Err(ManifestError::Field(name)),
    }
}

#[cfg(test)]
mod tests;
