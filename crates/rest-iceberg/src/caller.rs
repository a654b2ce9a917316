//! Who asks, from the request's context.

use anabranch_catalog::Caller;
use anabranch_http::RequestContext;

/// The caller of a request with this body; without one it is empty.
pub(crate) fn caller(context: &RequestContext, body: &[u8]) -> Caller {
    Caller {
        principal: context.principal.clone(),
        idempotency_key: context.idempotency_key.clone(),
        fingerprint: context.fingerprint(body),
        patience: context.patience(),
    }
}
