//! Relays: the SMTP accounts that messages leave through.
//!
//! A relay may be used for a sender if its `domain` is the sender's, if its `fromAddress` is the
//! sender, or if it is marked `anySender`. Its credentials are sealed here, or named as variables
//! of the environment whose names begin with `SMTP_`, and never shown.
//!
//! `book/` is what the sender uses: the relays as they are now, with the places taken on each, its
//! open sessions (`pool.rs`) and its breaker.

mod book;
pub mod breaker;
pub mod eligible;
mod pool;
pub mod probe;
mod routes;
mod session;
pub mod slots;
mod store;
mod wire;

use secrecy::ExposeSecret as _;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    app::App,
    audit::{self, Who},
    error::{Error, Result},
    events::{self, Event},
    queue::Channel,
    secrets::SecretRing,
};

pub use book::{Book, Live, Place, Relay, Standing, Taking};
pub use pool::Kept;
pub use routes::router;
pub use session::open as open_session;
pub use store::breaker::Words;
pub use wire::{NewRelay, RelayPatch, RelayView};

const NO_RELAY: Error = Error::NotFound("SMTP account");

pub async fn list(app: &App) -> Result<Vec<RelayView>> {
    store::all(&app.db).await.map(|relays| relays.into_iter().map(RelayView::from).collect())
}

pub async fn get(app: &App, id: Uuid) -> Result<RelayView> {
    store::one(&app.db, id).await?.map(RelayView::from).ok_or(NO_RELAY)
}

pub async fn create(app: &App, who: &Who, new: NewRelay) -> Result<RelayView> {
    new.check(&app.config)?;
    let id = Uuid::now_v7();
    let sealed = wire::seal(app, id, new.password.as_deref())?;
    let mut tx = app.db.begin().await?;
    let view = RelayView::from(store::insert(&mut tx, id, &new, sealed.as_deref()).await?);
    written(&mut tx, who, "relay.created", None, Some(&view)).await?;
    tx.commit().await?;
    Ok(view)
}

pub async fn update(app: &App, who: &Who, id: Uuid, patch: RelayPatch) -> Result<RelayView> {
    let mut tx = app.db.begin().await?;
    let row = store::lock(&mut tx, id).await?.ok_or(NO_RELAY)?;
    let before = RelayView::from(row.clone());
    let after = patch.apply(app, row)?;
    let view = RelayView::from(store::replace(&mut tx, &after).await?);
    store::breaker::hasten(&mut tx, id).await?;
    written(&mut tx, who, "relay.changed", Some(&before), Some(&view)).await?;
    tx.commit().await?;
    Ok(view)
}

/// Whether there is a relay of this id.
pub async fn exists(conn: &mut PgConnection, id: Uuid) -> Result<bool> {
    Ok(store::lock(conn, id).await?.is_some())
}

/// Removes a relay. Messages that waited for it leave through another one, or wait for one.
pub async fn delete(app: &App, who: &Who, id: Uuid) -> Result<()> {
    let mut tx = app.db.begin().await?;
    let before = RelayView::from(store::lock(&mut tx, id).await?.ok_or(NO_RELAY)?);
    store::delete(&mut tx, id).await?;
    written(&mut tx, who, "relay.deleted", Some(&before), None).await?;
    tx.commit().await?;
    Ok(())
}

/// Takes over a relay that was made elsewhere, by its id. Answers whether it is new here.
pub async fn adopt(conn: &mut PgConnection, who: &Who, id: Uuid, new: &NewRelay) -> Result<bool> {
    if exists(conn, id).await? {
        return Ok(false);
    }
    let view = RelayView::from(store::insert(conn, id, new, None).await?);
    written(conn, who, "relay.created", None, Some(&view)).await?;
    Ok(true)
}

/// Seals every password again that is not sealed with the first key of the ring. Answers how many,
/// of how many. One that cannot be opened is an error.
pub async fn reseal(conn: &mut PgConnection, ring: &SecretRing) -> anyhow::Result<(usize, usize)> {
    let sealed = store::sealed(conn).await?;
    let mut again = 0;
    for (id, name, password) in &sealed {
        let place = wire::bound_to(*id);
        let plain = ring
            .open(password, &place)
            .map_err(|error| anyhow::anyhow!("the password of the relay {name:?}: {error}"))?;
        if ring.is_stale(password) {
            store::reseal(conn, *id, &ring.seal(plain.expose_secret(), &place)).await?;
            again += 1;
        }
    }
    Ok((again, sealed.len()))
}

/// Makes the relay of the built-in sandbox, once for all processes.
pub async fn ensure_sandbox(app: &App) -> Result<()> {
    let mut tx = app.db.begin().await?;
    if let Some(row) = store::insert_sandbox(&mut tx).await? {
        let view = RelayView::from(row);
        written(&mut tx, &Who::command_line(), "relay.created", None, Some(&view)).await?;
    }
    tx.commit().await?;
    Ok(())
}

/// Audit, event and notification of a change, all in its transaction.
async fn written(
    conn: &mut PgConnection,
    who: &Who,
    action: &'static str,
    before: Option<&RelayView>,
    after: Option<&RelayView>,
) -> Result<()> {
    let Some(relay) = after.or(before) else { return Ok(()) };
    audit::record(conn, who, action, ("relay", relay.id), before, after).await?;
    let data = serde_json::json!({ "name": relay.name, "active": relay.active });
    events::emit(conn, &[Event { kind: action, subject: "relay", subject_id: relay.id, data }])
        .await?;
    store::notify(conn, Channel::Relays).await
}
