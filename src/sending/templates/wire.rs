//! Templates as the API takes and shows them.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Source, store::Row};
use crate::error::{Error, Issue, Result};

/// A template, without its bodies.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateView {
    pub id: Uuid,
    /// Names it in `template: {id}`, as its id does.
    pub slug: String,
    /// For people.
    pub name: String,
    /// The version shown: the current one, unless another was asked for.
    pub version: i32,
    pub current_version: i32,
    pub subject: String,
    /// What it asks of the data, dotted. Names within a loop's items are not known.
    pub variables: BTreeSet<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub archived_at: Option<DateTime<Utc>>,
}

/// A template with the content of one version.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateContent {
    #[serde(flatten)]
    pub template: TemplateView,
    pub html: Option<String>,
    pub text: Option<String>,
    /// What is allowed and may not be meant.
    pub warnings: Vec<Issue>,
}

/// A version, without its bodies.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct VersionView {
    pub version: i32,
    pub current: bool,
    pub subject: String,
    pub created_at: DateTime<Utc>,
    /// `key:<prefix>`, or `command line`.
    pub created_by: String,
}

impl From<&Row> for TemplateView {
    fn from(row: &Row) -> Self {
        Self {
            id: row.template_id,
            slug: row.slug.clone(),
            name: row.name.clone(),
            version: row.version,
            current_version: row.current_version,
            subject: row.source.subject.clone(),
            variables: row.source.variables(),
            created_at: row.created_at,
            updated_at: row.updated_at,
            archived_at: row.archived_at,
        }
    }
}

impl From<Row> for TemplateContent {
    fn from(row: Row) -> Self {
        Self {
            template: TemplateView::from(&row),
            warnings: row.source.warnings(),
            html: row.source.html,
            text: row.source.text,
        }
    }
}

/// A template to be made. The language is Jinja's; in `html` values are escaped by their place.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewTemplate {
    /// 1 to 64 of `a-z 0-9 - _ .`, a letter first; unique.
    #[schema(min_length = 1, max_length = 64, pattern = "^[a-z][a-z0-9._-]{0,63}$")]
    pub slug: String,
    /// 1 to 100 characters; the slug if absent.
    #[schema(min_length = 1, max_length = 100)]
    pub name: Option<String>,
    /// At most 4 KiB.
    #[schema(min_length = 1)]
    pub subject: String,
    /// At most 512 KiB. One of `html` and `text` is required.
    pub html: Option<String>,
    /// At most 512 KiB.
    pub text: Option<String>,
}

impl NewTemplate {
    pub(super) fn checked(self) -> Result<(String, String, Source)> {
        let name = self.name.unwrap_or_else(|| self.slug.clone());
        check(self.slug, name, Source { subject: self.subject, html: self.html, text: self.text })
    }
}

/// A change of a template: what is absent stays. Null takes `html` or `text` away.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TemplatePatch {
    pub slug: Option<String>,
    pub name: Option<String>,
    pub subject: Option<String>,
    #[serde(deserialize_with = "said")]
    #[schema(value_type = Option<String>)]
    pub html: Option<Option<String>>,
    #[serde(deserialize_with = "said")]
    #[schema(value_type = Option<String>)]
    pub text: Option<Option<String>>,
}

/// Null is said, and is not the same as absent.
fn said<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(from).map(Some)
}

impl TemplatePatch {
    pub(super) fn over(self, row: &Row) -> Result<(String, String, Source)> {
        let source = Source {
            subject: self.subject.unwrap_or_else(|| row.source.subject.clone()),
            html: self.html.unwrap_or_else(|| row.source.html.clone()),
            text: self.text.unwrap_or_else(|| row.source.text.clone()),
        };
        let slug = self.slug.unwrap_or_else(|| row.slug.clone());
        check(slug, self.name.unwrap_or_else(|| row.name.clone()), source)
    }
}

fn check(slug: String, name: String, source: Source) -> Result<(String, String, Source)> {
    let mut issues = Vec::new();
    if !is_slug(&slug) {
        issues.push(Issue::new("slug", "1 to 64 of a-z 0-9 - _ . with a letter first"));
    }
    if !(1..=100).contains(&name.encode_utf16().count()) || name.chars().any(char::is_control) {
        issues.push(Issue::new("name", "1 to 100 characters, none of them a control character"));
    }
    issues.extend(source.check());
    if issues.is_empty() { Ok((slug, name, source)) } else { Err(Error::issues(issues)) }
}

/// Never like an id: 32 hexadecimal digits can begin with a letter.
fn is_slug(slug: &str) -> bool {
    (1..=64).contains(&slug.len())
        && slug.starts_with(|c: char| c.is_ascii_lowercase())
        && slug.bytes().all(|it| matches!(it, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.'))
        && slug.parse::<Uuid>().is_err()
}

/// Data to look at a template with.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PreviewRequest {
    /// At most 256 KiB.
    #[schema(value_type = Object)]
    pub data: Map<String, Value>,
    /// The current one if absent.
    pub version: Option<i32>,
}

/// What a message would be. What is missing stands in it as `{{ path }}`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    pub version: i32,
    pub subject: String,
    pub html: Option<String>,
    pub text: Option<String>,
    /// What it asks of the data, dotted. Names within a loop's items are not known.
    pub variables: BTreeSet<String>,
    /// Paths in `data` without which this could not be sent.
    pub missing: BTreeSet<String>,
}

/// A message to look at in a mail program.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TestRequest {
    /// As in `POST /send`.
    #[schema(value_type = String, required = true)]
    pub to: Value,
    /// As in `POST /send`.
    #[schema(value_type = Option<String>)]
    pub from: Value,
    /// At most 256 KiB.
    #[schema(value_type = Object)]
    pub data: Map<String, Value>,
    /// The current one if absent.
    pub version: Option<i32>,
}

/// The message that was made.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TestSent {
    pub ok: bool,
    /// See `GET /jobs/{id}`.
    pub id: Uuid,
}
