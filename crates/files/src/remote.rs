//! Object stores that speak S3.
//!
//! Reads, listings and deletes are repeated by the client library, with backoff. A conditional
//! create is not: after an attempt whose end is unknown, a refusal ("exists") may be the echo of
//! that attempt, and only this code knows what it sent and can compare.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::path::Path;
use object_store::{
    BackoffConfig, ClientConfigKey, GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    RetryConfig,
};

use crate::backend::{Backend, DeleteReport, FileEntry, Keep};
use crate::error::{FileError, FileErrorKind};
use crate::files::FilesOptions;
use crate::gzip::too_large;
use crate::location::Location;
use crate::remote_http::{RefusalConnector, RefusedRequest};
use crate::settings::StorageSettings;

const DEFAULT_REGION: &str = "us-east-1";
/// Deletes in flight at once for one `delete_under`.
const CONCURRENT_DELETES: usize = 16;

pub(crate) struct ObjectBackend {
    /// Repeats a failed request by itself.
    repeating: Arc<dyn ObjectStore>,
    /// Sends every request once.
    single_shot: Arc<dyn ObjectStore>,
    write_attempts: u32,
    first_backoff: Duration,
}

impl ObjectBackend {
    pub(crate) fn connect(
        bucket: &str,
        settings: &StorageSettings,
        options: &FilesOptions,
    ) -> Result<Self, FileError> {
        let build = |retries: usize| {
            builder(bucket, settings, options, retries)
                .build()
                .map(|store| Arc::new(store) as Arc<dyn ObjectStore>)
                .map_err(|error| {
                    let subject = format!("no client for bucket '{bucket}' can be made of them");
                    FileError::new(FileErrorKind::InvalidSettings, subject, error.to_string())
                })
        };
        Ok(Self {
            repeating: build(options.read_retries)?,
            single_shot: build(0)?,
            write_attempts: options.write_attempts.max(1),
            first_backoff: options.first_backoff,
        })
    }

