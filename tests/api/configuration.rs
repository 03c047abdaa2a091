//! Keys and relays: made, changed, taken away, and never telling a secret.

use serde_json::{Value, json};

use crate::support::{TestApp, message};

fn relay() -> Value {
    json!({
        "name": "main", "host": "relay.example", "port": 587, "secure": false, "requireTls": true,
        "fromAddress": "App@Example.com", "priority": 5, "username": "user", "password": "secret-word",
    })
}

async fn audited(t: &TestApp) -> Vec<(String, String)> {
    sqlx::query_as("select action, coalesce(before::text, '') || coalesce(after::text, '') from audit order by audit_id")
        .fetch_all(&t.db)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_relays_password_is_sealed_and_shown_nowhere() {
    let t = TestApp::start().await;
    let made = t.post("/admin/api/smtp-accounts", relay()).await.is(201);
    assert_eq!(
        (&made["hasPassword"], &made["fromAddress"]),
        (&json!(true), &json!("App@example.com"))
    );
    let path = format!("/admin/api/smtp-accounts/{}", made["id"].as_str().unwrap());
    let changed = t.call(&t.key, "PATCH", &path, Some(json!({ "priority": 7 }))).await.is(200);
    assert_eq!((&changed["priority"], &changed["hasPassword"]), (&json!(7), &json!(true)));
    let moved =
        t.call(&t.key, "PATCH", &path, Some(json!({ "host": "elsewhere.example" }))).await.is(422);
    assert_eq!(moved["code"], "PASSWORD_NEEDED");
    let open = t.call(&t.key, "PATCH", &path, Some(json!({ "password": null }))).await.is(200);
    assert_eq!(open["hasPassword"], json!(false));
    t.call(&t.key, "DELETE", &path, None).await.is(204);
    t.get(&path).await.is(404);

    let rows = audited(&t).await;
    let actions: Vec<&str> = rows.iter().map(|(action, _)| action.as_str()).collect();
    assert_eq!(
        actions[actions.len() - 4..],
        ["relay.created", "relay.changed", "relay.changed", "relay.deleted"]
    );
    let told: String =
        sqlx::query_scalar("select coalesce(string_agg(data::text, ''), '') from events")
            .fetch_one(&t.db)
            .await
            .unwrap();
    let all = format!("{told}{rows:?}");
    assert!(!all.contains("secret-word") && !all.contains("v1."), "{all}");
    t.stop().await;
}

#[tokio::test]
async fn a_relay_is_refused_with_every_reason_at_once() {
    let t = TestApp::start().await;
    let mut bad = relay();
    bad["name"] = json!("");
    bad["host"] = json!("exa mple\r\n");
    bad["port"] = json!(0);
    bad["priority"] = json!(1001);
    bad["userEnvVar"] = json!("DATABASE_URL");
    let refused = t.post("/admin/api/smtp-accounts", bad).await.is(400);
    let paths: Vec<&str> = refused["issues"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["name", "host", "port", "priority", "userEnvVar", "username"]);
    for (field, value) in
        [("port", json!("587")), ("secure", json!(null)), ("fromAddress", json!("nobody"))]
    {
        let mut bad = relay();
        bad[field] = value;
        let refused = t.post("/admin/api/smtp-accounts", bad).await.is(400);
        assert_eq!(refused["issues"][0]["path"], field, "{refused}");
    }
    for host in [
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "fe80::1",
        "0.0.0.0",
    ] {
        let mut bad = relay();
        bad["host"] = json!(host);
        assert_eq!(
            t.post("/admin/api/smtp-accounts", bad).await.is(400)["issues"][0]["path"],
            "host",
            "{host}"
        );
    }
    let mut odd = relay();
    odd["colour"] = json!("blue");
    assert_eq!(t.post("/admin/api/smtp-accounts", odd).await.is(201)["ignored"], json!(["colour"]));
    t.stop().await;
}

#[tokio::test]
async fn a_key_is_shown_once_and_good_until_it_is_revoked_or_over() {
    let t = TestApp::start().await;
    let made =
        t.post("/admin/api/api-keys", json!({ "name": "a", "scopes": ["send"] })).await.is(201);
    let (id, plain) = (made["id"].as_str().unwrap(), made["plain"].as_str().unwrap());
    assert!(made.get("suppressionExempt").is_none());
    let listed = t.get("/admin/api/api-keys").await.is(200).to_string();
    assert!(!listed.contains(plain) && listed.contains(&plain[..8]));
    t.call(plain, "GET", "/jobs", None).await.is(200);
    let bearer = format!("Bearer {plain}");
    t.with_headers("", "GET", "/jobs", None, &[("authorization", &bearer)]).await.is(200);

    let path = format!("/admin/api/api-keys/{id}");
    let past = json!({ "expiresAt": "2020-01-01T00:00:00Z" });
    t.call(&t.key, "PATCH", &path, Some(past)).await.is(200);
    t.call(plain, "GET", "/jobs", None).await.is(401);
    t.call(&t.key, "PATCH", &path, Some(json!({ "expiresAt": null }))).await.is(200);
    t.call(plain, "GET", "/jobs", None).await.is(200);
    for bad in [json!([]), json!({ "name": null }), json!({ "expiresAt": "-4800-01-01T00:00:00Z" })]
    {
        t.call(&t.key, "PATCH", &path, Some(bad)).await.is(400);
    }
    for _ in 0..2 {
        t.call(&t.key, "DELETE", &path, None).await.is(204);
    }
    t.call(&t.key, "PATCH", &path, Some(json!({ "name": "b" }))).await.is(409);
    t.post("/admin/api/api-keys", json!(["arr", ["admin"], false, null, null, null, null, null]))
        .await
        .is(400);
    t.call(plain, "POST", "/send", Some(message("a@example.net"))).await.is(401);
    t.call(&t.key, "DELETE", "/admin/api/api-keys/nonsense", None).await.is(404);
    for bad in [
        json!({ "name": "a" }),
        json!({ "name": "a", "scopes": [] }),
        json!({ "name": "a", "scopes": ["root"] }),
    ] {
        t.post("/admin/api/api-keys", bad).await.is(400);
    }
    t.stop().await;
}

#[tokio::test]
async fn a_key_bound_to_networks_is_good_from_there_only() {
    let t = TestApp::start().await;
    for (networks, status) in
        [(json!(["192.0.2.0/24"]), 403), (json!([]), 403), (json!(["127.0.0.0/8"]), 200)]
    {
        let new = json!({ "name": "net", "scopes": ["send"], "networks": networks });
        let made = t.post("/admin/api/api-keys", new).await.is(201);
        t.call(made["plain"].as_str().unwrap(), "GET", "/jobs", None).await.is(status);
    }
    t.stop().await;
}

#[tokio::test]
async fn a_message_without_a_sender_takes_the_first_relays_that_its_key_may_use() {
    let t = TestApp::start().await;
    let mut first = relay();
    first["fromName"] = json!("The App");
    t.post("/admin/api/smtp-accounts", first).await.is(201);
    let body = json!({ "to": "a@example.net", "subject": "x", "text": "x" });
    let sent = t.post("/send", body.clone()).await.is(202);
    assert_eq!(sent["payload"]["from"], "The App <App@example.com>");
    let new = json!({ "name": "bound", "scopes": ["send"], "senderDomains": ["sandbox.example"] });
    let made = t.post("/admin/api/api-keys", new).await.is(201);
    let sent = t.call(made["plain"].as_str().unwrap(), "POST", "/send", Some(body)).await.is(202);
    assert_eq!(sent["payload"]["from"], "postroom@sandbox.example");
    t.stop().await;
}
