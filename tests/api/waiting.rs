//! `?wait`: the answer comes with the outcome.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{
    TestApp, message,
    relay::{Script, ScriptedRelay},
};

async fn relay(t: &TestApp, relay: &ScriptedRelay) {
    let new = json!({
        "name": "relay", "host": "127.0.0.1", "port": relay.port, "secure": false,
        "fromAddress": "app@example.com", "domain": "example.com", "priority": 1,
    });
    t.post("/admin/api/smtp-accounts", new).await.is(201);
}

#[tokio::test]
async fn the_answer_says_what_became_of_it() {
    let t = TestApp::start().await;
    let rcpt = vec![("bad@", "550 5.1.1 no such user"), ("later@", "450 4.2.1 try later")];
    let one = ScriptedRelay::start(Script { rcpt, ..Script::default() }).await;
    relay(&t, &one).await;
    for (query, to, status, ok, standing) in [
        ("?wait", "a@example.net", 200, true, "done"),
        ("?wait=1", "a@example.net, b@example.net", 200, true, "done"),
        ("?wait=true", "bad@example.net", 502, false, "dead"),
        ("?wait=20", "a@example.net, bad@example.net", 202, false, "done"),
        ("?wait=60", "later@example.net", 202, false, "pending"),
    ] {
        let begun = Instant::now();
        let answer = t.post(&format!("/send{query}"), message(to)).await.is(status);
        assert_eq!(
            (&answer["ok"], &answer["status"]),
            (&json!(ok), &json!(standing)),
            "{query} {to}"
        );
        assert!(begun.elapsed() < Duration::from_secs(5), "{query} {to}: {:?}", begun.elapsed());
    }
    for query in ["", "?wait=0", "?wait=false", "?wait=no"] {
        let answer = t.post(&format!("/send{query}"), message("a@example.net")).await.is(202);
        assert_eq!(answer["ok"], true, "{query}");
    }
    for query in ["?wait=61", "?wait=-1", "?wait=1&dryRun"] {
        t.post(&format!("/send{query}"), message("a@example.net")).await.is(400);
    }
    t.stop().await;
}

#[tokio::test]
async fn a_relay_that_is_down_or_a_time_to_come_ends_the_wait_at_once() {
    let t = TestApp::start().await;
    let mut down = ScriptedRelay::start(Script::default()).await;
    // Nobody listens there.
    down.port = 1;
    relay(&t, &down).await;
    let begun = Instant::now();
    let answer = t.post("/send?wait", message("a@example.net")).await.is(202);
    assert_eq!((&answer["ok"], &answer["status"]), (&json!(false), &json!("pending")));
    let mut body = message("a@example.net");
    let far: chrono::DateTime<chrono::Utc> =
        sqlx::query_scalar("select now() + interval '1 day'").fetch_one(&t.db).await.unwrap();
    body["sendAt"] = json!(far);
    assert_eq!(t.post("/send?wait", body).await.is(202)["ok"], false);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    t.stop().await;
}

#[tokio::test]
async fn a_wait_ends_at_its_time_and_a_replay_waits_for_the_same_message() {
    let t = TestApp::start().await;
    let slow =
        ScriptedRelay::start(Script { pace: Duration::from_secs(3), ..Script::default() }).await;
    relay(&t, &slow).await;
    let key = [("idempotency-key", "order-42")];
    let post = |path: &'static str| {
        t.with_headers(&t.key, "POST", path, Some(message("a@example.net")), &key)
    };
    let begun = Instant::now();
    let early = post("/send?wait=2").await.is(202);
    assert_eq!((&early["ok"], &early["status"]), (&json!(false), &json!("processing")));
    assert!(begun.elapsed() >= Duration::from_secs(2));
    let late = post("/send?wait").await.is(200);
    assert_eq!((&late["id"], &late["status"]), (&early["id"], &json!("done")));
    assert_eq!(slow.dots(), 1);
    t.stop().await;
}

#[tokio::test]
async fn a_client_that_leaves_changes_nothing() {
    let t = TestApp::start().await;
    let slow =
        ScriptedRelay::start(Script { pace: Duration::from_secs(1), ..Script::default() }).await;
    relay(&t, &slow).await;
    let leaving = t.post("/send?wait", message("a@example.net"));
    tokio::time::timeout(Duration::from_millis(400), leaving).await.err().expect("it left");
    let jobs = t.get("/jobs").await.is(200);
    assert_eq!(t.settled(jobs[0]["id"].as_str().unwrap()).await["outcome"], "sent");
    t.stop().await;
}

/// The process that answers does not work: another one sends, and only a look finds the outcome.
#[tokio::test]
async fn the_outcome_is_found_though_another_process_brings_it() {
    let t = TestApp::start().await;
    let other = t.beside().await;
    let answers = (0..20).map(|n| {
        let app = if n % 2 == 0 { &t } else { &other };
        app.post("/send?wait", message("a@example.net"))
    });
    for answer in futures_util::future::join_all(answers).await {
        assert_eq!(answer.is(200)["status"], "done");
    }
    other.leave().await;
    t.stop().await;
}

#[tokio::test]
async fn a_stop_does_not_wait_for_those_who_wait() {
    let t = TestApp::start().await;
    let slow = ScriptedRelay::start(Script { mute: true, ..Script::default() }).await;
    relay(&t, &slow).await;
    let url = format!("{}/send?wait=60", t.url);
    let client = reqwest::Client::new();
    let waiting =
        client.post(url).header("x-api-key", &t.key).json(&message("a@example.net")).send();
    let begun = Instant::now();
    let db = t.db.clone();
    let stopped = async {
        while sqlx::query_scalar::<_, i64>("select count(*) from messages")
            .fetch_one(&db)
            .await
            .unwrap()
            == 0
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        t.leave().await;
    };
    let (answer, ()) = tokio::join!(waiting, stopped);
    let answer: Value = serde_json::from_slice(&answer.unwrap().bytes().await.unwrap()).unwrap();
    assert_eq!(answer["ok"], false, "{answer}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}
