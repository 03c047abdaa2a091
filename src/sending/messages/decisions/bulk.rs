//! Trying again many messages at once: those that a filter finds, a few at a time.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    accounts::access::Actor,
    app::App,
    error::{Error, Result},
    sending::messages::{
        list::meant,
        store::retry::{self, Wanted},
    },
};

/// So many messages are locked at a time.
const AT_ONCE: usize = 100;
const MOST: i64 = 1_000;

/// What is to be tried again; each field narrows it. Without `outcome`: recipients that have
/// failed, and now those that wait for a later try. Unknown fields are refused.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BulkRetry {
    pub status: Option<Standing>,
    pub outcome: Option<Ended>,
    /// The reason that the recipients show, as in `relay_auth_failed`.
    pub reason: Option<String>,
    /// Name or id of the relay that was asked last.
    pub relay: Option<String>,
    pub sender_domain: Option<String>,
    pub recipient_domain: Option<String>,
    pub tag: Option<String>,
    /// Accepted at this time or later …
    pub since: Option<DateTime<Utc>>,
    /// … and before this one.
    pub until: Option<DateTime<Utc>>,
    /// The id of the key that sent them.
    pub key: Option<Uuid>,
    /// At most so many messages, the oldest first.
    #[schema(minimum = 1, maximum = 1000, default = 1000)]
    pub limit: Option<i64>,
    /// Only says how many it would be.
    pub dry_run: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = RetryStanding)]
pub enum Standing {
    Pending,
    Done,
    Dead,
}

/// How messages ended that are to be tried again. A cancelled one is not: a cancellation is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    Failed,
    /// The failed recipients of messages that others of theirs got.
    Partial,
    /// Those whose time was over: they get a new one, or none.
    Expired,
    /// Those whose recipients are not on the suppression list any more.
    Suppressed,
}

/// What became of a bulk retry.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retried {
    /// Messages that are tried again, or would be.
    pub messages: usize,
    pub recipients: usize,
    /// The filter finds more than `limit`: ask again.
    pub more: bool,
    pub dry_run: bool,
}

/// Tries again what the filter finds among those the actor decides about.
pub async fn retry(app: &App, actor: &Actor, filter: &BulkRetry) -> Result<Retried> {
    let limit = filter.limit.unwrap_or(MOST);
    if !(1..=MOST).contains(&limit) {
        return Err(Error::invalid("limit", format!("must be from 1 to {MOST}")));
    }
    meant("since", filter.since)?;
    meant("until", filter.until)?;
    let found = retry::find(&app.db, actor.decides()?, &wanted(filter), limit + 1).await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = found.len() > limit;
    let found = &found[..found.len().min(limit)];
    let mut said = Retried { messages: 0, recipients: 0, more, dry_run: filter.dry_run };
    if filter.dry_run {
        said.messages = found.len();
        said.recipients = found.iter().map(|it| it.recipients.len()).sum();
        return Ok(said);
    }
    for some in found.chunks(AT_ONCE) {
        let (messages, recipients) = retry::some(&app.db, some, &actor.who()).await?;
        said.messages += messages;
        said.recipients += recipients;
        app.queue.bell.ring();
    }
    Ok(said)
}

fn wanted(filter: &BulkRetry) -> Wanted<'_> {
    let states: &[&str] = match filter.outcome {
        None | Some(Ended::Failed | Ended::Partial) => &["failed"],
        Some(Ended::Expired) => &["expired"],
        Some(Ended::Suppressed) => &["suppressed"],
    };
    Wanted {
        states,
        waiting: filter.outcome.is_none(),
        settled: filter.status.map(|it| it != Standing::Pending),
        accepted: match filter.status {
            Some(Standing::Done) => Some(true),
            Some(Standing::Dead) => Some(false),
            Some(Standing::Pending) | None => None,
        },
        outcome: filter.outcome.map(|it| match it {
            Ended::Failed => "failed",
            Ended::Partial => "partial",
            Ended::Expired => "expired",
            Ended::Suppressed => "suppressed",
        }),
        reason: filter.reason.as_deref(),
        relay: filter.relay.as_deref(),
        sender_domain: filter.sender_domain.as_deref().map(domain),
        recipient_domain: filter.recipient_domain.as_deref().map(domain),
        tag: filter.tag.as_deref(),
        since: filter.since,
        until: filter.until,
        key: filter.key,
    }
}

/// As domains are kept: in lower case, in ASCII where it can be said so.
fn domain(text: &str) -> String {
    text.parse::<crate::address::DomainName>()
        .map_or_else(|_| text.to_ascii_lowercase(), |domain| domain.to_string())
}
