//! The server's side of SMTP, without I/O: a line comes in, a reply goes out.

/// A message over this size is refused, in bytes.
pub const MAX_SIZE: usize = 50 * 1024 * 1024;
/// RFC 5321 §4.5.3.1.6, without the CRLF.
const MAX_LINE: usize = 998;

/// A message as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    pub helo: String,
    pub mail_from: String,
    pub rcpt_to: Vec<String>,
    pub raw: Vec<u8>,
}

/// What follows from a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    Say(String),
    /// Go on reading.
    Nothing,
    /// Keep this message; then say whether it was kept.
    Keep(Received),
    /// Say this, and close.
    Close(String),
}

/// One conversation.
#[derive(Debug, Default)]
pub struct Conversation {
    helo: Option<String>,
    mail_from: Option<String>,
    rcpt_to: Vec<String>,
    data: Option<Data>,
}

#[derive(Debug, Default)]
struct Data {
    raw: Vec<u8>,
    /// The line before did not end in CRLF: a dot behind it ends nothing (RFC 5321 §4.1.1.4).
    is_torn: bool,
    fault: Option<&'static str>,
}

impl Conversation {
    /// Takes one line, with its line feed.
    pub fn line(&mut self, line: &[u8]) -> Next {
        if self.data.is_some() {
            return self.data_line(line);
        }
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches(['\r', '\n']);
        let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
        match verb.to_ascii_uppercase().as_str() {
            "EHLO" => self.hello(
                rest,
                &format!(
                    "250-sandbox\r\n250-PIPELINING\r\n250-SIZE {MAX_SIZE}\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n\
                     250-DSN\r\n250 ENHANCEDSTATUSCODES\r\n"
                ),
            ),
            "HELO" => self.hello(rest, "250 sandbox\r\n"),
            "MAIL" => self.mail(rest),
            "RCPT" => self.rcpt(rest),
            "DATA" if self.rcpt_to.is_empty() => say("503 5.5.1 RCPT first"),
            "DATA" => {
                self.data = Some(Data::default());
                say("354 End data with <CR><LF>.<CR><LF>")
            }
            "RSET" => {
                self.reset();
                say("250 2.0.0 Ok")
            }
            "NOOP" => say("250 2.0.0 Ok"),
            "VRFY" => say("252 2.5.2 Send some mail"),
            "QUIT" => Next::Close("221 2.0.0 Bye\r\n".to_owned()),
            _ => say("500 5.5.2 Unknown command"),
        }
    }

    fn hello(&mut self, name: &str, reply: &str) -> Next {
        if name.is_empty() {
            return say("501 5.5.4 Say who you are");
        }
        self.reset();
        self.helo = Some(name.to_owned());
        Next::Say(reply.to_owned())
    }

    fn mail(&mut self, rest: &str) -> Next {
        match (&self.helo, &self.mail_from, path(rest, "FROM:")) {
            (None, ..) => say("503 5.5.1 EHLO first"),
            (_, Some(_), _) => say("503 5.5.1 Sender already given"),
            (_, _, None) => say("501 5.5.4 MAIL FROM:<address>"),
            (_, _, Some(sender)) => {
                self.mail_from = Some(sender);
                say("250 2.1.0 Ok")
            }
        }
    }

    fn rcpt(&mut self, rest: &str) -> Next {
        match (&self.mail_from, path(rest, "TO:")) {
            (None, _) => say("503 5.5.1 MAIL first"),
            (_, None) => say("501 5.5.4 RCPT TO:<address>"),
            (_, Some(to)) if to.is_empty() => say("501 5.1.3 An empty recipient"),
            (_, Some(to)) => {
                self.rcpt_to.push(to);
                say("250 2.1.5 Ok")
            }
        }
    }

