//! Templates: kept in versions, filled at accept, harmless in the mail that arrives.

use mail_parser::MessageParser;
use serde_json::{Value, json};

use crate::support::{Answer, TestApp};

const ROUTE: &str = "/admin/api/templates";

async fn welcome(t: &TestApp) -> Value {
    let new = json!({
        "slug": "welcome", "name": "Welcome mail", "subject": "Welcome, {{ user.name }}",
        "html": "<p title=\"{{ user.name }}\">Hello {{ user.name }}</p><a href=\"{{ url }}\">go</a>",
        "text": "Hello {{ user.name }}\n{{ url }}",
    });
    t.post(ROUTE, new).await.is(201)
}

fn mail(template: Value) -> Value {
    json!({ "to": "a@example.net", "from": "app@example.com", "template": template })
}

fn good() -> Value {
    json!({ "user": { "name": "Ann" }, "url": "https://a.example/" })
}

async fn patch(t: &TestApp, id: &str, body: Value) -> Answer {
    t.call(&t.key, "PATCH", &format!("{ROUTE}/{id}"), Some(body)).await
}

/// What the sandbox received last, once the message has left: subject, html, text.
async fn arrived(t: &TestApp, sent: &Value) -> (String, String, String) {
    let job = t.settled(sent["id"].as_str().unwrap()).await;
    assert_eq!(job["outcome"], "sent", "{job:#}");
    let newest = t.get("/sandbox/messages?limit=1").await.is(200);
    assert_eq!(format!("<{}>", newest[0]["messageId"].as_str().unwrap()), job["messageId"]);
    let path = format!("/sandbox/messages/{}/raw", newest[0]["id"].as_str().unwrap());
    let raw = t.get(&path).await.bytes;
    let read = MessageParser::default().parse(&raw).unwrap();
    let html = read.body_html(0).unwrap().into_owned();
    let text = read.body_text(0).unwrap().into_owned();
    (read.subject().unwrap().to_owned(), html, text)
}

#[tokio::test]
async fn a_template_is_filled_and_its_html_escaped() {
    let t = TestApp::start().await;
    let made = welcome(&t).await;
    assert_eq!(made["variables"], json!(["url", "user.name"]));
    assert_eq!((&made["version"], &made["warnings"]), (&json!(1), &json!([])));
    let evil = "<script>x</script>\" onload=\"y' & Söhne";
    let data = json!({ "user": { "name": evil }, "url": "https://a.example/?a=1&b=\"2" });
    let key =
        t.post("/admin/api/api-keys", json!({ "name": "app", "scopes": ["send"] })).await.is(201);
    let key = key["plain"].as_str().unwrap();
    let template = json!({ "id": "welcome", "data": data });
    let sent = t.call(key, "POST", "/send", Some(mail(template))).await.is(202);
    let (subject, html, text) = arrived(&t, &sent).await;
    assert_eq!(subject, format!("Welcome, {evil}"));
    assert_eq!(text.trim_end(), format!("Hello {evil}\r\nhttps://a.example/?a=1&b=\"2"));
    let escaped = "&lt;script&gt;x&lt;/script&gt;&quot; onload=&quot;y&#39; &amp; Söhne";
    assert_eq!(
        html.trim_end(),
        format!(
            "<p title=\"{escaped}\">Hello {escaped}</p><a href=\"https://a.example/?a=1&amp;b=&quot;2\">go</a>"
        )
    );
    let mut own = mail(json!({ "id": made["id"], "data": good() }));
    own["subject"] = json!("Another subject");
    let sent = t.post("/send", own).await.is(202);
    assert_eq!(arrived(&t, &sent).await.0, "Another subject");
    t.stop().await;
}

