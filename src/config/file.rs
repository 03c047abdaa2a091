//! The TOML file as a flat map of dotted keys to text, so that one parser per setting is enough.

use super::{Environment, problem::Problem};
use toml::Value;

/// Flattens the file. What cannot be a setting is a problem with the key as its name.
pub(super) fn flatten(text: &str) -> (Environment, Vec<Problem>) {
    let mut problems = Vec::new();
    let mut flat = Environment::new();
    match text.parse::<toml::Table>() {
        Ok(table) => table.into_iter().for_each(|(key, value)| {
            flatten_value(key, value, &mut flat, &mut problems);
        }),
        Err(error) => problems.push(syntax(text, &error)),
    }
    (flat, problems)
}

/// The parser's own text would repeat the line, which may hold a secret.
fn syntax(text: &str, error: &toml::de::Error) -> Problem {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let reason = format!("line {line} is not valid TOML: {}", error.message());
    Problem { name: "configuration file".to_owned(), value: None, reason }
}

fn flatten_value(key: String, value: Value, flat: &mut Environment, problems: &mut Vec<Problem>) {
    match value {
        Value::Table(table) => {
            for (inner, value) in table {
                flatten_value(format!("{key}.{inner}"), value, flat, problems);
            }
        }
        Value::Array(items) => match items.into_iter().map(scalar).collect::<Option<Vec<_>>>() {
            Some(items) => drop(flat.insert(key, items.join(","))),
            None => problems.push(not_a_setting(key)),
        },
        other => match scalar(other) {
            Some(text) => drop(flat.insert(key, text)),
            None => problems.push(not_a_setting(key)),
        },
    }
}

fn scalar(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(flag) => Some(flag.to_string()),
        Value::Datetime(_) | Value::Array(_) | Value::Table(_) => None,
    }
}

fn not_a_setting(key: String) -> Problem {
    let reason = "must be a text, a number, a boolean or a list of them".to_owned();
    Problem { name: key, value: None, reason }
}
