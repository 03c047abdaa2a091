//! What a version consists of, checked when it is saved: sizes, syntax, and where in the HTML its
//! variables stand.

use std::collections::BTreeSet;

use super::{engine::HTML, html, render};
use crate::error::Issue;

/// Bytes of one part.
pub(super) const MAX_PART: usize = 512 * 1024;
const MAX_SUBJECT: usize = 4 * 1024;

/// The parts of a template, unrendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    pub subject: String,
    /// At least one of `html` and `text` is there.
    pub html: Option<String>,
    pub text: Option<String>,
}

impl Source {
    /// Each part by its name, in the order in which a reader meets them.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let subject = Some(("subject", self.subject.as_str()));
        let html = self.html.as_deref().map(|it| (HTML, it));
        subject.into_iter().chain(html).chain(self.text.as_deref().map(|it| ("text", it)))
    }

    /// Everything that is wrong with it. Syntax and the use of variables are looked at only in what
    /// passes the other rules.
    pub fn check(&self) -> Vec<Issue> {
        let mut issues = Vec::new();
        if self.subject.trim().is_empty() {
            issues.push(Issue::new("subject", "must not be empty"));
        }
        if self.html.is_none() && self.text.is_none() {
            issues.push(Issue::new("html", "html or text is required"));
        }
        for (part, source) in self.parts() {
            let most = if part == "subject" { MAX_SUBJECT } else { MAX_PART };
            if source.len() > most {
                issues.push(Issue::new(part, format!("larger than {most} bytes")));
            }
            if part != "subject" && source.is_empty() {
                issues.push(Issue::new(part, "must not be empty"));
            }
            if source.chars().any(|c| c.is_control() && !matches!(c, '\t' | '\r' | '\n')) {
                issues.push(Issue::new(part, "must not contain control characters"));
            }
        }
        if issues.is_empty() {
            for (part, source) in self.parts() {
                let mut faults = render::faults(part, source);
                if faults.is_empty() && part == HTML {
                    faults = html::read(source).faults;
                }
                issues.extend(faults.into_iter().map(|it| it.issue(part, source)));
            }
        }
        issues
    }

    /// What is allowed and may not be meant.
    pub fn warnings(&self) -> Vec<Issue> {
        let mut warnings = Vec::new();
        if let Some(html) = &self.html {
            let read = html::read(html);
            warnings.extend(read.warnings.into_iter().map(|it| it.issue("html", html)));
            if self.text.is_none() {
                let why = "there is no plain text: some readers, and many spam filters, want one";
                warnings.push(Issue::new("text", why));
            }
        }
        warnings
    }

    /// The names of what it asks of the data, dotted. Names within a loop's items are not known.
    pub fn variables(&self) -> BTreeSet<String> {
        self.parts().flat_map(|(part, source)| render::variables(part, source)).collect()
    }
}

/// Something said about a place in a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Remark {
    /// Where, in bytes.
    pub at: usize,
    pub text: String,
}

impl Remark {
    /// Line and column count from 1, the column in characters.
    fn issue(&self, part: &str, source: &str) -> Issue {
        let (line, column) = place(source, self.at);
        Issue::new(part, format!("line {line}, column {column}: {}", self.text))
    }
}

pub(super) fn place(source: &str, at: usize) -> (usize, usize) {
    let before = source.get(..at).unwrap_or(source);
    let line_start = before.rfind('\n').map_or(0, |it| it + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
