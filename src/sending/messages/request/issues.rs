//! Reads JSON values by their type, and collects what is wrong with them.

use serde_json::{Map, Value};

use crate::error::Issue;

/// What is wrong so far. A reader that finds a fault notes it and gives back nothing, so the
/// reading goes on; what it gave back in between is dropped by [`Issues::take`].
#[derive(Debug, Default)]
pub(super) struct Issues(Vec<Issue>);

impl Issues {
    pub fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(Issue::new(path, message));
    }

    /// The end of the reading: all is well, or here is everything that is not.
    pub fn take(&mut self) -> Result<(), Vec<Issue>> {
        if self.0.is_empty() { Ok(()) } else { Err(std::mem::take(&mut self.0)) }
    }

    pub fn wrong_type(&mut self, path: &str, expected: &str, found: &Value) {
        let found = match found {
            Value::Null => return self.add(path, "Required"),
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        self.add(path, format!("Expected {expected}, received {found}"));
    }

    pub fn string(&mut self, path: &str, value: Value) -> Option<String> {
        match value {
            Value::Null => None,
            Value::String(text) => Some(text),
            other => {
                self.wrong_type(path, "string", &other);
                None
            }
        }
    }

    pub fn required_string(&mut self, path: &str, value: Value) -> Option<String> {
        if value.is_null() {
            self.add(path, "Required");
        }
        self.string(path, value)
    }

    pub fn boolean(&mut self, path: &str, value: Value) -> Option<bool> {
        match value {
            Value::Null => None,
            Value::Bool(yes) => Some(yes),
            other => {
                self.wrong_type(path, "boolean", &other);
                None
            }
        }
    }

    /// An absent list is an empty one.
    pub fn array(&mut self, path: &str, value: Value) -> Vec<Value> {
        match value {
            Value::Null => Vec::new(),
            Value::Array(items) => items,
            other => {
                self.wrong_type(path, "array", &other);
                Vec::new()
            }
        }
    }

    /// An absent object is an empty one.
    pub fn object(&mut self, path: &str, value: Value) -> Map<String, Value> {
        match value {
            Value::Null => Map::new(),
            Value::Object(fields) => fields,
            other => {
                self.wrong_type(path, "object", &other);
                Map::new()
            }
        }
    }
}

/// The length by which the limits of the API count: UTF-16 code units.
pub(super) fn utf16_len(text: &str) -> usize {
    text.encode_utf16().count()
}
