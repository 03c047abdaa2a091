//! The SQL of `templates` and `template_versions`.

use chrono::{DateTime, Utc};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

use super::{Source, VersionView};
use crate::error::Result;

/// A template, and the content of one version.
#[derive(Debug, Clone)]
pub struct Row {
    pub template_id: Uuid,
    pub slug: String,
    pub name: String,
    pub current_version: i32,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub archived_at: Option<DateTime<Utc>>,
    /// The one whose content this is.
    pub version: i32,
    pub source: Source,
}

macro_rules! row {
    ($it:expr) => {
        Row {
            template_id: $it.template_id,
            slug: $it.slug,
            name: $it.name,
            current_version: $it.current_version,
            created_at: $it.created_at,
            updated_at: $it.updated_at,
            archived_at: $it.archived_at,
            version: $it.version,
            source: Source { subject: $it.subject, html: $it.html, text: $it.text },
        }
    };
}

pub(super) async fn list(db: &PgPool, before: Option<Uuid>, limit: i64) -> Result<Vec<Row>> {
    let rows = sqlx::query!(
        "select template_id, slug, name, current_version, templates.created_at, updated_at, archived_at,
                version, subject, html, text
         from templates join template_versions using (template_id)
         where version = current_version and archived_at is null and ($1::uuid is null or template_id < $1)
         order by template_id desc limit $2",
        before,
        limit,
    )
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(|it| row!(it)).collect())
}

/// By id, or by the slug of a living one; with that version, or the current one.
pub(super) async fn find(db: &PgPool, id: &str, version: Option<i32>) -> Result<Option<Row>> {
    let row = sqlx::query!(
        "select template_id, slug, name, current_version, templates.created_at, updated_at, archived_at,
                version, subject, html, text
         from templates join template_versions using (template_id)
         where (template_id = $1 or (slug = $2 and archived_at is null))
           and version = coalesce($3, current_version)",
        id.parse::<Uuid>().ok(),
        id,
        version,
    )
    .fetch_optional(db)
    .await?;
    Ok(row.map(|it| row!(it)))
}

/// With its current version.
pub(super) async fn one(conn: &mut PgConnection, id: Uuid) -> Result<Option<Row>> {
    let row = sqlx::query!(
        "select template_id, slug, name, current_version, templates.created_at, updated_at, archived_at,
                version, subject, html, text
         from templates join template_versions using (template_id)
         where template_id = $1 and version = current_version",
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|it| row!(it)))
}

/// Locks a living one.
pub(super) async fn lock(conn: &mut PgConnection, id: &str) -> Result<Option<Uuid>> {
    let found = sqlx::query_scalar!(
        "select template_id from templates
         where (template_id = $1 or slug = $2) and archived_at is null for no key update",
        id.parse::<Uuid>().ok(),
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(found)
}

pub(super) async fn insert(
    conn: &mut PgConnection,
    id: Uuid,
    slug: &str,
    name: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "insert into templates (template_id, slug, name, current_version) values ($1, $2, $3, 1)",
        id,
        slug,
        name,
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub(super) async fn insert_version(
    conn: &mut PgConnection,
    id: Uuid,
    version: i32,
    source: &Source,
    by: &str,
) -> Result<()> {
    sqlx::query!(
        "insert into template_versions (template_id, version, subject, html, text, created_by)
         values ($1, $2, $3, $4, $5, $6)",
        id,
        version,
        source.subject,
        source.html,
        source.text,
        by,
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub(super) async fn replace(
    conn: &mut PgConnection,
    id: Uuid,
    slug: &str,
    name: &str,
    version: i32,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "update templates set slug = $2, name = $3, current_version = $4, updated_at = clock_timestamp()
         where template_id = $1",
        id,
        slug,
        name,
        version,
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub(super) async fn archive(conn: &mut PgConnection, id: Uuid) -> Result<()> {
    sqlx::query!(
        "update templates set archived_at = clock_timestamp(), updated_at = clock_timestamp()
         where template_id = $1",
        id,
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub(super) async fn versions(db: &PgPool, id: Uuid) -> Result<Vec<VersionView>> {
    let rows = sqlx::query_as!(
        VersionView,
        r#"select version, version = current_version as "current!", subject, template_versions.created_at, created_by
           from template_versions join templates using (template_id)
           where template_id = $1 order by version desc"#,
        id,
    )
    .fetch_all(db)
    .await?;
    Ok(rows)
}
