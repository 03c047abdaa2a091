//! A Postroom of one's own: `TestApp::start()` makes a database, serves on a free port with the
//! sandbox as relay, and speaks with the first key.

pub mod relay;

use std::time::Duration;

use postroom::{
    accounts::api_keys::{self, NewKey, Scope},
    audit::Who,
    config::{Config, Environment},
    serve,
};
use serde_json::{Value, json};
use sqlx::PgPool;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// Everything is expected within this time; only a failing test waits it out.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct TestApp {
    pub url: String,
    pub key: String,
    pub db: PgPool,
    http: reqwest::Client,
    stop: CancellationToken,
    served: JoinHandle<()>,
}

impl TestApp {
    pub async fn start() -> Self {
        let (_, url) = crate::database::new().await;
        let pairs = [
            ("HOST", "127.0.0.1".to_owned()),
            ("DATABASE_URL", url.clone()),
            ("POSTROOM_SANDBOX", "true".to_owned()),
            ("METRICS_TOKEN", "metrics-token".to_owned()),
            ("POSTROOM_HELO_NAME", "postroom.test".to_owned()),
            ("POSTROOM_QUEUE_POLL", "100ms".to_owned()),
            ("POSTROOM_SMTP_GREETING_TIMEOUT", "2s".to_owned()),
            ("POSTROOM_SECRET_KEY", postroom::secrets::SecretRing::generate("test")),
        ];
        let env: Environment = pairs.map(|(name, value)| (name.to_owned(), value)).into();
        let config = Config::load(&env, None).expect("the settings are valid");
        let house = serve::open(config, true).await.expect("it opens");
        let new = NewKey {
            name: "test".to_owned(),
            scopes: vec![Scope::Send, Scope::Read, Scope::Admin],
            suppression_exempt: false,
            sender_domains: None,
            sender_addresses: None,
            networks: None,
            on_unknown: None,
            expires_at: None,
        };
        let (_, key) = api_keys::create(&house.app, &Who::command_line(), new).await.unwrap();
        let db = house.app.db.clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        #[expect(clippy::disallowed_methods, reason = "the test holds the handle and joins it")]
        let served = tokio::spawn(async move {
            serve::run(house, listener, stopped).await.expect("it serves and stops");
        });
        Self { url, key, db, http: reqwest::Client::new(), stop, served }
    }

    pub async fn call(&self, key: &str, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.with_headers(key, method, path, body, &[]).await
    }

    pub async fn with_headers(
        &self,
        key: &str,
        method: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> Answer {
        let mut request = self.http.request(method.parse().unwrap(), format!("{}{path}", self.url));
        if !key.is_empty() {
            request = request.header("x-api-key", key);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.bytes().await.unwrap();
        Answer {
            status,
            json: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
            bytes: bytes.to_vec(),
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call(&self.key, "GET", path, None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.call(&self.key, "POST", path, Some(body)).await
    }

    /// Lets so many hours pass, as far as the waiting messages can tell.
    pub async fn pass(&self, hours: i32) {
        sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
            "update recipients set next_at = next_at - interval '{hours} hours';
             update jobs set due_at = due_at - interval '{hours} hours';
             update messages set created_at = created_at - interval '{hours} hours',
                                 expires_at = expires_at - interval '{hours} hours';
             update chores set last_run_at = last_run_at - interval '{hours} hours'"
        )))
        .execute(&self.db)
        .await
        .unwrap();
    }

    /// The message, once it has settled.
    pub async fn settled(&self, id: &str) -> Value {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let job = self.get(&format!("/jobs/{id}")).await.is(200);
            if !job["completedAt"].is_null() {
                return job;
            }
            assert!(tokio::time::Instant::now() < deadline, "it does not settle: {job:#}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Stops it; then what it left must hold together.
    pub async fn stop(self) {
        let db = self.db.clone();
        self.shut_down().await;
        let broken: Vec<String> = sqlx::query_scalar(
            "select state || ' without a job: ' || address from recipients
             where state in ('queued', 'deferred', 'sending')
               and not exists (select from jobs where job_id = message_id)
             union all
             select 'job without a waiting recipient: ' || job_id from jobs
             where state = 'ready' and not exists (select from recipients where message_id = job_id
                                                   and state in ('queued', 'deferred'))
             union all
             select 'lease left behind: ' || job_id from jobs where state = 'leased'
             union all
             select 'settled ' || count(*) || ' times: ' || subject_id from events
             where kind in ('send.completed', 'send.failed') group by subject_id having count(*) > 1",
        )
        .fetch_all(&db)
        .await
        .unwrap();
        assert!(broken.is_empty(), "{broken:#?}");
    }

    async fn shut_down(self) {
        self.stop.cancel();
        self.served.await.unwrap();
    }
}

pub struct Answer {
    pub status: u16,
    pub json: Value,
    pub bytes: Vec<u8>,
}

impl Answer {
    /// The body, if the status is this one.
    #[track_caller]
    pub fn is(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{:#}", self.json);
        self.json
    }
}

pub fn message(to: &str) -> Value {
    json!({ "to": to, "from": "app@example.com", "subject": "Hello", "text": "Hello\n.\nthere" })
}
