//! The subject and the two bodies.

use serde_json::Value;

use super::issues::Issues;

/// One line without control characters, at least one character. It has no upper limit, since any
/// length can be folded. Beside a template it may be absent, and is empty until that is filled.
pub(super) fn parse_subject(issues: &mut Issues, value: Value, template: bool) -> String {
    let subject = match template {
        true => issues.string("subject", value),
        false => issues.required_string("subject", value),
    };
    if subject.as_deref() == Some("") {
        issues.add("subject", "must not be empty");
    }
    let subject = subject.unwrap_or_default();
    if subject.contains(is_line_control) {
        issues.add("subject", "must not contain line breaks or control characters");
    }
    subject
}

/// HTML and text, at least one of them; or neither, beside a template. An empty text is none.
pub(super) fn parse_bodies(
    issues: &mut Issues,
    html: Value,
    text: Value,
    template: bool,
) -> (Option<String>, Option<String>) {
    if template {
        for (path, body) in [("html", html), ("text", text)] {
            if !body.is_null() {
                issues.add(path, "not together with template");
            }
        }
        return (None, None);
    }
    if html.is_null() && (text.is_null() || text == "") {
        issues.add("html", "html or text is required");
    }
    let html = issues.string("html", html);
    if html.as_deref() == Some("") {
        issues.add("html", "must not be empty");
    }
    let text = issues.string("text", text).filter(|text| !text.is_empty());
    for (path, body) in [("html", &html), ("text", &text)] {
        if body.as_ref().is_some_and(|body| body.bytes().any(is_body_control)) {
            issues.add(path, "must not contain control characters");
        }
    }
    (html, text)
}

/// NUL must not be in a message at all (RFC 5322 §4.1), and no other C0 character has a meaning in
/// text but the tab and the two that end lines.
pub(super) fn is_body_control(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\t' | b'\r' | b'\n')
}

/// What must not stand in a header value: C0, DEL, C1 and the Unicode line separators.
pub(super) fn is_line_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}
