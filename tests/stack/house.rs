//! Processes of Postroom on one database, and messages that wait for them.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use sqlx::PgPool;
use tokio::time::Instant;

pub async fn until(what: &str, done: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(90);
    while !done().await {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub fn postroom(url: &str, secret: &str, policy: &str, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postroom"));
    command
        .args(args)
        .env("DATABASE_URL", url)
        .env("POSTROOM_SECRET_KEY", secret)
        .env("POSTROOM_ON_UNKNOWN", policy)
        .env("POSTROOM_QUEUE_LEASE", "1.5s")
        .env("POSTROOM_QUEUE_POLL", "200ms")
        .env("HOST", "127.0.0.1")
        .env("PORT", "0")
        .env("LOG_LEVEL", "error")
        .stdout(Stdio::null());
    command
}

/// One relay, and messages that wait for it: written as accepting writes them.
pub async fn seed(db: &PgPool, port: u16, messages: i32) {
    sqlx::query(
        "insert into relays (relay_id, name, host, port, secure, from_address, domain, priority, max_connections)
         values (gen_random_uuid(), 'sink', '127.0.0.1', $1, false, 'app@example.com', 'example.com', 1, 4)",
    )
    .bind(i32::from(port))
    .execute(db)
    .await
    .unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
        "create temp table ids as select gen_random_uuid() as id from generate_series(1, {messages});
         insert into messages (message_id, internet_id, from_address, from_header, to_header, subject, size, smtputf8,
                               has_attachment, priority, n_recipients, n_open)
         select id, id || '@example.com', 'app@example.com', 'app@example.com', 'a@example.net', 'x', 100, false,
                false, 1, 1, 1 from ids;
         insert into message_content (message_id, seq, bytes)
         select id, 0, convert_to(E'Message-ID: <' || id || E'@example.com>\\r\\n\\r\\nbody of ' || id || E'\\r\\n', 'UTF8')
         from ids;
         insert into recipients (recipient_id, message_id, position, field, address, lookup_key, envelope_sender, state,
                                 next_at)
         select gen_random_uuid(), id, 0, 'to', 'a@example.net', 'a@example.net', 'app@example.com', 'queued', now()
         from ids;
         insert into jobs (job_id, kind, lane, priority) select id, 'send', 'example.com', 1 from ids;"
    )))
    .execute(db)
    .await
    .unwrap();
}
