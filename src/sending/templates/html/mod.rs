//! Where in the HTML a variable stands, known before anything is rendered.
//!
//! Escaping makes a value harmless in text and in attributes in quotes, and nowhere else. So every
//! variable's place is found when the template is saved (`scan.rs` reads the HTML between the
//! template's own marks, `walk.rs` follows its branches), and
//!
//! | it stands in | then |
//! |---|---|
//! | text, a quoted attribute, a comment | it is escaped |
//! | the beginning of a link (`href`, `src`, …) | it goes through `safe_url`: no `javascript:` |
//! | the query of a link | it is escaped, and a warning recommends `urlencode` |
//! | CSS (`style="…"`, `<style>`) | it goes through `css_value`: plain words only |
//! | an attribute without quotes, a tag's or attribute's name, `on…=`, `<script>` | it is refused |
//!
//! Branches must agree: whichever is taken, the HTML behind it continues in the same place.

mod scan;
mod walk;

use std::borrow::Cow;

use super::source::Remark;

/// What reading a template's HTML found.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub faults: Vec<Remark>,
    pub warnings: Vec<Remark>,
    guards: Vec<Guard>,
}

/// An expression that goes through a filter, whatever its author wrote; its place in bytes.
#[derive(Debug)]
struct Guard {
    from: usize,
    to: usize,
    filter: &'static str,
}

/// Reads the source. One that the engine cannot parse is read as nothing: its syntax is looked at
/// elsewhere.
pub(super) fn read(source: &str) -> Read {
    walk::read(source)
}

/// The source with its guards in it. Lines stay as they are.
pub(super) fn guarded(source: &str) -> Cow<'_, str> {
    let mut guards = read(source).guards;
    if guards.is_empty() {
        return Cow::Borrowed(source);
    }
    guards.sort_by_key(|it| it.from);
    let mut out = String::with_capacity(source.len() + guards.len() * 12);
    let mut done = 0;
    for it in guards {
        let (Some(before), Some(inner)) = (source.get(done..it.from), source.get(it.from..it.to))
        else {
            continue;
        };
        out.push_str(before);
        out.push_str(&format!("({inner})|{}", it.filter));
        done = it.to;
    }
    out.push_str(&source[done..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests;