#[tokio::test]
async fn what_cannot_be_filled_is_refused_and_stores_nothing() {
    let t = TestApp::start().await;
    welcome(&t).await;
    for (template, code, path) in [
        (json!({ "id": "welcome" }), "TEMPLATE_VARIABLE_MISSING", "template.data.url"),
        (
            json!({ "id": "welcome", "data": { "url": "/", "user": { "name": null } } }),
            "TEMPLATE_VARIABLE_MISSING",
            "template.data.user.name",
        ),
        (
            json!({ "id": "welcome", "data": { "url": "javascript:x", "user": { "name": "A" } } }),
            "TEMPLATE_NOT_RENDERED",
            "template.html",
        ),
        (
            json!({ "id": "welcome", "data": { "url": "/", "user": { "name": "A\r\nBcc: x@example.org" } } }),
            "TEMPLATE_NOT_RENDERED",
            "template.subject",
        ),
        (
            json!({ "id": "welcome", "data": { "url": "/", "user": { "name": [1] } } }),
            "TEMPLATE_NOT_RENDERED",
            "template.subject",
        ),
        (json!({ "id": "nothing", "data": good() }), "TEMPLATE_NOT_FOUND", "template.id"),
        (
            json!({ "id": "welcome", "version": 2, "data": good() }),
            "TEMPLATE_NOT_FOUND",
            "template",
        ),
        (
            json!({ "id": "welcome", "version": 0, "data": good() }),
            "VALIDATION",
            "template.version",
        ),
        (
            json!({ "id": "welcome", "version": "1", "data": good() }),
            "VALIDATION",
            "template.version",
        ),
        (json!({ "data": good() }), "VALIDATION", "template.id"),
        (json!({ "id": "a\u{0}b", "data": good() }), "VALIDATION", "template.id"),
        (json!({ "id": "welcome", "data": [] }), "VALIDATION", "template.data"),
        (json!({ "id": "welcome", "vars": {} }), "VALIDATION", "template.vars"),
        (json!("welcome"), "VALIDATION", "template"),
        (
            json!({ "id": "welcome", "data": { "x": "x".repeat(256 * 1024) } }),
            "VALIDATION",
            "template.data",
        ),
    ] {
        let refused = t.post("/send", mail(template.clone())).await.is(400);
        assert_eq!(refused["code"], code, "{template} {refused}");
        assert_eq!(refused["issues"][0]["path"], path, "{template} {refused}");
    }
    let mut both = mail(json!({ "id": "welcome", "data": good() }));
    both["html"] = json!("<p>");
    assert_eq!(t.post("/send", both).await.is(400)["issues"][0]["path"], "html");
    let dry = t.post("/send?dryRun", mail(json!({ "id": "welcome" }))).await.is(400);
    assert_eq!(dry["code"], "TEMPLATE_VARIABLE_MISSING");
    assert_eq!(t.get("/jobs").await.is(200), json!([]));
    t.stop().await;
}

#[tokio::test]
async fn a_retry_after_an_edit_is_a_replay() {
    let t = TestApp::start().await;
    welcome(&t).await;
    let key = [("idempotency-key", "order-42")];
    let send = async |template: Value| {
        t.with_headers(&t.key, "POST", "/send", Some(mail(template)), &key).await
    };
    let template = json!({ "id": "welcome", "data": good() });
    let first = send(template.clone()).await.is(202);
    patch(&t, "welcome", json!({ "subject": "Changed, {{ user.name }}" })).await.is(200);
    assert_eq!(send(template.clone()).await.is(202)["id"], first["id"]);
    // Also where it could not be filled any more, or is not there at all.
    patch(&t, "welcome", json!({ "subject": "Needs {{ more }}" })).await.is(200);
    assert_eq!(send(template.clone()).await.is(202)["id"], first["id"]);
    let changed = json!({ "id": "welcome", "version": 1, "data": good() });
    assert_eq!(send(changed).await.is(409)["code"], "IDEMPOTENCY_KEY_REUSED");
    t.call(&t.key, "DELETE", &format!("{ROUTE}/welcome"), None).await.is(204);
    assert_eq!(send(template).await.is(202)["id"], first["id"]);
    let changed = json!({ "id": "welcome", "data": { "user": { "name": "Bob" } } });
    assert_eq!(send(changed).await.is(409)["code"], "IDEMPOTENCY_KEY_REUSED");
    assert_eq!(t.get("/jobs").await.is(200).as_array().unwrap().len(), 1);
    assert_eq!(arrived(&t, &first).await.0, "Welcome, Ann");
    t.stop().await;
}

