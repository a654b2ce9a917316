//! What differs between two references, or earlier states of them.

#![allow(unused_qualifications, reason = "in what utoipa::path expands to")]

use anabranch_catalog::Catalog;
use anabranch_catalog::reference::{Difference, TableChange, TableDifference};
use anabranch_http::{PathNames, Query, at_revision};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::below_both;
use crate::protocol::Protocol;
use crate::request;
use crate::tables::Table;

/// Which states are compared.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct Revisions {
    /// A state of the one reference; what it shows now if absent.
    name_revision: Option<String>,
    /// A state of the other reference; what it shows now if absent.
    other_revision: Option<String>,
}

/// What the other state has otherwise than the one.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Differences {
    /// Their best common ancestors.
    base: Vec<String>,
    /// The one state.
    name_revision: String,
    /// The other.
    other_revision: String,
    /// In the order of their names.
    tables: Vec<Differing>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Differing {
    /// Its name in the other state, else in the one.
    table: String,
    change: ChangeKind,
    /// What the one state shows.
    from: Option<Table>,
    /// What the other state shows.
    to: Option<Table>,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
enum ChangeKind {
    /// Only the other state has it.
    Added,
    /// Only the one state has it.
    Removed,
    /// Its content is another.
    Changed,
    /// Its name is another, and maybe its content.
    Renamed,
}

impl From<TableDifference> for Differing {
    fn from(found: TableDifference) -> Differing {
        Differing {
            table: found.table,
            change: match found.change {
                TableChange::Added => ChangeKind::Added,
                TableChange::Removed => ChangeKind::Removed,
                TableChange::Changed => ChangeKind::Changed,
                TableChange::Renamed => ChangeKind::Renamed,
            },
            from: found.from.map(Table::from),
            to: found.to.map(Table::from),
        }
    }
}

/// Tells how the other reference differs from the one.
#[utoipa::path(get, path = "/trees/{name}/diff/{other}", operation_id = "diffReferences",
    params(("name" = String, Path), ("other" = String, Path), Revisions),
    responses((status = 200, body = Differences)))]
pub(crate) async fn diff<P: Protocol>(
    State(catalog): State<Catalog>,
    names: PathNames<4>,
    Query(query): Query<Revisions>,
) -> Response {
    let (database, name, other) = below_both(names);
    let compared = async {
        let name = request::name("name", name)?;
        let other = request::name("other", other)?;
        let warehouse = database.warehouse()?;
        let one = (name.as_str(), query.name_revision.as_deref());
        let other = (other.as_str(), query.other_revision.as_deref());
        let found = catalog
            .reference_diff(&warehouse, &database.name, one, other)
            .await?;
        Ok(shown(found))
    };
    database.answer::<P>(compared).await
}

fn shown(found: Difference) -> Response {
    let revision = found.from.clone();
    let differences = Differences {
        base: found.bases,
        name_revision: found.from,
        other_revision: found.to,
        tables: found.tables.into_iter().map(Differing::from).collect(),
    };
    at_revision(&revision, Json(differences))
}
