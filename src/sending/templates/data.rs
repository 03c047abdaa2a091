//! The data of one rendering, as the template sees it: it remembers what was looked up and was not
//! there, by its path, so that an error can name it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex},
};

use minijinja::value::{Enumerator, Object, ObjectRepr, Value};
use serde_json::{Map, Value as Json};

/// What was looked up in vain, and what is to be taken as there all the same.
#[derive(Debug, Default)]
pub(super) struct Log {
    missed: Mutex<Vec<String>>,
    assumed: BTreeSet<String>,
}

impl Log {
    pub fn assuming(assumed: BTreeSet<String>) -> Arc<Self> {
        Arc::new(Self { missed: Mutex::default(), assumed })
    }

    /// The path that was missed last.
    pub fn last_missed(&self) -> Option<String> {
        self.missed.lock().ok()?.last().cloned()
    }

    fn miss(&self, path: String) -> Option<Value> {
        if self.assumed.contains(&path) {
            return Some(Value::from_object(Assumed { path }));
        }
        if let Ok(mut missed) = self.missed.lock() {
            missed.push(path);
        }
        None
    }
}

/// The whole data, as the root of what a template can name.
pub(super) fn root(data: &Map<String, Json>, log: &Arc<Log>) -> Value {
    object(data, String::new(), log)
}

/// A value that is null is not there; so `default` and `is defined` work on it.
fn object(fields: &Map<String, Json>, path: String, log: &Arc<Log>) -> Value {
    let entries = fields
        .iter()
        .filter(|(_, it)| !it.is_null())
        .map(|(key, it)| (key.clone(), value(it, join(&path, key), log)))
        .collect();
    Value::from_object(Fields { entries, path, log: log.clone() })
}

fn value(json: &Json, path: String, log: &Arc<Log>) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(it) => Value::from(*it),
        Json::Number(it) => match (it.as_i64(), it.as_u64()) {
            (Some(it), _) => Value::from(it),
            (None, Some(it)) => Value::from(it),
            (None, None) => Value::from(it.as_f64().unwrap_or_default()),
        },
        Json::String(it) => Value::from(it.as_str()),
        Json::Array(items) => {
            let each = items.iter().enumerate();
            Value::from_iter(each.map(|(at, it)| value(it, join(&path, &at.to_string()), log)))
        }
        Json::Object(fields) => object(fields, path, log),
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// An object of the data.
#[derive(Debug)]
struct Fields {
    entries: BTreeMap<String, Value>,
    path: String,
    log: Arc<Log>,
}

/// Names that the language itself has; they are looked for in the data first.
const GLOBALS: &[&str] = &["range", "dict", "namespace"];

impl Object for Fields {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        match self.entries.get(key) {
            Some(value) => Some(value.clone()),
            None if self.path.is_empty() && GLOBALS.contains(&key) => None,
            None => self.log.miss(join(&self.path, key)),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.entries.keys().map(|key| Value::from(key.as_str())).collect())
    }
}

/// Stands where something is missing, so that a rendering can go on to what is missing next. In a
/// preview it shows its name.
#[derive(Debug)]
pub(super) struct Assumed {
    path: String,
}

impl Object for Assumed {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        Some(Value::from_object(Self { path: join(&self.path, &key.to_string()) }))
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{{ {} }}}}", self.path)
    }
}
