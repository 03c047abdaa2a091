//! One header field, folded as it is written.

use super::encoded_word;

/// The length a line should have at most (RFC 5322 §2.1.1).
const WIDTH: usize = 78;

/// What may stand in a field of free text as it is; the rest goes into encoded words.
#[derive(Clone, Copy)]
pub(super) struct Plain {
    /// Octets of a word.
    pub word: usize,
    /// Spaces before a word.
    pub spaces: usize,
}

impl Plain {
    /// For people: everything comes back to the space. With `Subject: ` before it, the longest
    /// word just fits into a line of 78.
    pub const SUBJECT: Self = Self { word: 69, spaces: 1 };

    /// For programs, perhaps: an address, a link or a Message-ID must not be encoded, so a word is
    /// left alone while a line of 998 can hold it.
    pub const FIELD: Self = Self { word: 900, spaces: 20 };
}

/// A field in the making. A fold is a CRLF before white space that is there anyway (RFC 5322
/// §2.2.3), and never leaves a line of white space alone.
pub(super) struct Line {
    out: String,
    column: usize,
    empty: bool,
}

impl Line {
    pub fn new(name: &str) -> Self {
        Self { out: format!("{name}:"), column: name.len() + 1, empty: true }
    }

    pub fn finish(mut self) -> String {
        self.out.push_str("\r\n");
        self.out
    }

    /// A field whose value is one piece of ASCII.
    pub fn plain(name: &str, value: &str) -> String {
        let mut line = Self::new(name);
        line.word(1, value);
        line.finish()
    }

    /// A field of free text (`unstructured`, RFC 5322 §3.2.5). What is not ASCII, looks like an
    /// encoded word or is not [`Plain`] goes into encoded words; so do spaces at the ends, which a
    /// reader would drop.
    pub fn text(name: &str, value: &str, plain: Plain) -> String {
        let mut line = Self::new(name);
        line.free_text(value, plain);
        line.finish()
    }

    /// Writes a word after `spaces` spaces, in a new line if it does not fit into this one.
    pub fn word(&mut self, spaces: usize, word: &str) {
        let length = spaces + word.chars().count();
        if !self.empty && self.column + length > WIDTH {
            self.fold();
        }
        self.out.extend(std::iter::repeat_n(' ', spaces));
        self.out.push_str(word);
        self.column += length;
        self.empty = false;
    }

    /// Text of any kind and length, without a change to it.
    fn free_text(&mut self, text: &str, plain: Plain) {
        let tokens = tokens(text, plain);
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            if !token.encode {
                self.word(token.spaces.max(1), token.word);
                at += 1;
                continue;
            }
            let run = tokens[at..].iter().take_while(|token| token.encode);
            let end = at + run.count();
            // The space after a plain word parts the encoded word from it, so it stays outside.
            let start = if at == 0 { 0 } else { token.start + 1 };
            let stop = tokens.get(end).map_or(text.len(), |next| next.start);
            self.encoded(&text[start..stop]);
            at = end;
        }
    }

    /// Encoded words, as many as it takes. A reader joins them again without the white space
    /// between them (RFC 2047 §6.2).
    pub fn encoded(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let mut room = WIDTH.saturating_sub(self.column + 1);
            if room < encoded_word::SHORTEST {
                self.fold();
                room = WIDTH - 1;
            }
            let (word, after) = encoded_word::first(rest, room);
            self.out.push(' ');
            self.out.push_str(&word);
            self.column += 1 + word.len();
            self.empty = false;
            rest = after;
        }
    }

    fn fold(&mut self) {
        self.out.push_str("\r\n");
        self.column = 0;
    }
}

/// A word with the spaces before it.
struct Token<'a> {
    /// Where the spaces begin.
    start: usize,
    spaces: usize,
    word: &'a str,
    encode: bool,
}

/// The text as words; spaces at its end are a last token without a word.
fn tokens(text: &str, plain: Plain) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let spaces = text[start..].bytes().take_while(|b| *b == b' ').count();
        let rest = &text[start + spaces..];
        let word = &rest[..rest.find(' ').unwrap_or(rest.len())];
        // White space at either end would get lost, so it is encoded with the word beside it.
        let at_an_end = word.is_empty() || (start == 0 && spaces > 0);
        let encode = at_an_end || spaces > plain.spaces || needs_encoding(word, plain.word);
        if let Some(last) = tokens.last_mut().filter(|_| word.is_empty()) {
            last.encode = true;
        }
        tokens.push(Token { start, spaces, word, encode });
        start += spaces + word.len();
    }
    tokens
}

/// Whether a word cannot stand for itself in a line of at most `longest` octets per word.
pub(super) fn needs_encoding(word: &str, longest: usize) -> bool {
    word.len() > longest || word.contains("=?") || !word.bytes().all(|b| (b' '..=b'~').contains(&b))
}
