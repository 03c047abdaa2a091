//! Trying again: one message, and many by a filter.

use serde_json::{Value, json};

use crate::support::{
    TestApp, message,
    relay::{Script, ScriptedRelay},
};

async fn relay(t: &TestApp, name: &str, domain: &str, relay: &ScriptedRelay) {
    let new = json!({
        "name": name, "host": "127.0.0.1", "port": relay.port, "secure": false,
        "fromAddress": format!("app@{domain}"), "domain": domain, "priority": 1,
    });
    t.post("/admin/api/smtp-accounts", new).await.is(201);
}

async fn send(t: &TestApp, body: Value) -> String {
    t.post("/send", body).await.is(202)["id"].as_str().unwrap().to_owned()
}

async fn retry(t: &TestApp, id: &str, status: u16) -> Value {
    t.call(&t.key, "POST", &format!("/jobs/{id}/retry"), None).await.is(status)
}

async fn count(t: &TestApp, id: &str, kind: &str) -> i64 {
    sqlx::query_scalar("select count(*) from events where subject_id = $1::uuid and kind = $2")
        .bind(id)
        .bind(kind)
        .fetch_one(&t.db)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_failed_recipient_is_tried_again_and_the_message_settles_again() {
    let t = TestApp::start().await;
    let dot = vec!["554 5.7.1 refused", "250 2.0.0 Ok"];
    let one = ScriptedRelay::start(Script { dot, ..Script::default() }).await;
    relay(&t, "one", "example.com", &one).await;
    let id = send(&t, message("a@example.net")).await;
    assert_eq!(t.settled(&id).await["status"], "dead");

    let open = retry(&t, &id, 200).await;
    assert_eq!((&open["retries"], &open["outcome"]), (&json!(1), &Value::Null));
    assert_eq!(open["recipients"][0]["tries"], 0);
    let job = t.settled(&id).await;
    assert_eq!((&job["status"], &job["outcome"]), (&json!("done"), &json!("sent")), "{job:#}");
    assert_eq!(
        (count(&t, &id, "send.failed").await, count(&t, &id, "send.completed").await),
        (1, 1)
    );
    assert_eq!(count(&t, &id, "message.retried").await, 1);
    assert_eq!(retry(&t, &id, 409).await["code"], "NOTHING_TO_RETRY");
    assert_eq!(one.dots(), 2);
    t.stop().await;
}

#[tokio::test]
async fn what_waits_is_due_now_and_what_is_unknown_is_left_alone() {
    let t = TestApp::start().await;
    let dot = vec!["451 4.7.1 Greylisted, try again in 300 seconds"];
    let grey = ScriptedRelay::start(Script { dot, ..Script::default() }).await;
    relay(&t, "grey", "example.com", &grey).await;
    let id = send(&t, message("a@example.net")).await;
    until(&t, &id, "deferred").await;
    retry(&t, &id, 200).await;
    assert_eq!(t.settled(&id).await["outcome"], "sent");

    let mute = ScriptedRelay::start(Script { mute_after_dot: true, ..Script::default() }).await;
    relay(&t, "mute", "mute.example", &mute).await;
    let mut body = message("a@example.net");
    body["from"] = json!("app@mute.example");
    let id = send(&t, body).await;
    until(&t, &id, "unknown").await;
    assert_eq!(retry(&t, &id, 409).await["code"], "NOTHING_TO_RETRY");
    assert_eq!(mute.dots(), 1);

    let mut later = message("a@example.net");
    later["sendAt"] = json!("2026-12-31T00:00:00Z");
    let far: chrono::DateTime<chrono::Utc> =
        sqlx::query_scalar("select clock_timestamp() + interval '3 days'")
            .fetch_one(&t.db)
            .await
            .unwrap();
    later["sendAt"] = json!(far);
    let id = send(&t, later).await;
    // Its time has not come; to send it now is another decision.
    retry(&t, &id, 409).await;
    t.call(&t.key, "POST", &format!("/jobs/{id}/cancel"), None).await.is(200);
    assert_eq!(retry(&t, &id, 409).await["code"], "NOTHING_TO_RETRY", "a cancellation is final");
    t.stop().await;
}

#[tokio::test]
async fn an_expired_message_gets_a_new_lifetime_and_an_erased_one_nothing() {
    let t = TestApp::start().await;
    let refusing =
        ScriptedRelay::start(Script { dot: vec!["451 4.3.0 later"], ..Script::default() }).await;
    relay(&t, "one", "example.com", &refusing).await;
    let mut body = message("a@example.net");
    body["ttl"] = json!(1800);
    let id = send(&t, body).await;
    until(&t, &id, "deferred").await;
    t.pass(1).await;
    assert_eq!(t.settled(&id).await["outcome"], "expired");

    sqlx::query("create table kept as select * from message_content").execute(&t.db).await.unwrap();
    sqlx::query("delete from message_content").execute(&t.db).await.unwrap();
    assert_eq!(retry(&t, &id, 409).await["code"], "CONTENT_GONE");
    let all = t.post("/jobs/retry", json!({ "outcome": "expired" })).await.is(200);
    assert_eq!(all["messages"], 0);
    sqlx::query("insert into message_content select * from kept").execute(&t.db).await.unwrap();
    retry(&t, &id, 200).await;
    assert_eq!(t.settled(&id).await["outcome"], "sent");
    t.stop().await;
}

#[tokio::test]
async fn many_parallel_retries_open_it_once() {
    let t = TestApp::start().await;
    let one =
        ScriptedRelay::start(Script { dot: vec!["554 5.7.1 refused"], ..Script::default() }).await;
    relay(&t, "one", "example.com", &one).await;
    let id = send(&t, message("a@example.net")).await;
    t.settled(&id).await;
    let path = format!("/jobs/{id}/retry");
    let calls = (0..20).map(|_| t.call(&t.key, "POST", &path, None));
    let statuses: Vec<u16> =
        futures_util::future::join_all(calls).await.into_iter().map(|it| it.status).collect();
    assert_eq!(statuses.iter().filter(|it| **it == 200).count(), 1, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|it| **it == 409).count(), 19, "{statuses:?}");
    assert_eq!(t.settled(&id).await["outcome"], "sent");
    assert_eq!(one.dots(), 2);
    t.stop().await;
}

