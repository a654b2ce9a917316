//! Names of things, and what may be one.

use std::fmt;

use anabranch_partition::Refusal;
use serde::{Deserialize, Serialize};

use crate::reference::ReferenceName;
use crate::reference::name::{Selector, has_selector, split_selector};

/// Levels of a namespace, at most.
pub const MAX_DEPTH: usize = 16;
/// Bytes of one name, at most: what file systems and the other catalogs of the field take.
pub const MAX_NAME_BYTES: usize = 255;
/// Joins the levels of a namespace in a scope.
pub const LEVEL_SEPARATOR: char = '\u{1f}';

/// A warehouse: one catalog of one metalake, and maybe a reference that its databases are seen at.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Warehouse {
    /// The metalake.
    pub metalake: String,
    /// The catalog.
    pub catalog: String,
    /// Where databases are looked at whose name selects nothing: only those that have it are seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferenceName>,
}

/// The metalake that is meant where none is named.
pub const DEFAULT_METALAKE: &str = "default";

impl Warehouse {
    /// Reads `catalog` or `metalake.catalog`.
    pub fn parse(text: &str) -> Result<Warehouse, Refusal> {
        let (metalake, catalog) = text.split_once('.').unwrap_or((DEFAULT_METALAKE, text));
        check_plain_name("metalake", metalake)?;
        check_plain_name("warehouse", catalog)?;
        Ok(Warehouse {
            metalake: metalake.to_owned(),
            catalog: catalog.to_owned(),
            reference: None,
        })
    }

    /// Reads the same, or `catalog$branch_NAME`, or `catalog$tag_NAME`.
    pub fn parse_selected(text: &str) -> Result<Warehouse, Refusal> {
        let (plain, selector) = split_selector(text)?;
        let reference = match selector {
            None => None,
            Some(Selector::Reference(name)) => Some(name),
            Some(Selector::Pin(_)) => {
                let message = "a revision is one of a database, not of a warehouse; name it \
                               behind the database, DATABASE$tag_rev-REVISION";
                return Err(Refusal::invalid(message));
            }
        };
        let plain = Warehouse::parse(plain)?;
        Ok(Warehouse { reference, ..plain })
    }

    /// A database's name, with what this warehouse selects of it unless the name does.
    pub(crate) fn at(&self, database: &str) -> String {
        match &self.reference {
            Some(reference) if !has_selector(database) => {
                format!("{database}{}", reference.selector())
            }
            _ => database.to_owned(),
        }
    }

    /// The name as it stands in addresses.
    pub fn prefix(&self) -> String {
        let selector = self.reference.as_ref().map(ReferenceName::selector);
        let selector = selector.unwrap_or_default();
        if self.metalake == DEFAULT_METALAKE {
            format!("{}{selector}", self.catalog)
        } else {
            format!("{}.{}{selector}", self.metalake, self.catalog)
        }
    }
}

/// A database (one level) or a namespace nested in one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Namespace(Vec<String>);

impl Namespace {
    /// Checks the levels.
    pub fn new(levels: Vec<String>) -> Result<Namespace, Refusal> {
        if levels.is_empty() {
            return Err(Refusal::invalid("a namespace needs at least one level"));
        }
        if levels.len() > MAX_DEPTH {
            return Err(Refusal::invalid(format!(
                "a namespace has at most {MAX_DEPTH} levels, not {}",
                levels.len()
            )));
        }
        for level in &levels {
            check_name("namespace", level)?;
        }
        for level in &levels[1..] {
            refuse_nested_selector(level)?;
        }
        Ok(Namespace(levels))
    }

    /// All levels, the database first.
    pub fn levels(&self) -> &[String] {
        &self.0
    }

    /// The first-level database.
    pub fn database(&self) -> &str {
        &self.0[0]
    }

    /// Whether it is a database itself.
    pub fn is_database(&self) -> bool {
        self.0.len() == 1
    }

    /// The scope in which its children stand in the database's partition.
    pub fn scope(&self) -> String {
        self.0[1..].join("\u{1f}")
    }

    /// For a nested namespace: the scope in which it stands itself, and its own name.
    pub fn nested_place(&self) -> Option<(String, &str)> {
        let (name, parents) = self.0[1..].split_last()?;
        Some((parents.join("\u{1f}"), name))
    }

    /// The namespace that it is nested in.
    pub fn parent(&self) -> Option<Namespace> {
        let (_, parents) = self.0.split_last()?;
        (!parents.is_empty()).then(|| Namespace(parents.to_vec()))
    }

    /// The first level and so many more as one, with dots between.
    pub(crate) fn with_first_joined(&self, more: usize) -> Namespace {
        let (first, rest) = self.0.split_at(more + 1);
        let joined = std::iter::once(first.join("."));
        Namespace(joined.chain(rest.iter().cloned()).collect())
    }

