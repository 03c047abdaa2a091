//! What is kept for a time: it goes when its time is over, and nothing else does.

use serde_json::{Value, json};

use crate::support::TestApp;

/// With the first round of the timetable behind it.
async fn start(settings: &[(&str, &str)]) -> TestApp {
    let t = TestApp::start_with(settings).await;
    t.counted("select count(*) from retention_runs where state = 'done'", 1).await;
    t
}

/// Settled messages that are so many days old, each with an attempt and content.
async fn settled(t: &TestApp, n: i32, days: i32) {
    t.sql(&format!(
        "create temp table made as
             select v7_floor(now() - interval '{days} days' + n * interval '1 ms') as id, now() - interval '{days} days' as at
             from generate_series(1, {n}) as n;
         insert into messages (message_id, created_at, internet_id, from_address, from_header, to_header, subject, size,
                               smtputf8, has_attachment, priority, n_recipients, n_open, n_accepted, outcome, settled_at)
         select id, at, id || '@example.com', 'app@example.com', 'app@example.com', 'a@example.net', 'x', 100, false,
                false, 1, 1, 0, 1, 'sent', at from made;
         insert into message_content (message_id, seq, bytes) select id, seq, 'x' from made, generate_series(0, 1) as seq;
         insert into recipients (recipient_id, message_id, position, field, address, lookup_key, envelope_sender, state)
         select gen_random_uuid(), id, 0, 'to', 'a@example.net', 'a@example.net', 'app@example.com', 'sent' from made;
         insert into attempts (attempt_id, message_id, relay_name, started_at, ended_at, phase)
         select id, id, 'r', at, at, 'dot' from made;
         insert into attempt_recipients (attempt_id, recipient_id, result)
         select message_id, recipient_id, 'sent' from recipients where message_id in (select id from made);
         drop table made",
    ))
    .await;
}

/// Messages of the same age that wait behind a dead relay, and one of which nothing is known.
async fn unsettled(t: &TestApp, n: i32, days: i32) {
    t.sql(&format!(
        "create temp table made as
             select v7_floor(now() - interval '{days} days' + n * interval '1 ms') as id, n, now() - interval '{days} days' as at
             from generate_series(1, {n}) as n;
         insert into messages (message_id, created_at, internet_id, from_address, from_header, to_header, subject, size,
                               smtputf8, has_attachment, priority, n_recipients, n_open, n_unknown, window_from)
         select id, at, id || '@example.org', 'app@example.org', 'app@example.org', 'a@example.net', 'x', 100, false,
                false, 1, 1, (n > 1)::int, (n = 1)::int, now() from made;
         insert into message_content (message_id, seq, bytes) select id, 0, 'x' from made;
         insert into recipients (recipient_id, message_id, position, field, address, lookup_key, envelope_sender, state,
                                 next_at)
         select gen_random_uuid(), id, 0, 'to', 'a@example.net', 'a@example.net', 'app@example.org',
                case n when 1 then 'unknown' else 'deferred' end,
                case when n > 1 then now() + interval '1 hour' end from made;
         insert into jobs (job_id, kind, lane, priority, due_at)
         select id, 'send', 'example.org', 1, now() + interval '1 hour' from made where n > 1;
         drop table made",
    ))
    .await;
}

/// Asks for a run, and waits for its end.
async fn run(t: &TestApp) -> Value {
    let asked = t.post("/admin/api/retention/run", json!({})).await.is(202);
    let path = format!("/admin/api/retention/runs/{}", asked["id"].as_str().unwrap());
    t.until(&path, |run| !run["endedAt"].is_null()).await
}

fn deleted(run: &Value, class: &str) -> Value {
    let classes = run["classes"].as_array().unwrap();
    classes.iter().find(|it| it["class"] == class).unwrap_or_else(|| panic!("{run:#}"))["deleted"]
        .clone()
}

async fn class(t: &TestApp, class: &str) -> Value {
    let shown = t.get("/admin/api/retention").await.is(200);
    let classes = shown["classes"].as_array().unwrap();
    classes.iter().find(|it| it["class"] == class).unwrap().clone()
}

