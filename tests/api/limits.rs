//! Limits hold over all processes, and what is over them goes out by itself.

use serde_json::{Value, json};

use crate::support::{
    TestApp, message,
    relay::{Script, ScriptedRelay},
};

const SENT: &str = "select count(*) from messages where outcome = 'sent'";
const LIMITED: &str =
    "select count(*) from recipients where reason = 'limited' and state = 'queued'";

async fn relay(t: &TestApp, relay: &ScriptedRelay) {
    let new = json!({
        "name": "one", "host": "127.0.0.1", "port": relay.port, "secure": false,
        "fromAddress": "app@example.com", "anySender": true, "priority": 1,
    });
    t.post("/admin/api/smtp-accounts", new).await.is(201);
}

async fn limit(t: &TestApp, scope: &str, value: &str, per: &str, most: i32) -> Value {
    let body = json!({ "scope": scope, "value": value, "per": per, "most": most });
    t.call(&t.key, "PUT", "/admin/api/limits", Some(body)).await.is(200)
}

async fn key(t: &TestApp) -> (String, String) {
    let new = json!({ "name": "limited", "scopes": ["send"] });
    let made = t.post("/admin/api/api-keys", new).await.is(201);
    (made["id"].as_str().unwrap().to_owned(), made["plain"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn ten_an_hour_are_ten_over_two_processes_and_the_eleventh_goes_by_itself() {
    let t = TestApp::start().await;
    let other = t.beside().await;
    let one = ScriptedRelay::start(Script::default()).await;
    relay(&t, &one).await;
    let (id, key) = key(&t).await;
    limit(&t, "key", &id, "hour", 10).await;
    for at in 0..15 {
        let t = if at % 2 == 0 { &t } else { &other };
        t.call(&key, "POST", "/send", Some(message("a@example.net"))).await.is(202);
    }
    t.counted(SENT, 10).await;
    t.counted(LIMITED, 5).await;
    // Another key is not held.
    let free = t.post("/send", message("a@example.net")).await.is(202);
    assert_eq!(t.settled(free["id"].as_str().unwrap()).await["outcome"], "sent");
    assert_eq!(one.dots(), 11);
    let listed = t.get("/admin/api/limits").await.is(200);
    assert_eq!((&listed[0]["left"], &listed[0]["most"]), (&json!(0), &json!(10)));
    let reset = listed[0]["reset"].as_u64().unwrap();
    assert!((3500..=3660).contains(&reset), "{reset}");
    t.passes_until(2, SENT, 16).await;
    other.stop().await;
    t.stop().await;
}

#[tokio::test]
async fn a_request_is_told_what_is_left_to_its_key() {
    let t = TestApp::start().await;
    let (id, key) = key(&t).await;
    let send = async || {
        let request = t.request("POST", "/send").header("x-api-key", &key);
        let response = request.json(&message("a@example.net")).send().await.unwrap();
        assert_eq!(response.status(), 202);
        let header =
            |name: &str| response.headers().get(name).map(|it| it.to_str().unwrap().to_owned());
        (header("ratelimit-policy"), header("ratelimit"))
    };
    assert_eq!(send().await, (None, None));
    limit(&t, "key", &id, "hour", 3).await;
    limit(&t, "key", &id, "day", 100).await;
    let (policy, first) = send().await;
    assert_eq!(policy.as_deref(), Some("\"hour\";q=3;w=3600, \"day\";q=100;w=86400"));
    assert!(first.unwrap().starts_with("\"hour\";r="));
    for _ in 0..3 {
        send().await;
    }
    t.counted(LIMITED, 1).await;
    let (_, last) = send().await;
    assert!(last.unwrap().starts_with("\"hour\";r=0;t="));
    let me = t.call(&key, "GET", "/me/key", None).await.is(200);
    assert_eq!(me["limits"][0]["left"], 0, "{me}");
    t.stop().await;
}

#[tokio::test]
async fn limits_of_domains_hold_only_their_own_and_what_was_refused_does_not_count() {
    let t = TestApp::start().await;
    let rcpt = vec![("bad@", "550 5.1.1 no such user")];
    let one = ScriptedRelay::start(Script { rcpt, ..Script::default() }).await;
    relay(&t, &one).await;
    limit(&t, "sender_domain", "Small.example", "minute", 2).await;
    limit(&t, "recipient_domain", "slow.example", "minute", 1).await;
    let send = async |from: &str, to: &str| {
        let mut body = message(to);
        body["from"] = json!(from);
        t.post("/send", body).await.is(202)["id"].as_str().unwrap().to_owned()
    };
    for _ in 0..3 {
        let id = send("app@small.example", "bad@example.net").await;
        assert_eq!(t.settled(&id).await["outcome"], "failed");
    }
    for _ in 0..2 {
        let id = send("app@small.example", "a@example.net").await;
        assert_eq!(t.settled(&id).await["outcome"], "sent");
    }
    send("app@small.example", "a@example.net").await;
    t.counted(LIMITED, 1).await;
    // Of three recipients one may go to the slow domain now; the one elsewhere goes too.
    let parted = send("app@example.com", "a@slow.example, b@slow.example, c@example.net").await;
    t.counted(LIMITED, 2).await;
    t.counted("select count(*) from recipients where state = 'sent'", 4).await;
    let job = t.get(&format!("/jobs/{parted}")).await.is(200);
    let states: Vec<&str> = job["recipients"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["sent", "queued", "sent"]);
    assert_eq!(
        job["recipients"][1]["text"],
        "the limit of 1 in a minute to slow.example is used up"
    );
    // Who raises a limit lets those go who waited for it.
    limit(&t, "recipient_domain", "slow.example", "minute", 5).await;
    assert_eq!(t.settled(&parted).await["outcome"], "sent");
    t.stop().await;
}

#[tokio::test]
async fn what_is_no_limit_is_refused() {
    let t = TestApp::start().await;
    let unknown = "00000000-0000-7000-8000-000000000000";
    for (body, status) in [
        (json!({ "scope": "key", "value": "x", "per": "hour", "most": 1 }), 400),
        (json!({ "scope": "key", "value": unknown, "per": "hour", "most": 1 }), 404),
        (json!({ "scope": "relay", "value": unknown, "per": "minute", "most": 1 }), 400),
        (json!({ "scope": "sender_domain", "value": "a b", "per": "hour", "most": 1 }), 400),
        (json!({ "scope": "sender_domain", "value": "a.example", "per": "year", "most": 1 }), 400),
        (json!({ "scope": "sender_domain", "value": "a.example", "per": "day", "most": 0 }), 400),
        (json!({ "scope": "sender_domain", "value": "a.example", "per": "day" }), 400),
    ] {
        let answer = t.call(&t.key, "PUT", "/admin/api/limits", Some(body.clone())).await;
        assert_eq!(answer.status, status, "{body}");
    }
    let made = limit(&t, "sender_domain", "a.example", "day", 5).await;
    let again = limit(&t, "sender_domain", "a.example", "day", 6).await;
    assert_eq!((&made["id"], &again["most"]), (&again["id"], &json!(6)));
    let path = format!("/admin/api/limits/{}", made["id"].as_str().unwrap());
    t.call(&t.key, "DELETE", &path, None).await.is(204);
    t.call(&t.key, "DELETE", &path, None).await.is(404);
    t.stop().await;
}