#[tokio::test]
async fn versions_stay_and_can_be_used_by_number() {
    let t = TestApp::start().await;
    let made = welcome(&t).await;
    let id = made["id"].as_str().unwrap();
    let renamed = patch(&t, id, json!({ "name": "Hello", "slug": "hello" })).await.is(200);
    assert_eq!(renamed["version"], 1, "a name is no content");
    let changed = patch(&t, "hello", json!({ "subject": "Two", "text": null })).await.is(200);
    assert_eq!((&changed["version"], &changed["text"]), (&json!(2), &Value::Null));
    assert_eq!(changed["warnings"][0]["path"], "text");
    assert_eq!(patch(&t, id, json!({ "subject": "Two" })).await.is(200)["version"], 2);

    let versions = t.get(&format!("{ROUTE}/{id}/versions")).await.is(200);
    let listed: Vec<_> =
        versions.as_array().unwrap().iter().map(|it| (&it["version"], &it["current"])).collect();
    assert_eq!(listed, [(&json!(2), &json!(true)), (&json!(1), &json!(false))]);
    assert!(versions[0]["createdBy"].as_str().unwrap().starts_with("key:"), "{versions}");
    let first = t.get(&format!("{ROUTE}/hello?version=1")).await.is(200);
    assert_eq!((&first["subject"], &first["currentVersion"]), (&made["subject"], &json!(2)));

    let first =
        t.post("/send", mail(json!({ "id": id, "version": 1, "data": good() }))).await.is(202);
    assert_eq!(arrived(&t, &first).await.0, "Welcome, Ann");
    let second = t.post("/send", mail(json!({ "id": "hello", "data": good() }))).await.is(202);
    assert_eq!(arrived(&t, &second).await.0, "Two");
    t.stop().await;
}

#[tokio::test]
async fn an_archived_template_is_not_used_any_more() {
    let t = TestApp::start().await;
    let made = welcome(&t).await;
    let id = made["id"].as_str().unwrap();
    t.call(&t.key, "DELETE", &format!("{ROUTE}/{id}"), None).await.is(204);
    assert_eq!(t.get(ROUTE).await.is(200), json!([]));
    assert!(t.get(&format!("{ROUTE}/{id}")).await.is(200)["archivedAt"].is_string());
    t.get(&format!("{ROUTE}/welcome")).await.is(404);
    patch(&t, id, json!({ "name": "x" })).await.is(404);
    t.call(&t.key, "DELETE", &format!("{ROUTE}/{id}"), None).await.is(404);
    t.post(&format!("{ROUTE}/{id}/test"), json!({ "to": "a@example.net" })).await.is(404);
    let refused = t.post("/send", mail(json!({ "id": id, "data": good() }))).await.is(400);
    assert_eq!(refused["code"], "TEMPLATE_NOT_FOUND");
    let again = welcome(&t).await;
    assert_ne!(again["id"], made["id"], "the slug was free");

    let told: Vec<String> =
        sqlx::query_scalar("select kind from events where subject = 'template' order by event_id")
            .fetch_all(&t.db)
            .await
            .unwrap();
    assert_eq!(told, ["template.created", "template.archived", "template.created"]);
    let audited: i64 = sqlx::query_scalar("select count(*) from audit where subject = 'template'")
        .fetch_one(&t.db)
        .await
        .unwrap();
    assert_eq!(audited, 3);
    t.stop().await;
}

#[tokio::test]
async fn a_preview_shows_what_is_missing_where_it_would_stand() {
    let t = TestApp::start().await;
    welcome(&t).await;
    let path = format!("{ROUTE}/welcome/preview");
    let whole = t.post(&path, json!({ "data": good() })).await.is(200);
    assert_eq!(whole["subject"], "Welcome, Ann");
    assert_eq!(whole["missing"], json!([]));
    let partly = t.post(&path, json!({ "data": { "url": "/<" }, "version": 1 })).await.is(200);
    assert_eq!(partly["missing"], json!(["user"]));
    assert_eq!(partly["subject"], "Welcome, {{ user.name }}");
    assert_eq!(partly["variables"], json!(["url", "user.name"]));
    assert!(partly["html"].as_str().unwrap().ends_with("<a href=\"/&lt;\">go</a>"), "{partly}");
    t.post(&path, json!({ "data": good(), "version": 2 })).await.is(404);
    t.post(&path, json!({ "vars": {} })).await.is(400);
    let refused = t
        .post(&path, json!({ "data": { "user": { "name": "a" }, "url": "vbscript:x" } }))
        .await
        .is(400);
    assert_eq!(refused["code"], "TEMPLATE_NOT_RENDERED");
    assert_eq!(t.get("/jobs").await.is(200), json!([]));
    t.stop().await;
}

