//! A relay's circuit breaker: after repeated faults of the relay itself, let it rest, then ask
//! with one message only.
//!
//! A plain state machine; `now` is the time since some start. What concerns one message, one
//! sender or one connection is no evidence about the relay, else one application with a wrong
//! From would stop everybody.

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
const PROBE_PATIENCE: Duration = Duration::from_secs(20 * 60);

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

/// Admission to one session. It names the state it was given in: what an older session reports
/// after the breaker has moved on changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass(u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Slot(Pass),
    /// The one session that finds out whether the relay is back.
    Probe(Pass),
    No {
        until: Duration,
    },
}

/// Told exactly once for each change, so that it becomes one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    Opened {
        until: Duration,
    },
    /// A probe failed: the rest goes on, the event has been told before.
    Prolonged {
        until: Duration,
    },
    Closed,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Closed { faults: u32 },
    Open { until: Duration, rest: Duration },
    HalfOpen { since: Duration, rest: Duration },
}

#[derive(Debug, Clone)]
pub struct Breaker {
    state: State,
    generation: u64,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { state: State::Closed { faults: 0 }, generation: 0 }
    }
}

impl Breaker {
    /// May a session begin? Asking takes the probe when one is due.
    pub fn admits(&mut self, now: Duration) -> Admission {
        match self.state {
            State::Closed { .. } => Admission::Slot(Pass(self.generation)),
            State::Open { until, .. } if now < until => Admission::No { until },
            State::HalfOpen { since, .. } if now < since + PROBE_PATIENCE => {
                Admission::No { until: since + PROBE_PATIENCE }
            }
            State::Open { rest, .. } | State::HalfOpen { rest, .. } => {
                self.enter(State::HalfOpen { since: now, rest });
                Admission::Probe(Pass(self.generation))
            }
        }
    }

    /// Whether `admits` would say no, without taking the probe: for counting free slots.
    pub fn rests(&self, now: Duration) -> bool {
        match self.state {
            State::Closed { .. } => false,
            State::Open { until, .. } => now < until,
            State::HalfOpen { since, .. } => now < since + PROBE_PATIENCE,
        }
    }

    pub fn report(&mut self, pass: Pass, now: Duration, evidence: Evidence) -> Option<Transition> {
        match evidence {
            Evidence::Alive => self.on_success(pass),
            Evidence::Fault | Evidence::LoginFault => self.on_fault(pass, now, evidence),
            Evidence::Nothing => {
                self.on_nothing(pass, now);
                None
            }
        }
    }

    /// The relay's row was changed, its password say: the next session may try at once.
    pub fn on_changed(&mut self, now: Duration) {
        if let State::Open { .. } | State::HalfOpen { .. } = self.state {
            self.enter(State::Open { until: now, rest: Duration::ZERO });
        }
    }

    fn on_success(&mut self, Pass(generation): Pass) -> Option<Transition> {
        if generation != self.generation {
            return None;
        }
        let was_closed = matches!(self.state, State::Closed { .. });
        if was_closed {
            self.state = State::Closed { faults: 0 };
            return None;
        }
        self.enter(State::Closed { faults: 0 });
        Some(Transition::Closed)
    }

    fn on_fault(
        &mut self,
        Pass(generation): Pass,
        now: Duration,
        evidence: Evidence,
    ) -> Option<Transition> {
        if generation != self.generation {
            return None;
        }
        let (first, longest) = match evidence {
            Evidence::LoginFault => (FIRST_LOGIN_REST, LONGEST_LOGIN_REST),
            _ => (FIRST_REST, LONGEST_REST),
        };
        match self.state {
            State::Closed { faults }
                if evidence != Evidence::LoginFault && faults + 1 < FAULTS_TO_OPEN =>
            {
                self.state = State::Closed { faults: faults + 1 };
                None
            }
            State::Closed { .. } => {
                let until = now + first;
                self.enter(State::Open { until, rest: first });
                Some(Transition::Opened { until })
            }
            State::Open { rest, .. } | State::HalfOpen { rest, .. } => {
                let rest = (rest * 2).clamp(first, longest);
                let until = now + rest;
                self.enter(State::Open { until, rest });
                Some(Transition::Prolonged { until })
            }
        }
    }

    /// A probe that told nothing gives its place to the next one.
    fn on_nothing(&mut self, Pass(generation): Pass, now: Duration) {
        if let State::HalfOpen { rest, .. } = self.state
            && generation == self.generation
        {
            self.enter(State::Open { until: now, rest });
        }
    }

