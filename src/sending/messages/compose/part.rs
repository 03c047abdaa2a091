//! The tree of parts, and how it is written (RFC 2046 §5.1).

use sha2::{Digest, Sha256};

use super::{body::Encoded, line::Line};

/// A part with its own header fields.
pub(super) enum Part {
    Leaf { header: String, body: Encoded },
    Multi { header: String, boundary: String, parts: Vec<Part> },
}

impl Part {
    pub fn leaf(mut header: String, body: Encoded) -> Self {
        header.push_str(&Line::plain("Content-Transfer-Encoding", body.encoding));
        Self::Leaf { header, body }
    }

    /// A multipart of this kind around the parts; one part alone needs none.
    pub fn multi(kind: Kind, message_id: &str, mut parts: Vec<Part>) -> Self {
        if parts.len() == 1 {
            return parts.remove(0);
        }
        let boundary = kind.boundary(message_id);
        let mut line = Line::new("Content-Type");
        line.word(1, &format!("multipart/{};", kind.name()));
        if matches!(kind, Kind::Related) {
            // RFC 2387 §3.1: the type of the part that is shown.
            line.word(1, "type=\"text/html\";");
        }
        line.word(1, &format!("boundary=\"{boundary}\""));
        Self::Multi { header: line.finish(), boundary, parts }
    }

    /// About the octets this part takes.
    pub fn size_hint(&self) -> usize {
        match self {
            Self::Leaf { header, body } => header.len() + body.bytes.len() + 64,
            Self::Multi { parts, .. } => 256 + parts.iter().map(Self::size_hint).sum::<usize>(),
        }
    }

    /// Writes the part without a CRLF at its end: that one belongs to the boundary after it, or ends
    /// the message.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Leaf { header, body } => {
                out.extend_from_slice(header.as_bytes());
                out.extend_from_slice(b"\r\n");
                out.extend_from_slice(&body.bytes);
            }
            Self::Multi { header, boundary, parts } => {
                out.extend_from_slice(header.as_bytes());
                for part in parts {
                    out.extend_from_slice(format!("\r\n--{boundary}\r\n").as_bytes());
                    part.write(out);
                }
                out.extend_from_slice(format!("\r\n--{boundary}--").as_bytes());
            }
        }
    }
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Mixed,
    Alternative,
    Related,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Alternative => "alternative",
            Self::Related => "related",
        }
    }

    /// The same for the same message. `=_` stands in no quoted-printable and no base64 text, so no
    /// body can contain it (RFC 2045 §6.7); each kind occurs once in a message.
    fn boundary(self, message_id: &str) -> String {
        let hash = Sha256::digest(format!("{} {message_id}", self.name()));
        let hex: String = hash.iter().take(15).map(|byte| format!("{byte:02x}")).collect();
        format!("=_{hex}")
    }
}