#[tokio::test]
async fn a_filter_finds_what_to_try_again() {
    let t = TestApp::start().await;
    let refusals = vec![("bad@", "550 5.1.1 no such user"), ("full@", "552 5.2.2 mailbox full")];
    let one = ScriptedRelay::start(Script { rcpt: refusals.clone(), ..Script::default() }).await;
    let two = ScriptedRelay::start(Script { rcpt: refusals, ..Script::default() }).await;
    relay(&t, "one", "example.com", &one).await;
    relay(&t, "two", "two.example", &two).await;
    let made =
        t.post("/admin/api/api-keys", json!({ "name": "s", "scopes": ["send"] })).await.is(201);
    let own = made["plain"].as_str().unwrap();
    let mut ids = Vec::new();
    for (to, from, tag) in [
        ("bad@example.net", "app@example.com", "a"),
        ("bad@example.org, good@example.org", "app@example.com", "b"),
        ("full@example.net", "app@two.example", "b"),
        ("good@example.net", "app@two.example", "a"),
    ] {
        let mut body = message(to);
        body["from"] = json!(from);
        body["tags"] = json!([tag]);
        ids.push(send(&t, body).await);
    }
    for id in &ids {
        t.settled(id).await;
    }
    let dry = async |mut filter: Value| {
        filter["dryRun"] = json!(true);
        let said = t.post("/jobs/retry", filter).await.is(200);
        assert_eq!(said["dryRun"], true);
        (said["messages"].as_i64().unwrap(), said["recipients"].as_i64().unwrap())
    };
    assert_eq!(dry(json!({})).await, (3, 3));
    assert_eq!(dry(json!({ "status": "dead" })).await, (2, 2));
    assert_eq!(dry(json!({ "status": "done" })).await, (1, 1));
    assert_eq!(dry(json!({ "status": "pending" })).await, (0, 0));
    assert_eq!(dry(json!({ "outcome": "partial" })).await, (1, 1));
    assert_eq!(dry(json!({ "outcome": "expired" })).await, (0, 0));
    assert_eq!(dry(json!({ "reason": "mailbox_full" })).await, (1, 1));
    assert_eq!(dry(json!({ "relay": "two" })).await, (1, 1));
    assert_eq!(dry(json!({ "senderDomain": "Example.COM" })).await, (2, 2));
    assert_eq!(dry(json!({ "recipientDomain": "example.org" })).await, (1, 1));
    assert_eq!(dry(json!({ "tag": "b" })).await, (2, 2));
    assert_eq!(
        dry(json!({ "since": "2020-01-01T00:00:00Z", "until": "2021-01-01T00:00:00Z" })).await,
        (0, 0)
    );
    assert_eq!(
        dry(json!({ "since": "2020-01-01T00:00:00Z", "until": "2199-01-01T00:00:00Z" })).await,
        (3, 3)
    );
    assert_eq!(dry(json!({ "key": made["id"] })).await, (0, 0));
    for bad in [
        json!({ "limit": 0 }),
        json!({ "limit": 1001 }),
        json!({ "status": "lost" }),
        json!({ "more": 1 }),
    ] {
        t.post("/jobs/retry", bad).await.is(400);
    }
    let none = t.call(own, "POST", "/jobs/retry", Some(json!({}))).await.is(200);
    assert_eq!(none["messages"], 0, "another key's messages are not its own");

    let first = t.post("/jobs/retry", json!({ "limit": 2 })).await.is(200);
    assert_eq!(
        (&first["messages"], &first["recipients"], &first["more"]),
        (&json!(2), &json!(2), &json!(true))
    );
    for (at, retries) in [(0, 1), (1, 1), (2, 0), (3, 0)] {
        assert_eq!(t.settled(&ids[at]).await["retries"], retries, "message {at}");
    }
    t.stop().await;
}

async fn until(t: &TestApp, id: &str, state: &str) {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let job = t.get(&format!("/jobs/{id}")).await.is(200);
        if job["recipients"][0]["state"] == state {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "never {state}: {job:#}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}