    fn enter(&mut self, state: State) {
        self.generation += 1;
        self.state = state;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outside::smtp::{Phase, Reply};
    use crate::sending::outcome::{Said, Silence, classify};

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn pass(breaker: &mut Breaker, now: Duration) -> Pass {
        match breaker.admits(now) {
            Admission::Slot(pass) | Admission::Probe(pass) => pass,
            Admission::No { until } => panic!("no until {until:?}"),
        }
    }

    fn report(breaker: &mut Breaker, now: Duration, evidence: Evidence) -> Option<Transition> {
        let pass = pass(breaker, now);
        breaker.report(pass, now, evidence)
    }

    fn opened_at_zero() -> Breaker {
        let mut breaker = Breaker::default();
        assert_eq!(report(&mut breaker, s(0), Evidence::Fault), None);
        assert_eq!(report(&mut breaker, s(0), Evidence::Fault), None);
        let third = report(&mut breaker, s(0), Evidence::Fault);
        assert_eq!(third, Some(Transition::Opened { until: s(15) }));
        breaker
    }

    #[test]
    fn three_faults_in_a_row_open_it_and_one_success_between_does_not() {
        opened_at_zero();
        let mut breaker = Breaker::default();
        for _ in 0..10 {
            report(&mut breaker, s(0), Evidence::Fault);
            report(&mut breaker, s(0), Evidence::Fault);
            report(&mut breaker, s(0), Evidence::Alive);
        }
        assert!(!breaker.rests(s(0)));
    }

    #[test]
    fn one_refused_login_opens_it_for_five_minutes_doubling_to_an_hour() {
        let mut breaker = Breaker::default();
        let mut now = s(0);
        let mut rests = Vec::new();
        for _ in 0..6 {
            match report(&mut breaker, now, Evidence::LoginFault) {
                Some(Transition::Opened { until } | Transition::Prolonged { until }) => {
                    rests.push((until - now).as_secs());
                    now = until;
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(rests, [300, 600, 1200, 2400, 3600, 3600]);
    }

    #[test]
    fn failed_probes_double_the_rest_up_to_ten_minutes() {
        let mut breaker = opened_at_zero();
        let mut now = s(15);
        let mut rests = Vec::new();
        for _ in 0..8 {
            let Some(Transition::Prolonged { until }) = report(&mut breaker, now, Evidence::Fault)
            else {
                panic!("a failed probe prolongs the rest");
            };
            rests.push((until - now).as_secs());
            now = until;
        }
        assert_eq!(rests, [30, 60, 120, 240, 480, 600, 600, 600]);
    }

    #[test]
    fn exactly_one_probe_is_let_through_and_its_success_closes() {
        let mut breaker = opened_at_zero();
        assert_eq!(breaker.admits(s(14)), Admission::No { until: s(15) });
        let Admission::Probe(probe) = breaker.admits(s(15)) else { panic!("no probe") };
        assert!(matches!(breaker.admits(s(15)), Admission::No { .. }));
        assert!(breaker.rests(s(16)));
        let told = breaker.report(probe, s(20), Evidence::Alive);
        assert_eq!(told, Some(Transition::Closed));
        assert!(matches!(breaker.admits(s(20)), Admission::Slot(_)));
        // The next opening starts from the first rest again.
        report(&mut breaker, s(20), Evidence::Fault);
        report(&mut breaker, s(20), Evidence::Fault);
        let told = report(&mut breaker, s(20), Evidence::Fault);
        assert_eq!(told, Some(Transition::Opened { until: s(35) }));
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
        assert_eq!(breaker.admits(s(1)), Admission::No { until: s(15) });
        assert!(matches!(breaker.admits(s(15)), Admission::Probe(_)));
        assert_eq!(breaker.report(old, s(16), Evidence::Alive), None);
        assert!(breaker.rests(s(16)));
    }

    #[test]
    fn a_probe_that_tells_nothing_or_is_lost_makes_room_for_the_next() {
        let mut breaker = opened_at_zero();
        assert_eq!(report(&mut breaker, s(15), Evidence::Nothing), None);
        assert!(matches!(breaker.admits(s(15)), Admission::Probe(_)));
        assert!(matches!(breaker.admits(s(15 + 1199)), Admission::No { .. }));
        assert!(matches!(breaker.admits(s(15 + 1200)), Admission::Probe(_)));
    }

    #[test]
    fn a_changed_relay_is_asked_at_once() {
        let mut breaker = Breaker::default();
        report(&mut breaker, s(0), Evidence::LoginFault);
        breaker.on_changed(s(10));
        assert!(matches!(breaker.admits(s(10)), Admission::Probe(_)));
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
