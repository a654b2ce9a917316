//! Reading JSON objects field by field while keeping what isn't known, and text that is kept as written.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::SerializeMap};
use serde_json::{Map, Value, value::RawValue};
use std::collections::BTreeMap;

use crate::error::{MetadataError, ShapeError};

/// How deep arrays and objects may be nested in text that is kept as written; the same bound that `serde_json` sets
/// for text that it reads into values.
pub(crate) const MAX_DEPTH: usize = 128;

/// The fields of an object that this crate has no name for, in the order in which they came.
pub(crate) type Extra = Map<String, Value>;

/// JSON text that is kept as its writer wrote it, apart from white space between the tokens.
///
/// Two are equal if their texts are.
#[derive(Debug, Clone)]
pub struct RawJson(Box<RawValue>);

impl RawJson {
    /// Keeps `raw`; refuses text that is nested too deep for those who read it later.
    pub(crate) fn keep(raw: &RawValue) -> Result<RawJson, MetadataError> {
        let text = raw.get();
        let Some(compact) = compact(text)? else {
            return Ok(RawJson(raw.to_owned()));
        };
        let compact = RawValue::from_string(compact).map_err(|error| malformed(&error))?;
        Ok(RawJson(compact))
    }

    /// The text of whatever can be written as JSON.
    pub(crate) fn of(value: &impl Serialize) -> Result<RawJson, ShapeError> {
        serde_json::value::to_raw_value(value)
            .map(RawJson)
            .map_err(|error| ShapeError(error.to_string()))
    }

    pub(crate) fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// The JSON text.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The text as a value. Integers beyond 64 bits lose precision here, and only here.
    pub fn to_value(&self) -> Value {
        serde_json::from_str(self.get()).unwrap_or(Value::Null)
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &RawJson) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawJson {}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// The text without white space between tokens, or `None` if it has none.
fn compact(text: &str) -> Result<Option<String>, MetadataError> {
    let mut depth = 0_usize;
    let mut inside_string = false;
    let mut escaped = false;
    let mut kept: Option<Vec<u8>> = None;
    for (position, &byte) in text.as_bytes().iter().enumerate() {
        let mut skip = false;
        if inside_string {
            if escaped {
                escaped = false;
            } else if byte == b'\\' {
                escaped = true;
            } else if byte == b'"' {
                inside_string = false;
            }
        } else {
            match byte {
                b'"' => inside_string = true,
                b'{' | b'[' => {
                    depth += 1;
                    if depth > MAX_DEPTH {
                        return Err(MetadataError::TooDeep { limit: MAX_DEPTH });
                    }
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                b' ' | b'\t' | b'\n' | b'\r' => skip = true,
                _ => {}
            }
        }
        if skip && kept.is_none() {
            kept = Some(text.as_bytes()[..position].to_vec());
        } else if !skip && let Some(bytes) = &mut kept {
            bytes.push(byte);
        }
    }
    match kept {
        None => Ok(None),
        Some(bytes) => String::from_utf8(bytes)
            .map(Some)
            .map_err(|error| malformed(&error)),
    }
}

fn malformed(error: &dyn std::fmt::Display) -> MetadataError {
    MetadataError::Malformed {
        message: error.to_string(),
    }
}

/// An object under reading: each known field is taken out, [`Fields::rest`] is what nobody asked for.
///
/// A field that is `null` counts as absent.
pub(crate) struct Fields {
    what: &'static str,
    map: Map<String, Value>,
}

impl Fields {
    /// Starts to read `value`, which is called `what` in error messages.
    pub(crate) fn of(what: &'static str, value: Value) -> Result<Fields, ShapeError> {
        match value {
            Value::Object(map) => Ok(Fields { what, map }),
            other => Err(ShapeError(format!(
                "a {what} must be a JSON object, not {}",
                kind_of(&other)
            ))),
        }
    }

    /// Reads the field `older` under the name `name`, unless that one is there as well.
    pub(crate) fn accept_older_name(&mut self, older: &str, name: &str) {
        if let Some(value) = self.take(older)
            && !self.map.contains_key(name)
        {
            self.map.insert(name.to_string(), value);
        }
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.map.shift_remove(name).filter(|value| !value.is_null())
    }

    pub(crate) fn required(&mut self, name: &str) -> Result<Value, ShapeError> {
        self.take(name).ok_or_else(|| self.missing(name))
    }

    pub(crate) fn optional_string(&mut self, name: &str) -> Result<Option<String>, ShapeError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.wrong(name, "a string")),
        }
    }

    pub(crate) fn string(&mut self, name: &str) -> Result<String, ShapeError> {
        self.optional_string(name)?
            .ok_or_else(|| self.missing(name))
    }

    pub(crate) fn optional_i64(&mut self, name: &str) -> Result<Option<i64>, ShapeError> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => value
                .as_i64()
                .map(Some)
                .ok_or_else(|| self.wrong(name, "a 64-bit integer")),
        }
    }

    pub(crate) fn i64(&mut self, name: &str) -> Result<i64, ShapeError> {
        self.optional_i64(name)?.ok_or_else(|| self.missing(name))
    }

    pub(crate) fn optional_i32(&mut self, name: &str) -> Result<Option<i32>, ShapeError> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => as_i32(&value)
                .map(Some)
                .ok_or_else(|| self.wrong(name, "a 32-bit integer")),
        }
    }

    pub(crate) fn i32(&mut self, name: &str) -> Result<i32, ShapeError> {
        self.optional_i32(name)?.ok_or_else(|| self.missing(name))
    }

    pub(crate) fn bool(&mut self, name: &str) -> Result<bool, ShapeError> {
        self.required(name)?
            .as_bool()
            .ok_or_else(|| self.wrong(name, "true or false"))
    }

    pub(crate) fn optional_list(&mut self, name: &str) -> Result<Option<Vec<Value>>, ShapeError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(_) => Err(self.wrong(name, "a list")),
        }
    }

    pub(crate) fn list(&mut self, name: &str) -> Result<Vec<Value>, ShapeError> {
        self.optional_list(name)?.ok_or_else(|| self.missing(name))
    }

    pub(crate) fn optional_i32_list(&mut self, name: &str) -> Result<Option<Vec<i32>>, ShapeError> {
        let Some(items) = self.optional_list(name)? else {
            return Ok(None);
        };
        let integers: Option<Vec<i32>> = items.iter().map(as_i32).collect();
        integers
            .map(Some)
            .ok_or_else(|| self.wrong(name, "a list of 32-bit integers"))
    }

    pub(crate) fn i32_list(&mut self, name: &str) -> Result<Vec<i32>, ShapeError> {
        self.optional_i32_list(name)?
            .ok_or_else(|| self.missing(name))
    }

    pub(crate) fn i64_list(&mut self, name: &str) -> Result<Vec<i64>, ShapeError> {
        let integers: Option<Vec<i64>> = self.list(name)?.iter().map(Value::as_i64).collect();
        integers.ok_or_else(|| self.wrong(name, "a list of 64-bit integers"))
    }

    pub(crate) fn string_list(&mut self, name: &str) -> Result<Vec<String>, ShapeError> {
        let texts: Option<Vec<String>> = self.list(name)?.into_iter().map(into_string).collect();
        texts.ok_or_else(|| self.wrong(name, "a list of strings"))
    }

    pub(crate) fn optional_string_map(
        &mut self,
        name: &str,
    ) -> Result<Option<BTreeMap<String, String>>, ShapeError> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        match string_map(value) {
            Some(map) => Ok(Some(map)),
            None => Err(self.wrong(name, "an object of strings")),
        }
    }

    pub(crate) fn string_map(
        &mut self,
        name: &str,
    ) -> Result<BTreeMap<String, String>, ShapeError> {
        self.optional_string_map(name)?
            .ok_or_else(|| self.missing(name))
    }

    /// The fields that were not taken.
    pub(crate) fn rest(self) -> Extra {
        self.map
    }

    pub(crate) fn missing(&self, name: &str) -> ShapeError {
        ShapeError(format!("a {} needs the field '{name}'", self.what))
    }

    pub(crate) fn wrong(&self, name: &str, expected: &str) -> ShapeError {
        ShapeError(format!(
            "the field '{name}' of a {} must be {expected}",
            self.what
        ))
    }
}

