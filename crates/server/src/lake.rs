//! The catalog that the first start makes.

use std::time::Duration;

use anabranch_catalog::{
    Caller, Catalog, CatalogError, CatalogInfo, DEFAULT_METALAKE, NewCatalog, Page, Warehouse,
};
use anabranch_files::Location;

use crate::config::Config;
use crate::failure::Failure;

/// Its name.
pub const NAME: &str = "lake";
/// In whose name the server itself changes things.
const OURSELVES: &str = "anabranch";
const PATIENCE: Duration = Duration::from_secs(30);

/// Finds the catalog, or makes it in a store that has no catalog yet. `None` if it was renamed or
/// dropped since: it doesn't come back.
pub async fn find_or_make(
    config: &Config,
    catalog: &Catalog,
) -> Result<Option<CatalogInfo>, Failure> {
    let failed = |error: CatalogError| {
        Failure::setup(format!(
            "{}: the catalog `{NAME}` can't be made: {error}",
            config.shown_store()
        ))
    };
    let new = NewCatalog {
        warehouse: Warehouse::parse(NAME).map_err(|refusal| failed(refusal.into()))?,
        location: config.warehouse.clone(),
        properties: Default::default(),
    };
    match catalog.load_catalog(&new.warehouse).await {
        Ok(lake) => return as_configured(config, lake).map(Some),
        Err(error) if error.refusal().is_none() => return Err(failed(error)),
        Err(_) => {}
    }
    if has_catalogs(catalog).await.map_err(failed)? {
        tracing::info!("the catalog `{NAME}` was renamed or dropped and is not made again");
        return Ok(None);
    }
    let ourselves = Caller {
        principal: OURSELVES.to_owned(),
        idempotency_key: None,
        fingerprint: String::new(),
        patience: PATIENCE,
    };
    let lake = catalog.ensure_catalog(&ourselves, &new).await;
    as_configured(config, lake.map_err(failed)?).map(Some)
}

async fn has_catalogs(catalog: &Catalog) -> Result<bool, CatalogError> {
    let one = Page {
        token: Some(String::new()),
        size: Some(1),
    };
    match catalog.list_catalogs(DEFAULT_METALAKE, &one).await {
        Ok(listing) => Ok(!listing.items.is_empty()),
        // There is no metalake yet.
        Err(error) if error.refusal().is_some() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Refuses a setting that the catalog contradicts.
fn as_configured(config: &Config, lake: CatalogInfo) -> Result<CatalogInfo, Failure> {
    let place = |text: &str| {
        Location::parse(text)
            .map(|location| location.canonical())
            .ok()
    };
    if place(&lake.location) == place(&config.warehouse) {
        return Ok(lake);
    }
    if config.warehouse_is_chosen {
        return Err(Failure::setup(format!(
            "the setting `warehouse` is {}, but the catalog `{NAME}` lies at {} since its first \
             start: leave the setting out, or create another catalog there with `anabranch \
             catalog create`",
            config.warehouse, lake.location
        )));
    }
    tracing::warn!(
        location = lake.location,
        "the catalog `{NAME}` does not lie in this data folder; was the folder moved?"
    );
    Ok(lake)
}
