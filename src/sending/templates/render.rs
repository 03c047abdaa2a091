//! A source and data become a message, or a named fault. Pure: the same in, the same out.

use std::collections::{BTreeSet, HashSet};

use minijinja::{Error as EngineError, ErrorKind, Template};
use serde_json::{Map, Value as Json};

use super::{
    data::{self, Log},
    engine::{HTML, engine},
    html, names,
    source::{Remark, Source},
};
use crate::error::Issue;

/// Bytes of one rendered part.
const MAX_RENDERED: usize = 4 * 1024 * 1024;

/// How many missing variables are named at once.
const MAX_MISSING: usize = 10;

/// What goes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub subject: String,
    pub html: Option<String>,
    pub text: Option<String>,
    /// Paths of what is not in the data. They show in the parts as `{{ path }}`, so only a preview
    /// may go on with them.
    pub missing: BTreeSet<String>,
}

/// Renders every part, as if what is missing were there. `Err` says what else is wrong.
pub fn render(source: &Source, data: &Map<String, Json>) -> Result<Rendered, Issue> {
    let mut missing = BTreeSet::new();
    let mut part = |name, source: &str| one(name, source, data, &mut missing);
    let subject = part("subject", &source.subject)?;
    let html = source.html.as_deref().map(|it| part("html", it)).transpose()?;
    let text = source.text.as_deref().map(|it| part("text", it)).transpose()?;
    Ok(Rendered { subject, html, text, missing })
}

/// One part. Every round finds one more variable that is missing, until nothing is, or until it fails
/// over a value that it had to invent.
fn one(
    name: &'static str,
    source: &str,
    data: &Map<String, Json>,
    missing: &mut BTreeSet<String>,
) -> Result<String, Issue> {
    let whole = if name == HTML { html::guarded(source) } else { source.into() };
    let template = compile(name, &whole).map_err(|error| fault(name, &error))?;
    for _ in 0..=MAX_MISSING {
        let log = Log::assuming(missing.clone());
        match template.render(data::root(data, &log)) {
            Ok(text) if text.len() > MAX_RENDERED => {
                return Err(Issue::new(name, format!("renders to over {MAX_RENDERED} bytes")));
            }
            Ok(text) => return Ok(text),
            Err(error) => match (error.kind(), log.last_missed()) {
                (ErrorKind::UndefinedError, Some(path)) => _ = missing.insert(path),
                _ if missing.is_empty() => return Err(fault(name, &error)),
                _ => break,
            },
        }
    }
    Ok(String::new())
}

fn compile<'a>(part: &'a str, source: &'a str) -> Result<Template<'a, 'a>, EngineError> {
    engine().template_from_named_str(part, source)
}

/// The first fault of its syntax; or the names in it that mean nothing.
pub(super) fn faults(part: &str, source: &str) -> Vec<Remark> {
    let error = match compile(part, source) {
        Ok(template) => return names::unknown(&template),
        Err(error) => error,
    };
    let line_start = || {
        let line = error.line().unwrap_or(1).saturating_sub(1);
        source.split_inclusive('\n').take(line).map(str::len).sum()
    };
    let at = error.range().map_or_else(line_start, |range| range.start);
    vec![Remark { at, text: words(&error) }]
}

/// The names that the part asks of its data, dotted.
pub(super) fn variables(part: &str, source: &str) -> HashSet<String> {
    let Ok(template) = compile(part, source) else { return HashSet::new() };
    let mut names = template.undeclared_variables(true);
    names.retain(|it| engine().globals().all(|(global, _)| global != it));
    names
}

fn fault(part: &str, error: &EngineError) -> Issue {
    let line = error.line().unwrap_or(1);
    let text = match error.kind() {
        ErrorKind::OutOfFuel => "takes too long, or too much memory, to render".to_owned(),
        _ => words(error),
    };
    Issue::new(part, format!("line {line}: {text}"))
}

/// What the engine says, without the source around it.
fn words(error: &EngineError) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}
