//! Our image under the restrictions of production, on a Postgres 17: it becomes healthy, takes mail,
//! stops within its grace while a relay keeps it waiting, and loses nothing.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::time::Instant;

use crate::{engine::Engine, house::until, sink::Sink};

const MESSAGES: usize = 60;
const PACE: Duration = Duration::from_millis(300);
/// `stop_grace_period` of docker-compose.yml.
const GRACE: Duration = Duration::from_secs(40);

#[tokio::test(flavor = "multi_thread")]
async fn the_image_stops_in_its_grace_with_work_in_flight_and_loses_nothing() {
    let it = Setting::new().await;
    let first = it.postroom("first").await;
    let address = it.healthy(&first).await;
    it.is_held_down(&first).await;

    let create = ["create-api-key", "--name", "test", "--scopes", "send,read,admin"];
    let key = it.engine.run(&[&["exec", &first, "postroom"][..], &create[..]].concat()).await;
    it.post(&address, &key, "/admin/api/smtp-accounts", &it.relay()).await;
    for n in 0..MESSAGES {
        // The first message is the one that the relay takes and never confirms.
        let subject = if n == 0 { "stuck" } else { "moving" };
        let message = json!({ "from": "app@example.com", "to": "a@example.net", "subject": subject, "text": "x" });
        let accepted = it.post(&address, &key, "/send", &message).await;
        assert_eq!(accepted["ok"], true, "{accepted}");
    }
    until("the stuck one is marked, and others are sent", async || {
        it.sink.received.lock().unwrap().len() > 5 && it.count("sending").await > 0
    })
    .await;

    let begun = Instant::now();
    it.engine.run(&["stop", &first]).await;
    let took = begun.elapsed();
    let end = it.inspect(&first, "{{.State.ExitCode}} {{.State.OOMKilled}}").await;
    assert_eq!(end, "0 false", "{}", it.engine.logs(&first).await);
    assert!(took < GRACE, "it took {took:?}");
    let (sent, queued) = (it.count("sent").await, it.count("queued").await);
    assert!(sent > 0 && queued > 0, "no work was in flight: {sent} sent, {queued} queued");
    assert_eq!(it.held().await, 0, "a lease was left behind");

    let second = it.postroom("second").await;
    it.healthy(&second).await;
    until("the next container has finished the rest", async || {
        it.count("sent").await + it.count("unknown").await == i64::try_from(MESSAGES).unwrap()
    })
    .await;
    it.engine.run(&["stop", &second]).await;
    assert_eq!(it.count("unknown").await, 1, "what was never confirmed must say so");
    let received = it.sink.received.lock().unwrap().clone();
    assert_eq!(received.len(), MESSAGES, "messages were lost");
    assert!(received.values().all(|copies| copies.len() == 1), "a second copy left");
    println!("stopped in {took:?}: {sent} sent, {queued} left to the next");
}

struct Setting {
    engine: Arc<Engine>,
    db: PgPool,
    sink: Sink,
    gateway: String,
    secrets: tempfile::TempDir,
    http: reqwest::Client,
}

impl Setting {
    async fn new() -> Self {
        let engine = Engine::shared().await;
        let network = engine.name("network");
        engine.run(&["network", "create", &network]).await;
        let gateway = ["network", "inspect", "-f", "{{(index .IPAM.Config 0).Gateway}}", &network];
        let gateway = engine.run(&gateway).await;
        let sink = Sink::start_at(gateway.parse().unwrap(), PACE).await;

        let secrets = tempfile::tempdir().unwrap();
        let postgres = engine.name("postgres");
        let url = format!("postgres://postroom:not-a-default@{postgres}/postroom");
        for (name, value) in [
            ("postgres_password", "not-a-default".to_owned()),
            ("secret_key", postroom::secrets::SecretRing::generate("test")),
            ("database_url", url),
        ] {
            std::fs::write(secrets.path().join(name), value).unwrap();
        }
        let (mount, image) = (mount(&secrets, "postgres_password"), engine.name("standins"));
        engine
            .run(&[
                "run",
                "-d",
                "--name",
                &postgres,
                "--network",
                &network,
                "-v",
                &mount,
                "-p",
                "127.0.0.1::5432",
                "-e",
                "POSTGRES_USER=postroom",
                "-e",
                "POSTGRES_DB=postroom",
                "-e",
                "POSTGRES_PASSWORD_FILE=/run/secrets/postgres_password",
                &image,
                "postgres.bash",
            ])
            .await;
        let port = engine.run(&["port", &postgres, "5432/tcp"]).await;
        let url = format!("postgres://postroom:not-a-default@{port}/postroom");
        let db = PgPool::connect_lazy(&url).unwrap();
        until("Postgres answers", async || db.acquire().await.is_ok()).await;
        let version: String =
            sqlx::query_scalar("show server_version_num").fetch_one(&db).await.unwrap();
        assert!(version.starts_with("17"), "{version}");
        Self { engine, db, sink, gateway, secrets, http: reqwest::Client::new() }
    }