    /// A namespace directly below, of a name that was checked before.
    pub(crate) fn child(&self, name: &str) -> Namespace {
        let mut levels = self.0.clone();
        levels.push(name.to_owned());
        Namespace(levels)
    }

    /// A database of a name that was checked before.
    pub(crate) fn of_database(name: &str) -> Namespace {
        Namespace(vec![name.to_owned()])
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join("."))
    }
}

/// What is selected is the whole database's: behind another level it would select nothing, and read
/// as if it did.
fn refuse_nested_selector(level: &str) -> Result<(), Refusal> {
    match split_selector(level) {
        Ok((plain, None)) if plain == level => Ok(()),
        _ => Err(Refusal::invalid(format!(
            "{level:?} selects a reference behind a nested namespace; select it behind the \
             database's name, the first level"
        ))),
    }
}

/// A table or a view in a namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Identifier {
    /// Where it stands.
    pub namespace: Namespace,
    /// Its name.
    pub name: String,
}

impl Identifier {
    /// Checks the name.
    pub fn new(namespace: Namespace, name: String) -> Result<Identifier, Refusal> {
        check_name("name", &name)?;
        Ok(Identifier { namespace, name })
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.namespace, self.name)
    }
}

/// Names of metalakes and catalogs stand in addresses and file names: letters, digits, `_`, `-`.
pub fn check_plain_name(field: &str, name: &str) -> Result<(), Refusal> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) {
        return Err(Refusal::invalid(format!(
            "`{field}` has 1 to 64 letters, digits, `_` or `-`; {} has not",
            shown(name)
        )));
    }
    Ok(())
}

/// Names of namespaces, tables and views: any text without control characters.
pub fn check_name(field: &str, name: &str) -> Result<(), Refusal> {
    if name.is_empty() {
        return Err(Refusal::invalid(format!("`{field}` is empty; give a name")));
    }
    if name.len() > MAX_NAME_BYTES {
        return Err(Refusal::invalid(format!(
            "`{field}` has at most {MAX_NAME_BYTES} bytes; this one has {}",
            name.len()
        )));
    }
    if name.chars().any(char::is_control) {
        return Err(Refusal::invalid(format!(
            "`{field}` holds a control character; use printable text, not {}",
            shown(name)
        )));
    }
    Ok(())
}

/// A name as it may stand in a message: escaped, and cut where it is long.
fn shown(name: &str) -> String {
    let cut: String = name.chars().take(80).collect();
    format!("{cut:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warehouse_is_a_catalog_of_the_default_metalake_unless_it_names_one() {
        let plain = Warehouse::parse("lake").unwrap();
        assert_eq!(
            (plain.metalake.as_str(), plain.prefix()),
            ("default", "lake".to_owned())
        );
        let full = Warehouse::parse("prod.lake").unwrap();
        assert_eq!(
            (full.metalake.as_str(), full.prefix()),
            ("prod", "prod.lake".to_owned())
        );
        assert!(Warehouse::parse("a.b.c").is_err());
        assert!(Warehouse::parse("lake$branch_x").is_err());
        assert!(Warehouse::parse("").is_err());
    }

    #[test]
    fn a_warehouse_may_select_a_reference_and_a_database_may_select_another() {
        let lake = Warehouse::parse_selected("prod.lake$tag_v1.0").unwrap();
        assert_eq!(lake.prefix(), "prod.lake$tag_v1.0");
        assert_eq!(lake.at("db"), "db$tag_v1.0");
        assert_eq!(lake.at("db$branch_x"), "db$branch_x");
        assert_eq!(lake.at("db$branch_main"), "db$branch_main");
        let main = Warehouse::parse_selected("lake$branch_main").unwrap();
        assert_eq!(main, Warehouse::parse("lake").unwrap());
        for other in [
            "lake$tag_rev-0-1",
            "lake$branch_",
            "$branch_x",
            "lake$txn_1",
        ] {
            assert!(Warehouse::parse_selected(other).is_err(), "{other}");
        }
    }

    #[test]
    fn a_nested_namespace_stands_in_the_scope_of_its_parents() {
        let levels = ["a", "b", "c"].map(str::to_owned).to_vec();
        let namespace = Namespace::new(levels).unwrap();
        assert_eq!(namespace.scope(), "b\u{1f}c");
        assert_eq!(namespace.nested_place(), Some(("b".to_owned(), "c")));
    }

    #[test]
    fn odd_but_printable_names_are_names() {
        for name in ["a b", "a+b", "100%", "a.b", "a$b", "🦆", "123"] {
            assert!(check_name("name", name).is_ok(), "{name}");
        }
        for name in ["", "a\u{1f}b", "a\nb", &"x".repeat(256)] {
            assert!(check_name("name", name).is_err(), "{name:?}");
        }
    }
}
