//! The work: what waits, what is held, what is dead, and who works on it.

use super::{Check, check::asked};
use crate::{
    app::App,
    operate::store::{self, Lane},
};

/// Seconds that a due job may wait before it is worth a word, and before something is stuck.
const OLD: f64 = 300.0;
const STUCK: f64 = 3_600.0;

pub async fn checks(app: &App) -> Vec<Check> {
    let lease = app.queue.lease.as_secs_f64();
    let lane = match asked("queue", store::oldest_lane(&app.db)).await {
        Ok(lane) => lane,
        Err(check) => return vec![check],
    };
    let work = match asked("workers", store::work(&app.db, lease)).await {
        Ok(work) => work,
        Err(check) => return vec![check],
    };
    let dead: i64 = work.kinds.iter().map(|it| it.dead).sum();
    let failed: Vec<&str> =
        work.chores.iter().filter(|it| it.failed).map(|it| it.name.as_str()).collect();
    vec![
        queue(lane.as_ref(), work.processes),
        workers(work.processes, lane.is_some()),
        match dead {
            0 => Check::ok("dead", "no job is dead"),
            n => Check::fail(
                "dead",
                format!("{n} jobs ended their process three times, and do not run again"),
                "find out why (the log of that time), then POST /jobs/{id}/retry",
            ),
        },
        match work.unknown {
            0 => Check::ok("unknown", "nothing is held as unknown"),
            n => Check::warn(
                "unknown",
                format!(
                    "of {n} recipients nothing is known: a relay took the message and never confirmed it"
                ),
                "look at the relay's log, then POST /jobs/{id}/resolve; GET /jobs?outcome=unknown lists them",
            ),
        },
        match work.paused.iter().map(|(_, n)| n).sum::<i64>() {
            0 => Check::ok("paused", "nothing is paused"),
            n => Check::warn(
                "paused",
                format!("{n} scopes are paused: their messages wait"),
                "resume them when the reason is gone",
            ),
        },
        match failed.as_slice() {
            [] => Check::ok("chores", "the last round of each one succeeded"),
            names => Check::warn(
                "chores",
                format!("the last round failed: {}", names.join(", ")),
                "select name, last_error from chores says why",
            ),
        },
    ]
}

fn queue(oldest: Option<&Lane>, processes: i64) -> Check {
    const CHECK: &str = "queue";
    let Some(lane) = oldest else { return Check::ok(CHECK, "nothing that is due waits") };
    let Lane { kind, lane, seconds, jobs, paused } = lane;
    let found = format!(
        "a job of kind {kind} for {lane} has been due for {seconds:.0} s; {jobs} are due there"
    );
    if *seconds <= OLD {
        return Check::ok(CHECK, found);
    }
    let fix = if *paused {
        format!("{lane} (or everything) is paused: resume it")
    } else if processes == 0 {
        "no Postroom works: start one (`postroom serve`)".to_owned()
    } else {
        format!("see what is said of the relays that carry {lane}, and its messages: GET /jobs")
    };
    match *seconds > STUCK && !paused {
        true => Check::fail(CHECK, found, fix),
        false => Check::warn(CHECK, found, fix),
    }
}

fn workers(processes: i64, work_waits: bool) -> Check {
    match (processes, work_waits) {
        (0, true) => Check::fail(
            "workers",
            "work waits, and no Postroom gives a heartbeat",
            "start one (`postroom serve`), or look at the log of the one that should run",
        ),
        (0, false) => Check::ok("workers", "no Postroom runs now, and no work waits"),
        (n, _) => Check::ok("workers", format!("{n} processes give a heartbeat")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn what_is_stuck_is_told_from_what_is_paused_and_what_nobody_works_on() {
        let lane = |seconds, paused| Lane {
            kind: "send".to_owned(),
            lane: "example.com".to_owned(),
            seconds,
            jobs: 3,
            paused,
        };
        assert_eq!(queue(None, 0).state, State::Ok);
        assert_eq!(queue(Some(&lane(10.0, false)), 1).state, State::Ok);
        assert_eq!(queue(Some(&lane(400.0, false)), 1).state, State::Warn);
        assert_eq!(queue(Some(&lane(7_200.0, false)), 1).state, State::Fail);
        let paused = queue(Some(&lane(7_200.0, true)), 1);
        assert_eq!(paused.state, State::Warn);
        assert!(paused.fix.unwrap().contains("resume"));
        assert!(queue(Some(&lane(7_200.0, false)), 0).fix.unwrap().contains("postroom serve"));
    }
}
