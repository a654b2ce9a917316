//! The routes for an OpenAPI document.

#![allow(unused_qualifications, reason = "in what utoipa::path expands to")]

use utoipa::OpenApi;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::{ContentBuilder, ObjectBuilder, Ref, RefOr, Required, ResponseBuilder, Type};

/// Where a protocol mounts the routes, and how it answers errors.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// The path of a database, with two parameters: first the catalog, then the database.
    pub database: &'static str,
    /// What the first parameter takes.
    pub catalog: &'static str,
    /// The group that the calls are shown in.
    pub tag: &'static str,
    /// The name of the schema of an error's body.
    pub error: &'static str,
}

#[derive(OpenApi)]
#[openapi(paths(
    crate::list::list,
    crate::create::create,
    crate::show::show,
    crate::change::change,
    crate::delete::delete,
    crate::merge::merge,
    crate::tables::list,
    crate::tables::show,
    crate::log::log,
    crate::diff::diff,
))]
struct Document;

/// The routes with their bodies, below a protocol's path.
pub fn describe(mounted: &Described) -> utoipa::openapi::OpenApi {
    let mut document = Document::openapi();
    let paths = std::mem::take(&mut document.paths.paths);
    for (path, mut item) in paths {
        item.parameters = Some(parameters(mounted).into_iter().map(RefOr::T).collect());
        for operation in operations(&mut item) {
            settle(operation, mounted);
        }
        let path = format!("{}{path}", mounted.database);
        document.paths.paths.insert(path, item);
    }
    document
}

fn parameters(mounted: &Described) -> Vec<Parameter> {
    let names = mounted.database.split(['{', '}']).skip(1).step_by(2);
    let said = [mounted.catalog, "Its name, without a selector"];
    let described = names.zip(said).map(|(name, description)| {
        let text = ObjectBuilder::new().schema_type(Type::String);
        ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .description(Some(description))
            .schema(Some(text))
            .build()
    });
    described.collect()
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let all = [
        &mut item.get,
        &mut item.post,
        &mut item.patch,
        &mut item.delete,
    ];
    all.into_iter().flatten()
}

fn settle(operation: &mut Operation, mounted: &Described) {
    operation.tags = Some(vec![mounted.tag.to_owned()]);
    let error = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(mounted.error)))
        .build();
    let error = ResponseBuilder::new()
        .content("application/json", error)
        .build();
    let responses = &mut operation.responses.responses;
    responses.insert("default".to_owned(), RefOr::T(error));
    if let Some(id) = &mut operation.operation_id {
        *id = format!("{}-{id}", mounted.tag);
    }
}
