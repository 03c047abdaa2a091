//! Templates: a message's subject and bodies, kept here and filled with data when it is sent.
//!
//! A template has a slug, by which clients name it, and versions, which never change. A change of its
//! content is a new version; `template: {id, data, version?}` takes the current one or that number.
//! An archived template can be looked at by its id, and is not used any more; what was composed of
//! it is not touched.
//!
//! The language is Jinja's (`engine.rs`): `{{ name }}`, `{% if %}`, `{% for %}`, filters. It is strict: a
//! variable that the data lacks refuses the message, unless the template says `name|default("…")` or
//! asks `name is defined`. In `html` values are escaped by the place where they stand (`html/`); in
//! `text` and `subject` they are not, and a subject with a line break in it is refused.

mod data;
mod engine;
mod filters;
mod html;
mod names;
mod render;
mod routes;
mod source;
mod store;
mod trial;
mod using;
mod wire;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    app::App,
    audit::{self, Who},
    error::{Error, OnConstraint as _, Result},
    events::{self, Event},
};

pub use render::Rendered;
pub use routes::router;
pub use source::Source;
pub use using::{TemplateUse, check_data, filled};
pub use wire::{NewTemplate, TemplateContent, TemplatePatch, TemplateView, VersionView};

use wire::{Preview, PreviewRequest};

const NO_TEMPLATE: Error = Error::NotFound("Template");

/// The living ones, newest first.
pub async fn list(app: &App, before: Option<Uuid>, limit: i64) -> Result<Vec<TemplateView>> {
    let rows = store::list(&app.db, before, limit).await?;
    Ok(rows.into_iter().map(|row| TemplateView::from(&row)).collect())
}

/// One, with the content of a version. `id` is its id, or the slug of a living one.
pub async fn get(app: &App, id: &str, version: Option<i32>) -> Result<TemplateContent> {
    store::find(&app.db, id, version).await?.map(TemplateContent::from).ok_or(NO_TEMPLATE)
}

pub async fn create(app: &App, who: &Who, new: NewTemplate) -> Result<TemplateContent> {
    let (slug, name, source) = new.checked()?;
    let mut tx = app.db.begin().await?;
    let id = Uuid::now_v7();
    store::insert(&mut tx, id, &slug, &name).await.on_constraint("templates_slug_key", taken)?;
    store::insert_version(&mut tx, id, 1, &source, &who.name).await?;
    let row = store::one(&mut tx, id).await?.ok_or(NO_TEMPLATE)?;
    written(&mut tx, who, "template.created", None, &TemplateView::from(&row)).await?;
    tx.commit().await?;
    Ok(row.into())
}

/// Changes names in place; a change of content is a new version, which is the current one from then on.
pub async fn update(
    app: &App,
    who: &Who,
    id: &str,
    patch: TemplatePatch,
) -> Result<TemplateContent> {
    let mut tx = app.db.begin().await?;
    let before = living(&mut tx, id).await?;
    let (slug, name, source) = patch.over(&before)?;
    let version = before.version + i32::from(source != before.source);
    if version > before.version {
        store::insert_version(&mut tx, before.template_id, version, &source, &who.name).await?;
    }
    store::replace(&mut tx, before.template_id, &slug, &name, version)
        .await
        .on_constraint("templates_slug_key", taken)?;
    let after = store::one(&mut tx, before.template_id).await?.ok_or(NO_TEMPLATE)?;
    let view = TemplateView::from(&after);
    written(&mut tx, who, "template.changed", Some(&TemplateView::from(&before)), &view).await?;
    tx.commit().await?;
    Ok(after.into())
}

/// It is not used any more, and its slug is free; its versions stay to be looked at.
pub async fn archive(app: &App, who: &Who, id: &str) -> Result<()> {
    let mut tx = app.db.begin().await?;
    let before = living(&mut tx, id).await?;
    store::archive(&mut tx, before.template_id).await?;
    let after = store::one(&mut tx, before.template_id).await?.ok_or(NO_TEMPLATE)?;
    let view = TemplateView::from(&after);
    written(&mut tx, who, "template.archived", Some(&TemplateView::from(&before)), &view).await?;
    tx.commit().await?;
    Ok(())
}

/// Every version, the newest first; without content.
pub async fn versions(app: &App, id: &str) -> Result<Vec<VersionView>> {
    let row = store::find(&app.db, id, None).await?.ok_or(NO_TEMPLATE)?;
    store::versions(&app.db, row.template_id).await
}

/// What a message of this data would be. What is missing is named, and shown where it would stand.
async fn preview(app: &App, id: &str, asked: PreviewRequest) -> Result<Preview> {
    let row = store::find(&app.db, id, asked.version).await?.ok_or(NO_TEMPLATE)?;
    using::check_data(&asked.data).map_err(|why| Error::invalid("data", why))?;
    let rendered = render::render(&row.source, &asked.data).map_err(using::not_rendered)?;
    Ok(Preview {
        version: row.version,
        variables: row.source.variables(),
        subject: rendered.subject,
        html: rendered.html,
        text: rendered.text,
        missing: rendered.missing,
    })
}

async fn living(conn: &mut PgConnection, id: &str) -> Result<store::Row> {
    let id = store::lock(conn, id).await?.ok_or(NO_TEMPLATE)?;
    store::one(conn, id).await?.ok_or(NO_TEMPLATE)
}

fn taken() -> Error {
    Error::conflict("SLUG_TAKEN", "another template has this slug")
}

/// Audit and event of a change, in its transaction.
async fn written(
    conn: &mut PgConnection,
    who: &Who,
    action: &'static str,
    before: Option<&TemplateView>,
    after: &TemplateView,
) -> Result<()> {
    audit::record(conn, who, action, ("template", after.id), before, Some(after)).await?;
    let data = serde_json::json!({ "slug": after.slug, "version": after.version });
    let event = Event { kind: action, subject: "template", subject_id: after.id, data };
    events::emit(conn, &[event]).await
}

#[cfg(test)]
mod tests;
