use bytes::Bytes;
use chrono::{DateTime, Utc};
use proptest::prelude::*;

use super::{
    super::{Lifetime, NewMessage},
    RawRequest,
};
use crate::error::Issue;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn parse(message: impl AsRef<[u8]>, query: &[(&str, &str)]) -> Result<NewMessage, Vec<Issue>> {
    let query = query.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    RawRequest { bytes: Bytes::copy_from_slice(message.as_ref()), query }.parse(now())
}

fn accepted(message: impl AsRef<[u8]>, query: &[(&str, &str)]) -> NewMessage {
    parse(message, query).unwrap_or_else(|issues| panic!("{issues:?}"))
}

fn refused(message: impl AsRef<[u8]>, query: &[(&str, &str)]) -> Vec<String> {
    let issues = parse(message, query).expect_err("accepted");
    issues.into_iter().map(|it| format!("{}: {}", it.path, it.message)).collect()
}

fn bytes(message: &NewMessage) -> String {
    String::from_utf8_lossy(&message.raw.as_ref().unwrap().bytes).into_owned()
}

fn addresses(message: &NewMessage) -> Vec<String> {
    message.recipients().map(|(kind, it)| format!("{kind:?} {it}")).collect()
}

const WHOLE: &str = "Return-Path: <x@example.com>\nFrom: =?utf-8?Q?J=C3=BCrgen?= <j@example.com>\n\
    To: Friends: a@example.net, \"B, C\" <b@example.net>;\nCc: c@example.org\nBcc: d@example.org,\n d@EXAMPLE.org\n\
    Reply-To: r@example.com\nMessage-ID: <one@example.com>\nDate: Thu, 1 Jan 2026 00:00:00 +0000\n\
    Subject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=\n folded\n\nHello\rthere\r\n.\n";

#[test]
fn it_goes_out_as_it_came_with_crlf_and_without_those_unseen() {
    let message = accepted(WHOLE, &[]);
    let kept = WHOLE.replace("Return-Path: <x@example.com>\n", "");
    let kept = kept.replace("Bcc: d@example.org,\n d@EXAMPLE.org\n", "");
    let kept = kept.replace("\r\n", "\n").replace('\r', "\n").replace('\n', "\r\n");
    assert_eq!(bytes(&message), kept);
    assert_eq!(
        addresses(&message),
        [
            "To a@example.net",
            "To \"B, C\" <b@example.net>",
            "Cc c@example.org",
            "Bcc d@example.org"
        ]
    );
    assert_eq!(message.from.unwrap().to_string(), "Jürgen <j@example.com>");
    assert_eq!(message.subject, "Grüße folded");
    let raw = message.raw.unwrap();
    assert_eq!((raw.message_id.as_deref(), raw.dated), (Some("one@example.com"), true));
    assert!(!raw.smtputf8 && !raw.eight_bit && !raw.has_attachment);
}

