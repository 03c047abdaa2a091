//! Turns a message into the bytes that go out.
//!
//! Held for every input that passed the parser (and by property tests):
//! - lines end in CRLF, no CR or LF stands alone, no line is over 998 octets (RFC 5322 §2.1.1);
//!   header lines are folded at 78 where a fold is possible;
//! - bodies are quoted-printable or base64, so no server needs 8BITMIME, and the whole is ASCII
//!   unless an address in the header has a local part that is not (RFC 6532); a message that came
//!   composed keeps its own;
//! - `Bcc` is never written;
//! - the same input gives the same bytes.
//!
//! Bodies are encoded by lettre. The header and the tree of parts are written here: lettre leaves a
//! word of 2,000 characters in one line, panics on a control character in a name, keeps domains in
//! U-labels and draws its boundaries at random.

mod addresses;
mod body;
mod encoded_word;
mod line;
mod parameter;
mod part;
mod parts;

use chrono::{DateTime, Utc};

use self::{
    addresses::address_line,
    line::{Line, Plain},
};
use super::{NewMessage, Raw};
use crate::address::Mailbox;

/// A message ready for `DATA`, except for the doubling of leading dots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Composed {
    pub bytes: Vec<u8>,
    /// Whether the *header* is UTF-8, so that every transaction of this message needs SMTPUTF8
    /// (RFC 6531 §3.4). An envelope address may need it by itself:
    /// [`EmailAddress::needs_smtputf8`](crate::address::EmailAddress::needs_smtputf8).
    pub smtputf8: bool,
    /// Whether there are octets over 127, so that it takes a server with 8BITMIME (RFC 6152).
    pub eight_bit: bool,
}

/// Composes the message as sent by `from`. One that was composed already gets what it lacks.
///
/// `message_id` is bare, without angle brackets; it is ours, so it is ASCII without spaces.
pub fn compose(
    message: &NewMessage,
    from: &Mailbox,
    message_id: &str,
    date: DateTime<Utc>,
) -> Composed {
    if let Some(raw) = &message.raw {
        return completed(raw, message_id, date);
    }
    let mut header = String::new();
    header.push_str(&Line::plain("Date", &date.to_rfc2822()));
    header.push_str(&address_line("From", std::slice::from_ref(from)));
    header.push_str(&address_line("Reply-To", &message.reply_to));
    header.push_str(&address_line("To", &message.to));
    header.push_str(&address_line("Cc", &message.cc));
    header.push_str(&Line::text("Subject", &message.subject, Plain::SUBJECT));
    header.push_str(&Line::plain("Message-ID", &format!("<{message_id}>")));
    for field in &message.headers {
        header.push_str(&Line::text(&field.name, &field.value, Plain::FIELD));
    }
    header.push_str(&Line::plain("MIME-Version", "1.0"));

    let smtputf8 = !header.is_ascii();
    let root = parts::tree(message, message_id);
    let mut bytes = Vec::with_capacity(header.len() + root.size_hint());
    bytes.extend_from_slice(header.as_bytes());
    root.write(&mut bytes);
    bytes.extend_from_slice(b"\r\n");
    Composed { bytes, smtputf8, eight_bit: smtputf8 }
}

/// RFC 6409 §8.2 and §8.3.
fn completed(raw: &Raw, message_id: &str, date: DateTime<Utc>) -> Composed {
    let mut header = String::new();
    if !raw.dated {
        header.push_str(&Line::plain("Date", &date.to_rfc2822()));
    }
    if raw.message_id.is_none() {
        header.push_str(&Line::plain("Message-ID", &format!("<{message_id}>")));
    }
    let mut bytes = header.into_bytes();
    bytes.extend_from_slice(&raw.bytes);
    Composed { bytes, smtputf8: raw.smtputf8, eight_bit: raw.eight_bit }
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