#[tokio::test]
async fn a_test_is_a_real_message_by_a_key_that_may_send() {
    let t = TestApp::start().await;
    welcome(&t).await;
    let path = format!("{ROUTE}/welcome/test");
    let body = json!({ "to": "me@example.net", "from": "app@example.com", "data": good() });
    let sent = t.post(&path, body.clone()).await.is(202);
    assert_eq!(arrived(&t, &sent).await.0, "Welcome, Ann");
    let job = t.get(&format!("/jobs/{}", sent["id"].as_str().unwrap())).await.is(200);
    assert_eq!(job["tags"], json!(["template-test"]));

    let missing =
        t.post(&path, json!({ "to": "me@example.net", "from": "app@example.com" })).await.is(400);
    assert_eq!(missing["issues"][0]["path"], "data.url");
    assert_eq!(t.post(&path, json!({ "data": good() })).await.is(400)["issues"][0]["path"], "to");
    for (scopes, needed) in [(["admin"], "send"), (["send"], "admin"), (["read"], "admin")] {
        let key =
            t.post("/admin/api/api-keys", json!({ "name": "k", "scopes": scopes })).await.is(201);
        let refused =
            t.call(key["plain"].as_str().unwrap(), "POST", &path, Some(body.clone())).await.is(403);
        assert_eq!(refused["required_scope"], needed);
    }
    t.stop().await;
}

#[tokio::test]
async fn bad_templates_are_refused_with_their_place() {
    let t = TestApp::start().await;
    let made = welcome(&t).await;
    let with = |fields: Value| {
        let mut new = json!({ "slug": "other", "name": "Other", "subject": "s", "text": "t" });
        new.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        new
    };
    let hex = "a".repeat(32);
    for (fields, path) in [
        (json!({ "slug": "" }), "slug"),
        (json!({ "slug": "Upper" }), "slug"),
        (json!({ "slug": "1st" }), "slug"),
        (json!({ "slug": "a/b" }), "slug"),
        (json!({ "slug": hex }), "slug"),
        (json!({ "slug": made["id"] }), "slug"),
        (json!({ "name": "" }), "name"),
        (json!({ "subject": " " }), "subject"),
        (json!({ "text": null }), "html"),
        (json!({ "text": "x".repeat(512 * 1024 + 1) }), "text"),
        (json!({ "text": "a\u{0}" }), "text"),
        (json!({ "txt": "a" }), ""),
    ] {
        let refused = t.post(ROUTE, with(fields.clone())).await.is(400);
        assert_eq!(refused["issues"].as_array().unwrap().len(), 1, "{fields} {refused}");
        if !path.is_empty() {
            assert_eq!(refused["issues"][0]["path"], path, "{fields}");
        }
    }
    let syntax = t.post(ROUTE, with(json!({ "html": "<p>\n {% if x %}{{ y" }))).await.is(400);
    assert_eq!(syntax["issues"][0]["path"], "html");
    assert!(
        syntax["issues"][0]["message"].as_str().unwrap().starts_with("line 2, column "),
        "{syntax}"
    );
    let place = patch(&t, "welcome", json!({ "html": "<a href={{ url }}>" })).await.is(400);
    assert_eq!(
        place["issues"][0]["message"],
        "line 1, column 12: put the attribute's value in quotes"
    );
    assert_eq!(t.get(&format!("{ROUTE}/welcome")).await.is(200)["version"], 1);

    assert_eq!(
        t.post(ROUTE, with(json!({ "slug": "welcome" }))).await.is(409)["code"],
        "SLUG_TAKEN"
    );
    t.post(ROUTE, with(json!({}))).await.is(201);
    assert_eq!(
        patch(&t, "other", json!({ "slug": "welcome" })).await.is(409)["code"],
        "SLUG_TAKEN"
    );
    for path in ["nothing", "00000000-0000-7000-8000-000000000000", "%00", "%FF"] {
        t.get(&format!("{ROUTE}/{path}")).await.is(404);
        t.get(&format!("{ROUTE}/{path}/versions")).await.is(404);
        patch(&t, path, json!({})).await.is(404);
    }
    let page = t.get(&format!("{ROUTE}?limit=1")).await.is(200);
    assert_eq!(page[0]["slug"], "other");
    let next = format!("{ROUTE}?limit=1&cursor={}", page[0]["id"].as_str().unwrap());
    assert_eq!(t.get(&next).await.is(200)[0]["slug"], "welcome");
    t.stop().await;
}