#[test]
fn the_query_says_who_gets_it_and_how() {
    let query = [
        ("rcpt", "b@example.net"),
        ("rcpt", "x@example.org"),
        ("rcpt", "X@EXAMPLE.ORG"),
        ("tag", "one"),
        ("tag", "two"),
        ("metadata", r#"{"order":"7"}"#),
        ("ttl", "60"),
        ("rejectSuppressed", "false"),
        ("wait", "1"),
        ("colour", "red"),
    ];
    let message = accepted(WHOLE, &query);
    assert_eq!(addresses(&message), ["To \"B, C\" <b@example.net>", "Bcc x@example.org"]);
    let (to, cc) = message.shown();
    assert_eq!((to.len(), cc.len()), (2, 1));
    assert!(message.tags.iter().eq(["one", "two"]));
    assert_eq!(message.metadata["order"], "7");
    assert_eq!(message.lifetime, Some(Lifetime::Seconds(60)));
    assert_eq!(message.reject_suppressed, Some(false));
    assert_eq!(message.ignored, ["colour"]);
}

#[test]
fn what_the_query_gets_wrong_has_its_path() {
    let query = [
        ("rcpt", "B <b@example.net>"),
        ("tag", "no spaces"),
        ("ttl", "soon"),
        ("metadata", "{"),
        ("priority", "now"),
        ("priority", "later"),
    ];
    let paths: Vec<_> =
        parse(WHOLE, &query).unwrap_err().into_iter().map(|issue| issue.path).collect();
    assert_eq!(paths, ["priority", "tags.0", "metadata", "ttl", "rcpt.0", "to"]);
}

#[test]
fn octets_beyond_ascii_say_what_they_need() {
    let message = accepted("From: a@example.com\nTo: b@example.net\n\nGr\u{fc}\u{df}e", &[]);
    let raw = message.raw.unwrap();
    assert!(raw.eight_bit && !raw.smtputf8);
    let message = accepted("From: a@example.com\nTo: b@example.net\nSubject: é\n\n", &[]);
    assert!(message.raw.unwrap().smtputf8);
    let latin = b"From: a@example.com\nTo: b@example.net\nSubject: \xe9\n\nx";
    assert_eq!(refused(latin, &[]), [": line 3: a header outside ASCII must be UTF-8"]);
    // A hidden field that is not sent asks nothing of the relay.
    let message = accepted("From: a@example.com\nBcc: é@example.net\n\n", &[]);
    assert!(!message.raw.unwrap().smtputf8);
}

#[test]
fn a_message_without_a_body_or_its_empty_line_gets_one() {
    let message = accepted("From: a@example.com\nTo: b@example.net", &[]);
    assert_eq!(bytes(&message), "From: a@example.com\r\nTo: b@example.net\r\n\r\n");
}

#[test]
fn what_others_might_read_in_another_way_is_refused() {
    let from = "From: a@example.com\n";
    let to = "To: b@example.net\n";
    let long = format!("{from}{to}\n{}\n", "x".repeat(999));
    let cases = [
        ("", ": a message is required"),
        ("\n\nHi", "from: the header needs a From"),
        (
            &format!("From mbox Thu Jan  1\n{from}{to}\n"),
            ": line 1: no header field, which is `Name: value`",
        ),
        (
            &format!("{from}{to}Subject : x\n\n"),
            ": line 3: no header field, which is `Name: value`",
        ),
        (
            &format!("{from}{to}Subject: x\n \n y\n\n"),
            ": line 3: no header field, which is `Name: value`",
        ),
        (
            &format!("{from}{to}Subject: x\u{1}y\n\n"),
            ": line 3: no header field, which is `Name: value`",
        ),
        (&format!("{from}{to}from: c@example.com\n\n"), ": line 3: from stands there twice"),
        (
            &format!("{to}From: a@example.com, c@example.com\n\n"),
            "from: from must be one address, in its plain form",
        ),
        (
            &format!("{to}From: a@example.com (c@example.com)\n\n"),
            "from: from must be one address, in its plain form",
        ),
        (
            &format!("{to}From: c@example.com <a@example.com>\n\n"),
            "from: from must be one address, in its plain form",
        ),
        (
            &format!("{from}{to}Sender: nobody\n\n"),
            "sender: sender must be one address, in its plain form",
        ),
        (
            &format!("{from}{to}Message-ID: one@example.com\n\n"),
            ": Message-ID must be one <word@word> of at most 250 ASCII characters",
        ),
        (&format!("{from}{to}\na\0b"), ": must not contain NUL"),
        (&long, ": line 4: 999 octets, at most 998"),
        (from, "to: at least one recipient is required: in the header, or as rcpt"),
        (&format!("{from}To: nobody@\n\n"), "to: Invalid email address(es) in \"to\""),
    ];
    for (message, issue) in cases {
        assert_eq!(refused(message, &[])[0], issue, "{message:?}");
    }
}

proptest! {
    /// Nothing makes it panic, and what it lets out it takes again as it is.
    #[test]
    fn what_goes_out_is_read_the_same(
        lines in prop::collection::vec("(From|To|Subject|Content-Type|Cc|Bcc|X-A): ?[ -~\t]{0,30}|[ \t][ -~]{0,9}|.{0,20}", 0..8),
        ending in prop::sample::select(vec!["\n", "\r\n", "\r"]),
    ) {
        let text = format!("From: a@example.com{ending}{}", lines.join(ending));
        if let Ok(message) = parse(&text, &[("rcpt", "b@example.net")]) {
            let out = bytes(&message);
            prop_assert_eq!(&bytes(&accepted(&out, &[("rcpt", "b@example.net")])), &out);
        }
    }
}
