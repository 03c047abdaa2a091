//! Which characters may stand in an address, and which must never stand in a header.

/// Characters that end a line, act on the terminal or reorder what the reader sees: C0, DEL, C1,
/// U+2028, U+2029, and the embeddings, overrides and isolates of the bidirectional algorithm
/// (UAX #9). The plain direction marks U+200E and U+200F are harmless and in use.
pub(crate) fn is_invisible_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// `atext` of RFC 5322 §3.2.3, widened by RFC 6531 §3.3 to everything outside ASCII that can be
/// seen.
pub(super) fn is_atom(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c);
    }
    is_visible(c)
}

/// What may stand in a quoted string: `qtext` of RFC 5321 §4.1.2 and its UTF-8 counterpart, or
/// what a backslash may protect.
pub(super) fn is_quotable(c: char) -> bool {
    (' '..='~').contains(&c) || (!c.is_ascii() && is_visible(c))
}

/// Not a control, not white space, not one of the characters without width or meaning by which
/// two addresses can look the same.
fn is_visible(c: char) -> bool {
    let blank = matches!(
        c,
        '\u{AD}' | '\u{61C}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{2060}'..='\u{206F}'
            | '\u{FEFF}' | '\u{FFF9}'..='\u{FFFD}'
    );
    let noncharacter = (c as u32) & 0xFFFE == 0xFFFE;
    !is_invisible_control(c) && !c.is_whitespace() && !blank && !noncharacter
}
