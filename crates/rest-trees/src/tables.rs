//! The tables and views that a reference shows.

#![allow(unused_qualifications, reason = "in what utoipa::path expands to")]

use anabranch_catalog::Catalog;
use anabranch_catalog::reference::{ReferenceTable, Thing};
use anabranch_http::{PathNames, Query, at_revision};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::{below, below_both};
use crate::list::page;
use crate::protocol::Protocol;
use crate::request;

/// How tables are listed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct ListTables {
    /// As they were at this revision of the reference.
    revision: Option<String>,
    /// Tables at most; 0 or absent for as many as the server likes.
    max_results: Option<i64>,
    /// The `nextPageToken` of the page before: all pages are of the state of the first.
    page_token: Option<String>,
}

/// Which state is looked at.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct OfRevision {
    /// As it was at this revision of the reference.
    revision: Option<String>,
}

/// What a state shows under one name.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Table {
    /// Below the database; levels of nested namespaces with dots between.
    name: String,
    r#type: TableType,
    /// Absent for a namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<TableFormat>,
    /// Which one: dropped and created again is another one, renamed the same.
    table_id: String,
    /// Names its content: the same id and version are the same.
    version: String,
    /// Where its metadata document lies; absent for a namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata_location: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
enum TableType {
    Table,
    View,
    /// Nested in the database; only in differences.
    Namespace,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum TableFormat {
    Iceberg,
}

/// Tables of one state.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TableList {
    /// The state that they are of.
    revision: String,
    tables: Vec<Table>,
    /// Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

impl From<ReferenceTable> for Table {
    fn from(table: ReferenceTable) -> Table {
        let (kind, format) = match table.thing {
            Thing::Table => (TableType::Table, Some(TableFormat::Iceberg)),
            Thing::View => (TableType::View, Some(TableFormat::Iceberg)),
            Thing::Namespace => (TableType::Namespace, None),
        };
        Table {
            name: table.name,
            r#type: kind,
            format,
            table_id: table.id.0.to_string(),
            version: table.version,
            metadata_location: table.metadata_location,
        }
    }
}

/// Lists the tables and views that a branch or tag shows, or showed at an earlier revision, those
/// in nested namespaces among them.
#[utoipa::path(get, path = "/trees/{name}/tables", operation_id = "listReferenceTables",
    params(("name" = String, Path), ListTables), responses((status = 200, body = TableList)))]
pub(crate) async fn list<P: Protocol>(
    State(catalog): State<Catalog>,
    names: PathNames<3>,
    Query(query): Query<ListTables>,
) -> Response {
    let (database, name) = below(names);
    let listed = async {
        let name = request::name("name", name)?;
        let page = page(query.max_results, query.page_token)?;
        let warehouse = database.warehouse()?;
        let revision = query.revision.as_deref();
        let listing = catalog
            .list_reference_tables(&warehouse, &database.name, &name, revision, &page)
            .await?;
        Ok(shown(TableList {
            revision: listing.revision.unwrap_or_default(),
            tables: listing.items.into_iter().map(Table::from).collect(),
            next_page_token: listing.next,
        }))
    };
    database.answer::<P>(listed).await
}

/// Shows one table or view of a branch or tag: a list of one.
#[utoipa::path(get, path = "/trees/{name}/tables/{table}", operation_id = "getReferenceTable",
    params(("name" = String, Path),
        ("table" = String, Path, description = "Below the database; levels of nested namespaces with dots between"),
        OfRevision),
    responses((status = 200, body = TableList)))]
pub(crate) async fn show<P: Protocol>(
    State(catalog): State<Catalog>,
    names: PathNames<4>,
    Query(query): Query<OfRevision>,
) -> Response {
    let (database, name, table) = below_both(names);
    let found = async {
        let name = request::name("name", name)?;
        let warehouse = database.warehouse()?;
        let revision = query.revision.as_deref();
        let (table, revision) = catalog
            .reference_table(&warehouse, &database.name, &name, &table, revision)
            .await?;
        Ok(shown(TableList {
            revision,
            tables: vec![table.into()],
            next_page_token: None,
        }))
    };
    database.answer::<P>(found).await
}

fn shown(list: TableList) -> Response {
    at_revision(&list.revision.clone(), Json(list))
}
