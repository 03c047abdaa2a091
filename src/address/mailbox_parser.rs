//! Takes `Name <a@b>` and lists of it apart (RFC 5322 §3.4), without judging the addresses.
//!
//! Narrower than the grammar: no comments, no groups, no routes, because these are how one text
//! comes to mean two addresses. Wider in one point: dots and square brackets may stand in an
//! unquoted name, as people write them.

use super::{AddressError, is_invisible_control};

/// The name, if any, and the text of the address.
pub(super) fn split(text: &str) -> Result<(Option<String>, &str), AddressError> {
    if text.contains(is_invisible_control) {
        return Err(AddressError::ControlInName);
    }
    let text = text.trim_matches(' ');
    let Some(open) = find_unquoted(text, '<')? else {
        return Ok((None, text));
    };
    let address = text[open + 1..].strip_suffix('>').ok_or(AddressError::Form)?;
    Ok((Some(phrase(&text[..open])?), address))
}

/// The places of a list, parted by the commas that stand outside quotes and angle brackets.
pub(super) fn split_list(text: &str) -> Result<Vec<&str>, AddressError> {
    let mut places = Vec::new();
    let mut start = 0;
    let mut bracketed = false;
    each_unquoted(text, |at, c| match c {
        '<' => bracketed = true,
        '>' => bracketed = false,
        ',' if !bracketed => {
            places.push(&text[start..at]);
            start = at + 1;
        }
        _ => {}
    })?;
    places.push(&text[start..]);
    Ok(places)
}

fn find_unquoted(text: &str, wanted: char) -> Result<Option<usize>, AddressError> {
    let mut found = None;
    each_unquoted(text, |at, c| {
        if c == wanted && found.is_none() {
            found = Some(at);
        }
    })?;
    Ok(found)
}

/// Shows each character that stands outside quoted strings.
fn each_unquoted(text: &str, mut show: impl FnMut(usize, char)) -> Result<(), AddressError> {
    let mut quoted = false;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            _ => show(at, c),
        }
    }
    if quoted { Err(AddressError::OpenQuote) } else { Ok(()) }
}

/// The text of a display name: words and quoted strings, with one space between them.
fn phrase(text: &str) -> Result<String, AddressError> {
    let mut words: Vec<String> = Vec::new();
    let mut rest = text.trim_matches(' ');
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(inner) => quoted_string(inner)?,
            None => {
                let end = rest.find([' ', '"']).unwrap_or(rest.len());
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        if !rest.starts_with('"') && word.contains(['(', ')', '>', ':', ';', '@', '\\', ',']) {
            return Err(AddressError::Name);
        }
        words.push(word);
        rest = after.trim_start_matches(' ');
    }
    Ok(words.join(" "))
}

/// The text of a quoted string whose opening quote is gone, and what follows it.
fn quoted_string(inner: &str) -> Result<(String, &str), AddressError> {
    let mut text = String::new();
    let mut chars = inner.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Ok((text, &inner[at + 1..])),
            '\\' => text.extend(chars.next().map(|(_, c)| c)),
            _ => text.push(c),
        }
    }
    Err(AddressError::OpenQuote)
}
