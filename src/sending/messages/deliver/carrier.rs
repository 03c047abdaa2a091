//! Who carries a group: a relay, or what stands in for one where nothing leaves.

use std::time::Duration;

use super::{
    group::Group,
    transaction,
    trial::{Heard, Trial},
    turn::Setting,
};
use crate::{
    outside::smtp::{EnhancedCode, Phase, Reply},
    sending::{
        messages::{
            Learnt, Mode, TestAddress,
            store::{
                complete::{Aftermath, Words},
                load::{Due, Head},
            },
        },
        relays::Place,
        sandbox,
    },
};

/// How long a copy that cannot be kept is left alone before it is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Which way a recipient goes; those of one group go the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    // What is soon done comes first.
    Test,
    Capture,
    Relays,
}

impl Way {
    /// A test address is one under any key.
    pub fn of(head: &Head, recipient: &Due) -> Self {
        match (TestAddress::of(&recipient.lookup_key), head.mode()) {
            (Some(_), _) => Self::Test,
            (None, Mode::Capture) => Self::Capture,
            (None, Mode::Live | Mode::Test) => Self::Relays,
        }
    }
}

/// Who is asked.
pub enum Carrier {
    /// A place on a relay.
    Relay(Place),
    /// Says what each test address stands for.
    Test,
    /// Keeps the message in the sandbox.
    Capture,
}

impl Carrier {
    /// Asks once, for the whole group.
    pub async fn ask(&mut self, setting: &Setting<'_>, group: &Group) -> Trial {
        match self {
            Self::Relay(place) => {
                let trial = transaction::ask(setting, group, place).await;
                if trial.marked {
                    place.counts();
                }
                setting.work.app.metrics.sending.attempt(&trial.counted());
                place.report(trial.evidence(), trial.told()).await;
                trial
            }
            Self::Test => test(setting, group).await,
            Self::Capture => capture(setting, group).await,
        }
    }

    /// What is learnt of an accepted recipient as soon as it is sent.
    pub fn aftermath(&self, recipient: &Due) -> Option<Aftermath> {
        let Self::Test = self else { return None };
        let (to, words) = match TestAddress::of(&recipient.lookup_key)? {
            TestAddress::Delivered => (Learnt::Delivered, Words::default()),
            TestAddress::Bounced => {
                let code = (Some(550), Some("5.1.1".to_owned()));
                (Learnt::Bounced, words(code, "mailbox_not_found", "a test: it came back"))
            }
            TestAddress::Complained => (
                Learnt::Complained,
                words((None, None), "complaint", "a test: it was complained of"),
            ),
            _ => return None,
        };
        Some(Aftermath { to, words })
    }
}

fn words((code, enhanced): (Option<i16>, Option<String>), reason: &str, text: &str) -> Words {
    Words { code, enhanced, reason: Some(reason.to_owned()), text: Some(text.to_owned()) }
}

/// A conversation that might have been: RCPT is answered by what each address stands for, the dot
/// with a yes; the mark is written before it as always.
async fn test(setting: &Setting<'_>, group: &Group) -> Trial {
    let mut trial = Trial::without_relay("test", setting.work.app.now(), group.recipients.len());
    trial.phase = Phase::Rcpt;
    let refused = |code, enhanced, text| Heard::Refused(Phase::Rcpt, reply(code, enhanced, text));
    trial.heard = group
        .recipients
        .iter()
        .map(|it| match TestAddress::of(&it.due.lookup_key) {
            Some(TestAddress::Deferred) => refused(450, [4, 2, 0], "a test: try again later"),
            Some(TestAddress::NoSuchUser) | None => {
                refused(550, [5, 1, 1], "a test: no such user here")
            }
            Some(_) => Heard::Accepted,
        })
        .collect();
    if trial.heard.iter().any(|it| matches!(it, Heard::Accepted)) {
        if transaction::mark(setting, group, &mut trial).await {
            trial.answered(reply(250, [2, 0, 0], "Ok: a test, nothing was sent"));
        } else {
            trial.not_sent();
        }
    }
    trial.ended_at = setting.work.app.now();
    trial
}

/// Keeps the message in the sandbox, behind the mark. The copy has the attempt's id, so it is kept
/// once however often that is tried.
async fn capture(setting: &Setting<'_>, group: &Group) -> Trial {
    let app = &setting.work.app;
    let mut trial = Trial::without_relay("capture", app.now(), group.recipients.len());
    trial.heard.fill(Heard::Accepted);
    if transaction::mark(setting, group, &mut trial).await {
        let received = sandbox::Received {
            helo: "capture".to_owned(),
            mail_from: group.sender.clone(),
            rcpt_to: group.recipients.iter().map(|it| it.due.address.clone()).collect(),
            raw: setting.content.concat(),
        };
        while let Err(error) = sandbox::keep(&app.workers_db, trial.attempt_id, &received).await {
            tracing::warn!(message.id = %setting.lease.job_id, %error, "a captured message waits for the database");
            tokio::time::sleep(AGAIN).await;
        }
        let text = format!("Ok: queued as {}", trial.attempt_id);
        trial.answered(reply(250, [2, 0, 0], &text));
    } else {
        trial.not_sent();
    }
    trial.ended_at = app.now();
    trial
}

fn reply(code: u16, [class, subject, detail]: [u8; 3], text: &str) -> Reply {
    let (subject, detail) = (subject.into(), detail.into());
    let enhanced = Some(EnhancedCode { class, subject, detail });
    Reply { code, enhanced, text: text.to_owned() }
}