fn as_i32(value: &Value) -> Option<i32> {
    value.as_i64().and_then(|number| i32::try_from(number).ok())
}

fn into_string(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The object as a map of strings, or `None` if it is anything else.
pub(crate) fn string_map(value: Value) -> Option<BTreeMap<String, String>> {
    let Value::Object(map) = value else {
        return None;
    };
    map.into_iter()
        .map(|(key, value)| into_string(value).map(|text| (key, text)))
        .collect()
}

pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Reads each item of a list.
pub(crate) fn each<T>(
    items: Vec<Value>,
    read: impl Fn(Value) -> Result<T, ShapeError>,
) -> Result<Vec<T>, ShapeError> {
    items.into_iter().map(read).collect()
}

/// A type that is read from a JSON value with errors that name the field.
pub(crate) trait FromValue: Sized {
    fn from_value(value: Value) -> Result<Self, ShapeError>;
}

/// The body of `Deserialize` for such a type.
pub(crate) fn deserialize_value<'de, D: Deserializer<'de>, T: FromValue>(
    deserializer: D,
) -> Result<T, D::Error> {
    T::from_value(Value::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Writes the fields that were kept without being known.
pub(crate) fn serialize_extra<M: SerializeMap>(map: &mut M, extra: &Extra) -> Result<(), M::Error> {
    extra
        .iter()
        .try_for_each(|(name, value)| map.serialize_entry(name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_inside_strings_is_kept_and_between_tokens_is_not() {
        let raw: Box<RawValue> =
            serde_json::from_str("{ \"a b\" :\n [1, \"x \\\" y\" ] }").unwrap();
        assert_eq!(
            RawJson::keep(&raw).unwrap().get(),
            "{\"a b\":[1,\"x \\\" y\"]}"
        );
    }

    #[test]
    fn text_that_is_nested_too_deep_is_refused() {
        let text = format!("{}{}", "[".repeat(MAX_DEPTH + 1), "]".repeat(MAX_DEPTH + 1));
        let raw: Box<RawValue> = serde_json::from_str(&text).unwrap();
        assert_eq!(
            RawJson::keep(&raw),
            Err(MetadataError::TooDeep { limit: MAX_DEPTH })
        );
    }

    #[test]
    fn an_error_names_the_object_and_the_field() {
        let mut fields = Fields::of("sort field", serde_json::json!({"source-id": "x"})).unwrap();
        let error = fields.i32("source-id").unwrap_err();
        assert_eq!(
            error.0,
            "the field 'source-id' of a sort field must be a 32-bit integer"
        );
    }
}
