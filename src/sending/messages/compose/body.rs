//! Bodies in encodings that pass every server: seven bits, short lines (RFC 2045 §6).

use std::borrow::Cow;

use lettre::message::{Body, header::ContentTransferEncoding};

/// An encoded body, and the name of its encoding.
pub(super) struct Encoded {
    pub encoding: &'static str,
    pub bytes: Vec<u8>,
}

/// Text, with CRLF at every line end whatever it had before. Quoted-printable keeps Latin text
/// readable; base64 is shorter where most characters are not ASCII.
pub(super) fn text(text: &str) -> Encoded {
    let text = with_crlf(text);
    let foreign = text.bytes().filter(|b| !b.is_ascii()).count();
    if foreign * 4 > text.len() {
        return bytes(text.as_bytes());
    }
    encode(text.as_bytes(), "quoted-printable", ContentTransferEncoding::QuotedPrintable)
}

/// Bytes that mean nothing here.
pub(super) fn bytes(bytes: &[u8]) -> Encoded {
    encode(bytes, "base64", ContentTransferEncoding::Base64)
}

/// lettre gets bytes and not a string: a string's line ends it would look through once more.
fn encode(body: &[u8], name: &'static str, encoding: ContentTransferEncoding) -> Encoded {
    let body = Body::new_with_encoding(body.to_vec(), encoding);
    // It refuses only encodings that do not encode; an empty body is what is left to say.
    Encoded { encoding: name, bytes: body.map(Body::into_vec).unwrap_or_default() }
}

/// CRLF, a CR alone and an LF alone each become one CRLF: on the wire only CRLF may end a line
/// (RFC 5321 §2.3.8), and what servers make of the others differs.
pub(super) fn with_crlf(text: &str) -> Cow<'_, str> {
    if !text.contains(['\r', '\n']) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + text.len() / 32);
    let mut rest = text;
    while let Some(at) = rest.find(['\r', '\n']) {
        out.push_str(&rest[..at]);
        out.push_str("\r\n");
        let end = if rest[at..].starts_with("\r\n") { at + 2 } else { at + 1 };
        rest = &rest[end..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}
