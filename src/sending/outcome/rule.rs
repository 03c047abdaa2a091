//! One rule: where it applies, what it looks at, what follows. Rules are data.

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};

use super::{Class, Reason, Scope};
use crate::outside::smtp::{EnhancedCode, Phase, Reply};

pub(super) struct Rule {
    pub when: &'static [Phase],
    pub code: Code,
    pub enhanced: Enhanced,
    /// A linear regular expression, found anywhere, in either case; empty matches all.
    pub words: &'static str,
    pub then: (Class, Scope, Reason),
}

/// The first digit decides where nothing else is known (RFC 5321 §4.3.2).
pub(super) enum Code {
    Four,
    Five,
    /// 4xx or 5xx.
    Negative,
    Is(&'static [u16]),
}

/// Subject and detail of RFC 3463. The class digit is never looked at: where it contradicts the
/// basic code, the basic code is believed (RFC 5321 §4.2; both orders are seen in the wild).
pub(super) enum Enhanced {
    Any,
    Is(&'static [(u16, u16)]),
    Subject(u16),
    /// Subject, first and last detail: vendors number their own causes (`5.7.606` to `5.7.649`).
    Range(u16, u16, u16),
}

/// A negative reply, prepared for matching.
pub(super) struct Heard {
    code: u16,
    enhanced: Option<(u16, u16)>,
    text: String,
}

/// Longer texts add nothing: the cause stands in the first lines.
const TEXT_KEPT: usize = 2048;

impl Heard {
    pub(super) fn new(reply: &Reply) -> Self {
        Self { code: reply.code, enhanced: enhanced_of(reply), text: one_line(&reply.text) }
    }
}

/// The enhanced code, or one written as `#5.1.1` inside the text (qmail, Cisco); a `2.x.y` beside
/// a refusal says nothing.
fn enhanced_of(reply: &Reply) -> Option<(u16, u16)> {
    static HASHED: LazyLock<Regex> = LazyLock::new(|| pattern(r"#[245]\.(\d{1,3})\.(\d{1,3})\b"));
    match reply.enhanced {
        Some(EnhancedCode { class: 4 | 5, subject, detail }) => Some((subject, detail)),
        Some(_) => None,
        None => {
            let found = HASHED.captures(&reply.text)?;
            Some((found[1].parse().ok()?, found[2].parse().ok()?))
        }
    }
}

/// Phrases run over line ends, and each line may repeat the enhanced code: both are taken out. So
/// are addresses: `<blacklist@example.net>` is whoever the client wrote to, not what the relay says.
fn one_line(text: &str) -> String {
    static REPEATED: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?m)^\s*[245]\.\d{1,3}\.\d{1,3}\s+"));
    static ADDRESS: LazyLock<Regex> = LazyLock::new(|| pattern(r"[^\s<>]+@[^\s<>]+"));
    let text: String = text.chars().take(TEXT_KEPT).collect();
    let text = REPEATED.replace_all(&text, "");
    let text = ADDRESS.replace_all(&text, "@");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn pattern(source: &str) -> Regex {
    let built = RegexBuilder::new(source).case_insensitive(true).build();
    built.expect("every pattern of the table is compiled by a test")
}

/// A rule with its words compiled.
pub(super) struct Compiled {
    pub rule: &'static Rule,
    words: Option<Regex>,
}

impl Compiled {
    pub(super) fn new(rule: &'static Rule) -> Self {
        Self { rule, words: (!rule.words.is_empty()).then(|| pattern(rule.words)) }
    }

    pub(super) fn fits(&self, phase: Phase, heard: &Heard) -> bool {
        let code = match self.rule.code {
            Code::Four => heard.code / 100 == 4,
            Code::Five => heard.code / 100 == 5,
            Code::Negative => matches!(heard.code / 100, 4 | 5),
            Code::Is(codes) => codes.contains(&heard.code),
        };
        let enhanced = match self.rule.enhanced {
            Enhanced::Any => true,
            Enhanced::Is(pairs) => heard.enhanced.is_some_and(|found| pairs.contains(&found)),
            Enhanced::Subject(subject) => heard.enhanced.is_some_and(|(found, _)| found == subject),
            Enhanced::Range(subject, first, last) => {
                heard.enhanced.is_some_and(|(found, detail)| {
                    found == subject && (first..=last).contains(&detail)
                })
            }
        };
        code && enhanced
            && self.rule.when.contains(&phase)
            && self.words.as_ref().is_none_or(|words| words.is_match(&heard.text))
    }
}
