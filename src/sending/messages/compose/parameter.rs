//! Parameters of MIME fields, also in other alphabets and over several lines (RFC 2231).

use super::line::{Line, needs_encoding};

/// The longest value in one quoted string.
const QUOTED: usize = 50;

/// Octets of a percent-encoded section.
const SECTION: usize = 54;

/// Writes the last parameter of a field, after the semicolon.
pub(super) fn write(line: &mut Line, name: &str, value: &str) {
    if !needs_encoding(value, QUOTED) {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        return line.word(1, &format!("{name}=\"{value}\""));
    }
    let sections = sections(value);
    if let [whole] = sections.as_slice() {
        return line.word(1, &format!("{name}*={whole}"));
    }
    let last = sections.len() - 1;
    for (at, section) in sections.iter().enumerate() {
        let end = if at < last { ";" } else { "" };
        line.word(1, &format!("{name}*{at}*={section}{end}"));
    }
}

/// The value in percent-encoding, cut between characters: the standard lets a reader join the
/// sections before it decodes them, but not every reader does.
fn sections(value: &str) -> Vec<String> {
    let mut sections = vec!["utf-8''".to_owned()];
    for c in value.chars() {
        let encoded = percent_encoded(c);
        match sections.last_mut() {
            Some(last) if last.len() + encoded.len() <= SECTION => last.push_str(&encoded),
            _ => sections.push(encoded),
        }
    }
    sections
}

/// `attribute-char` of RFC 2231 §7 stays, everything else becomes `%XX` by octet.
fn percent_encoded(c: char) -> String {
    if c.is_ascii_alphanumeric() || "!#$&+-.^_`{|}~".contains(c) {
        return c.to_string();
    }
    let mut octets = [0; 4];
    c.encode_utf8(&mut octets).bytes().map(|octet| format!("%{octet:02X}")).collect()
}
