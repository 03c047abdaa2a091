//! Who wrote a raw message, and who gets it.

use std::collections::HashSet;

use mail_parser::{Address, MessageParser};

use super::{
    super::{
        issues::Issues,
        recipients::{MAX_RECIPIENTS, Parsed},
    },
    header::Header,
};
use crate::address::{EmailAddress, Mailbox};

/// What its header names.
pub(super) struct Named {
    pub from: Option<Mailbox>,
    pub sender: Option<Mailbox>,
    pub reply_to: Vec<Mailbox>,
    pub to: Vec<Mailbox>,
    pub cc: Vec<Mailbox>,
    bcc: Vec<Mailbox>,
    /// On one line, for people.
    pub subject: String,
    pub has_attachment: bool,
}

pub(super) fn read(issues: &mut Issues, header: &Header) -> Named {
    let parsed = MessageParser::default().parse(&header.bytes);
    let parsed = parsed.as_ref();
    // `Bcc` is in the bytes no more.
    let bcc = header.field("bcc").map(|it| format!("Bcc: {it}\r\n\r\n")).unwrap_or_default();
    let unseen = MessageParser::default().parse(bcc.as_bytes());
    let subject = parsed.and_then(|it| it.subject()).unwrap_or_default();
    if header.field("from").is_none() {
        issues.add("from", "the header needs a From");
    }
    Named {
        from: one(issues, header, "from", parsed.and_then(|it| it.from())),
        sender: one(issues, header, "sender", parsed.and_then(|it| it.sender())),
        reply_to: many(issues, "replyTo", parsed.and_then(|it| it.reply_to())),
        to: many(issues, "to", parsed.and_then(|it| it.to())),
        cc: many(issues, "cc", parsed.and_then(|it| it.cc())),
        bcc: many(issues, "bcc", unseen.as_ref().and_then(|it| it.bcc())),
        subject: subject.replace(char::is_control, " "),
        has_attachment: parsed.is_some_and(|it| it.attachment_count() > 0),
    }
}

/// One mailbox in a field that says who it is from: what we read must be what everybody reads, so
/// two parsers have to agree on it.
fn one(
    issues: &mut Issues,
    header: &Header,
    field: &str,
    read: Option<&Address<'_>>,
) -> Option<Mailbox> {
    let strict: Option<Mailbox> = header.field(field)?.parse().ok();
    let mut found = read.into_iter().flat_map(Address::iter);
    let (first, more) = (found.next(), found.next().is_some());
    let mailbox = strict.and_then(|it| {
        let same = first?.address.as_deref().is_some_and(|read| {
            read.parse::<EmailAddress>().is_ok_and(|read| read == *it.address())
        });
        let name = first?.name.as_deref().map(|it| it.replace(char::is_control, " "));
        (same && !more).then(|| Mailbox::new(name.as_deref(), it.address().clone()).ok())?
    });
    if mailbox.is_none() {
        issues.add(field, format!("{field} must be one address, in its plain form"));
    }
    mailbox
}

/// Everyone in a field, members of groups too.
fn many(issues: &mut Issues, path: &str, read: Option<&Address<'_>>) -> Vec<Mailbox> {
    let mut list = Vec::new();
    for it in read.into_iter().flat_map(Address::iter) {
        let Some(address) = it.address.as_deref() else { continue };
        let name = it.name.as_deref().map(|it| it.replace(char::is_control, " "));
        match address.parse().and_then(|address| Mailbox::new(name.as_deref(), address)) {
            Ok(mailbox) => list.push(mailbox),
            Err(_) => issues.add(path, format!("Invalid email address(es) in \"{path}\"")),
        }
    }
    list
}

/// Those it goes to: the ones that the query names, else all that the header does.
pub(super) fn recipients(issues: &mut Issues, rcpt: &[String], named: &Named) -> Parsed {
    let asked = asked(issues, rcpt);
    let wanted: HashSet<String> = asked.iter().map(|it| it.address().lookup_key()).collect();
    let mut seen = HashSet::new();
    let mut first = |list: &[Mailbox]| -> Vec<Mailbox> {
        let is_new = |it: &&Mailbox| {
            let key = it.address().lookup_key();
            (rcpt.is_empty() || wanted.contains(&key)) && seen.insert(key)
        };
        list.iter().filter(is_new).cloned().collect()
    };
    let (to, cc) = (first(&named.to), first(&named.cc));
    let bcc = first(if rcpt.is_empty() { &named.bcc } else { &asked });
    match seen.len() {
        0 => issues.add("to", "at least one recipient is required: in the header, or as rcpt"),
        n if n > MAX_RECIPIENTS => issues.add("to", "too many recipients"),
        _ => (),
    }
    Parsed { to, cc, bcc }
}

fn asked(issues: &mut Issues, rcpt: &[String]) -> Vec<Mailbox> {
    let mut asked = Vec::new();
    for (at, text) in rcpt.iter().enumerate() {
        match text.trim_matches(' ').parse::<EmailAddress>() {
            Ok(address) => asked.push(Mailbox::from(address)),
            Err(_) => issues.add(format!("rcpt.{at}"), "must be an email address, without a name"),
        }
    }
    asked
}
