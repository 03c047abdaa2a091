//! Many messages in one request.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::support::{TestApp, message};

async fn count(t: &TestApp, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(&t.db).await.unwrap()
}

#[tokio::test]
async fn each_message_has_an_answer_and_one_refuses_no_other() {
    let t = TestApp::start().await;
    sqlx::raw_sql("insert into suppressions (suppression_id, lookup_key, reason) values (gen_random_uuid(), 'gone@example.net', 'hard bounce')")
        .execute(&t.db)
        .await
        .unwrap();
    let made = t
        .post(
            "/admin/api/api-keys",
            json!({ "name": "s", "scopes": ["send"], "senderDomains": ["example.com"] }),
        )
        .await
        .is(201);
    let key = made["plain"].as_str().unwrap();
    let with = |to: &str, field: &str, value: Value| {
        let mut body = message(to);
        body[field] = value;
        body
    };
    let batch = json!({ "messages": [
        message("a@example.net"),
        message("nonsense"),
        with("b@example.net", "from", json!("app@other.example")),
        message("gone@example.net, c@example.net"),
        with("gone@example.net", "rejectSuppressed", json!(true)),
        "no message at all",
        with("d@example.net", "colour", json!("red")),
    ]});
    let answer = t.call(key, "POST", "/send/batch", Some(batch)).await.is(202);
    let each = answer["messages"].as_array().unwrap();
    let statuses: Vec<u64> = each.iter().map(|it| it["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [202, 400, 403, 202, 422, 400, 202], "{answer:#}");
    assert_eq!(
        (&answer["ok"], &answer["accepted"], &answer["refused"]),
        (&json!(false), &json!(3), &json!(4))
    );
    assert_eq!(each[1]["issues"][0]["path"], "to");
    assert_eq!(each[2]["code"], "SENDER_NOT_ALLOWED");
    assert_eq!(each[4]["suppressed"][0]["reason"], "hard bounce");
    assert_eq!(each[6]["ignored"], json!(["colour"]));
    for at in [0, 3, 6] {
        let job = t.settled(each[at]["id"].as_str().unwrap()).await;
        assert_eq!(job["messageId"], each[at]["messageId"]);
        assert_eq!(job["outcome"], if at == 3 { "partial" } else { "sent" });
    }
    assert_eq!(t.get("/sandbox/messages").await.is(200).as_array().unwrap().len(), 3);

    let none = t.post("/send/batch", json!([message("nonsense"), {}])).await.is(422);
    assert_eq!((&none["code"], &none["accepted"]), (&json!("NOTHING_ACCEPTED"), &json!(0)));
    assert_eq!(count(&t, "select count(*) from messages").await, 3);
    t.stop().await;
}

#[tokio::test]
async fn five_hundred_are_taken_and_sent_and_one_more_is_not() {
    let t = TestApp::start().await;
    let batch: Vec<Value> = (0..500).map(|n| message(&format!("a{n}@example.net"))).collect();
    let answer = t.post("/send/batch", json!(batch)).await.is(202);
    assert_eq!((&answer["ok"], &answer["accepted"]), (&json!(true), &json!(500)));
    let ids: HashSet<&str> = answer["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), 500);
    t.counted("select count(*) from messages where outcome = 'sent'", 500).await;
    let nth: String =
        sqlx::query_scalar("select address from recipients where message_id = $1::uuid")
            .bind(answer["messages"][321]["id"].as_str().unwrap())
            .fetch_one(&t.db)
            .await
            .unwrap();
    assert_eq!(nth, "a321@example.net", "the answers are in order");

    let more: Vec<Value> = (0..501).map(|_| message("a@example.net")).collect();
    for bad in [
        json!(more),
        json!([]),
        json!({}),
        json!({ "messages": [message("a@example.net")], "x": 1 }),
    ] {
        t.post("/send/batch", bad).await.is(400);
    }
    t.call("", "POST", "/send/batch", Some(json!([message("a@example.net")]))).await.is(401);
    t.stop().await;
}

#[tokio::test]
async fn fifty_parallel_batches_with_one_key_are_one() {
    let t = TestApp::start().await;
    let batch = json!([message("a@example.net"), message("nonsense"), message("b@example.net")]);
    let key = [("idempotency-key", "batch-42")];
    let post = |body: Value| t.with_headers(&t.key, "POST", "/send/batch", Some(body), &key);
    let answers = futures_util::future::join_all((0..50).map(|_| post(batch.clone()))).await;
    let said: HashSet<String> = answers.into_iter().map(|it| it.is(202).to_string()).collect();
    assert_eq!(said.len(), 1, "a replay says the same");
    assert_eq!(count(&t, "select count(*) from messages").await, 2);

    // The same in other words is the same; anything else is not, nor is a single message.
    assert_eq!(said, HashSet::from([post(json!({ "messages": batch })).await.is(202).to_string()]));
    let mut other = batch.clone();
    other[1] = message("nonsense too");
    assert_eq!(post(other).await.is(409)["code"], "IDEMPOTENCY_KEY_REUSED");
    let single =
        t.with_headers(&t.key, "POST", "/send", Some(message("a@example.net")), &key).await;
    assert_eq!(single.is(409)["code"], "IDEMPOTENCY_KEY_REUSED");
    let key = [("idempotency-key", "order-1")];
    t.with_headers(&t.key, "POST", "/send", Some(message("a@example.net")), &key).await.is(202);
    t.with_headers(&t.key, "POST", "/send/batch", Some(batch), &key).await.is(409);
    t.counted("select count(*) from messages where outcome = 'sent'", 3).await;
    t.stop().await;
}

#[tokio::test]
async fn what_was_refused_whole_may_be_asked_again_under_its_key() {
    let t = TestApp::start().await;
    let key = [("idempotency-key", "batch-1")];
    let post = |body: Value| t.with_headers(&t.key, "POST", "/send/batch", Some(body), &key);
    post(json!([message("nonsense")])).await.is(422);
    let answer = post(json!([message("a@example.net")])).await.is(202);
    t.settled(answer["messages"][0]["id"].as_str().unwrap()).await;
    // After its day the key is free.
    sqlx::query("update idempotency_keys set expires_at = now() - interval '1 second'")
        .execute(&t.db)
        .await
        .unwrap();
    let next = post(json!([message("b@example.net")])).await.is(202);
    assert_ne!(next["messages"][0]["id"], answer["messages"][0]["id"]);
    t.settled(next["messages"][0]["id"].as_str().unwrap()).await;
    t.stop().await;
}

/// Whatever stops it halfway, the batch is there as a whole or not at all, and so is its key.
#[tokio::test]
async fn half_a_batch_does_not_exist() {
    let t = TestApp::start().await;
    sqlx::raw_sql(
        "create function fail() returns trigger language plpgsql as
         $$ begin if new.address = 'x249@example.net' then raise 'broken'; end if; return new; end $$;
         create trigger fail before insert on recipients for each row execute function fail()",
    )
    .execute(&t.db)
    .await
    .unwrap();
    let batch: Vec<Value> = (0..250).map(|n| message(&format!("x{n}@example.net"))).collect();
    let key = [("idempotency-key", "batch-1")];
    let post = || t.with_headers(&t.key, "POST", "/send/batch", Some(json!(batch)), &key);
    post().await.is(503);
    assert_eq!(count(&t, "select count(*) from messages").await, 0);
    assert_eq!(count(&t, "select count(*) from idempotency_keys").await, 0);
    sqlx::raw_sql("drop trigger fail on recipients").execute(&t.db).await.unwrap();
    assert_eq!(post().await.is(202)["accepted"], 250);
    t.counted("select count(*) from messages where outcome = 'sent'", 250).await;
    t.stop().await;
}
