//! Our own filters: each makes a value fit for one place in HTML, or refuses it.

use minijinja::{Error, ErrorKind, value::Value};

/// For text and for attributes in quotes.
pub(super) fn html_escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// `escape`, `e`: escaped once, however often it is said.
pub(super) fn escape(value: &Value) -> Value {
    if value.is_safe() {
        return value.clone();
    }
    Value::from_safe_string(html_escaped(&value.to_string()))
}

/// What a link in a mail may do. `cid` shows an attached image.
const SCHEMES: &[&str] = &["http", "https", "mailto", "tel", "sms", "cid"];

pub(super) fn is_safe_scheme(scheme: &str) -> bool {
    SCHEMES.iter().any(|it| it.eq_ignore_ascii_case(scheme))
}

/// `safe_url`: a link that does nothing but lead somewhere. Put by itself on every variable that
/// can say how a link begins. The answer is plain text, to be escaped as any.
pub(super) fn safe_url(value: &Value) -> Result<Value, Error> {
    let text = value.to_string();
    let url = if value.is_safe() { unescaped(&text) } else { text };
    // As a browser reads it: without control characters and spaces.
    let read: String = url.chars().filter(|c| !c.is_control() && !c.is_whitespace()).collect();
    let begins = read.split(['/', '?', '#']).next().unwrap_or_default();
    match begins.split_once(':') {
        Some((scheme, _)) if !is_safe_scheme(scheme) => Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("a link must begin with one of {}, or have no scheme", SCHEMES.join(", ")),
        )),
        _ => Ok(Value::from(url)),
    }
}

/// Takes back what [`html_escaped`] did, and no more.
fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&#39;", "'").replace("&amp;", "&")
}

/// `css_value`: a colour, a length, a word. Put by itself on every variable within CSS.
pub(super) fn css_value(value: &Value) -> Result<Value, Error> {
    let text = value.to_string();
    let plain = |c: char| c.is_alphanumeric() || " #.,%-_".contains(c);
    if text.chars().all(plain) {
        return Ok(Value::from(text));
    }
    Err(Error::new(
        ErrorKind::InvalidOperation,
        "within CSS a value is made of letters, digits, spaces and # . , % - _ only",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_somewhere_and_does_nothing_else() {
        for good in [
            "https://example.com/?a=b:c",
            "HTTP://example.com",
            "mailto:a@example.com",
            "/path:with",
            "?a:b",
            "#a:b",
            "",
            "cid:logo",
        ] {
            assert!(safe_url(&Value::from(good)).is_ok(), "{good}");
        }
        for bad in [
            "javascript:alert(1)",
            "JaVaScRiPt:x",
            " javascript:x",
            "java\nscript:x",
            "\u{1}javascript:x",
            "vbscript:x",
            "data:text/html,x",
            ":x",
            "file:///etc/passwd",
        ] {
            assert!(safe_url(&Value::from(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_was_escaped_once_is_not_escaped_twice_in_a_link() {
        let once = Value::from_safe_string("https://example.com/?a=1&amp;b=2".to_owned());
        assert_eq!(safe_url(&once).unwrap().to_string(), "https://example.com/?a=1&b=2");
        let hidden = Value::from_safe_string("javascript&#58;alert(1)".to_owned());
        assert!(!safe_url(&hidden).unwrap().is_safe(), "its ampersand is escaped again");
    }

    #[test]
    fn css_takes_simple_values_only() {
        for good in ["#ff0000", "12px", "Arial, sans-serif", "50%"] {
            assert!(css_value(&Value::from(good)).is_ok(), "{good}");
        }
        for bad in ["red;}", "url(x)", "a:b", "\"", "</style>", "\\65"] {
            assert!(css_value(&Value::from(bad)).is_err(), "{bad}");
        }
    }
}
