//! The way out: kept sessions, connections and messages a minute over two processes, breakers.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{
    TestApp, message,
    relay::{Script, ScriptedRelay},
};

/// Makes a relay for mail of this domain; null is any sender.
async fn relay(t: &TestApp, name: &str, port: u16, domain: Value, more: Value) -> String {
    let mut new = json!({
        "name": name, "host": "127.0.0.1", "port": port, "secure": false,
        "fromAddress": format!("app@{name}.example"), "domain": domain, "anySender": domain.is_null(),
        "priority": if domain.is_null() { 9 } else { 1 },
    });
    new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let made = t.post("/admin/api/smtp-accounts", new).await.is(201);
    made["id"].as_str().unwrap().to_owned()
}

async fn send(t: &TestApp, from: &str) -> String {
    let mut body = message("a@example.net");
    body["from"] = json!(from);
    t.post("/send", body).await.is(202)["id"].as_str().unwrap().to_owned()
}

async fn events(t: &TestApp, kind: &str, relay: &str) -> i64 {
    let sql = "select count(*) from events where kind = $1 and subject_id = $2::uuid";
    sqlx::query_scalar(sql).bind(kind).bind(relay).fetch_one(&t.db).await.unwrap()
}

#[tokio::test]
async fn a_session_carries_many_messages_and_a_changed_relay_gets_a_new_one() {
    let t = TestApp::start().await;
    let one = ScriptedRelay::start(Script::default()).await;
    let id = relay(&t, "one", one.port, Value::Null, json!({})).await;
    for _ in 0..5 {
        let job = send(&t, "app@example.com").await;
        assert_eq!(t.settled(&job).await["outcome"], "sent");
    }
    assert_eq!((one.dots(), one.sessions()), (5, 1));
    let path = format!("/admin/api/smtp-accounts/{id}");
    assert_eq!(t.get(&path).await.is(200)["live"]["idle"], 1);
    t.call(&t.key, "PATCH", &path, Some(json!({ "heloName": "other.example" }))).await.is(200);
    let job = send(&t, "app@example.com").await;
    assert_eq!(t.settled(&job).await["outcome"], "sent");
    assert_eq!(one.sessions(), 2);
    t.stop().await;
}

#[tokio::test]
async fn a_kept_session_that_the_server_has_left_is_nobodys_fault() {
    let t = TestApp::start().await;
    let closes = ScriptedRelay::start(Script { closes: true, ..Script::default() }).await;
    relay(&t, "closes", closes.port, Value::Null, json!({})).await;
    for _ in 0..4 {
        let id = send(&t, "app@example.com").await;
        let job = t.settled(&id).await;
        assert_eq!((&job["outcome"], &job["attempts"]), (&json!("sent"), &json!(1)));
    }
    assert_eq!(closes.sessions(), 4);
    t.stop().await;
}

#[tokio::test]
async fn two_processes_together_open_no_more_connections_than_the_relay_may_have() {
    let t = TestApp::start().await;
    let other = t.beside().await;
    t.counted("select count(*) from processes", 2).await;
    let pace = Duration::from_millis(60);
    let slow = ScriptedRelay::start(Script { pace, ..Script::default() }).await;
    let id = relay(&t, "slow", slow.port, Value::Null, json!({ "maxConnections": 3 })).await;
    let path = format!("/admin/api/smtp-accounts/{id}");
    let places = |view: Value| view["live"]["places"].as_i64().unwrap();
    let both = places(t.get(&path).await.is(200)) + places(other.get(&path).await.is(200));
    assert_eq!(both, 3);
    for at in 0..40 {
        send(if at % 2 == 0 { &t } else { &other }, "app@example.com").await;
    }
    t.counted("select count(*) from messages where outcome = 'sent'", 40).await;
    assert!((2..=3).contains(&slow.peak()), "{}", slow.peak());
    other.stop().await;
    t.stop().await;
}

