//! The table test: real replies of many servers, over all phases, each with its right verdict.

use std::collections::HashSet;
use std::time::Duration;

use super::{Class, Said, Verdict, classify, rules};
use crate::outside::smtp::{EnhancedCode, Phase, Reply};

/// `phase | code text | class scope reason [wait]`; `\n` stands for a line end.
const TABLE: &str = include_str!("replies.txt");

struct Row {
    line: usize,
    phase: Phase,
    reply: Reply,
    expected: String,
}

fn rows() -> Vec<Row> {
    let lines = TABLE.lines().enumerate();
    let told = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    told.map(|(at, line)| {
        let parts: Vec<&str> = line.split(" | ").collect();
        assert_eq!(parts.len(), 3, "line {}", at + 1);
        Row {
            line: at + 1,
            phase: phase(parts[0].trim()),
            reply: reply(parts[1].trim()),
            expected: parts[2].split_whitespace().collect::<Vec<_>>().join(" "),
        }
    })
    .collect()
}

fn phase(name: &str) -> Phase {
    use Phase::{Auth, Connect, Data, Dns, Dot, Ehlo, Greeting, Mail, Rcpt, Tls};
    let all = [Dns, Connect, Tls, Greeting, Ehlo, Auth, Mail, Rcpt, Data, Dot];
    *all.iter().find(|phase| phase.as_str() == name).expect(name)
}

fn reply(line: &str) -> Reply {
    let (code, text) = line.split_once(' ').unwrap_or((line, ""));
    let numbers = text.split_whitespace().next().unwrap_or_default().splitn(3, '.');
    let numbers: Vec<u16> = numbers.filter_map(|number| number.parse().ok()).collect();
    let enhanced = match numbers[..] {
        [class @ (2 | 4 | 5), subject, detail] => {
            Some(EnhancedCode { class: class as u8, subject, detail })
        }
        _ => None,
    };
    Reply { code: code.parse().unwrap(), enhanced, text: text.replace(r"\n", "\n") }
}

fn told(verdict: &Verdict) -> String {
    let Verdict { class, scope, reason, wait } = verdict;
    let mut told = format!("{} {} {}", class.as_str(), scope.as_str(), reason.as_str());
    if let Some(wait) = wait {
        told += &format!(" {}", wait.as_secs());
    }
    told
}

#[test]
fn every_known_reply_has_its_right_verdict() {
    let mut wrong = Vec::new();
    for Row { line, phase, reply, expected } in rows() {
        let found = told(&classify(phase, &Said::Reply(&reply)));
        if found != expected {
            wrong.push(format!(
                "{line}: {} {}\n  is {found}, not {expected}",
                reply.code, reply.text
            ));
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_table_is_broad_and_names_no_reply_twice() {
    let rows = rows();
    assert!(rows.len() >= 110, "{}", rows.len());
    let distinct: HashSet<_> =
        rows.iter().map(|row| (row.phase, row.reply.code, &row.reply.text)).collect();
    assert_eq!(distinct.len(), rows.len());
    let phases: HashSet<Phase> = rows.iter().map(|row| row.phase).collect();
    assert!(phases.len() >= 8);
}

fn bare(code: u16) -> Reply {
    Reply { code, enhanced: None, text: String::new() }
}

/// Whatever is said, in whatever phase, the laws of the map hold.
#[test]
fn no_reply_breaks_the_laws_of_the_map() {
    let texts: Vec<Reply> = rows().into_iter().map(|row| row.reply).collect();
    let codes: Vec<Reply> = (0..1000).map(bare).collect();
    for reply in texts.iter().chain(&codes) {
        for phase in ["dns", "connect", "tls", "greeting", "ehlo", "auth"].map(phase) {
            let verdict = classify(phase, &Said::Reply(reply));
            let good = matches!(verdict.class, Class::RelayFault | Class::Accepted);
            assert!(good, "{phase:?} {reply:?}: {verdict:?}");
        }
        for phase in ["mail", "rcpt", "data", "dot"].map(phase) {
            let class = classify(phase, &Said::Reply(reply)).class;
            let permanent = [Class::RecipientPermanent, Class::MessagePermanent];
            let four = reply.code / 100 == 4;
            assert!(!(four && permanent.contains(&class)), "{phase:?} {reply:?}");
            assert!(!(four && class == Class::NotForThisRelay), "{phase:?} {reply:?}");
            let answered = matches!(reply.code, 200..=299 | 400..=599);
            assert_eq!(class == Class::Unknown, phase == Phase::Dot && !answered);
            let yes = if phase == Phase::Data { reply.code == 354 } else { reply.code / 100 == 2 };
            assert_eq!(class == Class::Accepted, yes, "{phase:?} {reply:?}");
        }
    }
}

#[test]
fn a_wait_is_named_only_where_something_will_be_tried_again() {
    let text = "try again in 300 seconds".to_owned();
    let reply = |code| Reply { code, enhanced: None, text: text.clone() };
    let wait = |phase, code| classify(phase, &Said::Reply(&reply(code))).wait;
    assert_eq!(wait(Phase::Rcpt, 450), Some(Duration::from_secs(300)));
    assert_eq!(wait(Phase::Greeting, 421), Some(Duration::from_secs(300)));
    assert_eq!(wait(Phase::Rcpt, 550), None);
    assert_eq!(wait(Phase::Dot, 250), None);
}

#[test]
fn a_negative_reply_always_meets_a_rule() {
    for phase in ["connect", "tls", "ehlo", "auth", "mail", "rcpt", "data", "dot"].map(phase) {
        for code in 400..600 {
            let heard = super::rule::Heard::new(&bare(code));
            assert!(rules::all().iter().any(|rule| rule.fits(phase, &heard)), "{phase:?} {code}");
        }
    }
}

/// Without a rule at least one row comes out differently: no rule is dead, none is untested.
#[test]
fn every_rule_is_needed_by_at_least_one_known_reply() {
    let heard = |row: Row| (row.phase, super::rule::Heard::new(&row.reply));
    let heard: Vec<_> = rows().into_iter().map(heard).collect();
    let mut needed = HashSet::new();
    for (phase, heard) in &heard {
        let mut fitting =
            rules::all().iter().enumerate().filter(|(_, rule)| rule.fits(*phase, heard));
        let Some((at, first)) = fitting.next() else { continue };
        if fitting.next().is_none_or(|(_, second)| first.rule.then != second.rule.then) {
            needed.insert(at);
        }
    }
    for (at, rule) in rules::all().iter().enumerate() {
        assert!(needed.contains(&at), "rule {at}: {:?} {}", rule.rule.then, rule.rule.words);
    }
}
