//! One transaction, on the first relay that takes part in it.

use bytes::Bytes;
use uuid::Uuid;

use super::{
    Deliver,
    judge::{self, Learnt},
    trial::{Heard, Trial},
};
use crate::{
    address::EmailAddress,
    error::Result,
    outside::smtp::{
        Answer, Deadlines, Endpoint, Envelope, Fault, FaultKind, Phase, Rcpt, Session,
    },
    queue::Lease,
    sending::{
        messages::store::{
            load::{Due, Head},
            mark::Mark,
        },
        relays::{Place, breaker::Evidence},
    },
};

/// What one transaction sends, and to whom.
pub struct Batch<'a> {
    pub head: &'a Head,
    pub lease: &'a Lease,
    pub sender: &'a str,
    pub recipients: &'a [Due],
    pub content: &'a [Bytes],
}

/// Asks the eligible relays, one after the other, until one has spoken of the recipients. None:
/// no place could be had on any, though some relay would do.
pub async fn send(work: &Deliver, batch: Batch<'_>) -> Result<Option<Learnt>> {
    let sender: EmailAddress =
        batch.head.from_address.parse().map_err(|_| {
            crate::error::Error::invalid("from", "the stored sender cannot be read")
        })?;
    let relays = work.relays.eligible(&sender);
    let mut trials: Vec<Trial> = Vec::new();
    let mut crowded = false;
    for relay in &relays {
        let Some(mut place) = work.relays.take(relay) else {
            crowded = true;
            continue;
        };
        let trial = ask(work, &batch, &mut place).await;
        let evidence = trial.evidence();
        place.report(evidence);
        let goes_on = trial.may_move(batch.recipients);
        work.app.metrics.attempt(trial.result());
        trials.push(trial);
        if !goes_on {
            break;
        }
    }
    if trials.is_empty() && crowded {
        return Ok(None);
    }
    Ok(Some(judge::judge(work, &batch, trials, crowded)))
}

async fn ask(work: &Deliver, batch: &Batch<'_>, place: &mut Place) -> Trial {
    let started_at = work.app.now();
    let attempt_id = Uuid::now_v7();
    let mut trial = Trial::new(attempt_id, &place.relay, started_at, batch.recipients.len());
    let endpoint = match &place.relay.endpoint {
        Ok(endpoint) => endpoint.clone(),
        Err(why) => {
            trial.unusable(why.clone());
            trial.ended_at = work.app.now();
            return trial;
        }
    };
    converse(work, batch, &endpoint, &mut trial).await;
    trial.ended_at = work.app.now();
    trial
}

async fn converse(work: &Deliver, batch: &Batch<'_>, endpoint: &Endpoint, trial: &mut Trial) {
    let deadlines = deadlines(work);
    let mut session = match open(work, endpoint, &deadlines).await {
        Ok(session) => session,
        Err(fault) => return trial.broke(fault),
    };
    trial.peer = Some(session.peer().to_string());
    trial.tls = session.tls_info().map(|it| format!("{} {}", it.version, it.cipher));
    let begun = match session.begin(&envelope(batch)).await {
        Ok(begun) => begun,
        Err(lacks) => {
            trial.lacks(&lacks);
            session.quit().await;
            return;
        }
    };
    let wants_body = begun.wants_body();
    trial.heard = begun.recipients.into_iter().map(Heard::from).collect();
    if let Some(fault) = begun.fault {
        return trial.broke(fault);
    }
    if !wants_body {
        trial.phase = Phase::Rcpt;
        session.quit().await;
        return;
    }
    if let Err(fault) = session.send_body(batch.content).await {
        return trial.broke(fault);
    }
    // The mark: without it no dot.
    match work.marks.put(mark(work, batch, trial)).await {
        Ok(true) => trial.marked = true,
        refused => {
            if let Err(error) = refused {
                tracing::warn!(message.id = %batch.lease.job_id, %error, "no mark, so no dot");
            }
            session.abandon();
            return trial.not_sent();
        }
    }
    match session.finish().await {
        Ok(reply) => {
            trial.answered(reply);
            session.quit().await;
        }
        Err(fault) => trial.broke(fault),
    }
}

/// Resolves the relay's host, and lets through only addresses that relays may have.
async fn open(
    work: &Deliver,
    endpoint: &Endpoint,
    deadlines: &Deadlines,
) -> std::result::Result<Session, Fault> {
    let host = (endpoint.host.as_str(), endpoint.port);
    let found = match tokio::time::timeout(deadlines.connect, tokio::net::lookup_host(host)).await {
        Ok(Ok(found)) => found.collect::<Vec<_>>(),
        Ok(Err(error)) => return Err(Fault { phase: Phase::Dns, kind: FaultKind::Resolve(error) }),
        Err(_) => {
            return Err(Fault { phase: Phase::Dns, kind: FaultKind::TimedOut(deadlines.connect) });
        }
    };
    let networks = &work.app.config.sending.relay_networks;
    let permitted: Vec<_> = found.into_iter().filter(|it| networks.permits(it.ip())).collect();
    if permitted.is_empty() {
        let why = "relays may not have this address";
        return Err(Fault { phase: Phase::Dns, kind: FaultKind::Malformed(why) });
    }
    Session::connect_from(endpoint, &permitted, deadlines).await
}

fn envelope(batch: &Batch<'_>) -> Envelope {
    let rcpt = |it: &Due| Rcpt {
        address: it.address.clone(),
        notify: Some("FAILURE,DELAY".to_owned()),
        orcpt: Some(it.address.clone()),
    };
    Envelope {
        sender: Some(batch.sender.to_owned()),
        recipients: batch.recipients.iter().map(rcpt).collect(),
        size: u64::try_from(batch.head.size).unwrap_or(0),
        smtputf8: batch.head.smtputf8,
        eight_bit: batch.head.smtputf8,
        envid: Some(batch.head.message_id.to_string()),
        ret_headers_only: true,
    }
}

fn mark(work: &Deliver, batch: &Batch<'_>, trial: &Trial) -> Mark {
    let accepted = batch.recipients.iter().zip(&trial.heard);
    Mark {
        message_id: batch.lease.job_id,
        lease_id: batch.lease.lease_id,
        attempt_id: trial.attempt_id,
        relay_id: trial.relay_id,
        relay_name: trial.relay_name.clone(),
        process_id: work.app.queue.process_id,
        started_at: trial.started_at,
        recipients: accepted
            .filter(|(_, heard)| matches!(heard, Heard::Accepted))
            .map(|(it, _)| it.recipient_id)
            .collect(),
    }
}

fn deadlines(work: &Deliver) -> Deadlines {
    let of = &work.app.config.sending.deadlines;
    Deadlines {
        connect: of.connect,
        tls: of.greeting,
        greeting: of.greeting,
        ehlo: of.ehlo,
        auth: of.ehlo,
        mail: of.mail,
        rcpt: of.rcpt,
        data: of.data,
        dot: of.dot,
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
    pub fn evidence(&self) -> Evidence {
        self.verdict().map_or(Evidence::Nothing, |verdict| Evidence::from(&verdict))
    }
}