#[tokio::test]
async fn each_class_goes_after_its_window_and_what_has_not_settled_never() {
    let t = start(&[]).await;
    settled(&t, 300, 400).await;
    settled(&t, 200, 40).await;
    settled(&t, 100, 2).await;
    unsettled(&t, 1000, 401).await;
    t.sql(
        "insert into events (event_id, at, kind, subject, subject_id, data)
         select v7_floor(now() - interval '91 days' + n * interval '1 ms'), now() - interval '91 days', 'x', 'x', gen_random_uuid(), '{}'
         from generate_series(1, 50) as n;
         insert into audit (audit_id, at, actor, action, subject, subject_id)
         select v7_floor(now() - interval '366 days' + n * interval '1 ms'), now() - interval '366 days', 'x', 'x', 'x', 'x'
         from generate_series(1, 40) as n;
         insert into sandbox_messages (sandbox_message_id, received_at, helo, mail_from, rcpt_to, raw)
         select v7_floor(now() - interval '15 days' + n * interval '1 ms'), now() - interval '15 days', 'x', 'x', '{}', 'x'
         from generate_series(1, 30) as n;
         insert into idempotency_keys (api_key_id, key, request_hash, message_id, expires_at)
         select api_key_id, n::text, 'x', gen_random_uuid(), now() - interval '1 minute'
         from api_keys, generate_series(1, 20) as n",
    )
    .await;

    let content = class(&t, "content").await;
    assert_eq!((&content["wouldDelete"], &content["window"]), (&500.into(), &2_592_000.into()));
    assert_eq!(class(&t, "messages").await["wouldDelete"], 300);
    assert_eq!(class(&t, "audit").await["wouldDelete"], 40);
    assert!(content["bytes"].as_i64().unwrap() > 0 && content["oldest"].is_string(), "{content}");

    let done = run(&t).await;
    assert_eq!((&done["state"], &done["trigger"]), (&"done".into(), &"manual".into()), "{done:#}");
    for (class, n) in [
        ("content", 500),
        ("messages", 300),
        ("idempotency", 20),
        ("events", 50),
        ("sandbox", 30),
        ("audit", 40),
    ] {
        assert_eq!(deleted(&done, class), n, "{class}");
    }
    t.counted("select count(*) from messages where settled_at is not null", 300).await;
    t.counted("select count(*) from message_content where exists (select from messages where messages.message_id = message_content.message_id and settled_at is not null)", 200).await;
    t.counted("select count(*) from messages where settled_at is null", 1000).await;
    t.counted("select count(*) from recipients where state in ('deferred', 'unknown')", 1000).await;
    t.counted("select count(*) from message_content join messages using (message_id) where settled_at is null", 1000).await;
    t.counted("select count(*) from attempts", 300).await;
    t.counted("select count(*) from attempt_recipients", 300).await;
    assert_eq!(class(&t, "content").await["wouldDelete"], 0);

    let told =
        "select count(*) from events where kind = 'retention.ended' and data->>'state' = 'done'";
    t.counted(told, 1).await;
    t.counted("select count(*) from audit where action = 'retention.run'", 1).await;
    let again = run(&t).await;
    assert_eq!(deleted(&again, "content"), 0, "{again:#}");
    t.stop().await;
}

#[tokio::test]
async fn a_message_without_its_content_is_shown_and_says_why_it_cannot_be_tried_again() {
    let t = start(&[]).await;
    settled(&t, 1, 40).await;
    t.sql("update messages set outcome = 'failed', n_accepted = 0; update recipients set state = 'failed'").await;
    run(&t).await;
    let id: uuid::Uuid =
        sqlx::query_scalar("select message_id from messages").fetch_one(&t.db).await.unwrap();
    let job = t.get(&format!("/jobs/{id}?include=content")).await.is(200);
    assert_eq!(job["status"], "dead", "{job:#}");
    let refused = t.post(&format!("/jobs/{id}/retry"), json!({})).await.is(409);
    assert_eq!(refused["code"], "CONTENT_GONE");
}

#[tokio::test]
async fn a_class_that_fails_is_told_and_stops_no_other() {
    let t = start(&[]).await;
    settled(&t, 10, 400).await;
    t.sql(
        "create function full_disk() returns trigger language plpgsql as
         $$ begin raise 'could not extend file: No space left on device' using errcode = '53100'; end $$;
         create trigger full_disk before delete on message_content for each statement execute function full_disk()",
    )
    .await;
    let failed = run(&t).await;
    assert_eq!(failed["state"], "failed", "{failed:#}");
    let content =
        failed["classes"].as_array().unwrap().iter().find(|it| it["class"] == "content").unwrap();
    assert!(content["error"].as_str().unwrap().contains("No space left"), "{content}");
    // The disk is full for content; the messages are kept with it, and nothing is torn apart.
    t.counted("select count(*) from messages join message_content using (message_id)", 20).await;
    let chore: Option<String> =
        sqlx::query_scalar("select last_error from chores where name = 'retention'")
            .fetch_one(&t.db)
            .await
            .unwrap();
    assert!(chore.is_some(), "the alert has nothing to see");
    t.sql("drop trigger full_disk on message_content").await;
    let done = run(&t).await;
    assert_eq!(
        (&done["state"], deleted(&done, "messages")),
        (&"done".into(), 10.into()),
        "{done:#}"
    );
    t.stop().await;
}

