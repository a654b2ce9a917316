//! Why a manifest list or a manifest can't be read.

use thiserror::Error;

/// Why a manifest list or a manifest can't be read.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// It isn't an Avro container file, or it is cut off or damaged.
    #[error("it is no whole Avro file: {0}")]
    Container(&'static str),
    /// A compression that isn't known.
    #[error("it is compressed with {0:?}, which is not known")]
    Codec(String),
    /// Larger than the limit, as it lies there or decompressed.
    #[error("it has more than {0} bytes")]
    TooLarge(usize),
    /// Its schema is damaged.
    #[error("its schema is damaged")]
    Schema,
    /// Its schema or a record can't be read.
    #[error("{0}")]
    Avro(Box<apache_avro::Error>),
    /// A record is something else.
    #[error("it holds something else than records")]
    NoRecord,
    /// A field is missing or of another type.
    #[error("a record has no usable field `{0}`")]
    Field(&'static str),
    /// An entry has a status that the specification doesn't have.
    #[error("an entry has the unknown status {0}")]
    Status(i64),
}

impl ManifestError {
    pub(crate) fn avro(error: apache_avro::Error) -> ManifestError {
        ManifestError::Avro(Box::new(error))
    }
}
