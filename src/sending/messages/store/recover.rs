//! What the end of a lease means for its message.

use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{
    attempts, lock_messages,
    settle::{self, Settled},
};
use crate::{
    error::Result,
    events::{self, Event},
    on_unknown::OnUnknown,
    queue::{self, Abandoned},
};

const DIED: &str = "the process ended between the mark and the reply";
/// A second copy that `resend` allows may end like the first; after so many, a person decides.
pub const MOST_RESENDS: i32 = 3;

const DEADLY: &str = "sending this message ended its process three times";

/// Recipients whose dot may have been sent become unknown, or queued again where the policy is to
/// send again. Those of a dead job that still waited have failed, and say why. Answers what became
/// of recipients and messages, for the metrics.
pub async fn abandoned(
    conn: &mut PgConnection,
    jobs: &[Abandoned],
    instance: OnUnknown,
) -> Result<(Vec<&'static str>, Vec<Settled>)> {
    let ids: Vec<Uuid> = jobs.iter().map(|job| job.job_id).collect();
    let dead: Vec<Uuid> = jobs.iter().filter(|job| job.dead).map(|job| job.job_id).collect();
    lock_messages(conn, &ids).await?;
    let mut told = unknown(conn, &ids, &dead, instance).await?;
    told.extend(failed(conn, &dead).await?);
    attempts::end_abandoned(conn, &ids, DIED).await?;
    events::emit(conn, &told).await?;
    let settled = settle::count(conn, &ids).await?;
    let waiting = settle::waiting(conn, &ids).await?;
    let ended: Vec<Uuid> =
        ids.into_iter().filter(|id| !waiting.contains_key(id) && !dead.contains(id)).collect();
    queue::end(conn, &ended).await?;
    let states = told.iter().filter_map(|it| it.kind.strip_prefix("recipient.")).collect();
    Ok((states, settled))
}

async fn unknown(
    conn: &mut PgConnection,
    ids: &[Uuid],
    dead: &[Uuid],
    instance: OnUnknown,
) -> Result<Vec<Event>> {
    let rows = sqlx::query!(
        r#"with policy as materialized (
             select recipients.recipient_id,
                    recipients.message_id <> all($2) and recipients.resends < $5
                    and coalesce(messages.on_unknown, api_keys.on_unknown, relays.on_unknown, $3) = 'resend' as resend
             from recipients
             join messages using (message_id)
             left join api_keys using (api_key_id)
             left join attempts using (attempt_id)
             left join relays on relays.relay_id = attempts.relay_id
             where recipients.message_id = any($1) and state = 'sending'
             order by recipient_id for update of recipients
         ), resends as (
             update messages set resends = resends + again.n
             from (select recipients.message_id, count(*)::integer as n
                   from policy join recipients using (recipient_id) where resend group by 1) as again
             where messages.message_id = again.message_id
         )
         update recipients set
             state = case when resend then 'queued' else 'unknown' end,
             resends = resends + resend::integer, maybe_accepted = true,
             next_at = case when resend then clock_timestamp() end,
             code = null, enhanced = null, reason = 'process_died', text = $4
         from policy where recipients.recipient_id = policy.recipient_id
         returning recipients.message_id, recipients.address, resend as "resend!""#,
        ids,
        dead,
        instance.as_str(),
        DIED,
        MOST_RESENDS,
    )
    .fetch_all(conn)
    .await?;
    let event = |message_id, address: String, resend: bool| Event {
        kind: "recipient.unknown",
        subject: "message",
        subject_id: message_id,
        data: json!({
            "address": address, "reason": "process_died", "text": DIED, "action": if resend { "resend" } else { "hold" },
        }),
    };
    Ok(rows.into_iter().map(|row| event(row.message_id, row.address, row.resend)).collect())
}

async fn failed(conn: &mut PgConnection, dead: &[Uuid]) -> Result<Vec<Event>> {
    let rows = sqlx::query!(
        "update recipients set state = case when maybe_accepted then 'unknown' else 'failed' end, next_at = null,
                               settled_at = case when not maybe_accepted then clock_timestamp() end, code = null,
                               enhanced = null, reason = 'process_died', text = $2
         where message_id = any($1) and state in ('queued', 'deferred')
         returning message_id, address, state",
        dead,
        DEADLY,
    )
    .fetch_all(&mut *conn)
    .await?;
    sqlx::query!("update messages set last_error = $2 where message_id = any($1)", dead, DEADLY)
        .execute(conn)
        .await?;
    let event = |message_id, address: String, state: &str| Event {
        kind: if state == "unknown" { "recipient.unknown" } else { "recipient.failed" },
        subject: "message",
        subject_id: message_id,
        data: json!({ "address": address, "reason": "process_died", "text": DEADLY }),
    };
    Ok(rows.into_iter().map(|row| event(row.message_id, row.address, &row.state)).collect())
}
