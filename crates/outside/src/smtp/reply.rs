//! A server's reply: code, enhanced code, words (RFC 5321 §4.2, RFC 3463).

use std::fmt;

use bytes::{Buf, BytesMut};

/// Octets of one reply line, its end included. RFC 5321 §4.5.3.1.5 says 512; servers say more.
const MAX_LINE: usize = 4 * 1024;
/// Octets of one whole reply.
const MAX_REPLY: usize = 64 * 1024;

/// `X.Y.Z` of RFC 3463.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EnhancedCode {
    pub class: u8,
    pub subject: u16,
    pub detail: u16,
}

impl fmt::Display for EnhancedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.class, self.subject, self.detail)
    }
}

/// One reply, all its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub code: u16,
    pub enhanced: Option<EnhancedCode>,
    /// The lines without their codes, joined by a line feed; non-UTF-8 bytes and control
    /// characters replaced, so that it can be stored and shown.
    pub text: String,
}

impl Reply {
    /// 2xx.
    pub fn is_positive(&self) -> bool {
        self.code / 100 == 2
    }

    /// 4xx or 5xx.
    pub fn is_refusal(&self) -> bool {
        matches!(self.code / 100, 4 | 5)
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if let Some(enhanced) = self.enhanced {
            write!(f, " {enhanced}")?;
        }
        if self.text.is_empty() { Ok(()) } else { write!(f, " {}", self.text) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadReply {
    #[error("a reply line is longer than {MAX_LINE} octets")]
    LongLine,
    #[error("a reply is longer than {MAX_REPLY} octets")]
    LongReply,
    #[error("a reply line does not start with a reply code")]
    NoCode,
    #[error("the lines of one reply have different codes")]
    MixedCodes,
}

/// Puts a reply together from bytes as they arrive.
#[derive(Debug, Default)]
pub(super) struct ReplyReader {
    code: Option<u16>,
    enhanced: Option<EnhancedCode>,
    lines: Vec<String>,
    octets: usize,
}

impl ReplyReader {
    /// Takes whole lines off the front of `buffer`, and nothing behind the last line of the reply.
    /// `None` asks for more bytes.
    pub(super) fn read(&mut self, buffer: &mut BytesMut) -> Result<Option<Reply>, BadReply> {
        loop {
            let window = &buffer[..buffer.len().min(MAX_LINE)];
            let Some(end) = window.iter().position(|&byte| byte == b'\n') else {
                let full = window.len() == MAX_LINE;
                return if full { Err(BadReply::LongLine) } else { Ok(None) };
            };
            self.octets += end + 1;
            if self.octets > MAX_REPLY {
                return Err(BadReply::LongReply);
            }
            let is_last = self.take_line(&buffer[..end])?;
            buffer.advance(end + 1);
            if is_last {
                let done = std::mem::take(self);
                let code = done.code.unwrap_or_default();
                return Ok(Some(Reply {
                    code,
                    enhanced: done.enhanced,
                    text: done.lines.join("\n"),
                }));
            }
        }
    }

    /// Whether it was the last line.
    fn take_line(&mut self, line: &[u8]) -> Result<bool, BadReply> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (code, rest) = line.split_at_checked(3).ok_or(BadReply::NoCode)?;
        let code = parse_code(code).ok_or(BadReply::NoCode)?;
        let (is_last, words) = match rest {
            [] => (true, rest),
            [b' ', words @ ..] => (true, words),
            [b'-', words @ ..] => (false, words),
            _ => return Err(BadReply::NoCode),
        };
        let words = printable(words);
        match self.code {
            None => {
                self.code = Some(code);
                self.enhanced = parse_enhanced(&words).filter(|e| u16::from(e.class) == code / 100);
            }
            Some(first) if first != code => return Err(BadReply::MixedCodes),
            Some(_) => {}
        }
        self.lines.push(self.without_enhanced(words));
        Ok(is_last)
    }

    /// Servers repeat the enhanced code on each line: it is not part of the words.
    fn without_enhanced(&self, words: String) -> String {
        if self.enhanced.is_none() || parse_enhanced(&words) != self.enhanced {
            return words;
        }
        words.split_once(' ').map(|(_, rest)| rest.trim_start().to_owned()).unwrap_or_default()
    }
}

fn parse_code(digits: &[u8]) -> Option<u16> {
    match digits {
        [a @ b'2'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            Some([a, b, c].into_iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0')))
        }
        _ => None,
    }
}

/// The enhanced code at the start of the words (RFC 2034 §4): class 2, 4 or 5, then two numbers of
/// at most three digits.
fn parse_enhanced(words: &str) -> Option<EnhancedCode> {
    fn number(part: &str) -> Option<u16> {
        let fits = (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        fits.then(|| part.parse().ok()).flatten()
    }
    let token = words.split(' ').next()?;
    let mut parts = token.split('.');
    let class = match parts.next()? {
        "2" => 2,
        "4" => 4,
        "5" => 5,
        _ => return None,
    };
    let (subject, detail) = (number(parts.next()?)?, number(parts.next()?)?);
    parts.next().is_none().then_some(EnhancedCode { class, subject, detail })
}

fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|c| if c.is_control() && c != '\t' { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8]) -> Result<Option<Reply>, BadReply> {
        ReplyReader::default().read(&mut BytesMut::from(bytes))
    }

    fn reply(text: &str) -> Reply {
        read(text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn many_lines_are_one_reply_without_their_codes() {
        let got = reply("550-5.1.1 no such\r\n550-5.1.1 user\r\n550 5.7.1 here\r\n");
        assert_eq!((got.code, got.text.as_str()), (550, "no such\nuser\n5.7.1 here"));
        assert_eq!(got.enhanced, Some(EnhancedCode { class: 5, subject: 1, detail: 1 }));
        assert_eq!(got.to_string(), "550 5.1.1 no such\nuser\n5.7.1 here");
    }

    #[test]
    fn an_enhanced_code_counts_only_when_its_class_is_the_replys() {
        assert_eq!(reply("450 5.1.1 odd\r\n").enhanced, None);
        assert_eq!(reply("450 5.1.1 odd\r\n").text, "5.1.1 odd");
        assert_eq!(reply("250 2.0.0.1 no\r\n").enhanced, None);
        assert_eq!(reply("250 2.0000.1 no\r\n").enhanced, None);
        assert_eq!(reply("250 2.1.0\r\n").text, "");
        assert_eq!(reply("250 127.0.0.1\r\n").enhanced, None);
    }

    #[test]
    fn a_bare_code_and_a_bare_line_feed_are_understood() {
        assert_eq!(reply("250\r\n"), Reply { code: 250, enhanced: None, text: String::new() });
        assert_eq!(reply("250-a\n250 b\n").text, "a\nb");
    }

    #[test]
    fn what_follows_the_reply_stays_in_the_buffer() {
        let mut buffer = BytesMut::from(&b"250 one\r\n550 two\r\n"[..]);
        ReplyReader::default().read(&mut buffer).unwrap();
        assert_eq!(&buffer[..], b"550 two\r\n");
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(reply("250 a\0b\x1b[c\r\n").text, "a\u{FFFD}b\u{FFFD}[c");
        assert_eq!(read(b"250 caf\xe9\r\n").unwrap().unwrap().text, "caf\u{FFFD}");
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        assert_eq!(read(b"hello\r\n"), Err(BadReply::NoCode));
        assert_eq!(read(b"25\r\n"), Err(BadReply::NoCode));
        assert_eq!(read(b"650 x\r\n"), Err(BadReply::NoCode));
        assert_eq!(read(b"2500\r\n"), Err(BadReply::NoCode));
        assert_eq!(read(b"250-a\r\n251 b\r\n"), Err(BadReply::MixedCodes));
        assert_eq!(read(&[b'2'; MAX_LINE]), Err(BadReply::LongLine));
        assert_eq!(read("250-x\r\n".repeat(MAX_REPLY).as_bytes()), Err(BadReply::LongReply));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..2048)) {
            let _ = read(&bytes);
        }

        #[test]
        fn near_replies_never_panic(text in "([2-5][0-9]{2}[ -]([245]\\.[0-9]{1,4}\\.[0-9]{1,4})?.{0,9}\r?\n){0,5}") {
            let _ = read(text.as_bytes());
        }

        #[test]
        fn splitting_changes_nothing(cuts in proptest::collection::vec(0usize..40, 0..6)) {
            let whole = b"250-2.0.0 first\r\n250-2.0.0 sec\r\n250 2.0.0 third\r\n";
            let (mut reader, mut buffer) = (ReplyReader::default(), BytesMut::new());
            let mut cuts: Vec<usize> = cuts;
            cuts.sort_unstable();
            let mut from = 0;
            for cut in cuts {
                buffer.extend_from_slice(&whole[from..cut]);
                from = cut;
                prop_assert_eq!(reader.read(&mut buffer), Ok(None));
            }
            buffer.extend_from_slice(&whole[from..]);
            prop_assert_eq!(reader.read(&mut buffer).unwrap(), read(whole).unwrap());
        }
    }
}
