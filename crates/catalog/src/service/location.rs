//! Where tables may lie, and where they lie if nobody says.

use anabranch_files::{Location, Scheme, sanitize_segment};
use anabranch_partition::Refusal;
use uuid::Uuid;

use crate::body::{CatalogBody, Properties};
use crate::name::Identifier;
use crate::service::Core;

/// Property of a namespace: where tables go that name no location.
pub(crate) const LOCATION_PROPERTY: &str = "location";
/// Property of a catalog: further prefixes that tables may lie in, comma-separated.
pub(crate) const ALLOWED_PROPERTY: &str = "allowed-locations";
/// Property of a table: where its metadata documents go, if not below its location.
const METADATA_PATH_PROPERTY: &str = "write.metadata.path";

/// Parses a location and refuses it unless the catalog allows it.
pub(crate) fn allowed(catalog: &CatalogBody, field: &str, text: &str) -> Result<Location, Refusal> {
    let location = parse(field, text)?;
    let mut prefixes = vec![catalog.location.as_str()];
    prefixes.extend(further_prefixes(&catalog.properties));
    for prefix in prefixes {
        if location.is_within(&parse("location of the catalog", prefix)?) {
            return Ok(location);
        }
    }
    Err(Refusal::invalid(format!(
        "`{field}` {text} lies outside of the catalog's location; leave it out, choose one inside, \
         or add its prefix to the catalog's property `{ALLOWED_PROPERTY}`"
    )))
}

/// The prefixes beside the catalog's own location.
pub(crate) fn further_prefixes(properties: &Properties) -> impl Iterator<Item = &str> {
    let list = properties.get(ALLOWED_PROPERTY);
    list.into_iter()
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .filter(|prefix| !prefix.is_empty())
}

/// Parses the location of a table and refuses it unless it lies *below* a place that the catalog
/// allows: what is the catalog's itself must never be a table's to purge.
pub(crate) fn allowed_for_table(
    catalog: &CatalogBody,
    field: &str,
    text: &str,
) -> Result<Location, Refusal> {
    let location = allowed(catalog, field, text)?;
    let own = parse("location of the catalog", &catalog.location)?;
    if own.is_within(&location) {
        return Err(Refusal::invalid(format!(
            "`{field}` {text} holds the whole catalog; choose a folder below it, or leave it out"
        )));
    }
    Ok(location)
}

/// The location of a new table: what is asked for, or a place of its own that ends in its id.
pub(crate) fn for_new_table(
    catalog: &CatalogBody,
    namespace: &Properties,
    identifier: &Identifier,
    uuid: Uuid,
    asked: Option<&str>,
) -> Result<String, Refusal> {
    if let Some(text) = asked {
        let trimmed = text.trim_end_matches('/');
        allowed_for_table(catalog, "location", trimmed)?;
        return Ok(trimmed.to_owned());
    }
    let own = format!("{}-{}", sanitize_segment(&identifier.name), uuid.simple());
    if let Some(base) = namespace.get(LOCATION_PROPERTY) {
        let base = base.trim_end_matches('/');
        allowed(catalog, "location of the namespace", base)?;
        return Ok(format!("{base}/{own}"));
    }
    let base = catalog.location.trim_end_matches('/');
    let database = sanitize_segment(identifier.namespace.database());
    Ok(format!("{base}/{database}/{own}"))
}

/// The folder that a table's metadata documents go to.
pub(crate) fn metadata_folder(
    catalog: &CatalogBody,
    location: &str,
    properties: &Properties,
) -> Result<Location, Refusal> {
    match properties.get(METADATA_PATH_PROPERTY) {
        Some(path) => allowed(catalog, METADATA_PATH_PROPERTY, path.trim_end_matches('/')),
        None => {
            let folder = format!("{}/metadata", location.trim_end_matches('/'));
            allowed(catalog, "location", &folder)
        }
    }
}

impl Core {
    /// Refuses a place of a catalog that the operator doesn't let catalogs lie in.
    pub(crate) fn check_reach(&self, field: &str, text: &str) -> Result<(), Refusal> {
        let location = parse(field, text)?;
        let Some(roots) = &self.limits.local_roots else {
            return Ok(());
        };
        if location.scheme() != Scheme::File || roots.iter().any(|root| location.is_within(root)) {
            return Ok(());
        }
        Err(Refusal::invalid(format!(
            "`{field}` {text} lies in no folder that this server may use for catalogs; choose one \
             below its warehouse, or have its operator add the folder to the setting `local-folders`"
        )))
    }
}

/// Parses a location; the refusal names the field.
pub(crate) fn parse(field: &str, text: &str) -> Result<Location, Refusal> {
    Location::parse(text).map_err(|error| Refusal::invalid(format!("`{field}`: {error}")))
}
