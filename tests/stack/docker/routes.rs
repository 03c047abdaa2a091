//! The same through Postroom: `/admin/api/engine`, and sending beside an engine that hangs.

use std::{
    process::{Child, Stdio},
    time::Duration,
};

use futures_util::future::join_all;
use serde_json::Value;
use sqlx::PgPool;

use super::{
    Box,
    front::{Front, Rule},
};
use crate::{
    database,
    house::{postroom, seed, until},
    sink::Sink,
};

/// A Postroom whose engine is at this address.
struct Served {
    process: Child,
    db: PgPool,
    address: String,
    key: String,
    http: reqwest::Client,
}

impl Served {
    async fn new(engine: &str, containers: &[&str]) -> Self {
        Self::with_mail(engine, containers, async |_| ()).await
    }

    /// With mail in its database before it starts.
    async fn with_mail(engine: &str, containers: &[&str], fill: impl AsyncFn(&PgPool)) -> Self {
        let (db, url) = database::new().await;
        let secret = postroom::secrets::SecretRing::generate("engine");
        assert!(postroom(&url, &secret, "hold", &["migrate"]).status().unwrap().success());
        fill(&db).await;
        let create = ["create-api-key", "--name", "test", "--scopes", "read,admin"];
        let made =
            postroom(&url, &secret, "hold", &create).stdout(Stdio::piped()).output().unwrap();
        let key = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = postroom(&url, &secret, "hold", &["serve"])
            .env("PORT", port.to_string())
            .env("DOCKER_HOST", engine)
            .env("DMS_CONTAINER_NAME", containers[0])
            .env("ENGINE_CONTAINERS", containers[1..].join(","))
            .spawn()
            .unwrap();
        let it = Self {
            process,
            db,
            address: format!("http://127.0.0.1:{port}"),
            key,
            http: reqwest::Client::new(),
        };
        until("it serves", async || {
            it.http.get(format!("{}/health/ready", it.address)).send().await.is_ok()
        })
        .await;
        it
    }

    async fn call(&self, method: &str, path: &str) -> (u16, Value) {
        let url = format!("{}/admin/api/engine/containers{path}", self.address);
        let request =
            self.http.request(method.parse().unwrap(), url).header("x-api-key", &self.key);
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    async fn events(&self) -> Vec<String> {
        sqlx::query_scalar("select kind from events where subject = 'container' order by event_id")
            .fetch_all(&self.db)
            .await
            .unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn containers_are_listed_and_restarted_and_no_others() {
    let it = Box::new("listed").await;
    let name = it.name.as_str();
    let other = Box::new("unlisted").await;
    let engine = format!("unix://{}", it.host.socket());
    let served = Served::new(&engine, &[name, "not-there"]).await;

    let (status, list) = served.call("GET", "").await;
    assert_eq!(status, 200, "{list}");
    assert_eq!((&list[0]["name"], &list[0]["state"]), (&name.into(), &"running".into()));
    assert_eq!(list[1]["state"], "missing");
    let before = list[0]["startedAt"].clone();

    let (status, answer) = served.call("POST", &format!("/{}/restart", other.name)).await;
    assert_eq!(
        (status, &answer["code"]),
        (404, &"NOT_FOUND".into()),
        "it exists, and is not listed"
    );
    let (status, answer) = served.call("POST", "/not-there/restart").await;
    assert_eq!(status, 404, "{answer}");
    assert_eq!(served.events().await, Vec::<String>::new());

    let (status, answer) = served.call("POST", &format!("/{name}/restart")).await;
    assert_eq!((status, &answer["restarted"]), (202, &name.into()), "{answer}");
    assert_ne!(answer["container"]["startedAt"], before, "it says so, and it was not");
    assert_eq!(answer["container"]["state"], "running");
    assert!(
        answer["notApplied"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it.as_str().unwrap().contains("environment"))
    );
    assert_eq!(served.events().await, ["container.restarted"]);
    let audited: i64 =
        sqlx::query_scalar("select count(*) from audit where action = 'container.restart'")
            .fetch_one(&served.db)
            .await
            .unwrap();
    assert_eq!(audited, 1);

    it.docker(&["pause", name]).await;
    let (status, answer) = served.call("POST", &format!("/{name}/restart")).await;
    assert_eq!((status, &answer["code"]), (409, &"CONTAINER_PAUSED".into()));
    it.docker(&["unpause", name]).await;
}

#[tokio::test]
async fn a_restart_that_the_engine_refuses_is_told_as_failed() {
    let it = Box::new("refused").await;
    let front = Front::start(it.host.socket(), |_, path| match path.contains("/restart") {
        true => Rule::Say(500, "driver failed"),
        false => Rule::Pass,
    })
    .await;
    let served = Served::new(&format!("tcp://{}", front.address), &[it.name.as_str()]).await;
    let (status, answer) = served.call("POST", &format!("/{}/restart", it.name)).await;
    assert_eq!((status, &answer["code"]), (502, &"DOCKER_REFUSED".into()));
    assert!(answer["error"].as_str().unwrap().contains("driver failed"), "{answer}");
    assert_eq!(served.events().await, ["container.restart_failed"]);
}

#[tokio::test]
async fn an_engine_that_is_away_is_503_and_never_an_empty_list() {
    let served = Served::new("tcp://127.0.0.1:1", &["mailserver"]).await;
    let (status, answer) = served.call("GET", "").await;
    assert_eq!((status, &answer["code"]), (503, &"DOCKER_UNREACHABLE".into()), "{answer}");
}

#[tokio::test]
async fn two_hundred_callers_of_a_mute_engine_do_not_slow_the_sending() {
    const MESSAGES: i32 = 300;
    let it = Box::new("slows").await;
    let front = Front::start(it.host.socket(), |_, _| Rule::Mute).await;
    let engine = format!("tcp://{}", front.address);
    let sink = Sink::start(Duration::ZERO).await;
    let served = Served::with_mail(&engine, &[it.name.as_str()], async |db| {
        seed(db, sink.port, MESSAGES).await;
        let later = "update jobs set due_at = now() + interval '5 seconds'";
        sqlx::query(later).execute(db).await.unwrap();
    })
    .await;
    let callers = join_all((0..200).map(|_| served.call("GET", "")));
    let sending = async {
        until("all are sent", async || {
            let sent: i64 =
                sqlx::query_scalar("select count(*) from recipients where state = 'sent'")
                    .fetch_one(&served.db)
                    .await
                    .unwrap();
            sent == i64::from(MESSAGES)
        })
        .await;
    };
    tokio::pin!(callers, sending);
    // The callers wait 10 s; the messages are due in 5.
    tokio::select! {
        _ = &mut callers => panic!("the callers were answered before the messages were sent"),
        () = &mut sending => (),
    }
    let answers = tokio::time::timeout(Duration::from_secs(60), callers).await.unwrap();
    assert!(
        answers.iter().all(|(status, body)| *status == 504 && body["code"] == "DOCKER_TIMEOUT")
    );
}
