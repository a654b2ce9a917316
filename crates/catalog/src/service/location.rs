//! Where tables may lie, and where they lie if nobody says.

use anabranch_files::{Location, sanitize_segment};
use anabranch_partition::Refusal;
use uuid::Uuid;

use crate::body::{CatalogBody, Properties};
use crate::name::Identifier;

/// Property of a namespace: where tables go that name no location.
pub(crate) const LOCATION_PROPERTY: &str = "location";
/// Property of a catalog: further prefixes that tables may lie in, comma-separated.
const ALLOWED_PROPERTY: &str = "allowed-locations";
/// Property of a table: where its metadata documents go, if not below its location.
const METADATA_PATH_PROPERTY: &str = "write.metadata.path";

/// Parses a location and refuses it unless the catalog allows it.
pub(crate) fn allowed(catalog: &CatalogBody, field: &str, text: &str) -> Result<Location, Refusal> {
    let location = parse(field, text)?;
    let mut prefixes = vec![catalog.location.as_str()];
    let further = catalog.properties.get(ALLOWED_PROPERTY);
    prefixes.extend(
        further
            .iter()
            .flat_map(|list| list.split(','))
            .map(str::trim),
    );
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
        allowed(catalog, "location", trimmed)?;
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

/// Parses a location; the refusal names the field.
pub(crate) fn parse(field: &str, text: &str) -> Result<Location, Refusal> {
    Location::parse(text).map_err(|error| Refusal::invalid(format!("`{field}`: {error}")))
}
