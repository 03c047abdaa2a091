//! A relay's circuit breaker: after repeated faults of the relay itself, let it rest, then ask
//! with one message only.
//!
//! A plain state machine; `now` is the time since some start. What concerns one message, one
//! sender or one connection is no evidence about the relay, else one application with a wrong
//! From would stop everybody.
//!
//! Each process counts faults of its own; what it makes of them is a [`Wish`], which holds for all
//! processes once it is written over the `generation` it was made in (`store/breaker.rs`). So each
//! change is made by one process, and told once; the probe too is handed out by such a write.

use std::time::Duration;

use crate::sending::outcome::{Class, Scope, Verdict};

/// So many faults in a row open the breaker; one refused login is enough.
const FAULTS_TO_OPEN: u32 = 3;
const FIRST_REST: Duration = Duration::from_secs(15);
const LONGEST_REST: Duration = Duration::from_secs(10 * 60);
/// Logins are repeated more slowly: six failures in a week make fail2ban shut us out for a week.
const FIRST_LOGIN_REST: Duration = Duration::from_secs(5 * 60);
const LONGEST_LOGIN_REST: Duration = Duration::from_secs(60 * 60);
/// A probe that reports nothing for so long is lost; it is longer than all deadlines of a session
/// together (RFC 5321 §4.5.3.2 alone gives the final dot ten minutes).
pub const PROBE_PATIENCE: Duration = Duration::from_secs(20 * 60);

/// What a session told about its relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// The relay did its part, be it by refusing a recipient.
    Alive,
    Fault,
    /// A refused login, or a suspended account.
    LoginFault,
    /// Nothing about the relay as a whole.
    Nothing,
}

impl From<&Verdict> for Evidence {
    fn from(verdict: &Verdict) -> Self {
        match (verdict.class, verdict.scope) {
            (Class::RelayFault, Scope::Relay) if verdict.reason.is_about_credentials() => {
                Self::LoginFault
            }
            (Class::RelayFault, Scope::Relay) => Self::Fault,
            (Class::RelayFault | Class::NotForThisRelay | Class::Unknown, _) => Self::Nothing,
            (Class::Transient, Scope::Connection | Scope::Relay) => Self::Nothing,
            _ => Self::Alive,
        }
    }
}

/// How a breaker stands, for all processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Closed,
    /// Rests; from `until` on one session may find out whether the relay is back.
    Open {
        until: Duration,
    },
    /// One session finds out; from `until` on it is taken for lost.
    HalfOpen {
        until: Duration,
    },
}

/// What all processes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared {
    /// Counts the changes.
    pub generation: i64,
    pub standing: Standing,
    /// How long the present rest is; the next one is longer.
    pub rest: Duration,
}

impl Shared {
    /// Of a relay that never failed.
    pub const NEW: Self = Self { generation: 0, standing: Standing::Closed, rest: Duration::ZERO };
}

/// Admission to one session. It names the generation it was given in: what an older session
/// reports after the breaker has moved on changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    pub generation: i64,
    is_probe: bool,
}

impl Pass {
    /// For the session that found its probe written as this generation.
    pub fn probe(generation: i64) -> Self {
        Self { generation, is_probe: true }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Slot(Pass),
    /// One session may find out whether the relay is back: whoever writes so over this generation.
    ProbeIsDue(i64),
    No,
}

/// A change that is to be written over the generation in which it was wished for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// From closed: told as `relay.degraded`.
    Open { rest: Duration },
    /// A probe failed: the rest goes on, the event has been told before.
    Prolong { rest: Duration },
    /// A probe told nothing: the next one may go at once.
    Free { rest: Duration },
    /// Told as `relay.recovered`.
    Close,
}

/// A breaker as one process sees it.
#[derive(Debug, Clone)]
pub struct Breaker {
    /// In a row, seen by this process.
    faults: u32,
    shared: Shared,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { faults: 0, shared: Shared::NEW }
    }
}

impl Breaker {
    pub fn shared(&self) -> Shared {
        self.shared
    }

    /// May a session begin?
    pub fn admits(&self, now: Duration) -> Admission {
        let generation = self.shared.generation;
        match self.shared.standing {
            Standing::Closed => Admission::Slot(Pass { generation, is_probe: false }),
            Standing::Open { until } | Standing::HalfOpen { until } if now < until => Admission::No,
            Standing::Open { .. } | Standing::HalfOpen { .. } => Admission::ProbeIsDue(generation),
        }
    }

