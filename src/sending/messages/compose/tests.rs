use chrono::DateTime;
use mail_parser::{HeaderForm, HeaderValue, Message, MessageParser, MimeHeaders};
use serde_json::{Value, json};

use super::{super::SendRequest, *};

const ID: &str = "0198c0de-0000-7000-8000-000000000001@example.com";

pub(super) fn date() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

pub(super) fn request(fields: Value) -> NewMessage {
    let mut body = json!({ "to": "a@example.net", "subject": "Hello" });
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let request: SendRequest = serde_json::from_value(body).unwrap();
    request.parse(date(), usize::MAX).unwrap_or_else(|issues| panic!("{issues:?}"))
}

pub(super) fn sent(message: &NewMessage) -> Composed {
    let composed = compose(message, &"Shop <shop@example.com>".parse().unwrap(), ID, date());
    check_form(&composed);
    composed
}

/// What holds for every message on the wire.
fn check_form(composed: &Composed) {
    let text = std::str::from_utf8(&composed.bytes).expect("UTF-8");
    assert!(text.ends_with("\r\n"));
    for line in text.split("\r\n") {
        assert!(line.len() <= 998, "{} octets", line.len());
        assert!(!line.contains(['\r', '\n', '\0']), "{line:?}");
    }
    let (header, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(body.is_ascii());
    assert_eq!(header.is_ascii(), !composed.smtputf8);
    assert!(body.split("\r\n").all(|line| line.len() <= 200));
    for line in header.split("\r\n") {
        assert!(!line.trim().is_empty());
        assert!(!line.to_ascii_lowercase().starts_with("bcc:"));
    }
}

pub(super) fn read(composed: &Composed) -> Message<'_> {
    MessageParser::default().parse(&composed.bytes).expect("a message")
}

/// The value of a field that has no form of its own.
pub(super) fn field_text(message: &Message<'_>, name: &str) -> String {
    match message.header_as(name, HeaderForm::Text).first() {
        Some(HeaderValue::Text(text)) => text.to_string(),
        other => panic!("{other:?}"),
    }
}

fn text(composed: &Composed) -> String {
    String::from_utf8(composed.bytes.clone()).unwrap()
}

fn shape(message: &Message<'_>, at: u32) -> String {
    let part = message.part(at).unwrap();
    let kind = part.content_type().unwrap();
    match part.sub_parts() {
        Some(parts) => {
            let parts: Vec<String> = parts.iter().map(|at| shape(message, *at)).collect();
            format!("{}({})", kind.subtype().unwrap(), parts.join(" "))
        }
        None => kind.subtype().unwrap().to_owned(),
    }
}

#[test]
fn a_plain_message_looks_like_this() {
    let message = request(json!({
        "text": "Hi\n.\nline", "cc": "\"B, C\" <b@example.net>", "bcc": "secret@example.net",
        "replyTo": "help@example.com", "headers": { "X-Campaign": "spring" },
    }));
    assert_eq!(
        text(&sent(&message)),
        "Date: Fri, 15 Jan 2027 08:00:00 +0000\r\n\
         From: Shop <shop@example.com>\r\n\
         Reply-To: help@example.com\r\n\
         To: a@example.net\r\n\
         Cc: \"B, C\" <b@example.net>\r\n\
         Subject: Hello\r\n\
         Message-ID: <0198c0de-0000-7000-8000-000000000001@example.com>\r\n\
         X-Campaign: spring\r\n\
         MIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\n\
         Content-Transfer-Encoding: quoted-printable\r\n\
         \r\n\
         Hi\r\n.\r\nline\r\n"
    );
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let message = request(json!({ "html": "<p>", "text": "x" }));
    assert_eq!(sent(&message), sent(&message));
}

#[test]
fn parts_hang_together_as_their_use_asks() {
    let file = |fields: Value| {
        let mut file = json!({ "filename": "f", "content": "aGk=", "contentType": "image/png" });
        file.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        file
    };
    let inline = || file(json!({ "contentId": "logo" }));
    let plain = || file(json!({}));
    for (fields, expected) in [
        (json!({ "html": "h" }), "html"),
        (json!({ "text": "t" }), "plain"),
        (json!({ "html": "h", "text": "t" }), "alternative(plain html)"),
        (json!({ "html": "h", "attachments": [inline()] }), "related(html png)"),
        (json!({ "text": "t", "attachments": [inline()] }), "mixed(plain png)"),
        (json!({ "html": "h", "attachments": [plain()] }), "mixed(html png)"),
        (
            json!({ "html": "h", "attachments": [file(json!({ "contentId": "a", "disposition": "attachment" }))] }),
            "mixed(html png)",
        ),
        (
            json!({ "html": "h", "text": "t", "attachments": [plain(), inline(), plain()] }),
            "mixed(alternative(plain related(html png)) png png)",
        ),
    ] {
        let message = request(fields);
        let composed = sent(&message);
        assert_eq!(shape(&read(&composed), 0), expected);
    }
}

