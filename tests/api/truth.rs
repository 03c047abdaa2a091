//! What is said of a message is true: when words come late, when several copies left, when two look
//! at once.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    TestApp, message,
    relay::{Script, ScriptedRelay},
};

async fn relay(t: &TestApp, relay: &ScriptedRelay, priority: i32) {
    let new = json!({
        "name": format!("relay-{priority}"), "host": "127.0.0.1", "port": relay.port, "secure": false,
        "fromAddress": "app@example.com", "domain": "example.com", "priority": priority,
    });
    t.post("/admin/api/smtp-accounts", new).await.is(201);
}

/// The message, once this holds of it.
async fn until(t: &TestApp, id: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        let job = t.get(&format!("/jobs/{id}")).await.is(200);
        if holds(&job) {
            return job;
        }
        assert!(tokio::time::Instant::now() < deadline, "never {what}: {job:#}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn is(state: &str) -> impl Fn(&Value) -> bool {
    move |job| job["recipients"][0]["state"] == state
}

/// The kinds of the events about recipients, in their order.
async fn told(t: &TestApp) -> Vec<String> {
    sqlx::query_scalar("select kind from events where kind like 'recipient.%' order by event_id")
        .fetch_all(&t.db)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_refused_second_copy_is_not_told_as_failed_while_the_first_may_be_there() {
    let t = TestApp::start().await;
    let dot = vec!["", "550 5.1.1 no such user here"];
    let one = ScriptedRelay::start(Script { dot, ..Script::default() }).await;
    relay(&t, &one, 1).await;
    let mut body = message("a@example.net");
    body["onUnknown"] = json!("resend");
    let sent = t.post("/send", body).await.is(202);
    let id = sent["id"].as_str().unwrap();
    until(&t, id, "sent again", |job| job["resends"] == 1).await;
    t.pass(1).await;
    until(&t, id, "unknown", is("unknown")).await;
    assert_eq!(told(&t).await, ["recipient.unknown", "recipient.unknown"]);
    t.stop().await;
}

/// As another process does that takes back the lease of one it holds for dead.
const TAKEN_BACK: &str = "
    delete from jobs;
    update attempts set ended_at = clock_timestamp(), result = 'unknown', reason = 'process_died';
    update recipients set state = 'unknown', maybe_accepted = true, reason = 'process_died';
    update messages set n_open = 0, n_unknown = 1;";

#[tokio::test]
async fn the_late_refusal_of_the_only_copy_is_the_truth() {
    for (reply, state) in [("550 5.1.1 no such user here", "failed"), ("250 Ok", "sent")] {
        let t = TestApp::start().await;
        let pace = Duration::from_secs(1);
        let one =
            ScriptedRelay::start(Script { dot: vec![reply], pace, ..Script::default() }).await;
        relay(&t, &one, 1).await;
        let sent = t.post("/send", message("a@example.net")).await.is(202);
        let id = sent["id"].as_str().unwrap();
        until(&t, id, "sending", is("sending")).await;
        sqlx::raw_sql(TAKEN_BACK).execute(&t.db).await.unwrap();
        until(&t, id, "unknown", is("unknown")).await;
        let job = t.settled(id).await;
        assert_eq!(
            (&job["recipients"][0]["state"], &job["outcome"]),
            (&json!(state), &json!(state))
        );
        t.stop().await;
    }
}

#[tokio::test]
async fn what_is_suppressed_or_over_while_a_relay_takes_its_time_does_not_leave() {
    let suppressed = "insert into suppressions (suppression_id, lookup_key, reason)
                      values (gen_random_uuid(), 'a@example.net', 'manual')";
    let over = "update messages set expires_at = clock_timestamp()";
    for (meanwhile, state) in [(suppressed, "suppressed"), (over, "expired")] {
        let t = TestApp::start().await;
        let data_pace = Duration::from_secs(1);
        let one = ScriptedRelay::start(Script { data_pace, ..Script::default() }).await;
        relay(&t, &one, 1).await;
        let sent = t.post("/send", message("a@example.net")).await.is(202);
        let id = sent["id"].as_str().unwrap();
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        while one.sessions() == 0 {
            assert!(tokio::time::Instant::now() < deadline, "the relay is not asked");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        sqlx::raw_sql(meanwhile).execute(&t.db).await.unwrap();
        assert_eq!(t.settled(id).await["outcome"], state);
        assert_eq!(one.dots(), 0);
        t.stop().await;
    }
}

#[tokio::test]
async fn a_message_is_shown_as_it_was_at_one_moment() {
    let t = TestApp::start().await;
    let sent = t.post("/send", message("a@example.net")).await.is(202);
    let id = sent["id"].as_str().unwrap();
    t.settled(id).await;
    let db = t.db.clone();
    let stop = tokio_util::sync::CancellationToken::new();
    let stopped = stop.clone();
    #[expect(clippy::disallowed_methods, reason = "the test holds the handle and joins it")]
    let change = tokio::spawn(async move {
        while !stopped.is_cancelled() {
            for change in [
                "update messages set n_accepted = 0, n_unknown = 1, settled_at = null, outcome = null;
                 update recipients set state = 'unknown'",
                "update messages set n_accepted = 1, n_unknown = 0, settled_at = now(), outcome = 'sent';
                 update recipients set state = 'sent'",
            ] {
                sqlx::raw_sql(change).execute(&db).await.unwrap();
            }
        }
    });
    for _ in 0..500 {
        let job = t.get(&format!("/jobs/{id}")).await.is(200);
        assert_eq!(job["outcome"], job["recipients"][0]["state"]);
    }
    stop.cancel();
    change.await.unwrap();
    t.stop().await;
}

#[tokio::test]
async fn a_relay_that_refuses_every_message_at_mail_is_given_a_rest() {
    let t = TestApp::start().await;
    let mail = Some("530 5.7.0 Authentication required");
    let refusing = ScriptedRelay::start(Script { mail, ..Script::default() }).await;
    let other = ScriptedRelay::start(Script::default()).await;
    relay(&t, &refusing, 1).await;
    relay(&t, &other, 2).await;
    for _ in 0..4 {
        let sent = t.post("/send", message("a@example.net")).await.is(202);
        assert_eq!(t.settled(sent["id"].as_str().unwrap()).await["outcome"], "sent");
    }
    let degraded: i64 =
        sqlx::query_scalar("select count(*) from events where kind = 'relay.degraded'")
            .fetch_one(&t.db)
            .await
            .unwrap();
    assert_eq!(degraded, 1);
    t.stop().await;
}

#[tokio::test]
async fn equal_relays_share_messages_and_each_comes_back_to_the_relay_that_told_it_to_wait() {
    const MESSAGES: usize = 24;
    let t = TestApp::start().await;
    let dot = vec!["451 4.7.1 Greylisted, try again later"; 2 * MESSAGES];
    let grey = || Script { dot: dot.clone(), ..Script::default() };
    let (one, two) = (ScriptedRelay::start(grey()).await, ScriptedRelay::start(grey()).await);
    for (relay, name) in [(&one, "one"), (&two, "two")] {
        let new = json!({
            "name": name, "host": "127.0.0.1", "port": relay.port, "secure": false,
            "fromAddress": "app@example.com", "domain": "example.com", "priority": 1, "maxConnections": 100,
        });
        t.post("/admin/api/smtp-accounts", new).await.is(201);
    }
    let mut ids = Vec::new();
    for _ in 0..MESSAGES {
        let sent = t.post("/send", message("a@example.net")).await.is(202);
        let id = sent["id"].as_str().unwrap().to_owned();
        until(&t, &id, "deferred", is("deferred")).await;
        ids.push(id);
    }
    assert!(one.dots() > 2 && two.dots() > 2, "{} and {}", one.dots(), two.dots());
    t.pass(1).await;
    for id in ids {
        let job = until(&t, &id, "tried twice", |job| job["recipients"][0]["tries"] == 2).await;
        assert_eq!(job["history"][0]["account"], job["history"][1]["account"]);
    }
    t.stop().await;
}

#[tokio::test]
async fn an_address_that_no_relay_can_be_told_is_refused_and_spoils_no_other() {
    let t = TestApp::start().await;
    let refused = t.post("/send", message("\"a<b\"@example.net")).await.is(400);
    assert_eq!(refused["issues"][0]["path"], "to");
    t.stop().await;
}