#[tokio::test]
async fn one_run_at_a_time_over_all_processes_and_a_dead_one_is_told() {
    let t = start(&[]).await;
    settled(&t, 10, 400).await;
    run(&t).await;
    // A process has died in the middle of a run.
    t.sql(
        "insert into retention_runs (run_id, trigger, state, started_at)
           values (v7_floor(now()), 'scheduled', 'running', now())",
    )
    .await;
    let refused = t.post("/admin/api/retention/run", json!({})).await.is(409);
    assert_eq!(refused["code"], "RETENTION_RUNNING");
    // The time of the next run was missed; a process that starts makes it up.
    settled(&t, 10, 400).await;
    t.sql("update chores set last_run_at = now() - interval '5 hours' where name = 'retention'")
        .await;
    let other = t.beside().await;
    t.counted("select count(*) from messages", 0).await;
    t.counted("select count(*) from retention_runs where state = 'interrupted'", 1).await;
    t.counted("select count(*) from retention_runs where state in ('waiting', 'running')", 0).await;
    other.stop().await;
    t.stop().await;
}

#[tokio::test]
async fn a_run_ends_with_its_process_and_the_next_goes_on() {
    let t = start(&[]).await;
    run(&t).await;
    settled(&t, 3000, 400).await;
    t.sql(
        "create function slow() returns trigger language plpgsql as
         $$ begin perform pg_sleep(0.2); return null; end $$;
         create trigger slow before delete on message_content for each statement execute function slow()",
    )
    .await;
    t.post("/admin/api/retention/run", json!({})).await.is(202);
    let begun = "select (count(*) < 6000)::int::bigint from message_content";
    t.counted(begun, 1).await;
    let (db, other) = (t.db.clone(), t.beside().await);
    t.stop().await;
    let state: String =
        sqlx::query_scalar("select state from retention_runs order by run_id desc limit 1")
            .fetch_one(&other.db)
            .await
            .unwrap();
    assert_eq!(state, "stopped");
    drop(db);
    other.sql("drop trigger slow on message_content").await;
    let done = run(&other).await;
    assert_eq!(deleted(&done, "messages"), 3000, "{done:#}");
    other.stop().await;
}

#[tokio::test]
async fn what_somebody_works_on_is_left_for_the_next_run() {
    let t = start(&[]).await;
    settled(&t, 100, 400).await;
    let mut tx = t.db.begin().await.unwrap();
    sqlx::query("select from messages order by message_id limit 1 for update")
        .execute(&mut *tx)
        .await
        .unwrap();
    let done = run(&t).await;
    assert_eq!(
        (&done["state"], deleted(&done, "messages")),
        (&"done".into(), 99.into()),
        "{done:#}"
    );
    tx.rollback().await.unwrap();
    assert_eq!(deleted(&run(&t).await, "messages"), 1);
}

#[tokio::test]
async fn what_is_kept_for_ever_stays_and_sizes_are_metrics() {
    let t = start(&[("POSTROOM_RETENTION_MESSAGES", "off"), ("METRICS_PUBLIC", "true")]).await;
    settled(&t, 10, 4000).await;
    let done = run(&t).await;
    assert!(
        done["classes"].as_array().unwrap().iter().all(|it| it["class"] != "messages"),
        "{done:#}"
    );
    t.counted("select count(*) from messages", 10).await;
    assert_eq!(class(&t, "messages").await["window"], Value::Null);
    let shown = t.request("GET", "/metrics").send().await.unwrap().text().await.unwrap();
    let value = |name: &str| -> f64 {
        let line = shown
            .lines()
            .find(|it| it.starts_with(name))
            .unwrap_or_else(|| panic!("{name}: {shown}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!(value("postroom_retention_bytes{class=\"messages\"}") > 0.0);
    assert!(value("postroom_retention_oldest_seconds{class=\"messages\"}") > 3e8);
    assert_eq!(value("postroom_retention_deleted_total{class=\"content\"}"), 10.0);
    assert_eq!(value("postroom_retention_window_seconds{class=\"audit\"}"), 31_536_000.0);
}
