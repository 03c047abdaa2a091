//! Who is let in.

use serde_json::json;

use crate::support::{TestApp, message};

/// Routes that answer a stranger. May only shrink.
const PUBLIC: &[&str] = &["/health", "/health/ready", "/openapi.json"];

#[tokio::test]
async fn every_route_refuses_strangers() {
    let t = TestApp::start().await;
    let document = t.call("", "GET", "/openapi.json", None).await.is(200);
    let mut asked = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        if PUBLIC.contains(&path.as_str()) {
            continue;
        }
        for method in operations.as_object().unwrap().keys() {
            let url = path.replace("{id}", "00000000-0000-7000-8000-000000000000");
            let body = (method != "get").then(|| json!({}));
            for key in ["", "0", &"0".repeat(64)] {
                let answer = t.call(key, &method.to_uppercase(), &url, body.clone()).await;
                assert_eq!(answer.status, 401, "{method} {path} with {key:?}");
            }
            asked += 1;
        }
    }
    assert!(asked >= 15, "only {asked} operations were asked");
    t.stop().await;
}

#[tokio::test]
async fn a_send_key_sees_its_own_messages_only_and_configures_nothing() {
    let t = TestApp::start().await;
    let made =
        t.post("/admin/api/api-keys", json!({ "name": "app", "scopes": ["send"] })).await.is(201);
    let app = made["plain"].as_str().unwrap();
    let other = t.post("/send", message("a@example.net")).await.is(202);
    let mine = t.call(app, "POST", "/send", Some(message("b@example.net"))).await.is(202);

    let listed = t.call(app, "GET", "/jobs", None).await.is(200);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["id"], mine["id"]);
    let path = format!("/jobs/{}", other["id"].as_str().unwrap());
    t.call(app, "GET", &path, None).await.is(404);
    let refused = t.call(app, "GET", "/admin/api/smtp-accounts", None).await.is(403);
    assert_eq!(refused["code"], "MISSING_SCOPE");
    t.stop().await;
}

#[tokio::test]
async fn an_empty_binding_refuses_and_a_domain_binding_holds() {
    let t = TestApp::start().await;
    for (domains, status) in
        [(json!([]), 403), (json!(["example.org"]), 403), (json!(["example.com"]), 202)]
    {
        let new = json!({ "name": "bound", "scopes": ["send"], "senderDomains": domains });
        let made = t.post("/admin/api/api-keys", new).await.is(201);
        let key = made["plain"].as_str().unwrap();
        t.call(key, "POST", "/send", Some(message("a@example.net"))).await.is(status);
    }
    t.stop().await;
}
