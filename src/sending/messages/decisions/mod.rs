//! What is decided about a message that is there: another time, an end, another try.
//!
//! Each decision locks the job, the message and its recipients in that order, and speaks only of
//! recipients that wait (or, for a retry, that have failed): what is marked, accepted or unknown
//! is not touched. A process that works on the message meets the decision at its mark.

mod bulk;
mod routes;

use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{request, store};
use crate::{
    accounts::access::Actor,
    app::App,
    error::{Error, Result},
};

pub use routes::router;

/// Another time for a message that waits for its first attempt. Unknown fields are refused.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reschedule {
    /// At most 30 days ahead; a time in the past, or null, is now.
    #[serde(deserialize_with = "present")]
    #[schema(value_type = Option<DateTime<Utc>>, required = true)]
    send_at: Option<String>,
}

/// Null is a value here; a field that is not there is not.
fn present<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<String>, D::Error> {
    Option::deserialize(from)
}

/// Gives a message another time to go out.
pub async fn reschedule(app: &App, actor: &Actor, id: Uuid, wish: &Reschedule) -> Result<()> {
    let at = match &wish.send_at {
        None => None,
        Some(text) => {
            request::send_at(text, app.now()).map_err(|why| Error::invalid("sendAt", why))?
        }
    };
    store::schedule::reschedule(&app.db, id, actor.decides()?, at, &actor.who()).await?;
    app.queue.bell.ring();
    Ok(())
}

/// Ends the waiting of a message's recipients; those already sent stay sent.
pub async fn cancel(app: &App, actor: &Actor, id: Uuid) -> Result<()> {
    store::cancel::cancel(&app.db, id, actor.decides()?, &actor.who(), &app.metrics).await
}

/// Tries again what has failed, and now what waits.
pub async fn retry(app: &App, actor: &Actor, id: Uuid) -> Result<()> {
    store::retry::one(&app.db, id, actor.decides()?, &actor.who()).await?;
    app.queue.bell.ring();
    Ok(())
}
