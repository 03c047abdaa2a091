//! A process that is frozen, one that is told to stop, and a message that kills.

use std::{
    process::{Child, Command},
    sync::atomic::Ordering,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use sqlx::PgPool;

use crate::{
    database,
    house::{postroom, seed, until},
    sink::Sink,
};

struct Setting {
    db: PgPool,
    url: String,
    secret: String,
    sink: Sink,
}

impl Setting {
    async fn new(pace: Duration) -> Self {
        let (db, url) = database::new().await;
        let secret = postroom::secrets::SecretRing::generate("fault");
        let sink = Sink::start(pace).await;
        assert!(postroom(&url, &secret, "hold", &["migrate"]).status().unwrap().success());
        seed(&db, sink.port, 1).await;
        Self { db, url, secret, sink }
    }

    fn command(&self) -> Command {
        postroom(&self.url, &self.secret, "hold", &["serve"])
    }

    fn serve(&self) -> Child {
        self.command().spawn().unwrap()
    }

    async fn state(&self) -> String {
        sqlx::query_scalar("select state from recipients").fetch_one(&self.db).await.unwrap()
    }

    async fn attempts(&self) -> i64 {
        sqlx::query_scalar("select count(*) from attempts where ended_at is not null")
            .fetch_one(&self.db)
            .await
            .unwrap()
    }

    /// The last event about the recipient.
    async fn told(&self) -> String {
        sqlx::query_scalar(
            "select kind from events where kind like 'recipient.%' order by event_id desc limit 1",
        )
        .fetch_one(&self.db)
        .await
        .unwrap()
    }

    fn copies(&self) -> usize {
        self.sink.received.lock().unwrap().values().map(Vec::len).sum()
    }
}

fn signal(process: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(process.id()).unwrap()), signal).unwrap();
}