    /// What stands at `location`, to compare it with `sent`.
    async fn stored_like(&self, location: &Location, sent: &Bytes) -> Result<bool, FileError> {
        match self.get(location, sent.len() as u64).await {
            Ok(stored) => Ok(stored == *sent),
            Err(error) if error.kind() == FileErrorKind::TooLarge => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn back_off(&self, attempt: u32) {
        let longest = self.first_backoff * 2u32.saturating_pow(attempt);
        tokio::time::sleep(longest.mul_f64(rand::random_range(0.5..=1.0))).await;
    }
}

fn builder(
    bucket: &str,
    settings: &StorageSettings,
    options: &FilesOptions,
    retries: usize,
) -> AmazonS3Builder {
    let retry = RetryConfig {
        backoff: BackoffConfig {
            init_backoff: options.first_backoff,
            max_backoff: options.request_timeout,
            base: 2.0,
        },
        max_retries: retries,
        retry_timeout: options.read_timeout,
    };
    // Static keys stand alone; without them the server's own environment gives the credentials.
    let mut builder = match &settings.keys {
        None => AmazonS3Builder::from_env(),
        Some(keys) => {
            let builder = AmazonS3Builder::new()
                .with_region(DEFAULT_REGION)
                .with_access_key_id(&keys.access_key_id)
                .with_secret_access_key(&keys.secret_access_key);
            match &keys.session_token {
                Some(session_token) => builder.with_token(session_token),
                None => builder,
            }
        }
    };
    if let Some(region) = &settings.region {
        builder = builder.with_region(region);
    }
    if let Some(endpoint) = &settings.endpoint {
        // With the bucket in the host name, the library wants it in the endpoint as well.
        let endpoint = match settings.path_style() {
            true => endpoint.clone(),
            false => with_bucket_in_host(endpoint, bucket),
        };
        builder = builder
            .with_allow_http(endpoint.starts_with("http://"))
            .with_endpoint(endpoint)
            .with_virtual_hosted_style_request(!settings.path_style());
    } else if let Some(path_style_access) = settings.path_style_access {
        builder = builder.with_virtual_hosted_style_request(!path_style_access);
    }
    // One by one: a whole `ClientOptions` would replace what was set above and by the environment.
    let milliseconds = |duration: Duration| format!("{}ms", duration.as_millis());
    let client = AmazonS3ConfigKey::Client;
    builder
        .with_config(
            client(ClientConfigKey::Timeout),
            milliseconds(options.request_timeout),
        )
        .with_config(
            client(ClientConfigKey::ConnectTimeout),
            milliseconds(options.connect_timeout),
        )
        .with_bucket_name(bucket)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_retry(retry)
        .with_http_connector(RefusalConnector::default())
}

fn with_bucket_in_host(endpoint: &str, bucket: &str) -> String {
    match endpoint.split_once("://") {
        Some((scheme, host)) => format!("{scheme}://{bucket}.{host}"),
        None => endpoint.to_owned(),
    }
}

#[async_trait]
impl Backend for ObjectBackend {
    async fn put_new(&self, location: &Location, bytes: Bytes) -> Result<(), FileError> {
        let path = object_path(location)?;
        let mut maybe_written = false;
        let mut attempt = 0;
        loop {
            let options = PutOptions::from(PutMode::Create);
            let sent = self
                .single_shot
                .put_opts(&path, bytes.clone().into(), options)
                .await;
            let error = match sent {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            let failed = failure(location, &error);
            maybe_written |= may_have_written(&error);
            let refused = failed.kind() == FileErrorKind::AlreadyExists;
            if refused || maybe_written {
                match self.stored_like(location, &bytes).await {
                    Ok(true) if maybe_written => return Ok(()),
                    Ok(_) => {
                        let exists = FileErrorKind::AlreadyExists;
                        return Err(FileError::new(exists, location.as_str(), error.to_string()));
                    }
                    // Refused, and yet there is nothing: the store saw two at once and took neither.
                    Err(absent) if absent.kind() == FileErrorKind::NotFound => {}
                    Err(_) => return Err(failed.with_maybe_written(maybe_written)),
                }
            }
            attempt += 1;
            let may_repeat = refused || failed.is_retryable();
            if !may_repeat || attempt >= self.write_attempts {
                let unsettled = match refused {
                    true => FileError::new(
                        FileErrorKind::Unavailable,
                        location.as_str(),
                        error.to_string(),
                    ),
                    false => failed,
                };
                return Err(unsettled.with_maybe_written(maybe_written));
            }
            self.back_off(attempt).await;
        }
    }

    async fn get(&self, location: &Location, limit_bytes: u64) -> Result<Bytes, FileError> {
        let path = object_path(location)?;
        let failed = |error: object_store::Error| failure(location, &error);
        let found = self
            .repeating
            .get_opts(&path, GetOptions::default())
            .await
            .map_err(failed)?;
        let size = found.meta.size;
        if size > limit_bytes {
            return Err(too_large(location, limit_bytes));
        }
        let mut bytes = BytesMut::with_capacity(usize::try_from(size).unwrap_or_default());
        let mut chunks = found.into_stream();
        while let Some(chunk) = chunks.try_next().await.map_err(failed)? {
            if (bytes.len() + chunk.len()) as u64 > limit_bytes {
                return Err(too_large(location, limit_bytes));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes.freeze())
    }

    async fn delete(&self, location: &Location) -> Result<(), FileError> {
        delete_object(&self.repeating, location, &object_path(location)?).await
    }

    fn list(&self, prefix: &Location) -> BoxStream<'static, Result<FileEntry, FileError>> {
        let path = match object_path(prefix) {
            Ok(path) => path,
            Err(error) => return futures::stream::once(async { Err(error) }).boxed(),
        };
        let prefix = prefix.clone();
        self.repeating
            .list(Some(&path))
            .map(move |listed| match listed {
                Ok(object) => Ok(FileEntry {
                    location: prefix.listed(object.location.as_ref()),
                    last_modified: object.last_modified.into(),
                    size: object.size,
                }),
                Err(error) => Err(failure(&prefix, &error)),
            })
            .boxed()
    }

    async fn delete_under(&self, prefix: &Location, keep: Keep) -> Result<DeleteReport, FileError> {
        let mut outcomes = self
            .list(prefix)
            .map(|listed| {
                let keep = &keep;
                async move {
                    let location = listed?.location;
                    if keep(&location.canonical()) {
                        return Ok(false);
                    }
                    let path = object_path(&location)?;
                    delete_object(&self.repeating, &location, &path).await?;
                    Ok::<bool, FileError>(true)
                }
            })
            .buffer_unordered(CONCURRENT_DELETES);
        let mut report = DeleteReport::default();
        let mut first_error = None;
        while let Some(outcome) = outcomes.next().await {
            match outcome {
                Ok(true) => report.deleted += 1,
                Ok(false) => report.kept += 1,
                Err(error) => drop(first_error.get_or_insert(error)),
            }
        }
        first_error.map_or(Ok(report), Err)
    }

    async fn ensure_folders(&self, _folders: &[Location]) -> Result<(), FileError> {
        Ok(())
    }
}

async fn delete_object(
    store: &Arc<dyn ObjectStore>,
    location: &Location,
    path: &Path,
) -> Result<(), FileError> {
    match store.delete(path).await {
        Err(error) if !matches!(error, object_store::Error::NotFound { .. }) => {
            Err(failure(location, &error))
        }
        _ => Ok(()),
    }
}

/// The key as it stands, not percent-decoded and not encoded again.
fn object_path(location: &Location) -> Result<Path, FileError> {
    Path::parse(location.key())
        .map_err(|error| FileError::invalid_location(location.as_str(), error))
}

fn failure(location: &Location, error: &object_store::Error) -> FileError {
    use object_store::Error as StoreError;
    let kind = match error {
        StoreError::AlreadyExists { .. } | StoreError::Precondition { .. } => {
            FileErrorKind::AlreadyExists
        }
        StoreError::NotFound { .. } => FileErrorKind::NotFound,
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => {
            FileErrorKind::Denied
        }
        StoreError::InvalidPath { .. } => FileErrorKind::InvalidLocation,
        StoreError::NotImplemented { .. }
        | StoreError::NotSupported { .. }
        | StoreError::UnknownConfigurationKey { .. } => FileErrorKind::InvalidSettings,
        StoreError::Generic { .. } => return unnamed_failure(location, error),
        _ => FileErrorKind::Other,
    };
    FileError::new(kind, location.as_str(), error.to_string())
}

fn unnamed_failure(location: &Location, error: &object_store::Error) -> FileError {
    let detail = error.to_string();
    if let Some(RefusedRequest { status, .. }) = cause(error) {
        let subject = format!(
            "the store refuses requests for {location} with status {status}: look at endpoint, region and path style"
        );
        return FileError::new(FileErrorKind::InvalidSettings, subject, detail);
    }
    let kind = match cause(error).map(HttpError::kind) {
        Some(HttpErrorKind::Timeout) => FileErrorKind::TimedOut,
        _ => FileErrorKind::Unavailable,
    };
    FileError::new(kind, location.as_str(), detail)
}

/// Whether the store may have got and may yet do what this failed attempt asked for.
fn may_have_written(error: &object_store::Error) -> bool {
    use object_store::Error as StoreError;
    match error {
        StoreError::AlreadyExists { .. }
        | StoreError::Precondition { .. }
        | StoreError::NotFound { .. }
        | StoreError::PermissionDenied { .. }
        | StoreError::Unauthenticated { .. }
        | StoreError::InvalidPath { .. }
        | StoreError::NotImplemented { .. }
        | StoreError::NotSupported { .. }
        | StoreError::UnknownConfigurationKey { .. } => false,
        _ => {
            let never_sent = cause(error).map(HttpError::kind) == Some(HttpErrorKind::Connect);
            !never_sent && cause::<RefusedRequest>(error).is_none()
        }
    }
}

/// The first cause of this type behind an error.
fn cause<E: Error + 'static>(error: &object_store::Error) -> Option<&E> {
    let mut next: Option<&(dyn Error + 'static)> = error.source();
    while let Some(current) = next {
        if let Some(found) = current.downcast_ref::<E>() {
            return Some(found);
        }
        next = current.source();
    }
    None
}

#[cfg(test)]
mod tests;
