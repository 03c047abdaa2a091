//! A Postroom of one's own: `TestApp::start()` makes a database, serves on a free port with the
//! sandbox as relay, and speaks with the first key.

pub mod relay;

use std::time::Duration;

use postroom::{
    accounts::api_keys::{self, KeyMode, NewKey, Scope},
    audit::Who,
    config::{Config, Environment},
    serve::{self, House},
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
    database_url: String,
    secret: String,
    http: reqwest::Client,
    stop: CancellationToken,
    served: JoinHandle<()>,
}

impl TestApp {
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// With these settings over the usual ones.
    pub async fn start_with(settings: &[(&str, &str)]) -> Self {
        let (_, database_url) = crate::database::new().await;
        let secret = postroom::secrets::SecretRing::generate("test");
        let house = open(&database_url, &secret, settings).await;
        let new = NewKey {
            name: "test".to_owned(),
            scopes: vec![Scope::Send, Scope::Read, Scope::Admin],
            mode: KeyMode::Live,
            suppression_exempt: false,
            sender_domains: None,
            sender_addresses: None,
            networks: None,
            on_unknown: None,
            expires_at: None,
        };
        let (_, key) = api_keys::create(&house.app, &Who::command_line(), new).await.unwrap();
        Self::serve(house, database_url, secret, key).await
    }

    pub fn database_url(&self) -> &str {
        &self.database_url
    }

    /// The ring of keys, as the setting has it.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// Another process over the same database.
    pub async fn beside(&self) -> Self {
        self.beside_with(&[]).await
    }

    pub async fn beside_with(&self, settings: &[(&str, &str)]) -> Self {
        let house = open(&self.database_url, &self.secret, settings).await;
        let (url, secret) = (self.database_url.clone(), self.secret.clone());
        Self::serve(house, url, secret, self.key.clone()).await
    }

    async fn serve(house: House, database_url: String, secret: String, key: String) -> Self {
        let db = house.app.db.clone();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        #[expect(clippy::disallowed_methods, reason = "the test holds the handle and joins it")]
        let served = tokio::spawn(async move {
            serve::run(house, listener, stopped).await.expect("it serves and stops");
        });
        Self { url, key, db, database_url, secret, http: reqwest::Client::new(), stop, served }
    }

    /// A request without a key.
    pub fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method.parse().unwrap(), format!("{}{path}", self.url))
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
        let mut request = self.request(method, path);
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
        let sql = format!(
            "update jobs set due_at = due_at - interval '{hours} hours';
             update messages set created_at = created_at - interval '{hours} hours',
                                 expires_at = expires_at - interval '{hours} hours',
                                 send_at = send_at - interval '{hours} hours',
                                 window_from = window_from - interval '{hours} hours';
             update recipients set next_at = next_at - interval '{hours} hours';
             update relay_breakers set until = until - interval '{hours} hours';
             update limit_spent set head = head - {hours} * case per when 'minute' then 3600 when 'hour' then 60 else 2 end;
             update chores set last_run_at = last_run_at - interval '{hours} hours'"
        );
        // Its rows come in no order, so it may meet the workers in a circle: then it is done again.
        while let Err(error) =
            sqlx::raw_sql(sqlx::AssertSqlSafe(sql.clone())).execute(&self.db).await
        {
            let code = error.as_database_error().and_then(|it| it.code().map(|it| it.into_owned()));
            assert_eq!(code.as_deref(), Some("40P01"), "{error}");
        }
    }

    /// Lets time pass, so many hours at a time, until the answer to this query is so.
    pub async fn passes_until(&self, hours: i32, sql: &'static str, wanted: i64) {
        for _ in 0..20 {
            self.pass(hours).await;
            if self.is_soon(sql, wanted).await {
                return;
            }
        }
        self.counted(sql, wanted).await;
    }

    /// Makes everything that waits due, again and again, until the answer to this query is so.
    pub async fn due_until(&self, sql: &'static str, wanted: i64) {
        for _ in 0..20 {
            self.pass_due().await;
            if self.is_soon(sql, wanted).await {
                return;
            }
        }
        self.counted(sql, wanted).await;
    }

    async fn is_soon(&self, sql: &'static str, wanted: i64) -> bool {
        for _ in 0..50 {
            let found: i64 = sqlx::query_scalar(sql).fetch_one(&self.db).await.unwrap();
            if found == wanted {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }

    /// Makes everything that waits due.
    pub async fn pass_due(&self) {
        let sql = "update jobs set due_at = clock_timestamp() where state = 'ready';
             update recipients set next_at = clock_timestamp() where next_at is not null";
        while let Err(error) = sqlx::raw_sql(sql).execute(&self.db).await {
            let code = error.as_database_error().and_then(|it| it.code().map(|it| it.into_owned()));
            assert_eq!(code.as_deref(), Some("40P01"), "{error}");
        }
    }

    /// Statements beside the application.
    pub async fn sql(&self, text: &str) {
        sqlx::raw_sql(sqlx::AssertSqlSafe(text.to_owned())).execute(&self.db).await.unwrap();
    }

    /// The answer to this query, once it is so.
    pub async fn counted(&self, sql: &'static str, wanted: i64) {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let found: i64 = sqlx::query_scalar(sql).fetch_one(&self.db).await.unwrap();
            if found == wanted {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "{found}, not {wanted}: {sql}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The message, once it has settled.
    pub async fn settled(&self, id: &str) -> Value {
        self.until(&format!("/jobs/{id}"), |job| !job["completedAt"].is_null()).await
    }

    /// What is found there, once it is as expected.
    pub async fn until(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let found = self.get(path).await.is(200);
            if is_so(&found) {
                return found;
            }
            assert!(tokio::time::Instant::now() < deadline, "it does not come to that: {found:#}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Stops it; then what it left must hold together.
    pub async fn stop(self) {
        let db = self.db.clone();
        self.leave().await;
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
             where kind in ('send.completed', 'send.failed') group by subject_id
             having count(*) > 1 + (select count(*) from events opened where opened.subject_id = events.subject_id
                                    and kind = 'message.retried' and data @> '{\"reopened\": true}')",
        )
        .fetch_all(&db)
        .await
        .unwrap();
        assert!(broken.is_empty(), "{broken:#?}");
    }

    /// Stops it, and leaves what it has to others over its database.
    pub async fn leave(self) {
        self.stop.cancel();
        self.served.await.unwrap();
    }

    /// Stops it, and starts another over its database when this has passed.
    pub async fn restart(
        self,
        settings: &[(&str, &str)],
        meanwhile: impl Future<Output = ()>,
    ) -> Self {
        let (url, secret, key) = (self.database_url.clone(), self.secret.clone(), self.key.clone());
        self.leave().await;
        meanwhile.await;
        let house = open(&url, &secret, settings).await;
        Self::serve(house, url, secret, key).await
    }
}

async fn open(database_url: &str, secret: &str, settings: &[(&str, &str)]) -> House {
    let usual = [
        ("HOST", "127.0.0.1"),
        ("DATABASE_URL", database_url),
        ("POSTROOM_SANDBOX", "true"),
        ("METRICS_TOKEN", "metrics-token"),
        ("POSTROOM_HELO_NAME", "postroom.test"),
        ("POSTROOM_QUEUE_POLL", "100ms"),
        ("POSTROOM_SMTP_GREETING_TIMEOUT", "2s"),
        ("POSTROOM_SECRET_KEY", secret),
    ];
    let pairs = usual.iter().chain(settings);
    let env: Environment =
        pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let config = Config::load(&env, None).expect("the settings are valid");
    serve::open(config, true).await.expect("it opens")
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
