//! One person: what is kept of an address that mail was sent to, and how it is erased.
//!
//! Erasing is for who asks to be forgotten (GDPR, article 17). Gone are the content and the header
//! of every message to the address that has settled, what servers said of it, its copies in the
//! sandbox, and the address itself: in its place stands an alias, the same for the same address, so
//! that what was counted still counts. Left are a message that has not settled (it says how many;
//! cancel them, or ask again later), and the suppression, without which the address would be mailed
//! again; it goes too where that is asked for. A message with further recipients loses its content
//! for them too, and cannot be tried again.

mod erase;
mod routes;
mod view;

use crate::{
    address::EmailAddress,
    app::App,
    error::{Error, Result},
    sending::{messages::addressed, sandbox, suppressions},
};

pub use routes::router;
use view::{Held, HeldMessage, HeldSuppression};

/// The address in a path.
fn address(text: &str) -> Result<EmailAddress> {
    text.parse().map_err(|_| Error::invalid("address", "must be an email address"))
}

/// Everything that is kept of an address, but for what messages hold.
async fn held(
    app: &App,
    address: &EmailAddress,
    before: Option<uuid::Uuid>,
    limit: i64,
) -> Result<Held> {
    let key = address.lookup_key();
    let messages = addressed::page(&app.db, &key, before, limit).await?;
    let states = addressed::count(&app.db, &key).await?;
    let spellings = spellings(&mut *app.db.acquire().await?, address).await?;
    Ok(Held {
        address: address.to_string(),
        suppression: suppressions::of(app, &key).await?.map(HeldSuppression::from),
        states,
        sandbox_messages: sandbox::count_to(&app.db, &spellings).await?,
        messages: messages.into_iter().map(HeldMessage::from).collect(),
    })
}

/// How the address is written where it is not lower-cased.
async fn spellings(conn: &mut sqlx::PgConnection, address: &EmailAddress) -> Result<Vec<String>> {
    let key = address.lookup_key();
    let mut spellings = addressed::spellings(conn, &key).await?;
    spellings.extend([address.to_string(), key]);
    Ok(spellings)
}
