//! Lists of messages, narrowed by what is known of them.

use serde_json::{Value, json};

use crate::support::{
    TestApp, message,
    relay::{Script, ScriptedRelay},
};

async fn ids(t: &TestApp, key: &str, query: &str) -> Vec<String> {
    let jobs = t.call(key, "GET", &format!("/jobs?{query}"), None).await.is(200);
    let jobs = jobs.as_array().unwrap();
    for job in jobs {
        assert!(job["payload"].get("text").is_none() && job.get("recipients").is_none(), "{job}");
    }
    jobs.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn each_filter_finds_its_own() {
    let t = TestApp::start().await;
    let rcpt = vec![("bad@", "550 5.1.1 no such user"), ("later@", "450 4.2.1 try later")];
    let one = ScriptedRelay::start(Script { rcpt, ..Script::default() }).await;
    let relay = json!({
        "name": "one", "host": "127.0.0.1", "port": one.port, "secure": false,
        "fromAddress": "app@example.com", "domain": "example.com", "priority": 1,
    });
    t.post("/admin/api/smtp-accounts", relay).await.is(201);
    let made =
        t.post("/admin/api/api-keys", json!({ "name": "s", "scopes": ["send"] })).await.is(201);
    let (own, own_id) = (made["plain"].as_str().unwrap(), made["id"].as_str().unwrap());
    let far: chrono::DateTime<chrono::Utc> =
        sqlx::query_scalar("select now() + interval '1 day'").fetch_one(&t.db).await.unwrap();
    let send = async |key: &str, to: &str, tags: Value, at: Value| {
        let mut body = message(to);
        body["tags"] = tags;
        body["sendAt"] = at;
        t.call(key, "POST", "/send", Some(body)).await.is(202)["id"].as_str().unwrap().to_owned()
    };
    let sent = send(&t.key, "Good@example.net", json!(["a", "b"]), Value::Null).await;
    let partial =
        send(&t.key, "good@example.net, bad@example.net", json!(["b"]), Value::Null).await;
    let failed = send(own, "bad@example.net", json!([]), Value::Null).await;
    let waiting = send(own, "later@example.net", json!(["a"]), Value::Null).await;
    let future = send(&t.key, "x@example.net", json!([]), json!(far)).await;
    let cancelled = send(&t.key, "y@example.net", json!(["c"]), json!(far)).await;
    t.call(&t.key, "POST", &format!("/jobs/{cancelled}/cancel"), None).await.is(200);
    t.counted("select count(*) from messages where outcome in ('sent', 'partial', 'failed')", 3)
        .await;
    t.counted("select count(*) from recipients where state = 'deferred'", 1).await;
    t.counted("select count(*) from jobs where state = 'leased'", 0).await;

    let all = [&cancelled, &future, &waiting, &failed, &partial, &sent];
    let key = format!("key={own_id}");
    for (query, wanted) in [
        ("", all.to_vec()),
        ("status=pending", vec![&future, &waiting]),
        ("status=processing", vec![]),
        ("status=done", vec![&partial, &sent]),
        ("status=dead", vec![&cancelled, &failed]),
        ("outcome=sent", vec![&sent]),
        ("outcome=partial", vec![&partial]),
        ("outcome=failed", vec![&failed]),
        ("outcome=cancelled", vec![&cancelled]),
        ("outcome=unknown", vec![]),
        ("recipient=good@example.net", vec![&partial, &sent]),
        ("recipient=GOOD%40Example.NET&outcome=sent", vec![&sent]),
        ("tag=a", vec![&waiting, &sent]),
        ("tag=b", vec![&partial, &sent]),
        ("tag=nothing", vec![]),
        (&key, vec![&waiting, &failed]),
        ("scheduled=true", vec![&future]),
        ("scheduled=false&status=pending", vec![&waiting]),
        ("since=2020-01-01T00:00:00Z&until=2021-01-01T00:00:00Z", vec![]),
        ("since=2020-01-01T00:00:00Z&until=2199-01-01T00:00:00Z&tag=c", vec![&cancelled]),
    ] {
        let found = ids(&t, &t.key, query).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), wanted, "{query}");
    }
    assert_eq!(ids(&t, own, "tag=a").await, [waiting], "a sender's key sees its own");
    for bad in [
        "status=lost",
        "outcome=good",
        "recipient=nonsense",
        "since=yesterday",
        "key=1",
        "limit=0",
        "limit=101",
        "cursor=x",
        "scheduled=maybe",
        "since=%2B262142-01-01T00:00:00Z",
        "until=1969-12-31T00:00:00Z",
        "tag=%00",
    ] {
        t.get(&format!("/jobs?{bad}")).await.is(400);
    }
    t.stop().await;
}

#[tokio::test]
async fn the_next_page_keeps_the_filters() {
    let t = TestApp::start().await;
    let mut wanted = Vec::new();
    for n in 0..7 {
        let mut body = message("a+b@example.net, c@example.net");
        body["tags"] = json!([if n % 2 == 0 { "even" } else { "odd" }]);
        let sent = t.post("/send", body).await.is(202);
        if n % 2 == 0 {
            wanted.insert(0, sent["id"].as_str().unwrap().to_owned());
        }
    }
    let mut next = Some("/jobs?limit=2&tag=even&recipient=a%2Bb@example.net".to_owned());
    let (mut found, mut pages) = (Vec::new(), 0);
    while let Some(path) = next.take() {
        let answer = t.request("GET", &path).header("x-api-key", &t.key).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        let link = answer.headers().get("link").map(|it| it.to_str().unwrap().to_owned());
        let jobs: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
        found.extend(
            jobs.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()),
        );
        pages += 1;
        next = link.map(|it| it[1..it.find('>').unwrap()].to_owned());
        assert!(
            next.as_ref().is_none_or(|it| it.contains("&tag=even&recipient=a%2Bb@example.net")),
            "{next:?}"
        );
    }
    assert_eq!((found, pages), (wanted, 2));
    t.stop().await;
}
