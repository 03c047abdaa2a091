//! What holds for any message: the bytes keep to the rules, and a reader gets back what was given.

use base64::{Engine, prelude::BASE64_STANDARD};
use mail_parser::MimeHeaders;
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};

use super::{
    body::with_crlf,
    tests::{field_text, read, request, sent},
};

/// Text that a field of the header may carry: any script, odd spaces, long words, traps.
fn line() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[!-~]{1,12}",
        2 => "\\PC{1,8}",
        2 => " {1,4}",
        1 => " {20,90}",
        1 => "[a-z]{60,80}",
        1 => "[a-z0-9]{880,1100}",
        1 => "(é|🚀){1,60}",
        1 => Just("=?utf-8?B?SGk=?=".to_owned()),
        1 => "[\"\\\\<>@,;:()]{1,4}",
    ];
    vec(piece, 1..8)
        .prop_map(|pieces| pieces.concat().replace(['\u{2028}', '\u{2029}'], ""))
        .prop_filter("not empty", |text| !text.trim_matches(' ').is_empty())
}

fn body() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[ -~\t]{0,100}",
        "\\PC{0,30}",
        "[\r\n.]{1,4}",
        " {1,90}",
        "=[0-9A-F]{2}",
        "[a-z]{900,1200}",
        Just("\r\nFrom x\r\n.\r\n".to_owned()),
    ];
    vec(piece, 1..8)
        .prop_map(|pieces| pieces.concat())
        .prop_filter("not empty", |text| !text.is_empty())
}

fn one_space(text: &str) -> String {
    text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn file() -> impl Strategy<Value = Value> {
    let name = line().prop_map(|name| {
        let name: String = name.replace(['/', '\\'], "").chars().take(120).collect();
        format!("a{name}")
    });
    (name, vec(any::<u8>(), 0..300), any::<bool>()).prop_map(|(name, content, inline)| {
        json!({
            "filename": name, "content": BASE64_STANDARD.encode(content),
            "disposition": if inline { "inline" } else { "attachment" },
        })
    })
}

proptest! {
    #[test]
    fn header_text_comes_back(subject in line(), field in line(), long in "[A-Z]{1,60}") {
        let name = format!("X-{long}");
        let message = request(json!({ "html": "h", "subject": subject, "headers": { &name: field } }));
        let composed = sent(&message);
        let read = read(&composed);
        prop_assert_eq!(read.subject(), Some(message.subject.as_str()));
        let value = field_text(&read, &name);
        // This reader makes one space of several where a line was folded.
        prop_assert_eq!(one_space(&value), one_space(&message.headers[0].value));
    }

    #[test]
    fn addresses_come_back(names in vec(line(), 1..5), local in "[a-zé]{1,8}") {
        let address = |at: usize| format!("{local}{at}@example.net");
        let to: Vec<Value> = (names.iter().enumerate())
            .map(|(at, name)| json!({ "name": name, "email": address(at) }))
            .collect();
        let message = request(json!({ "html": "h", "to": to }));
        let composed = sent(&message);
        prop_assert_eq!(composed.smtputf8, !local.is_ascii());
        let read = read(&composed);
        let list = read.to().and_then(|list| list.as_list()).unwrap_or_default();
        prop_assert_eq!(list.len(), names.len());
        for (given, back) in message.to.iter().zip(list) {
            prop_assert_eq!(back.name(), given.name());
            prop_assert_eq!(back.address(), Some(given.address().as_str()));
        }
    }

    #[test]
    fn bodies_come_back(html in body(), text in body()) {
        let message = request(json!({ "html": html, "text": text }));
        let composed = sent(&message);
        let read = read(&composed);
        prop_assert_eq!(read.body_html(0).unwrap_or_default(), with_crlf(&html));
        prop_assert_eq!(read.body_text(0).unwrap_or_default(), with_crlf(&text));
    }

    #[test]
    fn files_come_back(files in vec(file(), 1..4)) {
        let message = request(json!({ "html": "h", "attachments": files }));
        let composed = sent(&message);
        let read = read(&composed);
        prop_assert_eq!(read.attachment_count(), message.attachments.len());
        for (given, back) in message.attachments.iter().zip(read.attachments()) {
            prop_assert_eq!(back.attachment_name(), Some(given.filename.as_str()));
            prop_assert_eq!(back.contents(), &given.content[..]);
        }
    }

    #[test]
    fn a_lone_body_gains_no_more_than_a_line_end(body in body()) {
        let composed = sent(&request(json!({ "text": body })));
        let read = read(&composed);
        let back = read.body_text(0).unwrap_or_default().into_owned();
        let given = with_crlf(&body);
        prop_assert!(back == given || back == format!("{given}\r\n"), "{:?}", back);
    }
}
