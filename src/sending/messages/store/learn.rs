//! What is learnt of recipients after a server accepted them: it never undoes that.

use std::collections::HashSet;

use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::complete::{Aftermath, Changed, Report};
use crate::{
    error::Result,
    events::{self, Event},
};

/// What is learnt of one recipient.
pub struct News<'a> {
    pub recipient_id: Uuid,
    pub said: &'a Aftermath,
}

/// What these reports bring for the recipients that they have just made sent.
pub(super) fn of<'a>(reports: &'a [Report], changed: &[Changed]) -> Vec<News<'a>> {
    let changed: HashSet<Uuid> = changed.iter().map(|it| it.recipient_id).collect();
    reports
        .iter()
        .flat_map(|report| &report.changes)
        .filter(|change| changed.contains(&change.recipient_id))
        .filter_map(|it| Some(News { recipient_id: it.recipient_id, said: it.then.as_ref()? }))
        .collect()
}

/// Writes the news, of those recipients that are sent; the caller holds their messages.
pub(super) async fn learn(conn: &mut PgConnection, news: &[News<'_>]) -> Result<()> {
    if news.is_empty() {
        return Ok(());
    }
    macro_rules! column {
        ($field:expr) => {
            &news.iter().map($field).collect::<Vec<_>>()
        };
    }
    let rows = sqlx::query!(
        r#"with new as materialized (
             select * from unnest($1::uuid[], $2::text[], $3::smallint[], $4::text[], $5::text[], $6::text[])
                  as new (recipient_id, state, code, enhanced, reason, text)
         ), old as materialized (
             select recipient_id from recipients
             where recipient_id in (select recipient_id from new) and state in ('sent', 'delayed')
             order by recipient_id for update
         )
         update recipients set
             state = new.state,
             code = case when said then new.code else recipients.code end,
             enhanced = case when said then new.enhanced else recipients.enhanced end,
             reason = case when said then new.reason else recipients.reason end,
             text = case when said then new.text else recipients.text end
         from new join old using (recipient_id),
              lateral (select new.reason is not null or new.text is not null as said) as it
         where recipients.recipient_id = new.recipient_id
         returning recipients.recipient_id, message_id, address"#,
        column!(|it| it.recipient_id),
        column!(|it| it.said.to.as_str().to_owned()),
        column!(|it| it.said.words.code) as &[Option<i16>],
        column!(|it| it.said.words.enhanced.clone()) as &[Option<String>],
        column!(|it| it.said.words.reason.clone()) as &[Option<String>],
        column!(|it| it.said.words.text.clone()) as &[Option<String>],
    )
    .fetch_all(&mut *conn)
    .await?;
    let told: Vec<Event> = rows
        .into_iter()
        .filter_map(|row| {
            let said = news.iter().find(|it| it.recipient_id == row.recipient_id)?.said;
            let data = json!({
                "address": row.address, "code": said.words.code, "enhanced": said.words.enhanced,
                "reason": said.words.reason, "text": said.words.text,
            });
            Some(Event {
                kind: said.to.event(),
                subject: "message",
                subject_id: row.message_id,
                data,
            })
        })
        .collect();
    events::emit(conn, &told).await
}