#[test]
fn line_ends_become_crlf() {
    let message = request(json!({ "html": "a\rb\nc\r\nd\n.\ne\n\rf\r\r\n", "text": "\n.\n..\n" }));
    let composed = sent(&message);
    let read = read(&composed);
    assert_eq!(read.body_html(0).unwrap(), "a\r\nb\r\nc\r\nd\r\n.\r\ne\r\n\r\nf\r\n\r\n");
    assert_eq!(read.body_text(0).unwrap(), "\r\n.\r\n..\r\n");
}

#[test]
fn names_and_domains_in_any_script() {
    let message = request(json!({
        "html": "h",
        "to": [{ "name": "Zoë 🚀 \"Z\" <x@evil.example>", "email": "info@bücher.example" }, "a@例え.テスト"],
        "cc": [{ "name": "=?utf-8?B?SGk=?=", "email": "c@example.net" }, { "name": "N".repeat(2_000), "email": "d@example.net" }],
    }));
    let composed = sent(&message);
    assert!(!composed.smtputf8);
    let read = read(&composed);
    let to = read.to().unwrap().as_list().unwrap();
    assert_eq!(to[0].name(), Some("Zoë 🚀 \"Z\" <x@evil.example>"));
    assert_eq!(to[0].address(), Some("info@xn--bcher-kva.example"));
    assert_eq!(to[1].address(), Some("a@xn--r8jz45g.xn--zckzah"));
    let cc = read.cc().unwrap().as_list().unwrap();
    assert_eq!(cc[0].name(), Some("=?utf-8?B?SGk=?="));
    assert_eq!(cc[1].name().map(str::len), Some(2_000));
}

#[test]
fn only_a_local_part_in_the_header_asks_for_smtputf8() {
    let shown = sent(&request(json!({ "html": "h", "cc": "Ü <δοκιμή@example.net>" })));
    assert!(shown.smtputf8);
    assert!(text(&shown).contains("<δοκιμή@example.net>"));
    assert!(!sent(&request(json!({ "html": "h", "bcc": "δοκιμή@example.net" }))).smtputf8);
}

#[test]
fn long_words_and_lines_are_folded() {
    let long = "x".repeat(5_000);
    let message = request(json!({
        "html": format!("<p>{long}\n{long}</p>"), "text": long, "subject": format!("a {long} b"),
        "headers": { "X-Long": long, "X-Link": format!("<https://example.com/{}>", "y".repeat(500)) },
        "to": (0..50).map(|i| format!("\"Recipient, {i}\" <user{i}@example.net>")).collect::<Vec<_>>(),
    }));
    let composed = sent(&message);
    let read = read(&composed);
    assert_eq!(read.subject(), Some(format!("a {long} b").as_str()));
    assert!(field_text(&read, "X-Long") == long);
    assert_eq!(read.body_text(0).unwrap(), long);
    assert_eq!(read.body_html(0).unwrap(), format!("<p>{long}\r\n{long}</p>"));
    assert_eq!(read.to().unwrap().as_list().unwrap().len(), 50);
    let over: Vec<usize> =
        text(&composed).split("\r\n").map(str::len).filter(|n| *n > 78).collect();
    assert_eq!(over, [530], "only the link, which must stay whole");
}

#[test]
fn a_large_attachment_arrives() {
    let mut message = request(json!({ "html": "h" }));
    let content: Vec<u8> = (0..10 * 1024 * 1024_u32).map(|i| ((i * 31) >> 3) as u8).collect();
    message.attachments.push(super::super::Attachment {
        filename: "日本語の長い名前 \"quoted\"; x=y.pdf".into(),
        content_type: "application/pdf; a=b".into(),
        content: content.clone().into(),
        content_id: None,
        disposition: super::super::Disposition::Attachment,
    });
    let composed = sent(&message);
    let read = read(&composed);
    let file = read.attachment(0).unwrap();
    assert_eq!(file.attachment_name(), Some("日本語の長い名前 \"quoted\"; x=y.pdf"));
    assert_eq!(file.content_type().unwrap().attribute("a"), Some("b"));
    assert!(file.contents() == content);
}

#[test]
fn a_message_within_the_message_goes_as_octets() {
    let file =
        json!({ "filename": "mail.eml", "content": "aGk=", "contentType": "message/rfc822" });
    let composed = sent(&request(json!({ "html": "h", "attachments": [file] })));
    assert_eq!(read(&composed).attachment(0).unwrap().contents(), b"hi");
    assert!(text(&composed).contains("Content-Type: application/octet-stream\r\n"));
}
