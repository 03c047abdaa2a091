//! The findings for people, and for programs.

use std::fmt::Write as _;

use serde::Serialize;

use super::{Check, State};

/// The worst that was found. As the exit code of a check of Nagios: 0 all is well, 1 a warning,
/// 2 a failure.
pub fn verdict(checks: &[Check]) -> (State, u8) {
    let has = |state: State| checks.iter().any(|it| it.state == state);
    if has(State::Fail) {
        (State::Fail, 2)
    } else if has(State::Warn) {
        (State::Warn, 1)
    } else {
        (State::Ok, 0)
    }
}

/// One document: the verdict, and each check.
pub fn json(checks: &[Check]) -> String {
    #[derive(Serialize)]
    struct Findings<'a> {
        status: State,
        checks: &'a [Check],
    }
    let findings = Findings { status: verdict(checks).0, checks };
    serde_json::to_string_pretty(&findings).expect("it has no map without keys of text")
}

/// One line for each check; below what is not well, how to mend it.
pub fn table(checks: &[Check]) -> String {
    let name = |it: &Check| match &it.subject {
        Some(subject) => format!("{} {subject}", it.check),
        None => it.check.to_owned(),
    };
    let width = checks.iter().map(|it| name(it).chars().count()).max().unwrap_or_default().min(40);
    let mut text = String::new();
    for it in checks {
        let state = match it.state {
            State::Ok => "ok",
            State::Skipped => "-",
            State::Warn => "warn",
            State::Fail => "FAIL",
        };
        let (name, found) = (name(it), plain(&it.found));
        writeln!(text, "{state:<5} {name:<width$}  {found}").expect("a String takes all");
        if let Some(fix) = &it.fix {
            let fix = plain(fix);
            writeln!(text, "{:<5} {:<width$}  -> {fix}", "", "").expect("a String takes all");
        }
    }
    let count = |state: State| checks.iter().filter(|it| it.state == state).count();
    let (failed, warned) = (count(State::Fail), count(State::Warn));
    let last = match (failed, warned) {
        (0, 0) => "all is well".to_owned(),
        _ => format!("{failed} failed, {warned} to look at"),
    };
    writeln!(text, "\n{last}").expect("a String takes all");
    text
}

/// What a stranger's server said must not steer the terminal.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_is_the_worst_that_was_found() {
        let (ok, warn) = (Check::ok("a", "fine"), Check::warn("b", "hm", "do"));
        let (fail, skipped) = (Check::fail("c", "no", "do"), Check::skipped("d", "not used"));
        assert_eq!(verdict(&[ok.clone(), skipped.clone()]), (State::Ok, 0));
        assert_eq!(verdict(&[ok.clone(), warn.clone()]), (State::Warn, 1));
        assert_eq!(verdict(&[fail, warn, ok]), (State::Fail, 2));
    }

    #[test]
    fn the_table_shows_the_mending_and_no_control_characters() {
        let checks = [
            Check::ok("settings", "fine"),
            Check::fail("relay", "said \u{1b}[2Jboo", "mend it").of("main"),
        ];
        let table = table(&checks);
        let right = "ok    settings    fine\n\
                     FAIL  relay main  said  [2Jboo\n                  -> mend it\n\n1 failed, 0 to look at\n";
        assert_eq!(table, right);
        let json: serde_json::Value = serde_json::from_str(&json(&checks)).unwrap();
        assert_eq!(json["status"], "fail");
        assert_eq!(json["checks"][1]["fix"], "mend it");
    }
}
