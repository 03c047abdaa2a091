//! What is true at the moment of a scrape.

use std::{borrow::Cow, sync::atomic::AtomicU64, time::Duration};

use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::PREFIX;

/// What is true now, and is asked for when it is shown.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub pools: Vec<Pool>,
    pub relays: Vec<Relay>,
    /// None while the database does not answer.
    pub work: Option<Work>,
    /// What is kept for a time.
    pub kept: Vec<Kept>,
}

/// A pool of database connections.
#[derive(Debug)]
pub struct Pool {
    pub name: &'static str,
    pub open: u32,
    pub idle: u32,
    pub most: u32,
}

/// A relay as this process sees it.
#[derive(Debug)]
pub struct Relay {
    pub id: String,
    pub name: String,
    pub breaker: Breaker,
    /// Connections in use, open and waiting, and how many there may be.
    pub in_use: usize,
    pub idle: usize,
    pub most: usize,
}

/// Whether a relay is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breaker {
    Closed,
    HalfOpen,
    Open,
}

/// What the database says of the work.
#[derive(Debug, Default)]
pub struct Work {
    pub kinds: Vec<Kind>,
    /// Recipients of whom nothing is known, held.
    pub unknown: i64,
    /// What is paused: scope and how many.
    pub paused: Vec<(String, i64)>,
    /// Processes of Postroom whose heartbeat goes on.
    pub processes: i64,
    pub chores: Vec<Chore>,
}

/// The jobs of one kind.
#[derive(Debug, Default)]
pub struct Kind {
    pub kind: String,
    pub due: i64,
    pub scheduled: i64,
    pub leased: i64,
    pub dead: i64,
    /// How long the longest-waiting due job has been due.
    pub oldest_seconds: f64,
}

/// A class of data that is kept for a time.
#[derive(Debug)]
pub struct Kept {
    pub class: &'static str,
    /// None for ever.
    pub window: Option<Duration>,
    /// On the disk, with indexes.
    pub bytes: i64,
    /// As the database estimates them.
    pub rows: i64,
    /// When the oldest came, in seconds before now; none if there is none.
    pub oldest_seconds: Option<f64>,
}

/// A chore's last round.
#[derive(Debug)]
pub struct Chore {
    pub name: String,
    pub age_seconds: f64,
    pub failed: bool,
}

type Labels<const N: usize> = [(&'static str, Cow<'static, str>); N];
type Amount = Gauge<f64, AtomicU64>;

struct Shown(Registry);

impl Shown {
    fn one(&mut self, name: &str, help: &str, value: f64) {
        let gauge = Amount::default();
        gauge.set(value);
        self.0.register(name, help, gauge);
    }

    fn many<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels<N>, f64)>,
    ) {
        let family = Family::<Labels<N>, Amount>::default();
        for (labels, value) in values {
            family.get_or_create(&labels).set(value);
        }
        self.0.register(name, help, family);
    }
}

impl Snapshot {
    pub(super) fn registry(&self) -> Registry {
        let mut shown = Shown(Registry::with_prefix(PREFIX));
        let version = [([("version", env!("CARGO_PKG_VERSION").into())], 1.0)];
        shown.many("build", "The version that runs", version);
        let up = f64::from(u8::from(self.work.is_some()));
        shown.one("database_up", "Whether the database answers", up);
        self.pools(&mut shown);
        self.relays(&mut shown);
        self.kept(&mut shown);
        if let Some(work) = &self.work {
            work.queue(&mut shown);
            work.rest(&mut shown);
        }
        shown.0
    }

    fn pools(&self, shown: &mut Shown) {
        let states = self.pools.iter().flat_map(|pool| {
            let states = [("idle", pool.idle), ("in_use", pool.open.saturating_sub(pool.idle))];
            states.map(|(state, n)| {
                ([("pool", pool.name.into()), ("state", state.into())], f64::from(n))
            })
        });
        shown.many("database_pool_connections", "Database connections open", states);
        let most = self.pools.iter().map(|it| ([("pool", it.name.into())], f64::from(it.most)));
        shown.many("database_pool_connections_max", "Database connections at most", most);
    }

    fn kept(&self, shown: &mut Shown) {
        let class = |it: &Kept| [("class", Cow::Borrowed(it.class))];
        let bytes = self.kept.iter().map(|it| (class(it), number(it.bytes)));
        shown.many("retention_bytes", "Size on the disk, with indexes", bytes);
        let rows = self.kept.iter().map(|it| (class(it), number(it.rows)));
        shown.many("retention_rows", "Rows, as the database estimates them", rows);
        let oldest = self.kept.iter().filter_map(|it| Some((class(it), it.oldest_seconds?)));
        shown.many("retention_oldest_seconds", "How old the oldest row is", oldest);
        let window = |it: &Kept| Some((class(it), it.window?.as_secs_f64()));
        let windows = self.kept.iter().filter_map(window);
        shown.many("retention_window_seconds", "How long it is kept after its end", windows);
    }

