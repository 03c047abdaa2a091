//! One turn of a group: the next relay that has a place is asked, and each recipient is settled,
//! waits, or goes on to the next relay.

use bytes::Bytes;

use super::{
    Deliver,
    carrier::{Carrier, Way},
    group::{Group, Pending},
    judge::{self, Decision, Setting as Judging},
};
use crate::{
    queue::Lease,
    sending::{
        messages::store::{
            complete::{Change, Ended},
            load::Head,
        },
        relays::Taking,
    },
};

/// What all turns of a step share.
pub struct Setting<'a> {
    pub work: &'a Deliver,
    pub head: &'a Head,
    pub lease: &'a Lease,
    pub content: &'a [Bytes],
}

/// What a turn taught, and the groups that go on.
pub struct Turn {
    pub attempts: Vec<Ended>,
    pub changes: Vec<Change>,
    pub onward: Vec<Group>,
}

/// Takes a turn.
pub async fn take(setting: &Setting<'_>, mut group: Group) -> Turn {
    let Some(mut carrier) = next_carrier(setting, &mut group).await else {
        return nobody_left(setting, group);
    };
    let trial = carrier.ask(setting, &group).await;

    let judging = judging(setting, &group);
    let (mut changes, mut moving, mut onward) = (Vec::new(), Vec::new(), Vec::new());
    for (at, pending) in group.recipients.iter().enumerate() {
        match judge::decide(&trial, at, pending, &judging) {
            Decision::Settled(change) => {
                let then = carrier.aftermath(&pending.due);
                changes.push(Change { then, ..change });
            }
            Decision::Moves(fallback) => {
                moving.push(Pending { due: pending.due.clone(), fallback });
            }
            Decision::Alone(waits) => {
                changes.push(waits);
                let mut alone = group.onward(vec![pending.clone()]);
                if let Carrier::Relay(place) = &carrier {
                    alone.relays.push_front(place.relay.clone());
                }
                onward.push(alone);
            }
        }
    }
    if !moving.is_empty() {
        onward.push(group.onward(moving));
    }
    Turn { attempts: vec![trial.ended(&group.recipients)], changes, onward }
}

/// A place on the next relay that has one, where relays are asked; those passed over are noted.
async fn next_carrier(setting: &Setting<'_>, group: &mut Group) -> Option<Carrier> {
    match group.way {
        Way::Relays => (),
        Way::Test => return Some(Carrier::Test),
        Way::Capture => return Some(Carrier::Capture),
    }
    while let Some(relay) = group.relays.pop_front() {
        match setting.work.relays.take(&relay, &setting.lease.lane).await {
            Taking::Place(place) => return Some(Carrier::Relay(place)),
            Taking::Full => group.crowded = true,
            Taking::Rests => group.resting = true,
        }
    }
    None
}

fn nobody_left(setting: &Setting<'_>, group: Group) -> Turn {
    let judging = judging(setting, &group);
    let changes = group.recipients.iter().map(|it| judge::unasked(it, &judging)).collect();
    Turn { attempts: Vec::new(), changes, onward: Vec::new() }
}

fn judging(setting: &Setting<'_>, group: &Group) -> Judging {
    let sending = &setting.work.app.config.sending;
    Judging {
        is_over: setting.head.age > sending.retry_window.as_secs_f64(),
        on_unknown: setting.head.on_unknown,
        instance: sending.on_unknown,
        is_last: group.relays.is_empty(),
        crowded: group.crowded,
        resting: group.resting,
    }
}
