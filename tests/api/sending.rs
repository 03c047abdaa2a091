//! One message from end to end.

use std::time::Duration;

use serde_json::json;

use crate::support::{
    TestApp, message,
    relay::{Script, ScriptedRelay},
};

#[tokio::test]
async fn a_message_arrives_and_says_so() {
    let t = TestApp::start().await;
    let mut body = message("a@example.net, b@example.org");
    body["bcc"] = json!("hidden@example.org");
    let sent = t.post("/send", body).await.is(202);
    let job = t.settled(sent["id"].as_str().unwrap()).await;
    assert_eq!((&job["status"], &job["outcome"]), (&json!("done"), &json!("sent")));
    assert_eq!(job["recipients"].as_array().unwrap().len(), 3);
    assert!(job["recipients"].as_array().unwrap().iter().all(|it| it["state"] == "sent"));
    assert_eq!(job["history"].as_array().unwrap().len(), 1);

    let received = t.get("/sandbox/messages").await.is(200);
    assert_eq!(received.as_array().unwrap().len(), 1);
    assert_eq!(
        received[0]["rcptTo"],
        json!(["a@example.net", "b@example.org", "hidden@example.org"])
    );
    let raw =
        t.get(&format!("/sandbox/messages/{}/raw", received[0]["id"].as_str().unwrap())).await;
    let raw = String::from_utf8(raw.bytes).unwrap();
    assert!(!raw.contains("hidden@"), "{raw}");
    assert!(raw.contains("Hello\r\n.\r\nthere"), "{raw}");
    t.stop().await;
}

/// The answer is made without another look at the database.
#[tokio::test]
async fn the_answer_is_what_a_look_would_show() {
    let t = TestApp::start().await;
    sqlx::raw_sql("insert into suppressions (suppression_id, lookup_key, reason) values (gen_random_uuid(), 'gone@example.net', 'hard bounce')")
        .execute(&t.db)
        .await
        .unwrap();
    let mut body = message("\"Ann\" <a@example.net>");
    let more = json!({
        "bcc": "gone@example.net", "cc": "c@example.org",
        "replyTo": "r@example.org", "tags": ["one"], "metadata": { "order": "7" }, "rejectSuppressed": false,
        "ttl": 3600,
    });
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    let then: chrono::DateTime<chrono::Utc> =
        sqlx::query_scalar("select clock_timestamp() + interval '1 hour'")
            .fetch_one(&t.db)
            .await
            .unwrap();
    body["sendAt"] = json!(then);
    for body in [
        body,
        json!({ "rejectSuppressed": false, "to": "gone@example.net", "subject": "s", "text": "t" }),
    ] {
        let mut sent = t.post("/send", body).await.is(202);
        let job = sent.as_object_mut().unwrap();
        assert_eq!(job.remove("ok"), Some(json!(true)));
        let mut seen = t.get(&format!("/jobs/{}", job["id"].as_str().unwrap())).await.is(200);
        // Each row has its own moment, a few microseconds apart.
        for it in [&mut sent, &mut seen] {
            let recipients = it["recipients"].as_array_mut().unwrap();
            let settled = recipients.iter_mut().map(|it| &mut it["settledAt"]);
            settled.filter(|at| !at.is_null()).for_each(|at| *at = json!("then"));
            if !it["completedAt"].is_null() {
                it["completedAt"] = json!("then");
            }
        }
        assert_eq!(sent, seen);
    }
    t.stop().await;
}

#[tokio::test]
async fn fifty_parallel_posts_with_one_key_make_one_message() {
    let t = TestApp::start().await;
    let key = [("idempotency-key", "order-42")];
    let posts = (0..50)
        .map(|_| t.with_headers(&t.key, "POST", "/send", Some(message("a@example.net")), &key));
    let answers = futures_util::future::join_all(posts).await;
    let ids: std::collections::HashSet<String> =
        answers.into_iter().map(|it| it.is(202)["id"].to_string()).collect();
    assert_eq!(ids.len(), 1);
    let mut changed = message("a@example.net");
    changed["subject"] = json!("Another");
    let refused = t.with_headers(&t.key, "POST", "/send", Some(changed), &key).await.is(409);
    assert_eq!(refused["code"], "IDEMPOTENCY_KEY_REUSED");
    assert_eq!(t.get("/jobs").await.is(200).as_array().unwrap().len(), 1);
    t.stop().await;
}

