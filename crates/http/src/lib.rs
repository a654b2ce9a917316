//! What every HTTP protocol of the server shares. It knows no protocol and no catalog: a protocol
//! brings a router and the shape of its errors, this crate brings everything around them.
//!
//! ```text
//! accept (connections bounded) ─ gzip ─ [id, log, metrics ─ cross-site? ─ admitted? ─ in time? ─ panic?] ─ route
//!                                              ▲                                                         │
//!                                              └──────── Fault → the protocol's own error shape ─────────┘
//! ```
//!
//! The types that matter:
//! - [`PathNames`]: the names in a path, each form-decoded exactly once from the raw bytes.
//! - [`Json`] and [`Query`]: bodies and parameters, with a 400 that names the field.
//! - [`RequestContext`]: who asks, under which operation key, until when.
//! - [`Fault`] and [`ErrorShape`]: what goes wrong outside the domain, and how a protocol says it.
//! - [`at_revision`]: the state that an answer shows, in its header.
//! - [`Stack`]: everything around a router; [`serve`]: the accept loop with a graceful end.

mod body;
mod context;
mod etag;
mod fault;
mod fingerprint;
mod json;
mod path;
mod patient;
mod query;
mod request_id;
mod revision;
mod serve;
mod stack;

pub use context::RequestContext;
pub use etag::{is_unchanged, weak_etag};
pub use fault::{ErrorShape, Fault, FaultKind, Shapes};
pub use fingerprint::fingerprint;
pub use json::Json;
pub use path::{PathNames, decode_name, encode_name};
pub use query::Query;
pub use request_id::{REQUEST_ID, RequestId};
pub use revision::at_revision;
pub use serve::{ServeLimits, serve};
pub use stack::{OnRequest, RequestLimits, Stack};
