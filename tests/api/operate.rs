//! Health, metrics, and the API's description.

use serde_json::json;

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
    let token = [("authorization", "Bearer metrics-token")];
    let text = t.with_headers("", "GET", "/metrics", None, &token).await;
    let text = String::from_utf8(text.bytes).unwrap();
    for line in [
        "postroom_attempts_total{outcome=\"accepted\"} 1",
        "postroom_messages_accepted_total 1",
        "postroom_queue_depth 0",
        "postroom_queue_oldest_seconds 0",
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
