//! Parameters of MIME fields, also in other alphabets and over several lines (RFC 2231).

use std::fmt::Write;

use super::line::Line;

/// The longest value in one quoted string.
const QUOTED: usize = 50;

/// Octets of a percent-encoded section.
const SECTION: usize = 54;

/// Writes the last parameter of a field, after the semicolon.
pub(super) fn write(line: &mut Line, name: &str, value: &str) {
    if value.len() <= QUOTED && value.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        return line.word(1, &format!("{name}=\"{value}\""));
    }
    let value = format!("utf-8''{}", percent_encoded(value));
    let sections = sections(&value);
    if let [whole] = sections.as_slice() {
        return line.word(1, &format!("{name}*={whole}"));
    }
    let last = sections.len() - 1;
    for (at, section) in sections.iter().enumerate() {
        let end = if at < last { ";" } else { "" };
        line.word(1, &format!("{name}*{at}*={section}{end}"));
    }
}

/// `attribute-char` of RFC 2231 §7 stays, everything else becomes `%XX` by octet.
fn percent_encoded(value: &str) -> String {
    let mut out = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`{|}~".contains(&byte) {
            out.push(byte as char);
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Cuts between octets, never within a `%XX`.
fn sections(mut text: &str) -> Vec<&str> {
    let mut sections = Vec::new();
    while text.len() > SECTION {
        let cut = (SECTION - 2..SECTION).find(|at| text.as_bytes()[*at] == b'%').unwrap_or(SECTION);
        let (section, rest) = text.split_at(cut);
        sections.push(section);
        text = rest;
    }
    sections.push(text);
    sections
}
