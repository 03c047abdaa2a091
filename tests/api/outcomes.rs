//! What relays say, and what becomes of each recipient.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    TestApp, message,
    relay::{Script, ScriptedRelay},
};

async fn relay(t: &TestApp, relay: &ScriptedRelay, priority: i32, login: bool) {
    let mut new = json!({
        "name": format!("relay-{priority}"), "host": "127.0.0.1", "port": relay.port, "secure": false,
        "fromAddress": "app@example.com", "domain": "example.com", "priority": priority,
    });
    if login {
        new["username"] = json!("user");
        new["password"] = json!("secret-word");
    }
    let made = t.post("/admin/api/smtp-accounts", new).await.is(201);
    assert!(!made.to_string().contains("secret-word"));
}

/// The message, once the first recipient is in this state.
async fn until(t: &TestApp, id: &str, state: &str) -> Value {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        let job = t.get(&format!("/jobs/{id}")).await.is(200);
        if job["recipients"][0]["state"] == state {
            return job;
        }
        assert!(tokio::time::Instant::now() < deadline, "not {state}: {job:#}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_refused_login_fails_over_and_names_both_relays() {
    let t = TestApp::start().await;
    let first =
        ScriptedRelay::start(Script { auth: Some("535 5.7.8 bad login"), ..Script::default() })
            .await;
    let second = ScriptedRelay::start(Script::default()).await;
    relay(&t, &first, 1, true).await;
    relay(&t, &second, 2, false).await;
    let sent = t.post("/send", message("a@example.net")).await.is(202);
    let job = t.settled(sent["id"].as_str().unwrap()).await;
    assert_eq!(job["outcome"], "sent", "{job:#}");
    assert_eq!(job["account"], "relay-2");
    assert_eq!(job["history"][0]["code"], 535);
    assert_eq!(job["recipients"][0]["remoteQueueId"], "ABC123");
    t.stop().await;
}

#[tokio::test]
async fn of_two_recipients_the_refused_one_fails_with_its_words_in_one_session() {
    let t = TestApp::start().await;
    let rcpt = vec![("bad@", "550 5.1.1 no such user here")];
    let one = ScriptedRelay::start(Script { rcpt, ..Script::default() }).await;
    relay(&t, &one, 1, false).await;
    let sent = t.post("/send", message("good@example.net, bad@example.net")).await.is(202);
    let job = t.settled(sent["id"].as_str().unwrap()).await;
    assert_eq!((&job["status"], &job["outcome"]), (&json!("done"), &json!("partial")));
    assert_eq!(job["recipients"][0]["state"], "sent");
    assert_eq!(job["recipients"][1]["state"], "failed");
    assert_eq!(job["recipients"][1]["enhancedCode"], "5.1.1");
    assert_eq!(job["error"], "no such user here");
    assert_eq!(one.sessions(), 1);
    t.stop().await;
}

#[tokio::test]
async fn a_lost_reply_after_the_dot_is_unknown_and_sends_no_second_copy() {
    let t = TestApp::start().await;
    let mute = ScriptedRelay::start(Script { mute_after_dot: true, ..Script::default() }).await;
    let other = ScriptedRelay::start(Script::default()).await;
    relay(&t, &mute, 1, false).await;
    relay(&t, &other, 2, false).await;
    let sent = t.post("/send", message("a@example.net")).await.is(202);
    let id = sent["id"].as_str().unwrap();
    let job = until(&t, id, "unknown").await;
    assert_eq!((&job["status"], &job["outcome"]), (&json!("processing"), &json!("unknown")));
    assert_eq!((mute.dots(), other.sessions()), (1, 0));

    let path = format!("/jobs/{id}/resolve");
    t.post(&path, json!({ "as": "sent", "surprise": 1 })).await.is(400);
    let resolved = t.post(&path, json!({ "as": "sent" })).await.is(200);
    assert_eq!(resolved["outcome"], "sent");
    t.post(&path, json!({ "as": "sent" })).await.is(409);
    t.stop().await;
}

#[tokio::test]
async fn resend_is_told_and_stops_after_three_copies() {
    let t = TestApp::start().await;
    let mute = ScriptedRelay::start(Script { mute_after_dot: true, ..Script::default() }).await;
    relay(&t, &mute, 1, false).await;
    let mut body = message("a@example.net");
    body["onUnknown"] = json!("resend");
    let sent = t.post("/send", body).await.is(202);
    let id = sent["id"].as_str().unwrap();
    for copy in 1..=3 {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        while t.get(&format!("/jobs/{id}")).await.is(200)["resends"] != copy {
            assert!(tokio::time::Instant::now() < deadline, "copy {copy} was not told");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        t.pass(1).await;
    }
    until(&t, id, "unknown").await;
    assert_eq!(mute.dots(), 4, "the first copy and three more");
    t.stop().await;
}

#[tokio::test]
async fn greylisting_waits_on_its_relay_and_then_arrives() {
    let t = TestApp::start().await;
    let grey = ScriptedRelay::start(Script {
        dot: vec!["451 4.7.1 Greylisted, try again in 300 seconds"],
        ..Script::default()
    })
    .await;
    relay(&t, &grey, 1, false).await;
    let sent = t.post("/send", message("a@example.net")).await.is(202);
    let id = sent["id"].as_str().unwrap();
    let waiting = until(&t, id, "deferred").await;
    assert_eq!(waiting["status"], "pending");
    assert_eq!(waiting["recipients"][0]["reason"], "greylisted");
    let (created, next) =
        (time(&waiting["createdAt"]), time(&waiting["recipients"][0]["nextAttemptAt"]));
    assert!((300..=340).contains(&(next - created).num_seconds()), "{waiting:#}");
    t.pass(1).await;
    assert_eq!(t.settled(id).await["outcome"], "sent");
    assert_eq!(grey.dots(), 2);
    t.stop().await;
}

#[tokio::test]
async fn a_relay_that_leaves_at_the_dot_with_a_word_keeps_the_message_waiting() {
    let t = TestApp::start().await;
    let leaving =
        ScriptedRelay::start(Script { dot: vec!["421 4.3.2 shutting down"], ..Script::default() })
            .await;
    relay(&t, &leaving, 1, false).await;
    let sent = t.post("/send", message("a@example.net")).await.is(202);
    let id = sent["id"].as_str().unwrap();
    tried(&t, id, 1).await;
    t.pass(1).await;
    assert_eq!(t.settled(id).await["outcome"], "sent");
    assert_eq!(leaving.dots(), 2);
    t.stop().await;
}

#[tokio::test]
async fn one_refusal_after_the_dot_for_two_recipients_asks_each_alone() {
    let t = TestApp::start().await;
    let late = ScriptedRelay::start(Script {
        dot: vec!["550 5.1.1 no such user", "250 2.0.0 Ok", "550 5.1.1 no such user"],
        ..Script::default()
    })
    .await;
    relay(&t, &late, 1, false).await;
    let sent = t.post("/send", message("good@example.net, bad@example.net")).await.is(202);
    let job = t.settled(sent["id"].as_str().unwrap()).await;
    assert_eq!(job["outcome"], "partial", "{job:#}");
    assert_eq!(
        (&job["recipients"][0]["state"], &job["recipients"][1]["state"]),
        (&json!("sent"), &json!("failed"))
    );
    assert_eq!(late.dots(), 3);
    t.stop().await;
}

#[tokio::test]
async fn a_message_too_big_for_one_relay_takes_the_next_and_for_all_fails_with_its_reason() {
    let t = TestApp::start().await;
    let small =
        ScriptedRelay::start(Script { offers: "250-SIZE 100\r\n", ..Script::default() }).await;
    relay(&t, &small, 1, false).await;
    let sent = t.post("/send", message("a@example.net")).await.is(202);
    let job = t.settled(sent["id"].as_str().unwrap()).await;
    assert_eq!(
        (&job["status"], &job["recipients"][0]["reason"]),
        (&json!("dead"), &json!("message_too_big"))
    );
    let large = ScriptedRelay::start(Script::default()).await;
    relay(&t, &large, 2, false).await;
    let sent = t.post("/send", message("a@example.net")).await.is(202);
    let job = t.settled(sent["id"].as_str().unwrap()).await;
    assert_eq!((&job["outcome"], &job["account"]), (&json!("sent"), &json!("relay-2")));
    t.stop().await;
}

#[tokio::test]
async fn a_message_expires_though_its_only_relay_is_gone() {
    let t = TestApp::start().await;
    let refusing =
        ScriptedRelay::start(Script { auth: Some("535 5.7.8 bad login"), ..Script::default() })
            .await;
    relay(&t, &refusing, 1, true).await;
    let mut body = message("a@example.net");
    body["ttl"] = json!(1800);
    let sent = t.post("/send", body).await.is(202);
    let id = sent["id"].as_str().unwrap();
    tried(&t, id, 1).await;
    // The relay rests after a refused login: no step will run, and time goes on all the same.
    t.pass(1).await;
    let job = t.settled(id).await;
    assert_eq!((&job["status"], &job["outcome"]), (&json!("dead"), &json!("expired")), "{job:#}");
    t.stop().await;
}

fn time(value: &Value) -> chrono::DateTime<chrono::Utc> {
    value.as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn what_one_relay_cannot_carry_waits_for_the_one_that_is_down() {
    let t = TestApp::start().await;
    let small =
        ScriptedRelay::start(Script { offers: "250-SIZE 100\r\n", ..Script::default() }).await;
    let mut down = ScriptedRelay::start(Script::default()).await;
    // Nobody listens there.
    down.port = 1;
    for (first, second) in [(&small, &down), (&down, &small)] {
        sqlx::raw_sql("delete from relays where kind = 'smtp'").execute(&t.db).await.unwrap();
        relay(&t, first, 1, false).await;
        relay(&t, second, 2, false).await;
        let sent = t.post("/send", message("a@example.net")).await.is(202);
        let id = sent["id"].as_str().unwrap();
        let job = tried(&t, id, 2).await;
        assert_eq!(job["recipients"][0]["state"], "queued", "{job:#}");
    }
    t.stop().await;
}

#[tokio::test]
async fn a_recipient_whom_one_relay_cannot_carry_goes_on_alone() {
    let t = TestApp::start().await;
    let rcpt = vec![("picky@", "553 5.6.7 needs SMTPUTF8"), ("gone@", "550 5.1.1 no such user")];
    let first = ScriptedRelay::start(Script { rcpt, ..Script::default() }).await;
    let second = ScriptedRelay::start(Script::default()).await;
    relay(&t, &first, 1, false).await;
    relay(&t, &second, 2, false).await;
    let to = "good@example.net, picky@example.net, gone@example.net";
    let sent = t.post("/send", message(to)).await.is(202);
    let job = t.settled(sent["id"].as_str().unwrap()).await;
    let states: Vec<(&str, &str)> = job["recipients"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["state"].as_str().unwrap(), it["account"].as_str().unwrap()))
        .collect();
    assert_eq!(states, [("sent", "relay-1"), ("sent", "relay-2"), ("failed", "relay-1")]);
    assert_eq!((first.dots(), second.dots()), (1, 1));
    t.stop().await;
}

#[tokio::test]
async fn a_relay_that_says_later_at_every_dot_is_left_after_two_tries() {
    let t = TestApp::start().await;
    let dot = vec!["451 4.3.0 later"; 9];
    let busy = ScriptedRelay::start(Script { dot, ..Script::default() }).await;
    let second = ScriptedRelay::start(Script::default()).await;
    relay(&t, &busy, 1, false).await;
    relay(&t, &second, 2, false).await;
    let sent = t.post("/send", message("a@example.net")).await.is(202);
    let id = sent["id"].as_str().unwrap();
    for n in 1..=2 {
        tried(&t, id, n).await;
        t.pass(5).await;
    }
    assert_eq!(t.settled(id).await["account"], "relay-2");
    assert_eq!((busy.dots(), second.dots()), (2, 1));
    t.stop().await;
}

#[tokio::test]
async fn a_key_that_only_reads_decides_nothing() {
    let t = TestApp::start().await;
    let mute = ScriptedRelay::start(Script { mute_after_dot: true, ..Script::default() }).await;
    relay(&t, &mute, 1, false).await;
    let sent = t.post("/send", message("a@example.net")).await.is(202);
    let id = sent["id"].as_str().unwrap();
    until(&t, id, "unknown").await;
    for (scope, status) in [("read", 403), ("send", 404)] {
        let made = t
            .post("/admin/api/api-keys", json!({ "name": scope, "scopes": [scope] }))
            .await
            .is(201);
        let path = format!("/jobs/{id}/resolve");
        let key = made["plain"].as_str().unwrap();
        t.call(key, "POST", &path, Some(json!({ "as": "resend" }))).await.is(status);
    }
    assert_eq!(mute.dots(), 1);
    t.stop().await;
}

/// The message, once so many attempts have ended.
async fn tried(t: &TestApp, id: &str, attempts: i32) -> Value {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        let job = t.get(&format!("/jobs/{id}")).await.is(200);
        if job["attempts"] == attempts {
            return job;
        }
        assert!(tokio::time::Instant::now() < deadline, "not {attempts}: {job:#}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