    fn data_line(&mut self, line: &[u8]) -> Next {
        let Some(data) = &mut self.data else { return Next::Nothing };
        let was_torn = std::mem::replace(&mut data.is_torn, !line.ends_with(b"\r\n"));
        if line == b".\r\n" && !was_torn {
            return self.dot();
        }
        let content = line.strip_suffix(b"\r\n");
        if content.is_none_or(|content| content.contains(&b'\r')) {
            data.fault = Some("550 5.6.11 a bare CR or LF");
        }
        let unstuffed = if line.starts_with(b".") { &line[1..] } else { line };
        if unstuffed.len() > MAX_LINE + 2 {
            data.fault = Some("550 5.6.11 a line of more than 998 octets");
        }
        if data.raw.len() + unstuffed.len() > MAX_SIZE {
            data.fault = Some("552 5.3.4 too big");
        } else if data.fault.is_none() {
            data.raw.extend_from_slice(unstuffed);
        }
        Next::Nothing
    }

    fn dot(&mut self) -> Next {
        let (data, helo) = (self.data.take().unwrap_or_default(), self.helo.clone());
        let mail_from = self.mail_from.take().unwrap_or_default();
        let rcpt_to = std::mem::take(&mut self.rcpt_to);
        match data.fault {
            Some(fault) => say(fault),
            None => Next::Keep(Received {
                helo: helo.unwrap_or_default(),
                mail_from,
                rcpt_to,
                raw: data.raw,
            }),
        }
    }

    fn reset(&mut self) {
        self.mail_from = None;
        self.rcpt_to.clear();
    }
}

fn say(text: &str) -> Next {
    Next::Say(format!("{text}\r\n"))
}

/// The path behind `FROM:` or `TO:`, without its brackets; parameters are taken and not looked at.
fn path(rest: &str, keyword: &str) -> Option<String> {
    let start = rest.get(..keyword.len())?;
    if !start.eq_ignore_ascii_case(keyword) {
        return None;
    }
    let inside = rest[keyword.len()..].trim_start().strip_prefix('<')?;
    inside.rsplit_once('>').map(|(path, _)| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(lines: &[&str]) -> Vec<Next> {
        let mut conversation = Conversation::default();
        lines.iter().map(|line| conversation.line(line.as_bytes())).collect()
    }

    const BEGIN: [&str; 4] = [
        "EHLO a\r\n",
        "MAIL FROM:<a@x.example> SIZE=9\r\n",
        "RCPT TO:<b@y.example>\r\n",
        "DATA\r\n",
    ];

    #[test]
    fn a_message_is_kept_without_its_stuffing() {
        let lines = [&BEGIN[..], &["Subject: x\r\n", "\r\n", "..dot\r\n", ".\r\n"]].concat();
        let kept = Received {
            helo: "a".to_owned(),
            mail_from: "a@x.example".to_owned(),
            rcpt_to: vec!["b@y.example".to_owned()],
            raw: b"Subject: x\r\n\r\n.dot\r\n".to_vec(),
        };
        assert_eq!(run(&lines).pop(), Some(Next::Keep(kept)));
    }

    #[test]
    fn a_bare_line_feed_or_a_long_line_is_refused_after_the_dot() {
        let long = format!("{}\r\n", "x".repeat(999));
        for bad in ["bare\n", "b\rare\r\n", &long] {
            let lines = [&BEGIN[..], &[bad, "\r\n", ".\r\n"]].concat();
            let Some(Next::Say(reply)) = run(&lines).pop() else { panic!("{bad:?} was kept") };
            assert!(reply.starts_with("550 5.6.11"), "{reply}");
        }
    }

    #[test]
    fn a_dot_behind_a_bare_line_feed_ends_nothing() {
        let smuggled = ["x\n", ".\r\n", "MAIL FROM:<evil@x.example>\r\n"];
        let lines = [&BEGIN[..], &smuggled].concat();
        assert!(run(&lines)[4..].iter().all(|next| *next == Next::Nothing));
    }

    #[test]
    fn commands_out_of_turn_are_refused() {
        for line in ["MAIL FROM:<a@x>\r\n", "RCPT TO:<a@x>\r\n", "DATA\r\n"] {
            let Some(Next::Say(reply)) = run(&[line]).pop() else { panic!("{line}") };
            assert!(reply.starts_with("503"), "{reply}");
        }
    }
}