    fn relays(&self, shown: &mut Shown) {
        let named = |it: &Relay| {
            [("relay", Cow::Owned(it.name.clone())), ("relay_id", Cow::Owned(it.id.clone()))]
        };
        let states = self.relays.iter().flat_map(|it| {
            let states = [
                ("closed", Breaker::Closed),
                ("half_open", Breaker::HalfOpen),
                ("open", Breaker::Open),
            ];
            let [name, id] = named(it);
            states.map(|(word, state)| {
                let labels = [name.clone(), id.clone(), ("state", word.into())];
                (labels, f64::from(u8::from(it.breaker == state)))
            })
        });
        shown.many("relay_breaker", "1 for the state that the relay's breaker is in", states);
        let places = |n: usize| f64::from(u32::try_from(n).unwrap_or(u32::MAX));
        let open = self.relays.iter().flat_map(|it| {
            let states = [("in_use", it.in_use), ("idle", it.idle)];
            let [name, id] = named(it);
            states.map(|(word, n)| ([name.clone(), id.clone(), ("state", word.into())], places(n)))
        });
        shown.many("relay_connections", "Connections of this process to the relay", open);
        let most = self.relays.iter().map(|it| (named(it), places(it.most)));
        shown.many(
            "relay_connections_max",
            "Connections to the relay that this process may have",
            most,
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "beyond 2^53 jobs a metric may round")]
fn number(n: i64) -> f64 {
    n as f64
}

impl Work {
    fn queue(&self, shown: &mut Shown) {
        let depth = self.kinds.iter().map(|it| it.due + it.scheduled + it.leased).sum();
        shown.one("queue_depth", "Jobs with work left", number(depth));
        let oldest = self.kinds.iter().map(|it| it.oldest_seconds).fold(0.0, f64::max);
        let help = "How long the longest-waiting due job has been due";
        shown.one("queue_oldest_seconds", help, oldest);
        let kind = |it: &Kind| Cow::Owned(it.kind.clone());
        let jobs = self.kinds.iter().flat_map(|it| {
            let states = [
                ("due", it.due),
                ("scheduled", it.scheduled),
                ("leased", it.leased),
                ("dead", it.dead),
            ];
            states.map(|(state, n)| ([("kind", kind(it)), ("state", state.into())], number(n)))
        });
        shown.many("queue_jobs", "Jobs, by kind and state", jobs);
        let oldest = self.kinds.iter().map(|it| ([("kind", kind(it))], it.oldest_seconds));
        shown.many("queue_kind_oldest_seconds", "The same for each kind of job", oldest);
    }

    fn rest(&self, shown: &mut Shown) {
        let help = "Recipients of whom nothing is known, held for a person's word";
        shown.one("recipients_held_unknown", help, number(self.unknown));
        let paused =
            self.paused.iter().map(|(scope, n)| ([("scope", scope.clone().into())], number(*n)));
        shown.many("paused_scopes", "What an operator has paused", paused);
        let help = "Processes of Postroom on this database whose heartbeat goes on";
        shown.one("processes_alive", help, number(self.processes));
        let name = |it: &Chore| [("chore", Cow::Owned(it.name.clone()))];
        let ages = self.chores.iter().map(|it| (name(it), it.age_seconds));
        shown.many("chore_age_seconds", "Since the last round of a chore", ages);
        let failed = self.chores.iter().map(|it| (name(it), f64::from(u8::from(it.failed))));
        shown.many("chore_failed", "Whether the last round of a chore failed", failed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Metrics;
    use super::*;

    fn shows(now: &Snapshot, lines: &[&str]) {
        let text = Metrics::new().render(now);
        for line in lines {
            assert!(text.lines().any(|it| it == *line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn the_queue_is_shown_as_a_whole_and_by_kind() {
        let kind = |kind: &str, oldest_seconds| Kind {
            kind: kind.to_owned(),
            due: 1,
            scheduled: 2,
            leased: 3,
            dead: 4,
            oldest_seconds,
        };
        let work = Work { kinds: vec![kind("send", 7.5), kind("hook", 2.0)], ..Work::default() };
        shows(
            &Snapshot { work: Some(work), ..Snapshot::default() },
            &[
                "postroom_database_up 1.0",
                "postroom_queue_depth 12.0",
                "postroom_queue_oldest_seconds 7.5",
                "postroom_queue_jobs{kind=\"send\",state=\"dead\"} 4.0",
                "postroom_queue_kind_oldest_seconds{kind=\"hook\"} 2.0",
            ],
        );
    }

    #[test]
    fn a_breaker_is_in_one_state() {
        let relay = Relay {
            id: "r1".to_owned(),
            name: "main".to_owned(),
            breaker: Breaker::Open,
            in_use: 2,
            idle: 1,
            most: 8,
        };
        shows(
            &Snapshot { relays: vec![relay], ..Snapshot::default() },
            &[
                "postroom_relay_breaker{relay=\"main\",relay_id=\"r1\",state=\"closed\"} 0.0",
                "postroom_relay_breaker{relay=\"main\",relay_id=\"r1\",state=\"open\"} 1.0",
                "postroom_relay_connections{relay=\"main\",relay_id=\"r1\",state=\"in_use\"} 2.0",
            ],
        );
    }
}
