//! A template in place of the bodies: as it is asked for, and as it comes back filled.

use serde_json::{Map, Value};

use super::{
    NewMessage,
    content::{is_body_control, is_line_control},
    issues::Issues,
};
use crate::{
    error::Issue,
    sending::templates::{Rendered, TemplateUse, check_data},
};

/// Neither an id nor a slug is longer.
const MAX_ID: usize = 64;

pub(super) fn parse(issues: &mut Issues, value: Value) -> Option<TemplateUse> {
    if value.is_null() {
        return None;
    }
    let mut fields = issues.object("template", value);
    let mut take = |name: &str| fields.remove(name).unwrap_or_default();
    let (id, version, data) = (take("id"), take("version"), take("data"));
    for name in fields.keys() {
        issues.add(format!("template.{name}"), "a template has id, version and data only");
    }
    let id = issues.required_string("template.id", id).unwrap_or_default();
    if id.len() > MAX_ID || id.contains(is_line_control) {
        issues.add("template.id", "there is no such template");
    }
    let data = issues.object("template.data", data);
    if let Err(why) = check_data(&data) {
        issues.add("template.data", why);
    }
    Some(TemplateUse { id, version: parse_version(issues, &version), data: without_null(data) })
}

fn parse_version(issues: &mut Issues, value: &Value) -> Option<i32> {
    if value.is_null() {
        return None;
    }
    let version = value.as_i64().and_then(|it| i32::try_from(it).ok()).filter(|it| *it > 0);
    if version.is_none() {
        issues.add("template.version", "must be a whole number from 1 on");
    }
    version
}

/// In an object, null is the same as absent.
fn without_null(fields: Map<String, Value>) -> Map<String, Value> {
    let inner = |value| match value {
        Value::Object(fields) => Value::Object(without_null(fields)),
        value => value,
    };
    let said = fields.into_iter().filter(|(_, value)| !value.is_null());
    said.map(|(key, value)| (key, inner(value))).collect()
}

impl NewMessage {
    /// The message with its template filled; a subject of its own stays. What was rendered obeys the
    /// rules that a subject and bodies in a request obey.
    pub fn filled(&self, rendered: Rendered) -> Result<Self, Vec<Issue>> {
        let mut issues = Issues::default();
        let own = !self.subject.is_empty();
        let subject = if own { self.subject.clone() } else { rendered.subject };
        if subject.trim().is_empty() {
            issues.add("template.subject", "renders to nothing");
        }
        if subject.contains(is_line_control) {
            issues.add("template.subject", "renders to line breaks or control characters");
        }
        for (path, body) in [("html", &rendered.html), ("text", &rendered.text)] {
            if body.as_ref().is_some_and(|body| body.bytes().any(is_body_control)) {
                issues.add(format!("template.{path}"), "renders to control characters");
            }
        }
        let some = |body: Option<String>| body.filter(|it| !it.trim().is_empty());
        let (html, text) = (some(rendered.html), some(rendered.text));
        if html.is_none() && text.is_none() {
            issues.add("template.html", "renders to nothing");
        }
        issues.take()?;
        Ok(Self { subject, html, text, ..self.clone() })
    }
}
