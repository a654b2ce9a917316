//! One error type, by what the caller can do about it.

use std::fmt;
use std::io;

/// What went wrong, by what the caller can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileErrorKind {
    /// The location can't be used: fix the input.
    InvalidLocation,
    /// The catalog's storage settings can't be used: fix them.
    InvalidSettings,
    /// A file of that name is there already, and it isn't the one that this call wrote.
    AlreadyExists,
    /// There is no such file, folder or bucket.
    NotFound,
    /// No permission, no valid credentials, or a read-only file system.
    Denied,
    /// The disk is full, or a quota or size limit of the system is reached.
    NoSpace,
    /// The store didn't answer in time: try again later.
    TimedOut,
    /// The store can't be reached or answers that it can't serve now: try again later.
    Unavailable,
    /// The document is larger than the limit that the caller gave.
    TooLarge,
    /// The bytes aren't what the name or their first bytes promise (broken gzip).
    Corrupt,
    /// Anything else; see the log.
    Other,
}

/// A failed call. `Display` is safe to show to a client: it names the location that the call was
/// about, never credentials, other paths of the server or the store's own words. Those are in
/// [`FileError::detail`], for the log.
#[derive(Clone)]
pub struct FileError {
    kind: FileErrorKind,
    subject: String,
    maybe_written: bool,
    detail: String,
}

impl FileError {
    pub(crate) fn new(
        kind: FileErrorKind,
        subject: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            subject: subject.into(),
            maybe_written: false,
            detail: detail.into(),
        }
    }

    pub(crate) fn invalid_location(spelling: &str, why: impl fmt::Display) -> Self {
        let shown: String = spelling
            .chars()
            .take(200)
            .flat_map(char::escape_debug)
            .collect();
        Self::new(
            FileErrorKind::InvalidLocation,
            format!("location '{shown}': {why}"),
            "",
        )
    }

    pub(crate) fn invalid_settings(why: impl Into<String>) -> Self {
        Self::new(FileErrorKind::InvalidSettings, why, "")
    }

    pub(crate) fn from_io(location: impl fmt::Display, error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::AlreadyExists => FileErrorKind::AlreadyExists,
            io::ErrorKind::NotFound => FileErrorKind::NotFound,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                FileErrorKind::Denied
            }
            io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
            | io::ErrorKind::FileTooLarge => FileErrorKind::NoSpace,
            io::ErrorKind::TimedOut => FileErrorKind::TimedOut,
            io::ErrorKind::InvalidFilename
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory => FileErrorKind::InvalidLocation,
            _ => FileErrorKind::Other,
        };
        Self::new(kind, location.to_string(), error.to_string())
    }

    pub(crate) fn with_maybe_written(mut self, maybe_written: bool) -> Self {
        self.maybe_written = maybe_written;
        self
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> FileErrorKind {
        self.kind
    }

    /// Whether the file of a failed [`crate::Files::put_new`] may exist now or appear later, with
    /// this call's bytes or a part of them. `false` means: this call left nothing behind. Always
    /// `false` for the other calls.
    pub fn maybe_written(&self) -> bool {
        self.maybe_written
    }

    /// Whether the same call may succeed later without anyone changing anything.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.kind,
            FileErrorKind::TimedOut | FileErrorKind::Unavailable
        )
    }

    /// The words of the system or the store, for the log only.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = &self.subject;
        match self.kind {
            FileErrorKind::InvalidLocation => write!(f, "unusable location: {subject}"),
            FileErrorKind::InvalidSettings => write!(f, "unusable storage settings: {subject}"),
            FileErrorKind::AlreadyExists => write!(f, "file already exists: {subject}"),
            FileErrorKind::NotFound => write!(f, "file not found: {subject}"),
            FileErrorKind::Denied => write!(f, "storage refused access: {subject}"),
            FileErrorKind::NoSpace => write!(f, "storage has no space left: {subject}"),
            FileErrorKind::TimedOut => write!(f, "storage did not answer in time: {subject}"),
            FileErrorKind::Unavailable => write!(f, "storage is not available now: {subject}"),
            FileErrorKind::TooLarge => write!(f, "file is larger than allowed: {subject}"),
            FileErrorKind::Corrupt => write!(f, "file is damaged: {subject}"),
            FileErrorKind::Other => write!(f, "storage failed: {subject}"),
        }
    }
}

impl fmt::Debug for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileError")
            .field("kind", &self.kind)
            .field("subject", &self.subject)
            .field("maybe_written", &self.maybe_written)
            .field("detail", &self.detail)
            .finish()
    }
}

impl std::error::Error for FileError {}
