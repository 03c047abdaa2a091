//! The lines of a raw message and the fields of its header.
//!
//! Strict on purpose. Where RFC 5322 leaves old forms open (§4), programs differ in what they read,
//! and one sender is checked here while another is shown there.

use super::super::issues::Issues;

/// Octets of a line without its CRLF (RFC 5321 §4.5.3.1.6).
const LONGEST: usize = 998;

/// Fields that stand once at most (RFC 5322 §3.6, RFC 2045 §3).
const ONCE: [&str; 14] = [
    "date",
    "from",
    "sender",
    "reply-to",
    "to",
    "cc",
    "bcc",
    "message-id",
    "in-reply-to",
    "references",
    "subject",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
];

/// Fields that never leave: unseen recipients (RFC 5322 §3.6.3), and one that only the last server
/// writes (RFC 5321 §4.4).
const TAKEN_OUT: [&str; 3] = ["bcc", "resent-bcc", "return-path"];

/// The header as it was read, and the message as it goes out.
pub(super) struct Header {
    pub bytes: Vec<u8>,
    /// Names in lower case, values without folds. Those that are taken out too.
    fields: Vec<(String, String)>,
    pub message_id: Option<String>,
    pub dated: bool,
    pub smtputf8: bool,
}

impl Header {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }
}

/// Reads a message; nothing if its lines cannot be told apart for certain.
pub(super) fn read(issues: &mut Issues, message: &[u8]) -> Option<Header> {
    let lines = lines(issues, message)?;
    let end = lines.iter().position(|line| line.is_empty()).unwrap_or(lines.len());
    let (header, body) = lines.split_at(end);
    let mut read = Header {
        bytes: Vec::with_capacity(message.len() + lines.len()),
        fields: Vec::new(),
        message_id: None,
        dated: false,
        smtputf8: false,
    };
    for (at, field) in fields(issues, header)? {
        let Ok(text) = str::from_utf8(&field.concat()).map(str::to_owned) else {
            issues.add("", format!("line {at}: a header outside ASCII must be UTF-8"));
            continue;
        };
        let (name, value) = text.split_once(':').unwrap_or_default();
        let name = name.to_ascii_lowercase();
        if ONCE.contains(&name.as_str()) && read.field(&name).is_some() {
            issues.add("", format!("line {at}: {name} stands there twice"));
        }
        if !TAKEN_OUT.contains(&name.as_str()) {
            read.smtputf8 |= !text.is_ascii();
            field.iter().for_each(|line| push(&mut read.bytes, line));
        }
        read.fields.push((name, value.trim_matches([' ', '\t']).to_owned()));
    }
    if body.is_empty() {
        push(&mut read.bytes, b"");
    }
    body.iter().for_each(|line| push(&mut read.bytes, line));
    read.dated = read.field("date").is_some();
    read.message_id = read.field("message-id").and_then(|id| {
        let bare = message_id(id);
        if bare.is_none() {
            issues.add("", "Message-ID must be one <word@word> of at most 250 ASCII characters");
        }
        bare.map(str::to_owned)
    });
    Some(read)
}

fn push(bytes: &mut Vec<u8>, line: &[u8]) {
    bytes.extend_from_slice(line);
    bytes.extend_from_slice(b"\r\n");
}

/// The lines, whether they end in CRLF, CR or LF: on the wire only CRLF may end one (RFC 5321
/// §2.3.8), and servers differ in what they make of the others.
fn lines<'a>(issues: &mut Issues, message: &'a [u8]) -> Option<Vec<&'a [u8]>> {
    let mut lines = Vec::new();
    let mut rest = message;
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(rest.len());
        let line = &rest[..end];
        lines.push(line);
        if line.len() > LONGEST {
            let at = lines.len();
            issues.add("", format!("line {at}: {} octets, at most {LONGEST}", line.len()));
            return None;
        }
        let ending = if rest[end..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = rest.get(end + ending..).unwrap_or_default();
    }
    if message.contains(&0) {
        issues.add("", "must not contain NUL");
        return None;
    }
    if lines.is_empty() {
        issues.add("", "a message is required");
        return None;
    }
    Some(lines)
}

/// A field as its lines, and the number of the first.
type Field<'a> = (usize, &'a [&'a [u8]]);

fn fields<'a>(issues: &mut Issues, header: &'a [&'a [u8]]) -> Option<Vec<Field<'a>>> {
    let mut fields = Vec::new();
    let mut at = 0;
    while at < header.len() {
        let folds = header[at + 1..].iter().take_while(|it| matches!(it[0], b' ' | b'\t'));
        let end = at + 1 + folds.count();
        let field = &header[at..end];
        if !is_field(field) {
            let at = at + 1;
            issues.add("", format!("line {at}: no header field, which is `Name: value`"));
            return None;
        }
        fields.push((at + 1, field));
        at = end;
    }
    Some(fields)
}

/// A name of printable ASCII right before its colon (RFC 5322 §2.2), and no line of white space
/// alone, which some take for the end of the header.
fn is_field(lines: &[&[u8]]) -> bool {
    let colon = lines[0].iter().position(|byte| *byte == b':').unwrap_or(0);
    let blank = |line: &&[u8]| line.iter().all(|byte| matches!(byte, b' ' | b'\t'));
    let control = |line: &&[u8]| line.iter().any(|it| it.is_ascii_control() && *it != b'\t');
    colon > 0
        && lines[0][..colon].iter().all(u8::is_ascii_graphic)
        && !lines[1..].iter().any(blank)
        && !lines.iter().any(control)
}

/// Without its brackets.
fn message_id(text: &str) -> Option<&str> {
    let bare = text.strip_prefix('<')?.strip_suffix('>')?;
    let (left, right) = bare.rsplit_once('@')?;
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"<>".contains(&byte);
    let fits = !left.is_empty() && !right.is_empty() && bare.len() <= 250;
    (fits && bare.bytes().all(is_plain)).then_some(bare)
}