#[tokio::test]
async fn the_messages_of_a_minute_hold_over_two_processes_and_the_rest_goes_by_itself() {
    let t = TestApp::start().await;
    let other = t.beside().await;
    let one = ScriptedRelay::start(Script::default()).await;
    relay(&t, "one", one.port, Value::Null, json!({ "maxPerMinute": 10 })).await;
    for at in 0..15 {
        send(if at % 2 == 0 { &t } else { &other }, "app@example.com").await;
    }
    t.counted("select count(*) from messages where outcome = 'sent'", 10).await;
    t.counted("select count(*) from jobs where state = 'ready'", 5).await;
    assert_eq!(one.dots(), 10);
    t.passes_until(1, "select count(*) from messages where outcome = 'sent'", 15).await;
    other.stop().await;
    t.stop().await;
}

/// One relay says nothing, one turns everybody away, one is well.
#[tokio::test]
async fn of_three_relays_two_fail_and_each_is_told_once_by_two_processes() {
    let t = TestApp::start().await;
    let other = t.beside().await;
    let mute = ScriptedRelay::start(Script { mute: true, ..Script::default() }).await;
    let busy = Script { turns_away: Some("421 4.3.2 busy"), ..Script::default() };
    let busy = ScriptedRelay::start(busy).await;
    let well = ScriptedRelay::start(Script::default()).await;
    let mute_id = relay(&t, "mute", mute.port, json!("mute.example"), json!({})).await;
    let busy_id = relay(&t, "busy", busy.port, json!("busy.example"), json!({})).await;
    let well_id = relay(&t, "well", well.port, Value::Null, json!({})).await;
    other.counted("select count(*) from processes", 2).await;
    for at in 0..20 {
        let t = if at % 2 == 0 { &t } else { &other };
        for from in ["app@mute.example", "app@busy.example", "app@well.example"] {
            send(t, from).await;
        }
    }
    let sent_of = "select count(*) from messages where outcome = 'sent' and from_address like";
    let of = |domain: &str| -> &'static str { format!("{sent_of} '%@{domain}'").leak() };
    t.counted(of("well.example"), 20).await;
    // Who fails over from a mute relay has waited for its greeting; nobody else has.
    t.counted(of("busy.example"), 20).await;
    t.counted(of("mute.example"), 20).await;
    assert_eq!(well.dots(), 60);
    for (id, degraded) in [(&mute_id, 1), (&busy_id, 1), (&well_id, 0)] {
        assert_eq!(events(&t, "relay.degraded", id).await, degraded);
    }
    let waited: f64 = sqlx::query_scalar(
        "select max(extract(epoch from settled_at - created_at))::float8 from messages
         where from_address = 'app@well.example'",
    )
    .fetch_one(&t.db)
    .await
    .unwrap();
    let failed_over: f64 = sqlx::query_scalar(
        "select min(extract(epoch from settled_at - created_at))::float8 from messages
         join attempts using (message_id)
         where from_address = 'app@mute.example' and relay_name = 'mute'",
    )
    .fetch_one(&t.db)
    .await
    .unwrap();
    assert!(failed_over >= 2.0, "a mute relay has its two seconds: {failed_over}");
    assert!(waited < failed_over, "the healthy relay's own mail did not wait: {waited}");
    other.stop().await;
    t.stop().await;
}