    /// What all processes see now. What was decided here and is not written yet stands.
    pub fn see(&mut self, shared: Shared) {
        if shared.generation < self.shared.generation {
            return;
        }
        if shared.generation > self.shared.generation {
            self.faults = 0;
        }
        self.shared = shared;
    }

    /// What a session told, and what follows from it. It holds here at once.
    pub fn report(&mut self, pass: Pass, now: Duration, evidence: Evidence) -> Option<Wish> {
        if pass.generation != self.shared.generation {
            return None;
        }
        let wish = if pass.is_probe { self.of_probe(evidence) } else { self.of_session(evidence)? };
        self.shared = after(wish, pass.generation, now);
        self.faults = 0;
        Some(wish)
    }

    fn of_session(&mut self, evidence: Evidence) -> Option<Wish> {
        match evidence {
            Evidence::Nothing => None,
            Evidence::Alive => {
                self.faults = 0;
                None
            }
            Evidence::Fault if self.faults + 1 < FAULTS_TO_OPEN => {
                self.faults += 1;
                None
            }
            Evidence::Fault => Some(Wish::Open { rest: FIRST_REST }),
            Evidence::LoginFault => Some(Wish::Open { rest: FIRST_LOGIN_REST }),
        }
    }

    fn of_probe(&self, evidence: Evidence) -> Wish {
        let rest = self.shared.rest;
        match evidence {
            Evidence::Alive => Wish::Close,
            Evidence::Nothing => Wish::Free { rest },
            Evidence::Fault => Wish::Prolong { rest: (rest * 2).clamp(FIRST_REST, LONGEST_REST) },
            Evidence::LoginFault => {
                Wish::Prolong { rest: (rest * 2).clamp(FIRST_LOGIN_REST, LONGEST_LOGIN_REST) }
            }
        }
    }
}