#[tokio::test]
async fn a_process_frozen_beyond_its_lease_sends_no_second_copy() {
    let it = Setting::new(Duration::from_millis(700)).await;
    let mut frozen = it.serve();
    until("it has begun", async || it.sink.begun.load(Ordering::SeqCst) == 1).await;
    signal(&frozen, Signal::SIGSTOP);
    let mut other = it.serve();
    until("the other has sent it", async || it.state().await == "sent").await;
    signal(&frozen, Signal::SIGCONT);
    until("the frozen one has ended its attempt", async || it.attempts().await == 2).await;
    assert_eq!((it.copies(), it.state().await.as_str()), (1, "sent"));
    for process in [&mut frozen, &mut other] {
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

#[tokio::test]
async fn a_process_told_to_stop_finishes_what_it_has_marked() {
    let it = Setting::new(Duration::from_millis(700)).await;
    let mut process = it.serve();
    until("it is marked", async || it.state().await == "sending").await;
    signal(&process, Signal::SIGTERM);
    // Elsewhere: the sink must go on answering here.
    let ended = tokio::task::spawn_blocking(move || process.wait()).await.unwrap();
    assert!(ended.unwrap().success());
    assert_eq!((it.copies(), it.state().await.as_str()), (1, "sent"));
    let left: i64 =
        sqlx::query_scalar("select (select count(*) from jobs) + (select count(*) from processes)")
            .fetch_one(&it.db)
            .await
            .unwrap();
    assert_eq!(left, 0, "a job or a process was left behind");
}

#[tokio::test]
async fn a_stop_out_of_patience_is_no_death_and_leaves_the_truth() {
    let it = Setting::new(Duration::from_secs(20)).await;
    let mut first = it.command().env("POSTROOM_STOP_PATIENCE", "0.2s").spawn().unwrap();
    until("it waits at RCPT", async || it.sink.begun.load(Ordering::SeqCst) == 1).await;
    signal(&first, Signal::SIGTERM);
    let ended = tokio::task::spawn_blocking(move || first.wait()).await.unwrap();
    assert!(ended.unwrap().success());
    let mut second = it.serve();
    until("the next process has begun it", async || it.sink.begun.load(Ordering::SeqCst) == 2)
        .await;
    let deaths: i16 =
        sqlx::query_scalar("select deaths from jobs").fetch_one(&it.db).await.unwrap();
    assert_eq!((deaths, it.state().await.as_str()), (0, "queued"));
    second.kill().unwrap();
    second.wait().unwrap();
}

#[tokio::test]
async fn a_message_whose_process_died_twice_is_sent_once_more_and_alone() {
    let it = Setting::new(Duration::ZERO).await;
    sqlx::raw_sql("update jobs set deaths = 2").execute(&it.db).await.unwrap();
    let mut process = it.serve();
    until("it is sent", async || it.state().await == "sent").await;
    assert_eq!(it.copies(), 1);
    process.kill().unwrap();
    process.wait().unwrap();
}

#[tokio::test]
async fn no_log_line_holds_an_address_a_body_or_a_secret() {
    let it = Setting::new(Duration::ZERO).await;
    let log = tempfile::NamedTempFile::new().unwrap();
    let file = log.reopen().unwrap();
    let mut process = it.command().env("LOG_LEVEL", "debug").stderr(file).spawn().unwrap();
    until("it is sent", async || it.state().await == "sent").await;
    signal(&process, Signal::SIGTERM);
    let ended = tokio::task::spawn_blocking(move || process.wait()).await.unwrap();
    assert!(ended.unwrap().success());
    let text = std::fs::read_to_string(log.path()).unwrap();
    assert!(text.contains("stopped"), "nothing was logged: {text}");
    let secret = it.secret.split(':').nth(1).unwrap();
    for hidden in ["a@example.net", "app@example.com", "body of", secret] {
        assert!(!text.contains(hidden), "{hidden} is in the log");
    }
}

/// Two deaths are on its record, and its third owner has been silent for long.
const AT_ITS_THIRD_DEATH: &str = "
    insert into processes (process_id, host, pid, version, heartbeat_at)
    values ('00000000-0000-7000-8000-000000000001', 'gone', 1, '0', now() - interval '1 hour');
    update jobs set state = 'leased', deaths = 2, lease_id = gen_random_uuid(),
                    leased_by = '00000000-0000-7000-8000-000000000001',
                    leased_until = now() - interval '1 minute'";

#[tokio::test]
async fn a_message_that_ended_its_process_three_times_is_dead_and_says_why() {
    let it = Setting::new(Duration::ZERO).await;
    sqlx::raw_sql(AT_ITS_THIRD_DEATH).execute(&it.db).await.unwrap();
    let mut process = it.serve();
    until("it is failed", async || it.state().await == "failed").await;
    let (state, reason, error): (String, String, String) = sqlx::query_as(
        "select state, dead_reason, last_error from jobs join messages on message_id = job_id",
    )
    .fetch_one(&it.db)
    .await
    .unwrap();
    assert_eq!(state, "dead");
    assert!(reason.contains("three times") && error.contains("three times"), "{reason} {error}");
    assert_eq!((it.copies(), it.told().await.as_str()), (0, "recipient.failed"));
    process.kill().unwrap();
    process.wait().unwrap();
}

#[tokio::test]
async fn a_dead_message_of_which_a_copy_may_have_arrived_is_not_told_as_failed() {
    let it = Setting::new(Duration::ZERO).await;
    sqlx::raw_sql(AT_ITS_THIRD_DEATH).execute(&it.db).await.unwrap();
    sqlx::raw_sql("update recipients set maybe_accepted = true").execute(&it.db).await.unwrap();
    let mut process = it.serve();
    until("it is held", async || it.state().await == "unknown").await;
    assert_eq!((it.copies(), it.told().await.as_str()), (0, "recipient.unknown"));
    process.kill().unwrap();
    process.wait().unwrap();
}
