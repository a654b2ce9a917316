//! Metadata documents may be stored gzip compressed (`….gz.metadata.json`, or by their content).

use std::io::Read;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;

use crate::error::{FileError, FileErrorKind};
use crate::location::Location;

const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The document in `stored`, decompressed if it is gzip. Neither a JSON nor an Avro document
/// starts with gzip's magic bytes, so the content decides and the name need not be trusted.
pub(crate) fn decompress(
    location: &Location,
    stored: Bytes,
    limit_bytes: u64,
) -> Result<Bytes, FileError> {
    if !stored.starts_with(&MAGIC) {
        return Ok(stored);
    }
    let mut document = Vec::new();
    MultiGzDecoder::new(stored.as_ref())
        .take(limit_bytes.saturating_add(1))
        .read_to_end(&mut document)
        .map_err(|error| {
            FileError::new(FileErrorKind::Corrupt, location.as_str(), error.to_string())
        })?;
    if document.len() as u64 > limit_bytes {
        return Err(too_large(location, limit_bytes));
    }
    Ok(Bytes::from(document))
}

pub(crate) fn too_large(location: &Location, limit_bytes: u64) -> FileError {
    let detail = format!("the limit is {limit_bytes} bytes");
    FileError::new(FileErrorKind::TooLarge, location.as_str(), detail)
}
