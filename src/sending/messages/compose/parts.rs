//! Which parts a message has, and how they hang together:
//! `mixed( alternative( text, related( html, shown files ) ), other files )`, where a level with
//! one part falls away.

use super::{
    super::{Attachment, Disposition, NewMessage},
    body,
    line::Line,
    parameter,
    part::{Kind, Part},
};

pub(super) fn tree(message: &NewMessage, message_id: &str) -> Part {
    // Without HTML nothing refers to a file by its Content-ID.
    let is_related = |a: &&Attachment| {
        message.html.is_some() && a.content_id.is_some() && a.disposition == Disposition::Inline
    };
    let (shown, other): (Vec<_>, Vec<_>) = message.attachments.iter().partition(is_related);

    let mut bodies = Vec::new();
    if let Some(text) = &message.text {
        bodies.push(text_part("text/plain", text));
    }
    if let Some(html) = &message.html {
        let mut related = vec![text_part("text/html", html)];
        related.extend(shown.into_iter().map(file_part));
        bodies.push(Part::multi(Kind::Related, message_id, related));
    }
    let mut parts = vec![Part::multi(Kind::Alternative, message_id, bodies)];
    parts.extend(other.into_iter().map(file_part));
    Part::multi(Kind::Mixed, message_id, parts)
}

fn text_part(content_type: &str, text: &str) -> Part {
    let header = Line::plain("Content-Type", &format!("{content_type}; charset=utf-8"));
    Part::leaf(header, body::text(text))
}

fn file_part(attachment: &Attachment) -> Part {
    let mut header = content_type_line(&attachment.content_type);
    let mut line = Line::new("Content-Disposition");
    line.word(1, &format!("{};", attachment.disposition.as_str()));
    parameter::write(&mut line, "filename", &attachment.filename);
    header.push_str(&line.finish());
    if let Some(id) = &attachment.content_id {
        header.push_str(&Line::plain("Content-ID", &format!("<{id}>")));
    }
    Part::leaf(header, body::bytes(&attachment.content))
}

/// The type the client gave, folded between its parameters. A `message/*` goes as plain octets:
/// such a part must not be in base64 (RFC 2046 §5.2.1), and opened by its name it is the same.
fn content_type_line(content_type: &str) -> String {
    let kind = content_type.split('/').next().unwrap_or_default();
    if kind.eq_ignore_ascii_case("message") {
        return Line::plain("Content-Type", "application/octet-stream");
    }
    let mut line = Line::new("Content-Type");
    let mut pieces = content_type.split(';').map(str::trim).peekable();
    while let Some(piece) = pieces.next() {
        let end = if pieces.peek().is_some() { ";" } else { "" };
        line.word(1, &format!("{piece}{end}"));
    }
    line.finish()
}
