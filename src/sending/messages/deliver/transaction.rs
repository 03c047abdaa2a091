//! One transaction with one relay: the conversation, with the mark before its dot.

use super::{
    group::{Group, Pending},
    trial::{Heard, Trial},
    turn::Setting,
};
use crate::{
    outside::smtp::{Answer, Endpoint, Envelope, Phase, Rcpt},
    sending::{
        messages::store::{load::Head, mark::Mark},
        relays::{self, Place, breaker::Evidence},
    },
};

/// Asks one relay, in one transaction for the whole group.
pub async fn ask(setting: &Setting<'_>, group: &Group, place: &mut Place) -> Trial {
    let app = &setting.work.app;
    let mut trial = Trial::new(&place.relay, app.now(), group.recipients.len());
    match place.relay.endpoint.clone() {
        Ok(endpoint) => converse(setting, group, place, &endpoint, &mut trial).await,
        Err(why) => trial.unusable(why),
    }
    trial.ended_at = app.now();
    trial
}

async fn converse(
    setting: &Setting<'_>,
    group: &Group,
    place: &Place,
    endpoint: &Endpoint,
    trial: &mut Trial,
) {
    let work = setting.work;
    let mut kept = match place.kept_session().await {
        Some(kept) => kept,
        None => match relays::open_session(&work.app, endpoint).await {
            Ok(session) => place.new_session(session),
            Err(fault) => return trial.broke(fault),
        },
    };
    let session = &mut kept.session;
    trial.peer = Some(session.peer().to_string());
    trial.tls = session.tls_info().map(|it| format!("{} {}", it.version, it.cipher));
    let begun = match session.begin(&envelope(setting.head, group)).await {
        Ok(begun) => begun,
        Err(lacks) => {
            trial.lacks(&lacks);
            return place.keep(kept);
        }
    };
    let wants_body = begun.wants_body();
    trial.heard = begun.recipients.into_iter().map(Heard::from).collect();
    if let Some(fault) = begun.fault {
        return trial.broke(fault);
    }
    if !wants_body {
        trial.phase = Phase::Rcpt;
        return place.keep(kept);
    }
    if let Err(fault) = session.send_body(setting.content).await {
        return trial.broke(fault);
    }
    // The mark: without it no dot.
    if !mark(setting, group, trial).await {
        kept.session.abandon();
        return trial.not_sent();
    }
    match session.finish().await {
        Ok(reply) => {
            // 421 announces that the server closes (RFC 5321 §3.8).
            if reply.code != 421 {
                place.keep(kept);
            }
            trial.answered(reply);
        }
        Err(fault) => trial.broke(fault),
    }
}

fn envelope(head: &Head, group: &Group) -> Envelope {
    let rcpt = |it: &Pending| Rcpt {
        address: it.due.address.clone(),
        notify: Some("FAILURE,DELAY".to_owned()),
        orcpt: Some(it.due.address.clone()),
    };
    Envelope {
        sender: Some(group.sender.clone()),
        recipients: group.recipients.iter().map(rcpt).collect(),
        size: u64::try_from(head.size).unwrap_or(0),
        smtputf8: head.smtputf8,
        eight_bit: head.eight_bit,
        envid: Some(head.message_id.to_string()),
        ret_headers_only: true,
    }
}

/// Writes the mark for those whom RCPT accepted. If it is refused, nothing may follow.
pub async fn mark(setting: &Setting<'_>, group: &Group, trial: &mut Trial) -> bool {
    match setting.work.marks.put(mark_of(setting, group, trial)).await {
        Ok(granted) => trial.marked = granted,
        Err(error) => {
            tracing::warn!(message.id = %setting.lease.job_id, %error, "no mark, so no dot");
        }
    }
    trial.marked
}

fn mark_of(setting: &Setting<'_>, group: &Group, trial: &Trial) -> Mark {
    let accepted = group.recipients.iter().zip(&trial.heard);
    Mark {
        message_id: setting.lease.job_id,
        lease_id: setting.lease.lease_id,
        attempt_id: trial.attempt_id,
        relay_id: trial.relay_id,
        relay_name: trial.relay_name.clone(),
        process_id: setting.work.app.queue.process_id,
        started_at: trial.started_at,
        recipients: accepted
            .filter(|(_, heard)| matches!(heard, Heard::Accepted))
            .map(|(it, _)| it.due.recipient_id)
            .collect(),
    }
}

impl From<Answer> for Heard {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Accepted(_) => Self::Accepted,
            Answer::Refused(refusal) => Self::Refused(refusal.phase, refusal.reply),
            Answer::Unanswered => Self::Nothing,
        }
    }
}

impl Trial {
    /// What it tells about the relay. Where it refused all recipients before the dot, their replies
    /// do: one that shows a working relay is enough.
    pub fn evidence(&self) -> Evidence {
        if let Some(verdict) = self.verdict() {
            return Evidence::from(&verdict);
        }
        let mut told = self.refusals().map(|verdict| Evidence::from(&verdict));
        let first = told.next().unwrap_or(Evidence::Nothing);
        if told.any(|it| it == Evidence::Alive) { Evidence::Alive } else { first }
    }

    /// What a breaker that opens on it remembers.
    pub fn told(&self) -> relays::Words {
        let words = self.words();
        relays::Words { reason: words.reason, text: words.text }
    }
}