#[tokio::test]
async fn a_suppressed_recipient_refuses_the_request_or_is_left_out() {
    let t = TestApp::start().await;
    sqlx::raw_sql("insert into suppressions (suppression_id, lookup_key, reason) values (gen_random_uuid(), 'gone@example.net', 'hard bounce')")
        .execute(&t.db)
        .await
        .unwrap();
    let refused = t.post("/send", message("Gone@example.net")).await.is(422);
    assert_eq!(refused["suppressed"][0]["reason"], "hard bounce");
    let mut body = message("gone@example.net, a@example.net");
    body["rejectSuppressed"] = json!(false);
    let job = t.post("/send", body).await.is(202);
    let job = t.settled(job["id"].as_str().unwrap()).await;
    assert_eq!(job["outcome"], "partial");
    let mut body = message("gone@example.net");
    body["rejectSuppressed"] = json!(false);
    let job = t.post("/send", body).await.is(202);
    assert_eq!((&job["status"], &job["outcome"]), (&json!("dead"), &json!("suppressed")));
    t.stop().await;
}

#[tokio::test]
async fn bad_input_is_a_4xx_with_a_path_and_stores_nothing() {
    let t = TestApp::start().await;
    let mut injected = message("a@example.net");
    injected["replyTo"] = json!({ "name": "A\r\nBcc: x@example.org", "email": "a@example.com" });
    for body in [json!({}), json!([]), injected, message("a@example.net, nonsense")] {
        let refused = t.post("/send", body.clone()).await.is(400);
        assert!(!refused["issues"].as_array().unwrap().is_empty(), "{body} {refused}");
    }
    assert_eq!(t.get("/jobs").await.is(200), json!([]));
    t.stop().await;
}

#[tokio::test]
async fn an_idempotency_key_is_free_again_after_its_day() {
    let t = TestApp::start().await;
    let key = [("idempotency-key", "order-42")];
    let post = || t.with_headers(&t.key, "POST", "/send", Some(message("a@example.net")), &key);
    let first = post().await.is(202)["id"].clone();
    assert_eq!(post().await.is(202)["id"], first);
    let age = async |hours: i32| {
        sqlx::query(
            "update idempotency_keys set expires_at = expires_at - make_interval(hours => $1)",
        )
        .bind(hours)
        .execute(&t.db)
        .await
        .unwrap();
    };
    age(23).await;
    assert_eq!(post().await.is(202)["id"], first);
    age(2).await;
    assert_ne!(post().await.is(202)["id"], first);
    t.settled(first.as_str().unwrap()).await;
    t.stop().await;
}

#[tokio::test]
async fn what_is_urgent_overtakes_what_is_not() {
    let t = TestApp::start().await;
    let slow =
        ScriptedRelay::start(Script { pace: Duration::from_millis(50), ..Script::default() }).await;
    let new = json!({
        "name": "slow", "host": "127.0.0.1", "port": slow.port, "secure": false, "fromAddress": "app@example.com",
        "domain": "example.com", "priority": 1, "maxConnections": 1,
    });
    t.post("/admin/api/smtp-accounts", new).await.is(201);
    let pause = t.post("/admin/api/pauses", json!({ "scope": "all" })).await.is(201);
    let mut ids = Vec::new();
    for priority in ["bulk", "bulk", "bulk", "normal", "high"] {
        let mut body = message("a@example.net");
        body["priority"] = json!(priority);
        ids.push(t.post("/send", body).await.is(202)["id"].as_str().unwrap().to_owned());
    }
    let resume = format!("/admin/api/pauses/{}", pause["id"].as_str().unwrap());
    t.call(&t.key, "DELETE", &resume, None).await.is(204);
    let mut ended = Vec::new();
    for id in &ids {
        ended.push(t.settled(id).await["completedAt"].as_str().unwrap().to_owned());
    }
    let rest = ended[..3].iter().min().unwrap();
    assert!(ended[4] < ended[3] && &ended[3] < rest, "{ended:?}");
    t.stop().await;
}
