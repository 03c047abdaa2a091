//! The commands of a transaction as lines. Nothing a caller passes can end a line or an argument.

use std::fmt::Write;

use super::{Capabilities, Envelope, FaultKind, Rcpt};

/// MAIL and each RCPT, with their line ends.
pub(super) struct Commands {
    pub(super) mail: String,
    pub(super) rcpts: Vec<String>,
}

impl Commands {
    pub(super) fn new(envelope: &Envelope, offered: &Capabilities) -> Result<Self, FaultKind> {
        let rcpts = envelope.recipients.iter().map(|rcpt| rcpt_line(rcpt, offered));
        Ok(Self { mail: mail_line(envelope, offered)?, rcpts: rcpts.collect::<Result<_, _>>()? })
    }
}

/// What we call ourselves in EHLO.
pub(super) fn check_helo_name(name: &str) -> Result<(), FaultKind> {
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic()) || has_bracket(name) {
        return Err(FaultKind::Malformed("the name for EHLO"));
    }
    Ok(())
}

fn mail_line(envelope: &Envelope, offered: &Capabilities) -> Result<String, FaultKind> {
    let sender = envelope.sender.as_deref();
    sender.map_or(Ok(()), |sender| check_address(sender, "the sender's address"))?;
    let mut line = format!("MAIL FROM:<{}>", sender.unwrap_or_default());
    if offered.size {
        let _ = write!(line, " SIZE={}", envelope.size);
    }
    if envelope.eight_bit && offered.eight_bit_mime {
        line += " BODY=8BITMIME";
    }
    if envelope.needs_smtputf8() && offered.smtputf8 {
        line += " SMTPUTF8";
    }
    if offered.dsn && envelope.ret_headers_only {
        line += " RET=HDRS";
    }
    if let Some(envid) = envelope.envid.as_deref().filter(|_| offered.dsn) {
        if envid.is_empty() || !envid.bytes().all(|byte| matches!(byte, 0x20..=0x7e)) {
            return Err(FaultKind::Malformed("the envelope's ENVID"));
        }
        let _ = write!(line, " ENVID={}", xtext(envid));
    }
    Ok(line + "\r\n")
}

fn rcpt_line(rcpt: &Rcpt, offered: &Capabilities) -> Result<String, FaultKind> {
    check_address(&rcpt.address, "a recipient's address")?;
    let mut line = format!("RCPT TO:<{}>", rcpt.address);
    if let Some(notify) = rcpt.notify.as_deref().filter(|_| offered.dsn) {
        if notify.is_empty() || !notify.bytes().all(|b| b.is_ascii_alphabetic() || b == b',') {
            return Err(FaultKind::Malformed("a recipient's NOTIFY"));
        }
        let _ = write!(line, " NOTIFY={notify}");
    }
    if let Some(orcpt) = rcpt.orcpt.as_deref().filter(|_| offered.dsn) {
        check_address(orcpt, "a recipient's ORCPT")?;
        if orcpt.is_ascii() {
            let _ = write!(line, " ORCPT=rfc822;{}", xtext(orcpt));
        } else {
            let _ = write!(line, " ORCPT=utf-8;{}", utf8_addr_xtext(orcpt));
        }
    }
    Ok(line + "\r\n")
}

fn check_address(address: &str, what: &'static str) -> Result<(), FaultKind> {
    if address.is_empty() || address.chars().any(char::is_control) || has_bracket(address) {
        return Err(FaultKind::Malformed(what));
    }
    Ok(())
}

fn has_bracket(text: &str) -> bool {
    text.contains(['<', '>'])
}

/// RFC 3461 §4, for printable ASCII.
fn xtext(text: &str) -> String {
    let mut coded = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '+' | '=' | ' ' => drop(write!(coded, "+{:02X}", u32::from(c))),
            _ => coded.push(c),
        }
    }
    coded
}

/// RFC 6533 §3: the form that every server with DSN can pass on.
fn utf8_addr_xtext(text: &str) -> String {
    let mut coded = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '!'..='~' if !matches!(c, '+' | '=' | '\\') => coded.push(c),
            _ => drop(write!(coded, "\\x{{{:02X}}}", u32::from(c))),
        }
    }
    coded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smtp::tests::envelope;

    fn everything() -> Capabilities {
        Capabilities {
            size: true,
            eight_bit_mime: true,
            smtputf8: true,
            dsn: true,
            ..Capabilities::default()
        }
    }

    fn full(address: &str) -> Envelope {
        Envelope {
            eight_bit: true,
            envid: Some("a+b=c d".into()),
            ret_headers_only: true,
            recipients: vec![Rcpt {
                address: address.into(),
                notify: Some("FAILURE,DELAY".into()),
                orcpt: Some(address.into()),
            }],
            ..envelope(&[])
        }
    }

    #[test]
    fn everything_offered_is_used() {
        let commands = Commands::new(&full("a+b@x"), &everything()).unwrap();
        let mail =
            "MAIL FROM:<me@example.org> SIZE=10 BODY=8BITMIME RET=HDRS ENVID=a+2Bb+3Dc+20d\r\n";
        assert_eq!(commands.mail, mail);
        let rcpt = "RCPT TO:<a+b@x> NOTIFY=FAILURE,DELAY ORCPT=rfc822;a+2Bb@x\r\n";
        assert_eq!(commands.rcpts, [rcpt]);
    }

    #[test]
    fn an_address_beyond_ascii_is_coded_in_orcpt() {
        let commands = Commands::new(&full("ü+a@x"), &everything()).unwrap();
        assert!(commands.mail.contains(" SMTPUTF8 "));
        assert!(commands.rcpts[0].ends_with(" ORCPT=utf-8;\\x{FC}\\x{2B}a@x\r\n"));
    }

    #[test]
    fn nothing_is_used_that_is_not_offered() {
        let commands = Commands::new(&full("a@x"), &Capabilities::default()).unwrap();
        assert_eq!(commands.mail, "MAIL FROM:<me@example.org>\r\n");
        assert_eq!(commands.rcpts, ["RCPT TO:<a@x>\r\n"]);
        let bounce = Envelope { sender: None, ..envelope(&[]) };
        assert_eq!(
            Commands::new(&bounce, &Capabilities::default()).unwrap().mail,
            "MAIL FROM:<>\r\n"
        );
    }

    #[test]
    fn no_address_can_carry_a_command() {
        for bad in ["a\r\nDATA", "a\nb", "a\rb", "a\0b", "a> SIZE=1 <b", "a\u{85}b", ""] {
            let rcpt = Commands::new(&envelope(&[bad]), &everything());
            assert!(matches!(rcpt, Err(FaultKind::Malformed(_))), "{bad:?}");
            let sender = Envelope { sender: Some(bad.into()), ..envelope(&["a@x"]) };
            let mail = Commands::new(&sender, &everything());
            assert!(matches!(mail, Err(FaultKind::Malformed(_))), "{bad:?}");
            assert!(check_helo_name(bad).is_err(), "{bad:?}");
        }
        let envid = Envelope { envid: Some("a\r\nb".into()), ..envelope(&["a@x"]) };
        assert!(Commands::new(&envid, &everything()).is_err());
        let mut notify = full("a@x");
        notify.recipients[0].notify = Some("NEVER\r\nDATA".into());
        assert!(Commands::new(&notify, &everything()).is_err());
    }

    #[test]
    fn a_name_for_ehlo_is_a_domain_or_a_literal() {
        for good in ["mail.example.org", "[192.0.2.1]", "[IPv6:::1]"] {
            assert!(check_helo_name(good).is_ok(), "{good}");
        }
        assert!(check_helo_name("two words").is_err());
    }
}
