//! A server's reply: code, enhanced code, words (RFC 5321 §4.2, RFC 3463).

use std::fmt;

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
    /// The lines without their codes, joined by a line feed; non-UTF-8 bytes replaced.
    pub text: String,
}
