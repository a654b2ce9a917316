//! Names on the command line, as catalogs, databases and tables.

use anabranch_rest_native::ObjectName;

use crate::failure::Failure;

const DEFAULT_METALAKE: &str = "default";

/// A catalog of a metalake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogName {
    /// The metalake.
    pub metalake: String,
    /// The catalog.
    pub catalog: String,
}

/// A database, or a namespace in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseName {
    /// Where it is.
    pub catalog: CatalogName,
    /// Its levels, the database first.
    pub levels: Vec<String>,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableName {
    /// Where it is.
    pub database: DatabaseName,
    /// Its own name.
    pub table: String,
}

impl CatalogName {
    /// Reads `catalog` or `metalake.catalog`.
    pub fn parse(text: &str) -> Result<CatalogName, Failure> {
        let parts = parts(text)?;
        from_catalog_parts(&parts).ok_or_else(|| wrong(text, "catalog or metalake.catalog"))
    }

    /// As servers name it.
    pub fn full(&self) -> String {
        format!("{}.{}", self.metalake, self.catalog)
    }
}

impl DatabaseName {
    /// Reads `catalog.database` or `metalake.catalog.database`.
    pub fn parse(text: &str) -> Result<DatabaseName, Failure> {
        let wanted = "catalog.database or metalake.catalog.database";
        let parts = parts(text)?;
        from_database_parts(&parts).ok_or_else(|| wrong(text, wanted))
    }
}

impl TableName {
    /// Reads `catalog.database.table` or `metalake.catalog.database.table`.
    pub fn parse(text: &str) -> Result<TableName, Failure> {
        let wanted = "catalog.database.table or metalake.catalog.database.table";
        let parts = parts(text)?;
        let name = parts.split_last().and_then(|(table, database)| {
            Some(TableName {
                table: single(table)?,
                database: from_database_parts(database)?,
            })
        });
        name.ok_or_else(|| wrong(text, wanted))
    }
}

/// Reads a catalog's name (one part) or a database's.
pub fn database_or_catalog(text: &str) -> Result<(CatalogName, Vec<String>), Failure> {
    let parts = parts(text)?;
    if let [_] = parts.as_slice() {
        return Ok((CatalogName::parse(text)?, Vec::new()));
    }
    let database = DatabaseName::parse(text)?;
    Ok((database.catalog, database.levels))
}

fn parts(text: &str) -> Result<Vec<Vec<String>>, Failure> {
    let name = ObjectName::parse(text).map_err(Failure::setup)?;
    Ok(name.parts().to_vec())
}

fn wrong(text: &str, wanted: &str) -> Failure {
    Failure::setup(format!(
        "{text:?} is not the name that is needed here: write {wanted}"
    ))
}

fn single(levels: &[String]) -> Option<String> {
    match levels {
        [level] => Some(level.clone()),
        _ => None,
    }
}

fn from_catalog_parts(parts: &[Vec<String>]) -> Option<CatalogName> {
    let (metalake, catalog) = match parts {
        [catalog] => (DEFAULT_METALAKE.to_owned(), catalog),
        [metalake, catalog] => (single(metalake)?, catalog),
        _ => return None,
    };
    Some(CatalogName {
        metalake,
        catalog: single(catalog)?,
    })
}

fn from_database_parts(parts: &[Vec<String>]) -> Option<DatabaseName> {
    let (levels, catalog) = parts.split_last()?;
    Some(DatabaseName {
        catalog: from_catalog_parts(catalog)?,
        levels: levels.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metalake_is_default_unless_it_is_named() {
        let name = TableName::parse("lake.sales.orders").expect("a table");
        assert_eq!(name.database.catalog.full(), "default.lake");
        let name = TableName::parse("prod.lake.sales/eu.orders").expect("a table");
        assert_eq!(name.database.catalog.full(), "prod.lake");
        assert_eq!(name.database.levels, ["sales", "eu"]);
        assert_eq!(name.table, "orders");
    }

    #[test]
    fn too_few_and_too_many_parts_are_refused_with_what_is_needed() {
        for text in ["lake", "lake.sales", "a.b.c.d.e", "lake.sales.a/b"] {
            let failure = TableName::parse(text).expect_err(text);
            assert_eq!(failure.status(), 2);
        }
        assert!(DatabaseName::parse("lake").is_err());
        assert!(CatalogName::parse("a.b.c").is_err());
    }
}
