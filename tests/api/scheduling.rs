//! Messages that wait for their time.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::support::{TestApp, message};

/// So rarely that only its own alarm can wake a process in time.
const RARE: &[(&str, &str)] = &[("POSTROOM_QUEUE_POLL", "30s")];

fn at(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap().parse().unwrap()
}

async fn now(db: &sqlx::PgPool) -> DateTime<Utc> {
    sqlx::query_scalar("select clock_timestamp()").fetch_one(db).await.unwrap()
}

fn due(when: DateTime<Utc>) -> Value {
    let mut body = message("a@example.net");
    body["sendAt"] = json!(when);
    body
}

/// Sent within a second of its time, and not before.
async fn leaves_at(t: &TestApp, id: &str, when: DateTime<Utc>) {
    let job = t.settled(id).await;
    assert_eq!(job["outcome"], "sent", "{job:#}");
    let late = at(&job["completedAt"]) - when;
    assert!((0..=1_000).contains(&late.num_milliseconds()), "{late} late: {job:#}");
    let started = at(&job["history"][0]["startedAt"]);
    assert!(started >= when - TimeDelta::milliseconds(5), "{started} is before {when}");
}

#[tokio::test]
async fn a_message_leaves_at_its_time_and_its_header_says_so() {
    let t = TestApp::start_with(RARE).await;
    let when = now(&t.db).await + TimeDelta::milliseconds(1_500);
    let sent = t.post("/send", due(when)).await.is(202);
    assert_eq!(sent["status"], "pending");
    assert_eq!(at(&sent["sendAt"]).timestamp_millis(), when.timestamp_millis());
    assert_eq!(at(&sent["nextAttemptAt"]), at(&sent["sendAt"]));
    let id = sent["id"].as_str().unwrap();
    leaves_at(&t, id, when).await;
    let received = t.get("/sandbox/messages").await.is(200);
    let raw =
        t.get(&format!("/sandbox/messages/{}/raw", received[0]["id"].as_str().unwrap())).await;
    let raw = String::from_utf8(raw.bytes).unwrap();
    assert!(raw.contains(&format!("Date: {}", when.to_rfc2822())), "{raw}");
    t.stop().await;
}

#[tokio::test]
async fn a_restart_before_and_one_across_its_time_lose_no_second() {
    let t = TestApp::start_with(RARE).await;
    let before = now(&t.db).await + TimeDelta::milliseconds(700);
    let after = before + TimeDelta::milliseconds(2_500);
    let first = t.post("/send", due(before)).await.is(202)["id"].as_str().unwrap().to_owned();
    let second = t.post("/send", due(after)).await.is(202)["id"].as_str().unwrap().to_owned();
    let db = t.db.clone();
    // The first is due while nobody is there, the second when the new one runs.
    let passed = async {
        while now(&db).await < before {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let next = t.restart(RARE, passed).await;
    let started = now(&next.db).await;
    leaves_at(&next, &first, started.max(before)).await;
    leaves_at(&next, &second, after).await;
    next.stop().await;
}

#[tokio::test]
async fn another_process_is_woken_too() {
    let t = TestApp::start_with(RARE).await;
    let other = t.beside_with(RARE).await;
    let when = now(&t.db).await + TimeDelta::milliseconds(1_200);
    let sent = t.post("/send", due(when)).await.is(202);
    let id = sent["id"].as_str().unwrap();
    t.leave().await;
    leaves_at(&other, id, when).await;
    other.stop().await;
}

#[tokio::test]
async fn the_time_moves_while_it_waits_and_not_afterwards() {
    let t = TestApp::start_with(RARE).await;
    let far = now(&t.db).await + TimeDelta::days(3);
    let mut body = due(far);
    body["ttl"] = json!(3600);
    let sent = t.post("/send", body).await.is(202);
    let id = sent["id"].as_str().unwrap();
    assert_eq!((at(&sent["expiresAt"]) - far).num_minutes(), 60);
    let path = format!("/jobs/{id}");
    let change = async |body| t.call(&t.key, "PATCH", &path, Some(body)).await;

    let later = far + TimeDelta::days(2);
    let moved = change(json!({ "sendAt": later })).await.is(200);
    assert_eq!(at(&moved["sendAt"]).timestamp_millis(), later.timestamp_millis());
    assert_eq!(at(&moved["nextAttemptAt"]), at(&moved["sendAt"]));
    assert_eq!((at(&moved["expiresAt"]) - later).num_minutes(), 60);
    for bad in [
        json!({}),
        json!({ "sendAt": 7 }),
        json!({ "sendAt": "soon" }),
        json!({ "sendAt": far + TimeDelta::days(40) }),
        json!({ "sendAt": far, "more": 1 }),
    ] {
        change(bad).await.is(400);
    }
    // Nothing has happened for a week: its window opens when it is sent.
    t.pass(24 * 4).await;
    assert_eq!(t.get(&path).await.is(200)["status"], "pending");

    let when = now(&t.db).await;
    assert_eq!(change(json!({ "sendAt": null })).await.is(200)["sendAt"], Value::Null);
    let job = t.settled(id).await;
    assert_eq!(job["outcome"], "sent");
    let received = t.get("/sandbox/messages").await.is(200);
    let raw =
        t.get(&format!("/sandbox/messages/{}/raw", received[0]["id"].as_str().unwrap())).await;
    let date = mail_parser::MessageParser::default().parse(&raw.bytes).unwrap();
    let date = date.date().unwrap().to_timestamp();
    assert!((date - when.timestamp()).abs() <= 2, "Date was not rewritten: {date}");
    assert_eq!(job["size"], raw.bytes.len());
    assert_eq!(change(json!({ "sendAt": later })).await.is(409)["code"], "ALREADY_BEGUN");
    t.stop().await;
}

#[tokio::test]
async fn times_that_make_no_sense_are_refused() {
    let t = TestApp::start().await;
    let soon = now(&t.db).await + TimeDelta::hours(2);
    let with = |fields: Value| {
        let mut body = due(soon);
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        body
    };
    for (fields, path) in [
        (json!({ "sendAt": soon + TimeDelta::days(31) }), "sendAt"),
        (json!({ "sendAt": "tomorrow" }), "sendAt"),
        (json!({ "sendAt": 1_800_000_000 }), "sendAt"),
        (json!({ "expiresAt": soon - TimeDelta::minutes(1) }), "expiresAt"),
        (json!({ "expiresAt": soon }), "expiresAt"),
    ] {
        let refused = t.post("/send", with(fields)).await.is(400);
        assert_eq!(refused["issues"][0]["path"], path, "{refused}");
    }
    let fixed = with(json!({ "expiresAt": soon + TimeDelta::hours(1) }));
    let id = t.post("/send", fixed).await.is(202)["id"].as_str().unwrap().to_owned();
    let late = json!({ "sendAt": soon + TimeDelta::hours(1) });
    let refused = t.call(&t.key, "PATCH", &format!("/jobs/{id}"), Some(late)).await.is(400);
    assert_eq!(refused["issues"][0]["path"], "sendAt");

    let past = t.post("/send", due(soon - TimeDelta::days(400))).await.is(202);
    assert_eq!(t.settled(past["id"].as_str().unwrap()).await["outcome"], "sent");
    t.stop().await;
}
