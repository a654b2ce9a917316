//! Shapes of bodies and parameters, one file per resource. Unknown members are ignored, as the
//! specification wants; `null` counts as absent where something may be absent.

pub(crate) mod config;
pub(crate) mod identifiers;
pub(crate) mod listing;
pub(crate) mod metrics;
pub(crate) mod namespaces;
pub(crate) mod tables;
pub(crate) mod views;
