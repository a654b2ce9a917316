//! An object whose fields are kept as text until somebody reads them.
//!
//! This is how a document is read without touching what isn't known, and how a field is put into an object without
//! touching its other fields.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Value, value::RawValue};
use std::collections::HashSet;
use std::fmt;

use crate::error::MetadataError;
use crate::json::{FromValue, RawJson, each};
use crate::statistics::Kept;

/// The fields of a JSON object, in the order in which they came.
pub(crate) struct RawObject<'a> {
    fields: Vec<(String, &'a RawValue)>,
}

impl<'de: 'a, 'a> Deserialize<'de> for RawObject<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RawObject<'a>, D::Error> {
        struct Visitor;

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = RawObject<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a JSON object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<RawObject<'de>, A::Error> {
                let mut fields: Vec<(String, &'de RawValue)> = Vec::new();
                let mut names = HashSet::new();
                while let Some((name, raw)) = map.next_entry::<String, &'de RawValue>()? {
                    if !names.insert(name.clone()) {
                        return Err(A::Error::custom(format!(
                            "the field '{name}' is there twice"
                        )));
                    }
                    fields.push((name, raw));
                }
                Ok(RawObject { fields })
            }
        }

        deserializer.deserialize_map(Visitor)
    }
}

impl<'a> RawObject<'a> {
    pub(crate) fn of(json: &'a [u8]) -> Result<RawObject<'a>, MetadataError> {
        serde_json::from_slice(json).map_err(|error| MetadataError::Malformed {
            message: error.to_string(),
        })
    }

    /// Adds a field at the end; the caller knows that there is none of that name.
    pub(crate) fn push(&mut self, name: &str, raw: &'a RawValue) {
        self.fields.push((name.to_string(), raw));
    }

    /// Takes a field out; `null` counts as absent.
    pub(crate) fn take_raw(&mut self, name: &str) -> Option<&'a RawValue> {
        let position = self.fields.iter().position(|(field, _)| field == name)?;
        let (_, raw) = self.fields.remove(position);
        (raw.get() != "null").then_some(raw)
    }

    pub(crate) fn take<T: Deserialize<'a>>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, MetadataError> {
        let Some(raw) = self.take_raw(name) else {
            return Ok(None);
        };
        serde_json::from_str(raw.get())
            .map(Some)
            .map_err(|error| MetadataError::Malformed {
                message: format!("{name}: {error}"),
            })
    }

    pub(crate) fn required<T: Deserialize<'a>>(&mut self, name: &str) -> Result<T, MetadataError> {
        self.take(name)?.ok_or_else(|| missing(name))
    }

    pub(crate) fn take_each<T: FromValue>(
        &mut self,
        name: &str,
    ) -> Result<Option<Vec<T>>, MetadataError> {
        match self.take::<Vec<Value>>(name)? {
            None => Ok(None),
            Some(items) => Ok(Some(each(items, T::from_value)?)),
        }
    }

    pub(crate) fn take_kept<T: Kept>(&mut self, name: &str) -> Result<Vec<T>, MetadataError> {
        let items = self.take::<Vec<&RawValue>>(name)?.unwrap_or_default();
        items.into_iter().map(T::from_raw).collect()
    }

    pub(crate) fn rest(self) -> Result<Vec<(String, RawJson)>, MetadataError> {
        self.fields
            .into_iter()
            .map(|(name, raw)| Ok((name, RawJson::keep(raw)?)))
            .collect()
    }
}

pub(crate) fn missing(name: &str) -> MetadataError {
    MetadataError::Malformed {
        message: format!("the field '{name}' is missing"),
    }
}

impl Serialize for RawObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.fields.iter().map(|(name, raw)| (name, raw)))
    }
}