/// How a breaker stands once a wish is written over this generation.
fn after(wish: Wish, generation: i64, now: Duration) -> Shared {
    let (standing, rest) = match wish {
        Wish::Open { rest } | Wish::Prolong { rest } => {
            (Standing::Open { until: now + rest }, rest)
        }
        Wish::Free { rest } => (Standing::Open { until: now }, rest),
        Wish::Close => (Standing::Closed, Duration::ZERO),
    };
    Shared { generation: generation + 1, standing, rest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outside::smtp::{Phase, Reply};
    use crate::sending::outcome::{Said, Silence, classify};

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A session; the probe where one is due, written as the next generation.
    fn pass(breaker: &mut Breaker, now: Duration) -> Pass {
        match breaker.admits(now) {
            Admission::Slot(pass) => pass,
            Admission::ProbeIsDue(generation) => {
                let standing = Standing::HalfOpen { until: now + PROBE_PATIENCE };
                let generation = generation + 1;
                breaker.see(Shared { generation, standing, ..breaker.shared() });
                Pass::probe(generation)
            }
            Admission::No => panic!("no session at {now:?}"),
        }
    }

    fn report(breaker: &mut Breaker, now: Duration, evidence: Evidence) -> Option<Wish> {
        let pass = pass(breaker, now);
        breaker.report(pass, now, evidence)
    }

    fn opened_at_zero() -> Breaker {
        let mut breaker = Breaker::default();
        assert_eq!(report(&mut breaker, s(0), Evidence::Fault), None);
        assert_eq!(report(&mut breaker, s(0), Evidence::Fault), None);
        let third = report(&mut breaker, s(0), Evidence::Fault);
        assert_eq!(third, Some(Wish::Open { rest: s(15) }));
        breaker
    }

    #[test]
    fn three_faults_in_a_row_open_it_and_one_success_between_does_not() {
        assert_eq!(opened_at_zero().admits(s(14)), Admission::No);
        let mut breaker = Breaker::default();
        for _ in 0..10 {
            report(&mut breaker, s(0), Evidence::Fault);
            report(&mut breaker, s(0), Evidence::Fault);
            report(&mut breaker, s(0), Evidence::Alive);
        }
        assert!(matches!(breaker.admits(s(0)), Admission::Slot(_)));
    }

    /// The rests that follow each other when every session reports this.
    fn rests(evidence: Evidence, n: usize) -> Vec<u64> {
        let (mut breaker, mut now, mut rests) = (Breaker::default(), s(0), Vec::new());
        while rests.len() < n {
            let Some(Wish::Open { rest } | Wish::Prolong { rest }) =
                report(&mut breaker, now, evidence)
            else {
                continue;
            };
            rests.push(rest.as_secs());
            now += rest;
        }
        rests
    }

    #[test]
    fn failed_probes_double_the_rest_up_to_ten_minutes() {
        assert_eq!(rests(Evidence::Fault, 8), [15, 30, 60, 120, 240, 480, 600, 600]);
    }

    #[test]
    fn one_refused_login_opens_it_for_five_minutes_doubling_to_an_hour() {
        assert_eq!(rests(Evidence::LoginFault, 6), [300, 600, 1200, 2400, 3600, 3600]);
    }

    #[test]
    fn one_probe_is_let_through_and_its_success_closes() {
        let mut breaker = opened_at_zero();
        assert_eq!(breaker.admits(s(15)), Admission::ProbeIsDue(1));
        let probe = pass(&mut breaker, s(15));
        assert_eq!(breaker.admits(s(15)), Admission::No);
        assert_eq!(breaker.report(probe, s(20), Evidence::Alive), Some(Wish::Close));
        assert!(matches!(breaker.admits(s(20)), Admission::Slot(_)));
        // The next opening starts from the first rest again.
        report(&mut breaker, s(20), Evidence::Fault);
        report(&mut breaker, s(20), Evidence::Fault);
        let told = report(&mut breaker, s(20), Evidence::Fault);
        assert_eq!(told, Some(Wish::Open { rest: s(15) }));
    }

    #[test]
    fn what_older_sessions_report_changes_nothing() {
        let mut breaker = Breaker::default();
        let old = pass(&mut breaker, s(0));
        for _ in 0..3 {
            report(&mut breaker, s(0), Evidence::Fault);
        }
        assert_eq!(breaker.report(old, s(1), Evidence::Alive), None);
        assert_eq!(breaker.report(old, s(1), Evidence::Fault), None);
        assert_eq!(breaker.admits(s(1)), Admission::No);
        pass(&mut breaker, s(15));
        assert_eq!(breaker.report(old, s(16), Evidence::Alive), None);
        assert_eq!(breaker.admits(s(16)), Admission::No);
    }

    #[test]
    fn a_probe_that_tells_nothing_or_is_lost_makes_room_for_the_next() {
        let mut breaker = opened_at_zero();
        let told = report(&mut breaker, s(15), Evidence::Nothing);
        assert_eq!(told, Some(Wish::Free { rest: s(15) }));
        pass(&mut breaker, s(15));
        assert_eq!(breaker.admits(s(15 + 1199)), Admission::No);
        assert!(matches!(breaker.admits(s(15 + 1200)), Admission::ProbeIsDue(_)));
    }

    #[test]
    fn what_others_decided_holds_here_and_what_was_decided_here_is_not_undone_by_old_news() {
        let mut breaker = Breaker::default();
        let old = breaker.shared();
        let open = Shared { generation: 1, standing: Standing::Open { until: s(15) }, rest: s(15) };
        breaker.see(open);
        assert_eq!(breaker.admits(s(1)), Admission::No);
        let mut breaker = opened_at_zero();
        breaker.see(old);
        assert_eq!(breaker.admits(s(1)), Admission::No, "not written yet, and decided");
        breaker.see(Shared {
            generation: 1,
            standing: Standing::Open { until: s(0) },
            rest: s(15),
        });
        assert!(matches!(breaker.admits(s(0)), Admission::ProbeIsDue(1)));
    }

    #[test]
    fn only_faults_of_the_whole_relay_are_evidence_against_it() {
        let said = |phase, code, text: &str| {
            let reply = Reply { code, enhanced: None, text: text.to_owned() };
            Evidence::from(&classify(phase, &Said::Reply(&reply)))
        };
        assert_eq!(said(Phase::Auth, 535, ""), Evidence::LoginFault);
        assert_eq!(said(Phase::Greeting, 421, ""), Evidence::Fault);
        assert_eq!(said(Phase::Mail, 530, ""), Evidence::Fault);
        assert_eq!(said(Phase::Mail, 553, "not owned by user"), Evidence::Nothing);
        assert_eq!(said(Phase::Mail, 552, "size"), Evidence::Nothing);
        assert_eq!(said(Phase::Rcpt, 550, "user unknown"), Evidence::Alive);
        assert_eq!(said(Phase::Rcpt, 450, "greylisted"), Evidence::Alive);
        assert_eq!(said(Phase::Dot, 250, "queued"), Evidence::Alive);
        let silent = |phase| Evidence::from(&classify(phase, &Said::Silence(Silence::TimedOut)));
        assert_eq!(silent(Phase::Connect), Evidence::Fault);
        assert_eq!(silent(Phase::Rcpt), Evidence::Nothing);
        assert_eq!(silent(Phase::Dot), Evidence::Nothing);
    }
}
