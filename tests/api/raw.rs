//! Messages that their sender has composed.

use serde_json::{Value, json};

use crate::support::{
    TestApp, message,
    relay::{Script, ScriptedRelay},
};

const RAW: &str = "From: \"App\" <app@example.com>\nTo: a@example.net\nCc: c@example.org\n\
    Bcc: hidden@example.org\nSubject: =?utf-8?Q?Gr=C3=BC=C3=9Fe?=\n\nHello\n.\nthere\n";

async fn post(
    t: &TestApp,
    key: &str,
    query: &str,
    body: &str,
    headers: &[(&str, &str)],
) -> (u16, Value) {
    let mut request = t
        .request("POST", &format!("/send{query}"))
        .header("x-api-key", key)
        .header("content-type", "message/rfc822")
        .body(body.to_owned());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.json().await.unwrap())
}

async fn taken(t: &TestApp, query: &str, body: &str) -> String {
    let (status, job) = post(t, &t.key, query, body, &[]).await;
    assert_eq!(status, 202, "{job:#}");
    job["id"].as_str().unwrap().to_owned()
}

async fn received(t: &TestApp) -> String {
    let list = t.get("/sandbox/messages").await.is(200);
    let raw = t.get(&format!("/sandbox/messages/{}/raw", list[0]["id"].as_str().unwrap())).await;
    String::from_utf8(raw.bytes).unwrap()
}

#[tokio::test]
async fn it_arrives_as_it_came_and_with_what_it_lacked() {
    let t = TestApp::start().await;
    let id = taken(&t, "?tag=one&metadata=%7B%22order%22%3A%227%22%7D", RAW).await;
    let job = t.settled(&id).await;
    assert_eq!(job["outcome"], "sent");
    assert_eq!(job["payload"]["subject"], "Grüße");
    assert_eq!(
        (&job["payload"]["to"], &job["payload"]["cc"]),
        (&json!("a@example.net"), &json!("c@example.org"))
    );
    assert_eq!((&job["tags"], &job["metadata"]), (&json!(["one"]), &json!({ "order": "7" })));
    let fields: Vec<_> =
        job["recipients"].as_array().unwrap().iter().map(|it| it["field"].clone()).collect();
    assert_eq!(fields, ["to", "cc", "bcc"]);
    let raw = received(&t).await;
    let (added, rest) = raw.split_once("From: ").unwrap();
    assert!(added.starts_with("Date: "), "{added}");
    assert!(
        added.contains(&format!("\r\nMessage-ID: {}\r\n", job["messageId"].as_str().unwrap())),
        "{added}"
    );
    let kept = RAW.replace("Bcc: hidden@example.org\n", "").replace('\n', "\r\n");
    assert_eq!(format!("From: {rest}"), kept);
    let content = t.get(&format!("/jobs/{id}?include=content")).await.is(200);
    assert_eq!(content["payload"]["text"], "Hello\r\n.\r\nthere\r\n");
    t.stop().await;
}

#[tokio::test]
async fn a_dry_run_shows_the_bytes_and_the_envelope() {
    let t = TestApp::start().await;
    let (status, run) =
        post(&t, &t.key, "?dryRun&rcpt=x@example.net&rcpt=c@example.org", RAW, &[]).await;
    assert_eq!(status, 200, "{run:#}");
    assert_eq!(run["envelope"]["recipients"], json!(["c@example.org", "x@example.net"]));
    assert_eq!(t.get("/jobs").await.is(200), json!([]));
    t.stop().await;
}

#[tokio::test]
async fn only_a_relay_with_8bitmime_is_given_eight_bits() {
    let t = TestApp::start_with(&[("POSTROOM_SANDBOX", "false")]).await;
    let relays = [
        ScriptedRelay::start(Script::default()).await,
        ScriptedRelay::start(Script { offers: "250-8BITMIME\r\n", ..Script::default() }).await,
    ];
    let body = RAW.replace("Hello", "Grüße");
    for (relay, ends) in relays.iter().zip(["failed", "sent"]) {
        let new = json!({
            "name": ends, "host": "127.0.0.1", "port": relay.port, "secure": false,
            "fromAddress": "app@example.com", "anySender": true, "priority": if ends == "sent" { 1 } else { 2 },
        });
        t.post("/admin/api/smtp-accounts", new).await.is(201);
        let job = t.settled(&taken(&t, "", &body).await).await;
        assert_eq!(job["outcome"], ends, "{job:#}");
        if ends == "failed" {
            assert_eq!(job["recipients"][0]["reason"], "eight_bit_missing");
            assert_eq!(relay.dots(), 0);
        }
    }
    t.stop().await;
}

#[tokio::test]
async fn a_message_id_is_taken_once() {
    let t = TestApp::start().await;
    let body = format!("Message-ID: <mine@example.com>\n{RAW}");
    let keyed = [("idempotency-key", "one")];
    let posts = (0..20).map(|_| post(&t, &t.key, "", &body, &[]));
    let answers = futures_util::future::join_all(posts).await;
    assert_eq!(answers.iter().filter(|(status, _)| *status == 202).count(), 1);
    let refused: Vec<_> = answers.iter().filter(|(status, _)| *status == 409).collect();
    assert_eq!(refused.len(), 19);
    assert!(refused.iter().all(|(_, said)| said["code"] == "MESSAGE_ID_USED"));
    // What was refused does not use up its key.
    assert_eq!(post(&t, &t.key, "", &body, &keyed).await.1["code"], "MESSAGE_ID_USED");
    let other = body.replace("mine", "other");
    let (status, first) = post(&t, &t.key, "", &other, &keyed).await;
    assert_eq!((status, &first["messageId"]), (202, &json!("<other@example.com>")));
    let (status, again) = post(&t, &t.key, "", &other, &keyed).await;
    assert_eq!((status, &again["id"]), (202, &first["id"]));
    let changed = other.replace("there", "here");
    assert_eq!(post(&t, &t.key, "", &changed, &keyed).await.1["code"], "IDEMPOTENCY_KEY_REUSED");
    t.counted("select count(*) from messages where outcome = 'sent'", 2).await;
    t.stop().await;
}

#[tokio::test]
async fn a_key_sends_only_as_whom_it_may() {
    let t = TestApp::start().await;
    let new = json!({ "name": "k", "scopes": ["send"], "senderAddresses": ["app@example.com"] });
    let key =
        t.post("/admin/api/api-keys", new).await.is(201)["plain"].as_str().unwrap().to_owned();
    assert_eq!(post(&t, &key, "", RAW, &[]).await.0, 202);
    for body in [RAW.replace("app@", "boss@"), format!("Sender: boss@example.com\n{RAW}")] {
        let (status, said) = post(&t, &key, "", &body, &[]).await;
        assert_eq!((status, &said["code"]), (403, &json!("SENDER_NOT_ALLOWED")), "{said:#}");
    }
    let (status, said) = post(&t, &key, "?rcpt=nobody", "no header", &[]).await;
    assert_eq!((status, &said["issues"][0]["path"]), (400, &json!("")), "{said:#}");
    let answer =
        t.request("POST", "/send").header("x-api-key", &key).header("content-type", "text/plain");
    assert_eq!(answer.body("Hello").send().await.unwrap().status(), 415);
    t.post("/send", message("a@example.net")).await.is(202);
    t.stop().await;
}
