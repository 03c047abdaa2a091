//! What is kept of one person, and what remains when it is erased.

use serde_json::{Value, json};

use crate::support::{
    TestApp, message,
    relay::{Script, ScriptedRelay},
};

const PATH: &str = "/admin/api/recipients/Ann.Secret%40example.net";

async fn send(t: &TestApp, to: &str) -> String {
    let mut body = message(to);
    body["metadata"] = json!({ "name": "Ann Secret" });
    t.post("/send", body).await.is(202)["id"].as_str().unwrap().to_owned()
}

/// Every row of every table that names it.
async fn rows_with(t: &TestApp, word: &str) -> Vec<String> {
    let tables: Vec<String> = sqlx::query_scalar(
        "select table_name::text from information_schema.tables where table_schema = 'public'",
    )
    .fetch_all(&t.db)
    .await
    .unwrap();
    let mut found = Vec::new();
    for table in tables {
        // Bytes are looked at as text too.
        let sql = format!(
            "select '{table}' from {table} it where it::text ilike '%' || $1 || '%'
             or it::text ilike '%' || encode($1::bytea, 'hex') || '%'"
        );
        let rows: Vec<String> =
            sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(word).fetch_all(&t.db).await.unwrap();
        found.extend(rows);
    }
    found
}

#[tokio::test]
async fn all_that_is_kept_of_an_address_is_found() {
    let t = TestApp::start().await;
    for to in ["ann.secret@example.net", "Ann.Secret@example.net, b@example.net", "b@example.net"] {
        t.settled(&send(&t, to).await).await;
    }
    sqlx::raw_sql("insert into suppressions (suppression_id, lookup_key, reason) values (gen_random_uuid(), 'ann.secret@example.net', 'complaint')")
        .execute(&t.db)
        .await
        .unwrap();
    let held = t.get(PATH).await.is(200);
    assert_eq!(held["states"], json!({ "sent": 2 }));
    assert_eq!(
        (&held["suppression"]["reason"], &held["sandboxMessages"]),
        (&json!("complaint"), &json!(2))
    );
    assert_eq!(held["messages"].as_array().unwrap().len(), 2);
    assert_eq!(held["messages"][0]["subject"], "Hello");
    let first = t
        .request("GET", &format!("{PATH}?limit=1"))
        .header("x-api-key", &t.key)
        .send()
        .await
        .unwrap();
    let link = first.headers()["link"].to_str().unwrap();
    let second = format!("{PATH}{}", &link[1..link.find('>').unwrap()]);
    let second = t.request("GET", &second).header("x-api-key", &t.key).send().await.unwrap();
    assert!(second.headers().get("link").is_none());
    let second: Value = second.json().await.unwrap();
    assert_eq!(second["messages"][0]["id"], held["messages"][1]["id"]);
    let nothing = t.get("/admin/api/recipients/nobody%40example.net").await.is(200);
    assert_eq!((&nothing["states"], &nothing["messages"]), (&json!({}), &json!([])));
    t.get("/admin/api/recipients/nobody").await.is(400);
    t.stop().await;
}

#[tokio::test]
async fn what_is_erased_is_nowhere_and_the_rest_stays_true() {
    let t = TestApp::start().await;
    let alone = send(&t, "Ann.Secret@example.net").await;
    let shared = send(&t, "b@example.net, ann.secret@example.net").await;
    for id in [&alone, &shared] {
        t.settled(id).await;
    }
    for word in ["secret@", "Ann Secret", "Hello"] {
        assert!(!rows_with(&t, word).await.is_empty(), "{word} is not kept at all");
    }
    let erased = t.post(&format!("{PATH}/erase"), json!({})).await.is(200);
    assert_eq!(
        (&erased["messages"], &erased["open"], &erased["sandboxMessages"]),
        (&json!(2), &json!(0), &json!(2))
    );
    for word in ["secret@", "Ann Secret", "Hello"] {
        assert_eq!(rows_with(&t, word).await, Vec::<String>::new(), "{word}");
    }

    let job = t.get(&format!("/jobs/{shared}?include=content")).await.is(200);
    assert_eq!((&job["outcome"], &job["accepted"]), (&json!("sent"), &json!(2)));
    assert!(!job["erasedAt"].is_null() && job["payload"].get("text").is_none());
    assert_eq!(job["recipients"][0]["address"], "b@example.net");
    assert_eq!(job["recipients"][1]["address"], erased["alias"]);
    assert_eq!(job["recipients"][1]["state"], "sent");
    // The alias is the same for the same address, and counts go on.
    t.settled(&send(&t, "ann.secret@example.net").await).await;
    let again = t.post(&format!("{PATH}/erase"), json!({})).await.is(200);
    assert_eq!((&again["alias"], &again["messages"]), (&erased["alias"], &json!(1)));
    let held = format!("/admin/api/recipients/{}", erased["alias"].as_str().unwrap());
    assert_eq!(t.get(&held).await.is(200)["states"], json!({ "sent": 3 }));
    let told: i64 =
        sqlx::query_scalar("select count(*) from audit where action = 'recipient.erased'")
            .fetch_one(&t.db)
            .await
            .unwrap();
    assert!(told >= 2);
    t.stop().await;
}

#[tokio::test]
async fn what_has_not_settled_is_left_alone_and_an_erased_one_is_never_tried_again() {
    let t = TestApp::start_with(&[("POSTROOM_SANDBOX", "false")]).await;
    let relay = ScriptedRelay::start(Script {
        rcpt: vec![
            ("<later@", "450 4.2.0 not now"),
            ("<never@", "550 5.1.1 <never@example.net> unknown"),
        ],
        ..Script::default()
    })
    .await;
    let new = json!({
        "name": "one", "host": "127.0.0.1", "port": relay.port, "secure": false,
        "fromAddress": "app@example.com", "anySender": true, "priority": 1,
    });
    t.post("/admin/api/smtp-accounts", new).await.is(201);
    let open = send(&t, "later@example.net, never@example.net").await;
    t.counted("select count(*) from recipients where state = 'deferred'", 1).await;
    let path = "/admin/api/recipients/never%40example.net/erase";
    let left = t.post(path, json!({})).await.is(200);
    assert_eq!((&left["messages"], &left["open"]), (&json!(0), &json!(1)));
    let job = t.get(&format!("/jobs/{open}?include=content")).await.is(200);
    assert!(job["erasedAt"].is_null() && job["payload"]["text"].is_string());

    t.post(&format!("/jobs/{open}/cancel"), json!({})).await.is(200);
    sqlx::raw_sql("insert into suppressions (suppression_id, lookup_key, reason) values (gen_random_uuid(), 'never@example.net', 'hard bounce')")
        .execute(&t.db)
        .await
        .unwrap();
    let done = t.post(path, json!({ "suppression": true })).await.is(200);
    assert_eq!((&done["messages"], &done["suppression"]), (&json!(1), &json!(true)));
    assert_eq!(rows_with(&t, "never@").await, Vec::<String>::new());
    let refused = t.post(&format!("/jobs/{open}/retry"), json!({})).await.is(409);
    assert_eq!(refused["code"], "CONTENT_GONE");
    let none: Value =
        t.post("/jobs/retry", json!({ "filter": { "outcome": "failed" } })).await.json;
    assert_eq!(none["messages"].as_i64().unwrap_or(0), 0, "{none:#}");
    t.post(path, json!({ "suppressions": true })).await.is(400);
    t.stop().await;
}
