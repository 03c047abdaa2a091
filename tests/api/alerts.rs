//! The alert rules that are shipped speak of what is really shown.

use std::collections::BTreeSet;

use serde_json::json;

use crate::support::{TestApp, message};

const RULES: &str = include_str!("../../deploy/prometheus/alerts.yml");

/// The names of metrics in the expressions: words with our prefix, or that of the process.
fn named() -> BTreeSet<String> {
    let (mut names, mut in_expression) = (BTreeSet::new(), false);
    for line in RULES.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let begins = line.trim_start().strip_prefix("expr:");
        // A folded expression goes on in the lines that are further in.
        in_expression = begins.is_some() || (in_expression && line.starts_with("          "));
        if in_expression {
            let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let ours = words.filter(|it| it.starts_with("postroom_") || it.starts_with("process_"));
            names.extend(ours.map(str::to_owned));
        }
    }
    names
}

#[tokio::test]
async fn every_metric_that_an_alert_names_is_shown() {
    let t = TestApp::start().await;
    let sent = t.post("/send", message("a@example.net")).await.is(202);
    t.settled(sent["id"].as_str().unwrap()).await;
    t.call("", "GET", "/nowhere", None).await.is(404);
    sqlx::raw_sql("insert into paused_scopes (scope, value, paused_by) values ('sender_domain', 'paused.example', 'test')")
        .execute(&t.db)
        .await
        .unwrap();
    let token = [("authorization", "Bearer metrics-token")];
    let answer = t.with_headers("", "GET", "/metrics", None, &token).await;
    let text = String::from_utf8(answer.bytes).unwrap();
    let shown: BTreeSet<&str> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let names = named();
    assert!(names.len() > 15, "{names:?}");
    let missing: Vec<_> = names.iter().filter(|name| !shown.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "not shown: {missing:?}\n{text}");
    t.stop().await;
}

#[tokio::test]
async fn recipients_and_messages_are_counted_by_what_became_of_them() {
    let t = TestApp::start().await;
    sqlx::raw_sql(
        "insert into suppressions (suppression_id, lookup_key, reason)
         values (gen_random_uuid(), 'never@example.net', 'complained')",
    )
    .execute(&t.db)
    .await
    .unwrap();
    let mut both = message("a@example.net");
    both["to"] = json!(["a@example.net", "never@example.net"]);
    both["rejectSuppressed"] = json!(false);
    let sent = t.post("/send", both).await.is(202);
    t.settled(sent["id"].as_str().unwrap()).await;
    let token = [("authorization", "Bearer metrics-token")];
    let answer = t.with_headers("", "GET", "/metrics", None, &token).await;
    let text = String::from_utf8(answer.bytes).unwrap();
    for line in [
        "postroom_recipients_total{outcome=\"sent\"} 1",
        "postroom_recipients_total{outcome=\"suppressed\"} 1",
        "postroom_recipients_total{outcome=\"failed\"} 0",
        "postroom_message_settled_seconds_count{outcome=\"partial\"} 1",
    ] {
        assert!(text.lines().any(|it| it == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("example.net"), "an address in the metrics\n{text}");
    t.stop().await;
}
