//! Header fields that list addresses (RFC 5322 §3.6.2, §3.6.3).

use super::line::{Line, needs_encoding};
use crate::address::Mailbox;

/// The longest quoted name; a longer one is encoded, since a quoted string is not folded here.
const QUOTED: usize = 60;

/// The field, or nothing for an empty list. A local part outside ASCII stands there in UTF-8
/// (RFC 6532 §3.2); there is no other form for it.
pub(super) fn address_line(field: &str, mailboxes: &[Mailbox]) -> String {
    let mut line = Line::new(field);
    for (at, mailbox) in mailboxes.iter().enumerate() {
        let comma = if at + 1 < mailboxes.len() { "," } else { "" };
        let address = mailbox.address();
        match mailbox.name() {
            None => line.word(1, &format!("{address}{comma}")),
            Some(name) => {
                write_name(&mut line, name);
                line.word(1, &format!("<{address}>{comma}"));
            }
        }
    }
    if mailboxes.is_empty() { String::new() } else { line.finish() }
}

/// A display name (`phrase`, RFC 5322 §3.2.5): as it is where it consists of atoms, quoted where it
/// is ASCII and short, encoded otherwise.
fn write_name(line: &mut Line, name: &str) {
    let is_atom = |word: &str| {
        !word.is_empty()
            && !needs_encoding(word, QUOTED)
            && word
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&b))
    };
    if name.split(' ').all(is_atom) {
        name.split(' ').for_each(|word| line.word(1, word));
    } else if needs_encoding(name, QUOTED) {
        line.encoded(name);
    } else {
        line.word(1, &format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"")));
    }
}
