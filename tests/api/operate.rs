//! Health, metrics, and the API's description.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{TestApp, message};

#[tokio::test]
async fn health_and_metrics_tell_the_depth_the_age_and_the_outcomes() {
    let t = TestApp::start().await;
    let sent = t.post("/send", message("a@example.net")).await.is(202);
    t.settled(sent["id"].as_str().unwrap()).await;
    let health = t.call("", "GET", "/health", None).await.is(200);
    assert_eq!((&health["status"], &health["accounts"]), (&json!("ok"), &json!(1)));
    assert_eq!(health["queue"]["depth"], 0);

    t.call("", "GET", "/metrics", None).await.is(401);
    let text = metrics(&t).await;
    for line in [
        "postroom_attempts_total{outcome=\"accepted\"} 1",
        "postroom_messages_accepted_total 1",
        "postroom_queue_depth 0",
        "postroom_queue_oldest_seconds 0",
        "postroom_queue_jobs{kind=\"send\",state=\"due\"} 0",
        "postroom_message_first_attempt_seconds_count 1",
        "relay=\"sandbox\"",
        "phase=\"dot\",result=\"accepted\"} 1",
        "postroom_http_request_duration_seconds_count{method=\"POST\",route=\"/send\",status=\"2xx\"} 1",
        "postroom_queue_claim_seconds_count",
        "state=\"closed\"} 1",
        "postroom_relay_connections_max{relay=\"sandbox\"",
        "postroom_database_pool_connections{pool=\"api\",state=\"idle\"}",
        "postroom_recipients_held_unknown 0",
        "postroom_processes_alive 1",
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
        "process_start_time_seconds",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    t.stop().await;
}

#[tokio::test]
async fn every_answer_has_an_id_and_the_security_headers_and_errors_have_a_code() {
    let t = TestApp::start().await;
    let http = reqwest::Client::new();
    for (method, path, status) in [
        ("GET", "/health", 200),
        ("GET", "/nowhere", 404),
        ("PUT", "/send", 405),
        ("GET", "/jobs", 401),
    ] {
        let request = http.request(method.parse().unwrap(), format!("{}{path}", t.url));
        let answer = request.header("x-request-id", "abc-1").send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{path}");
        assert_eq!(answer.headers()["x-request-id"], "abc-1");
        assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
        let body: serde_json::Value = answer.json().await.unwrap();
        assert_eq!(body["code"].is_string(), status >= 400, "{body}");
    }
    t.with_headers(&t.key, "POST", "/send", None, &[("content-type", "text/plain")]).await.is(400);
    t.stop().await;
}

/// The state of one check of `/health/ready`, and its reason.
fn check(ready: &Value, name: &str) -> (String, String) {
    let all = ready["checks"].as_array().unwrap();
    let it = all.iter().find(|it| it["name"] == name).unwrap();
    (it["state"].as_str().unwrap().to_owned(), it["reason"].as_str().unwrap().to_owned())
}

/// The readiness, once it has this status.
async fn ready(t: &TestApp, status: u16) -> Value {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let begun = Instant::now();
        let answer = t.call("", "GET", "/health/ready", None).await;
        assert!(begun.elapsed() < Duration::from_secs(8), "it took {:?}", begun.elapsed());
        if answer.status == status {
            return answer.json;
        }
        assert!(Instant::now() < deadline, "never {status}: {:#}", answer.json);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn sql(t: &TestApp, text: &'static str) {
    sqlx::raw_sql(text).execute(&t.db).await.unwrap();
}

#[tokio::test]
async fn a_postroom_is_ready_until_its_schema_or_its_heartbeat_is_not_and_age_only_warns() {
    let t = TestApp::start().await;
    let well = ready(&t, 200).await;
    for name in ["database", "migrations", "queue", "workers"] {
        assert_eq!(check(&well, name).0, "ok", "{well:#}");
    }

    sql(
        &t,
        "insert into jobs (job_id, kind, lane, priority, due_at)
             values (gen_random_uuid(), 'of another', 'x', 1, now() - interval '1 hour')",
    )
    .await;
    let old = ready(&t, 200).await;
    let (state, reason) = check(&old, "queue");
    assert!(state == "warn" && reason.contains("3600 s"), "{old:#}");
    sql(&t, "delete from jobs").await;

    sql(
        &t,
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
             values (99991231000000, 'later', true, '\\x00', 0)",
    )
    .await;
    let newer = ready(&t, 503).await;
    let (state, reason) = check(&newer, "migrations");
    assert!(state == "fail" && reason.contains("99991231000000"), "{newer:#}");
    sql(&t, "delete from _sqlx_migrations where version = 99991231000000").await;

    sql(&t, "update processes set heartbeat_at = now() - interval '1 day'").await;
    let silent = ready(&t, 503).await;
    assert_eq!(check(&silent, "workers").0, "fail", "{silent:#}");
    sql(&t, "update processes set heartbeat_at = now()").await;
    ready(&t, 200).await;
    t.stop().await;
}

#[tokio::test]
async fn the_readiness_and_the_metrics_answer_while_the_database_hangs() {
    let t = TestApp::start().await;
    ready(&t, 200).await;
    let mut blocks = t.db.begin().await.unwrap();
    sqlx::raw_sql("lock table jobs, recipients, _sqlx_migrations in access exclusive mode")
        .execute(&mut *blocks)
        .await
        .unwrap();
    let stuck = ready(&t, 503).await;
    assert_eq!(check(&stuck, "database").0, "ok", "{stuck:#}");
    for name in ["migrations", "queue"] {
        let (state, reason) = check(&stuck, name);
        assert!(state == "fail" && reason.contains("within 2 s"), "{stuck:#}");
    }
    let text = metrics(&t).await;
    assert!(text.contains("postroom_database_up 0"), "{text}");
    assert!(text.contains("process_open_fds"), "{text}");
    blocks.rollback().await.unwrap();
    ready(&t, 200).await;
    t.stop().await;
}

async fn metrics(t: &TestApp) -> String {
    let token = [("authorization", "Bearer metrics-token")];
    let answer = t.with_headers("", "GET", "/metrics", None, &token).await;
    assert_eq!(answer.status, 200);
    String::from_utf8(answer.bytes).unwrap()
}

#[tokio::test]
async fn a_database_that_lets_nobody_in_makes_a_postroom_unready_until_it_is_back() {
    let t = TestApp::start().await;
    ready(&t, 200).await;
    let name: String =
        sqlx::query_scalar("select current_database()::text").fetch_one(&t.db).await.unwrap();
    let url = postroom::config::environment()["DATABASE_URL"].clone();
    let admin = sqlx::PgPool::connect(&url).await.unwrap();
    let run = async |text: String| {
        sqlx::raw_sql(sqlx::AssertSqlSafe(text)).execute(&admin).await.unwrap();
    };
    run(format!("alter database {name} with allow_connections false")).await;
    run(format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'"))
        .await;
    let away = ready(&t, 503).await;
    assert_eq!(check(&away, "database").0, "fail", "{away:#}");
    assert_eq!(check(&away, "queue").0, "skipped", "{away:#}");
    assert!(metrics(&t).await.contains("postroom_database_up 0"));
    run(format!("alter database {name} with allow_connections true")).await;
    ready(&t, 200).await;
    t.stop().await;
}
