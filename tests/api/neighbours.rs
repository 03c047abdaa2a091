//! One stuck relay holds up only the messages that can leave through nothing else.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{
    TestApp,
    relay::{Script, ScriptedRelay},
};

const MESSAGES: usize = 120;
const PACE: Duration = Duration::from_millis(150);

async fn relay(t: &TestApp, relay: &ScriptedRelay, domain: &str, priority: i32) {
    let new = json!({
        "name": format!("{domain}-{priority}"), "host": "127.0.0.1", "port": relay.port, "secure": false,
        "fromAddress": format!("app@{domain}"), "domain": domain, "priority": priority,
    });
    t.post("/admin/api/smtp-accounts", new).await.is(201);
}

async fn post(t: &TestApp, domain: &str, n: usize) -> Vec<String> {
    let body = json!({ "to": "a@example.net", "from": format!("app@{domain}"), "subject": "x", "text": "x" });
    let posts = (0..n).map(|_| t.post("/send", body.clone()));
    let sent = futures_util::future::join_all(posts).await;
    sent.into_iter().map(|it| it.is(202)["id"].as_str().unwrap().to_owned()).collect()
}

/// How long the messages of one domain take from the first post to the last outcome. The healthy
/// relay's own pace is nearly all of it, whatever else the machine does.
async fn time(t: &TestApp, domain: &str) -> Duration {
    let begun = Instant::now();
    post(t, domain, MESSAGES).await;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    let open = "select count(*) from jobs where lane = $1";
    while sqlx::query_scalar::<_, i64>(open).bind(domain).fetch_one(&t.db).await.unwrap() > 0 {
        assert!(tokio::time::Instant::now() < deadline, "it does not end");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    begun.elapsed()
}

#[tokio::test]
async fn a_mute_relay_costs_its_neighbour_no_throughput() {
    let t = TestApp::start().await;
    let (mute, healthy) = (
        ScriptedRelay::start(Script { mute: true, ..Script::default() }).await,
        ScriptedRelay::start(Script { pace: PACE, ..Script::default() }).await,
    );
    relay(&t, &mute, "stuck.example", 1).await;
    relay(&t, &healthy, "fine.example", 1).await;
    // Rounds alone and beside the mute one, in turn, and the best of each: the machine is not ours
    // alone, so noise may cost rounds and a part, but a relay that really held up its neighbour would
    // cost a multiple in all.
    let (mut alone, mut beside) = (Duration::MAX, Duration::MAX);
    let keeps =
        |alone: Duration, beside: Duration| beside.as_secs_f64() <= alone.as_secs_f64() * 1.5;
    for round in 0..8 {
        if round >= 2 && keeps(alone, beside) {
            break;
        }
        alone = alone.min(time(&t, "fine.example").await);
        let stuck = post(&t, "stuck.example", 20).await;
        beside = beside.min(time(&t, "fine.example").await);
        let waits = t.get(&format!("/jobs/{}", stuck[0])).await.is(200);
        assert!(waits["completedAt"].is_null(), "the mute relay was not mute: {waits:#}");
        sqlx::raw_sql("delete from jobs where lane = 'stuck.example' and state = 'ready'")
            .execute(&t.db)
            .await
            .unwrap();
    }
    println!("alone {alone:?}, beside a mute relay {beside:?}");
    assert!(mute.sessions() > 0);
    assert!(keeps(alone, beside), "alone {alone:?}, beside {beside:?}");
}

#[tokio::test]
async fn of_one_sender_the_failover_is_bounded_and_shown_and_the_mute_relay_soon_rests() {
    let t = TestApp::start().await;
    let mute = ScriptedRelay::start(Script { mute: true, ..Script::default() }).await;
    let healthy = ScriptedRelay::start(Script::default()).await;
    relay(&t, &mute, "both.example", 1).await;
    relay(&t, &healthy, "both.example", 2).await;
    let ids = post(&t, "both.example", 60).await;
    let mut moved = 0;
    for id in &ids {
        let job = t.settled(id).await;
        assert_eq!((&job["outcome"], &job["account"]), (&json!("sent"), &json!("both.example-2")));
        let history = job["history"].as_array().unwrap();
        if history.len() > 1 {
            moved += 1;
            let first = &history[0];
            assert_eq!(
                (&first["phase"], &first["reason"]),
                (&json!("greeting"), &json!("timed_out"))
            );
            let time = |key: &str| {
                first[key].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap()
            };
            let waited = time("endedAt") - time("startedAt");
            assert!(
                waited >= chrono::TimeDelta::seconds(1),
                "the deadline is a second, it took {waited}"
            );
        }
    }
    assert!((1..=16).contains(&moved), "{moved} messages tried a relay that never speaks");
    assert!(
        mute.sessions() <= 16,
        "{} sessions went to a relay that never speaks",
        mute.sessions()
    );
    t.stop().await;
}
