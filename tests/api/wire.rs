//! The raw bytes at a strict server: the sandbox refuses bare CR and LF and overlong lines, and
//! what it kept is looked at byte for byte.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use mail_parser::{MessageParser, MimeHeaders as _};
use serde_json::{Value, json};

use crate::support::{
    TestApp, message,
    relay::{Script, ScriptedRelay},
};

/// Sends it, and gives the bytes that arrived and the envelope's recipients.
async fn arrive(t: &TestApp, body: Value) -> (Vec<u8>, Vec<String>) {
    let sent = t.post("/send", body).await.is(202);
    let job = t.settled(sent["id"].as_str().unwrap()).await;
    assert_eq!(job["outcome"], "sent", "{job:#}");
    let newest = t.get("/sandbox/messages?limit=1").await.is(200);
    let id = newest[0]["id"].as_str().unwrap();
    assert_eq!(format!("<{}>", newest[0]["messageId"].as_str().unwrap()), job["messageId"]);
    let rcpt = serde_json::from_value(newest[0]["rcptTo"].clone()).unwrap();
    (t.get(&format!("/sandbox/messages/{id}/raw")).await.bytes, rcpt)
}

/// CRLF only, no line over 998 octets, no octet over 127 unless it may be, no Bcc.
fn strict(raw: &[u8], utf8: bool) {
    let text = String::from_utf8_lossy(raw);
    assert!(raw.ends_with(b"\r\n"));
    for line in raw.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r\n").expect("every line ends in CRLF");
        assert!(!line.contains(&b'\r'), "a bare CR");
        assert!(line.len() <= 998, "{} octets", line.len());
    }
    assert!(utf8 || raw.is_ascii(), "octets over 127");
    let header = text.split("\r\n\r\n").next().unwrap().to_ascii_lowercase();
    assert!(!header.contains("\nbcc:"), "{header}");
}

#[tokio::test]
async fn what_is_hard_to_write_arrives_as_it_was_meant() {
    let t = TestApp::start().await;
    let long = "x".repeat(5000);
    let text = format!("one\r\ntwo\nthree\rfour\n.\n..\n{long}\nend");
    let body = json!({
        "to": [{ "name": "Ünïcode, \"quoted\" 🦆", "email": "a@example.net" }, "info@bücher.example"],
        "cc": "\"Last, First\" <c@example.net>", "bcc": ["hidden@example.org"],
        "from": { "name": "Ärger & Söhne", "email": "app@example.com" },
        "subject": format!("🦆 {}", "sehr lang ".repeat(60)), "text": text, "html": "<p>a\r\nb</p>",
        "headers": { "X-Long": "word ".repeat(300), "List-Unsubscribe": "<https://example.com/u>" },
        "attachments": [{ "filename": "Zeugnis – größer.pdf", "content": STANDARD.encode(b"\x00\xff\r\n.\r\n") }],
    });
    let (raw, rcpt) = arrive(&t, body).await;
    strict(&raw, false);
    assert_eq!(
        rcpt,
        ["a@example.net", "info@xn--bcher-kva.example", "c@example.net", "hidden@example.org"]
    );
    let parsed = MessageParser::default().parse(&raw).unwrap();
    assert_eq!(parsed.to().unwrap().first().unwrap().name(), Some("Ünïcode, \"quoted\" 🦆"));
    assert_eq!(parsed.cc().unwrap().first().unwrap().name(), Some("Last, First"));
    assert!(parsed.subject().unwrap().starts_with("🦆 sehr lang"));
    let read = parsed.body_text(0).unwrap().replace("\r\n", "\n");
    assert_eq!(read.trim_end(), format!("one\ntwo\nthree\nfour\n.\n..\n{long}\nend"));
    let attached = parsed.attachments().next().unwrap();
    assert_eq!(attached.attachment_name(), Some("Zeugnis – größer.pdf"));
    assert_eq!(attached.contents(), b"\x00\xff\r\n.\r\n");
    t.stop().await;
}

#[tokio::test]
async fn ten_megabytes_arrive_byte_for_byte() {
    let t = TestApp::start().await;
    let content: Vec<u8> =
        (0..10 * 1024 * 1024_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut body = message("a@example.net");
    body["attachments"] = json!([{ "filename": "big.bin", "content": STANDARD.encode(&content) }]);
    let (raw, _) = arrive(&t, body).await;
    strict(&raw, false);
    let parsed = MessageParser::default().parse(&raw).unwrap();
    assert!(parsed.attachments().next().unwrap().contents() == content, "the bytes differ");
    let mut over = message("a@example.net");
    over["text"] = json!("x".repeat(41 * 1024 * 1024));
    t.post("/send", over).await.is(413);
    t.stop().await;
}

#[tokio::test]
async fn a_local_part_beyond_ascii_needs_a_relay_that_offers_smtputf8() {
    let t = TestApp::start().await;
    let (raw, rcpt) = arrive(&t, message("δοκιμή@例え.テスト")).await;
    strict(&raw, true);
    assert_eq!(rcpt, ["δοκιμή@xn--r8jz45g.xn--zckzah"]);

    let plain = ScriptedRelay::start(Script::default()).await;
    let new = json!({
        "name": "plain", "host": "127.0.0.1", "port": plain.port, "secure": false, "fromAddress": "app@example.com",
        "domain": "example.com", "priority": 1,
    });
    t.post("/admin/api/smtp-accounts", new).await.is(201);
    let sent = t.post("/send", message("δοκιμή@example.net")).await.is(202);
    let job = t.settled(sent["id"].as_str().unwrap()).await;
    assert_eq!((&job["status"], &job["outcome"]), (&json!("dead"), &json!("failed")), "{job:#}");
    assert_eq!(plain.dots(), 0);
    t.stop().await;
}

#[tokio::test]
async fn no_control_character_passes_anywhere() {
    let t = TestApp::start().await;
    let with = |path: &str, value: Value| {
        let mut body = message("a@example.net");
        body[path] = value;
        body
    };
    let attachment = |key: &str, value: &str| {
        let mut it = json!({ "filename": "a.txt", "content": "AAAA" });
        it[key] = json!(value);
        json!([it])
    };
    for body in [
        with("subject", json!("a\r\nBcc: x@example.org")),
        with("from", json!({ "name": "a\u{0}b", "email": "app@example.com" })),
        with("to", json!([{ "name": "a\nb", "email": "a@example.net" }])),
        with("headers", json!({ "X-A\r\nBcc": "x@example.org" })),
        with("headers", json!({ "X-A": "x\r\nBcc: x@example.org" })),
        with("headers", json!({ "Bcc": "x@example.org" })),
        with("attachments", attachment("filename", "a\r\nb.txt")),
        with("attachments", attachment("contentType", "text/plain\r\nX: y")),
        with("attachments", attachment("contentId", "a>\r\nX: <y")),
        with("text", json!("nul \u{0}")),
        with("metadata", json!({ "a": "nul \u{0}" })),
        with("tags", json!(["a\u{0}"])),
    ] {
        let refused = t.post("/send", body.clone()).await;
        assert_eq!(refused.status, 400, "{body} {}", refused.json);
    }
    t.stop().await;
}
