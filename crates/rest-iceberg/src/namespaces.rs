//! Namespaces.

use std::collections::BTreeSet;

use anabranch_catalog::{CatalogError, Namespace};
use anabranch_http::{Json, Query, RequestContext, decode_name};
use anabranch_partition::{Reason, Subject};
use axum::extract::State;
use http::HeaderMap;

use crate::App;
use crate::answer::{Answered, at_revision, json, no_content};
use crate::caller::caller;
use crate::error::Problem;
use crate::path::{InNamespace, InWarehouse, namespace_of};
use crate::wire::listing::{ListNamespacesResponse, NamespacesQuery};
use crate::wire::namespaces::{
    CreateNamespaceRequest, NamespaceResponse, UpdatePropertiesRequest, UpdatePropertiesResponse,
};

/// A client that sends this header with `true` is shown databases at their branches and tags too.
const WITH_REFERENCES: &str = "anabranch-references";

/// Lists databases, or what stands directly below `parent`; an empty `parent` counts as absent.
pub(crate) async fn list(
    State(app): State<App>,
    InWarehouse(warehouse): InWarehouse,
    headers: HeaderMap,
    Query(query): Query<NamespacesQuery>,
) -> Answered {
    let text = query.parent.as_deref().filter(|parent| !parent.is_empty());
    let parent = text.map(namespace_of).transpose()?;
    let page = query.page();
    let with_references = headers
        .get(WITH_REFERENCES)
        .is_some_and(|value| value == "true");
    let list = async |parent: Option<&Namespace>| {
        let catalog = &app.catalog;
        match parent {
            None if with_references => {
                catalog
                    .list_databases_with_references(&warehouse, &page)
                    .await
            }
            None => catalog.list_namespaces(&warehouse, None, &page).await,
            Some(parent) => {
                let parent = catalog.joined(&warehouse, parent.clone()).await?;
                catalog
                    .list_namespaces(&warehouse, Some(&parent), &page)
                    .await
            }
        }
    };
    let mut listed = list(parent.as_ref()).await;
    // PyIceberg encodes the parameter twice.
    if listed.as_ref().err().is_some_and(is_missing_namespace)
        && let Some(decoded) = text.and_then(decode_name)
    {
        listed = list(Some(&namespace_of(&decoded)?)).await;
    }
    let mut listing = listed?;
    let revision = listing.revision.take();
    let response = json(ListNamespacesResponse::from(listing));
    Ok(match revision {
        Some(revision) => at_revision(&revision, response),
        None => response,
    })
}

fn is_missing_namespace(error: &CatalogError) -> bool {
    let missing = Reason::NotFound(Subject::Namespace);
    error
        .refusal()
        .is_some_and(|refusal| refusal.reason == missing)
}

pub(crate) async fn create(
    State(app): State<App>,
    InWarehouse(warehouse): InWarehouse,
    context: RequestContext,
    Json { value, raw }: Json<CreateNamespaceRequest>,
) -> Answered {
    let namespace = Namespace::new(value.namespace)?;
    let namespace = app.catalog.joined(&warehouse, namespace).await?;
    let properties = value.properties.unwrap_or_default();
    let caller = caller(&context, &raw);
    let created = app
        .catalog
        .create_namespace(&caller, &warehouse, &namespace, properties)
        .await
        .map_err(in_existing_parent)?;
    let body = NamespaceResponse::from(created.value);
    Ok(at_revision(&created.revision, json(body)))
}

/// The specification knows no 404 where a namespace is created: a missing parent is a mistake in
/// the request.
fn in_existing_parent(error: CatalogError) -> Problem {
    if is_missing_namespace(&error) {
        return Problem::invalid(format!("{error}; create it first"));
    }
    error.into()
}

pub(crate) async fn load(
    State(app): State<App>,
    InNamespace(warehouse, namespace): InNamespace,
) -> Answered {
    let info = app.catalog.load_namespace(&warehouse, &namespace).await?;
    let revision = info.revision.clone();
    Ok(at_revision(&revision, json(NamespaceResponse::from(info))))
}

pub(crate) async fn exists(
    State(app): State<App>,
    InNamespace(warehouse, namespace): InNamespace,
) -> Answered {
    let info = app.catalog.load_namespace(&warehouse, &namespace).await?;
    Ok(at_revision(&info.revision, no_content()))
}

pub(crate) async fn drop(
    State(app): State<App>,
    InNamespace(warehouse, namespace): InNamespace,
    context: RequestContext,
) -> Answered {
    let caller = caller(&context, b"");
    let dropped = app
        .catalog
        .drop_namespace(&caller, &warehouse, &namespace)
        .await?;
    Ok(at_revision(&dropped.revision, no_content()))
}

/// A key that is both to be removed and to be set is a 422.
pub(crate) async fn change_properties(
    State(app): State<App>,
    InNamespace(warehouse, namespace): InNamespace,
    context: RequestContext,
    Json { value, raw }: Json<UpdatePropertiesRequest>,
) -> Answered {
    let updates = value.updates.unwrap_or_default();
    // What is named twice is still one key.
    let removals: BTreeSet<String> = value.removals.unwrap_or_default().into_iter().collect();
    if let Some(key) = removals.iter().find(|key| updates.contains_key(*key)) {
        return Err(Problem::contradiction(format!(
            "{key:?} stands in both `removals` and `updates`; leave it out of one"
        )));
    }
    let caller = caller(&context, &raw);
    let removals = removals.into_iter().collect();
    let changed = app
        .catalog
        .update_namespace_properties(&caller, &warehouse, &namespace, removals, updates)
        .await?;
    let body = UpdatePropertiesResponse::from(changed.value);
    Ok(at_revision(&changed.revision, json(body)))
}