    /// Starts a container as docker-compose.yml does.
    async fn postroom(&self, what: &str) -> String {
        let (name, network) = (self.engine.name(what), self.engine.name("network"));
        let (key, url) = (mount(&self.secrets, "secret_key"), mount(&self.secrets, "database_url"));
        let image = self.engine.name("postroom");
        let grace = GRACE.as_secs().to_string();
        self.engine
            .run(&[
                "run",
                "-d",
                "--name",
                &name,
                "--network",
                &network,
                "-p",
                "127.0.0.1::3050",
                "--read-only",
                "--cap-drop",
                "ALL",
                "--security-opt",
                "no-new-privileges",
                "--user",
                "10001:10001",
                "--memory",
                "512m",
                "--pids-limit",
                "128",
                "--stop-timeout",
                &grace,
                "-v",
                &key,
                "-v",
                &url,
                "-e",
                "DATABASE_URL_FILE=/run/secrets/database_url",
                "-e",
                "POSTROOM_SECRET_KEY_FILE=/run/secrets/secret_key",
                "-e",
                "POSTROOM_QUEUE_LEASE=5s",
                &image,
            ])
            .await;
        name
    }

    /// Waits until Docker itself says so, by the image's own check; the address it is reached at.
    async fn healthy(&self, name: &str) -> String {
        let begun = Instant::now();
        until("the container is healthy", async || {
            let state = self.inspect(name, "{{.State.Status}} {{.State.Health.Status}}").await;
            assert!(begun.elapsed() < GRACE && state.starts_with("running"), "{state}");
            state.ends_with(" healthy")
        })
        .await;
        format!("http://{}", self.engine.run(&["port", name, "3050/tcp"]).await)
    }

    /// The restrictions hold, and what the image brings is there.
    async fn is_held_down(&self, name: &str) {
        let status = self.engine.run(&["exec", name, "cat", "/proc/1/status"]).await;
        let of = |field: &str| {
            let line = status.lines().find(|line| line.starts_with(field)).unwrap_or_default();
            line.split_ascii_whitespace().nth(1).unwrap_or_default().to_owned()
        };
        assert_eq!(of("CapEff:"), "0000000000000000");
        assert_eq!(of("CapBnd:"), "0000000000000000");
        assert_eq!((of("Uid:"), of("Gid:")), ("10001".to_owned(), "10001".to_owned()));
        assert_eq!(of("NoNewPrivs:"), "1");
        let write = ["exec", name, "touch", "/tmp/x"];
        let status = self.engine.command("docker").args(write).output().await.unwrap().status;
        assert!(!status.success(), "the root file system can be written");
        let dump = self.engine.run(&["exec", name, "pg_dump", "--version"]).await;
        assert!(dump.contains("(PostgreSQL) 17"), "{dump}");
        let image = self.inspect(name, "{{.Config.User}} {{.Config.StopSignal}}").await;
        assert_eq!(image, "10001:10001 SIGTERM");
    }

    fn relay(&self) -> Value {
        json!({ "name": "slow", "host": self.gateway, "port": self.sink.port, "secure": false,
                "fromAddress": "app@example.com", "domain": "example.com", "priority": 1, "maxConnections": 4 })
    }

    async fn inspect(&self, name: &str, format: &str) -> String {
        self.engine.run(&["inspect", "-f", format, name]).await
    }

    async fn post(&self, address: &str, key: &str, path: &str, body: &Value) -> Value {
        let request = self.http.post(format!("{address}{path}")).header("x-api-key", key);
        let answer = request.json(body).send().await.unwrap();
        let (status, body) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{path}: {status} {body}");
        serde_json::from_str(&body).unwrap()
    }

    async fn count(&self, state: &str) -> i64 {
        sqlx::query_scalar("select count(*) from recipients where state = $1")
            .bind(state)
            .fetch_one(&self.db)
            .await
            .unwrap()
    }

    /// Leased jobs, but for those between mark and confirmation, whose lease says: not known yet.
    async fn held(&self) -> i64 {
        sqlx::query_scalar(
            "select count(*) from jobs where state = 'leased' and not exists
             (select from recipients where message_id = job_id and recipients.state in ('sending', 'unknown'))",
        )
        .fetch_one(&self.db)
        .await
        .unwrap()
    }
}

fn mount(folder: &tempfile::TempDir, name: &str) -> String {
    format!("{}:/run/secrets/{name}:ro", folder.path().join(name).display())
}
