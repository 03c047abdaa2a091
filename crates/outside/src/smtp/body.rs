//! The bytes of a message behind DATA (RFC 5321 §4.5.2).

use bytes::{BufMut, BytesMut};

/// Doubles the dots at the start of lines, across the bounds of chunks.
///
/// It refuses a CR or LF that stands alone: servers differ on whether such a byte ends a line, and
/// what one reads as text another reads as the final dot and the commands behind it.
#[derive(Debug)]
pub(super) struct Stuffer {
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    LineStart,
    Within,
    BehindCr,
}

/// A CR without LF, or an LF without CR.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BareLineEnd;

impl Stuffer {
    pub(super) fn new() -> Self {
        Self { place: Place::LineStart }
    }

    /// Appends `piece`, with its dots doubled, to `out`.
    pub(super) fn stuff(&mut self, piece: &[u8], out: &mut BytesMut) -> Result<(), BareLineEnd> {
        let mut copied = 0;
        for (index, &byte) in piece.iter().enumerate() {
            self.place = match (self.place, byte) {
                (Place::BehindCr, b'\n') => Place::LineStart,
                (Place::BehindCr, _) | (_, b'\n') => return Err(BareLineEnd),
                (_, b'\r') => Place::BehindCr,
                (Place::LineStart, b'.') => {
                    out.put_slice(&piece[copied..index]);
                    out.put_u8(b'.');
                    copied = index;
                    Place::Within
                }
                _ => Place::Within,
            };
        }
        out.put_slice(&piece[copied..]);
        Ok(())
    }

    /// The final dot, on a line of its own.
    pub(super) fn end(&self) -> Result<&'static [u8], BareLineEnd> {
        match self.place {
            Place::LineStart => Ok(b".\r\n"),
            Place::Within => Ok(b"\r\n.\r\n"),
            Place::BehindCr => Err(BareLineEnd),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stuffed(pieces: &[&[u8]]) -> Result<Vec<u8>, BareLineEnd> {
        let (mut stuffer, mut out) = (Stuffer::new(), BytesMut::new());
        for piece in pieces {
            stuffer.stuff(piece, &mut out)?;
        }
        out.put_slice(stuffer.end()?);
        Ok(out.to_vec())
    }

    /// What a server does (RFC 5321 §4.5.2), line by line.
    fn unstuffed(wire: &[u8]) -> String {
        let text = std::str::from_utf8(wire).unwrap();
        let mut body = String::new();
        let mut lines = text.split_inclusive("\r\n");
        for line in &mut lines {
            if line == ".\r\n" {
                break;
            }
            body += line.strip_prefix('.').unwrap_or(line);
        }
        assert_eq!(lines.next(), None, "bytes behind the final dot");
        body
    }

    #[test]
    fn dots_are_doubled_only_at_the_start_of_a_line() {
        assert_eq!(stuffed(&[b".a\r\n..b\r\nc.\r\n"]).unwrap(), b"..a\r\n...b\r\nc.\r\n.\r\n");
        assert_eq!(stuffed(&[b"a\r", b"\n", b".", b"\r\n"]).unwrap(), b"a\r\n..\r\n.\r\n");
        assert_eq!(stuffed(&[]).unwrap(), b".\r\n");
        assert_eq!(stuffed(&[b"no end"]).unwrap(), b"no end\r\n.\r\n");
    }

    #[test]
    fn a_line_end_that_servers_read_differently_is_refused() {
        for bad in ["a\n.\r\n", "a\r.\r\n", "\n", "a\r", "\r\r\n"] {
            assert_eq!(stuffed(&[bad.as_bytes()]), Err(BareLineEnd), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn unstuffing_gives_the_message_back(
            lines in proptest::collection::vec("\\.{0,3}[a-c.]{0,4}", 0..12),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..10),
        ) {
            let body: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
            cuts.extend([0, body.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> =
                cuts.windows(2).map(|cut| &body.as_bytes()[cut[0]..cut[1]]).collect();
            prop_assert_eq!(unstuffed(&stuffed(&pieces).unwrap()), body);
        }

        #[test]
        fn chunks_change_nothing(
            bytes in proptest::collection::vec(prop_oneof![Just(b'.'), Just(b'\r'), Just(b'\n'), Just(b'x')], 0..40),
            cut in any::<proptest::sample::Index>(),
        ) {
            let (head, tail) = bytes.split_at(cut.index(bytes.len() + 1));
            prop_assert_eq!(stuffed(&[head, tail]), stuffed(&[&bytes]));
        }
    }
}
