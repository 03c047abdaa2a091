//! A template in use: what a request asks for, and what becomes of it.

use serde_json::{Map, Value};
use sqlx::PgPool;

use super::{
    render::{self, Rendered},
    store,
};
use crate::error::{Error, Issue, Result};

/// Bytes of the data, as JSON.
const MAX_DATA: usize = 256 * 1024;

/// A template as a request asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateUse {
    /// An id or a slug, as it was said.
    pub id: String,
    /// Absent: the current one.
    pub version: Option<i32>,
    pub data: Map<String, Value>,
}

/// The template filled with its data. Whatever is wrong refuses the request: with the path of the
/// field in it that is to blame.
pub async fn filled(db: &PgPool, asked: &TemplateUse) -> Result<Rendered> {
    let found = store::find(db, &asked.id, asked.version).await?;
    let Some(row) = found.filter(|it| it.archived_at.is_none()) else {
        return Err(Error::Invalid {
            code: "TEMPLATE_NOT_FOUND",
            issues: vec![match asked.version {
                Some(version) => Issue::new("template", format!("there is no version {version}")),
                None => Issue::new("template.id", "there is no such template"),
            }],
        });
    };
    let rendered = render::render(&row.source, &asked.data).map_err(not_rendered)?;
    if rendered.missing.is_empty() {
        return Ok(rendered);
    }
    let missing = |path: &String| {
        Issue::new(format!("template.data.{path}"), "the template asks for it: it is missing")
    };
    Err(Error::Invalid {
        code: "TEMPLATE_VARIABLE_MISSING",
        issues: rendered.missing.iter().map(missing).collect(),
    })
}

/// A fault of a rendered part, said of the template.
pub(super) fn not_rendered(fault: Issue) -> Error {
    let path = format!("template.{}", fault.path);
    Error::Invalid { code: "TEMPLATE_NOT_RENDERED", issues: vec![Issue::new(path, fault.message)] }
}

/// `Err` says why this cannot be a template's data.
pub fn check_data(data: &Map<String, Value>) -> Result<(), String> {
    let size = serde_json::to_vec(data).map_or(usize::MAX, |it| it.len());
    if size > MAX_DATA { Err(format!("larger than {MAX_DATA} bytes")) } else { Ok(()) }
}