#[tokio::test]
async fn a_relay_that_comes_back_is_found_by_one_message_and_told_once() {
    let t = TestApp::start().await;
    let other = t.beside().await;
    let busy = Script { turns_away: Some("421 4.3.2 busy"), ..Script::default() };
    let away = ScriptedRelay::start(busy).await;
    let id = relay(&t, "away", away.port, Value::Null, json!({})).await;
    for at in 0..6 {
        send(if at % 2 == 0 { &t } else { &other }, "app@example.com").await;
    }
    t.counted("select count(*) from relay_breakers where state = 'open'", 1).await;
    t.counted("select count(*) from events where kind = 'relay.degraded'", 1).await;
    let path = format!("/admin/api/smtp-accounts/{id}");
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    let live = loop {
        let live = other.get(&path).await.is(200)["live"].clone();
        if live["breaker"] == "open" {
            break live;
        }
        assert!(tokio::time::Instant::now() < deadline, "the other process does not see it");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!((&live["breaker"], &live["text"]), (&json!("open"), &json!("busy")));
    let before = away.sessions();
    // The probe fails: a longer rest, and no second event.
    sqlx::query("update relay_breakers set until = clock_timestamp()")
        .execute(&t.db)
        .await
        .unwrap();
    sqlx::query("select pg_notify('postroom_relays', '')").execute(&t.db).await.unwrap();
    t.due_until("select count(*) from relay_breakers where state = 'open' and rest = 30", 1).await;
    assert_eq!(away.sessions(), before + 1, "one probe, by one process");
    // A changed relay is asked at once; this one is well.
    let well = ScriptedRelay::start(Script::default()).await;
    t.call(&t.key, "PATCH", &path, Some(json!({ "port": well.port }))).await.is(200);
    t.due_until("select count(*) from messages where outcome = 'sent'", 6).await;
    assert_eq!(events(&t, "relay.degraded", &id).await, 1);
    assert_eq!(events(&t, "relay.recovered", &id).await, 1);
    other.stop().await;
    t.stop().await;
}

#[tokio::test]
async fn a_relay_is_tried_phase_by_phase_and_nothing_is_sent() {
    let t = TestApp::start().await;
    let test = async |id: &str| {
        t.post(&format!("/admin/api/smtp-accounts/{id}/test"), json!({})).await.is(200)
    };
    let states = |report: &Value| -> Vec<String> {
        let phases = report["phases"].as_array().unwrap().iter();
        phases.map(|it| format!("{} {}", it["phase"], it["state"]).replace('"', "")).collect()
    };
    let good = ScriptedRelay::start(Script::default()).await;
    let login = json!({ "username": "user", "password": "secret-word", "active": false });
    let id = relay(&t, "good", good.port, Value::Null, login.clone()).await;
    let report = test(&id).await;
    assert_eq!(report["ok"], true, "{report:#}");
    assert_eq!(
        states(&report),
        ["dns ok", "connect ok", "greeting ok", "ehlo ok", "tls skipped", "auth ok"]
    );
    assert_eq!(good.dots(), 0);

    let refuses =
        ScriptedRelay::start(Script { auth: Some("535 5.7.8 bad login"), ..Script::default() })
            .await;
    let id = relay(&t, "refuses", refuses.port, Value::Null, login).await;
    let report = test(&id).await;
    assert_eq!(states(&report)[5], "auth failed");
    assert_eq!(report["phases"][5]["code"], 535);
    assert!(!report.to_string().contains("secret-word"));

    let busy = Script { turns_away: Some("421 4.3.2 busy"), ..Script::default() };
    let busy = ScriptedRelay::start(busy).await;
    let report = test(&relay(&t, "busy", busy.port, Value::Null, json!({})).await).await;
    assert_eq!(states(&report)[1..4], ["connect ok", "greeting failed", "ehlo skipped"]);

    let no_tls = relay(&t, "notls", good.port, Value::Null, json!({ "requireTls": true })).await;
    let report = test(&no_tls).await;
    assert_eq!(states(&report)[3..], ["ehlo ok", "tls failed", "auth skipped"]);

    // A mute one has its deadline; meanwhile a second trial is refused.
    let mute = ScriptedRelay::start(Script { mute: true, ..Script::default() }).await;
    let mute = relay(&t, "mute", mute.port, Value::Null, json!({})).await;
    let path = format!("/admin/api/smtp-accounts/{mute}/test");
    let (first, second) = tokio::join!(t.post(&path, json!({})), t.post(&path, json!({})));
    let mut statuses = [first.status, second.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    let unknown = "00000000-0000-7000-8000-000000000000";
    t.post(&format!("/admin/api/smtp-accounts/{unknown}/test"), json!({})).await.is(404);
    t.stop().await;
}
