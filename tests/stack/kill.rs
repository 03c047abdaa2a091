//! The kill test: four processes on one database, one killed after the other while they send.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use sqlx::PgPool;
use tokio::time::Instant;

use crate::{database, sink::Sink};

const PROCESSES: usize = 4;
const MESSAGES: i32 = 400;
const KILLS: usize = 14;

struct Outcome {
    received: usize,
    extra_copies: usize,
    different_bytes: usize,
    unknown: i64,
    failed: i64,
    marked_at_kill: i64,
}

#[tokio::test]
async fn killed_under_resend_every_message_arrives() {
    let it = run("resend").await;
    assert_eq!(it.received, usize::try_from(MESSAGES).unwrap());
    assert_eq!(it.different_bytes, 0, "a copy differs from the first");
    assert!(
        i64::try_from(it.extra_copies).unwrap() <= it.marked_at_kill,
        "more copies than open marks"
    );
    assert_eq!((it.unknown, it.failed), (0, 0));
}

#[tokio::test]
async fn killed_under_hold_nothing_arrives_twice_and_the_missing_are_unknown() {
    let it = run("hold").await;
    assert_eq!(it.extra_copies, 0, "a second copy left");
    let missing = i64::from(MESSAGES) - i64::try_from(it.received).unwrap();
    assert!(it.unknown >= missing, "{missing} are missing, {} say so", it.unknown);
    assert!(it.unknown <= it.marked_at_kill);
    assert_eq!(it.failed, 0);
}

async fn run(policy: &str) -> Outcome {
    let (db, url) = database::new().await;
    let sink = Sink::start().await;
    let secret = postroom::secrets::SecretRing::generate("kill");
    let migrated = postroom(&url, &secret, policy, &["migrate"]).status().unwrap();
    assert!(migrated.success());
    seed(&db, sink.port).await;

    let serve = || postroom(&url, &secret, policy, &["serve"]).spawn().unwrap();
    let mut processes: Vec<Child> = (0..PROCESSES).map(|_| serve()).collect();
    let (mut marked_at_kill, mut leased_at_kill, mut by_phase) = (0, 0, [0; 3]);
    for kill in 0..KILLS {
        let victim = &mut processes[kill % PROCESSES];
        let pid = i32::try_from(victim.id()).unwrap();
        // It shall hold work when it dies; of every three kills, two while a mark is open.
        let wants_mark = kill % 3 != 0;
        until(&format!("process {pid} works"), async || {
            let (leased, marked) = held(&db, pid).await;
            if wants_mark { marked > 0 } else { leased > 0 }
        })
        .await;
        victim.kill().unwrap();
        victim.wait().unwrap();
        let (leased, marked) = held(&db, pid).await;
        leased_at_kill += leased;
        marked_at_kill += marked;
        by_phase[if marked > 0 { 2 } else { usize::from(leased > 0) }] += 1;
        processes[kill % PROCESSES] = serve();
    }
    println!(
        "{policy}: {KILLS} kills, idle {}, leased {}, between mark and reply {}; {leased_at_kill} leases and \
         {marked_at_kill} marks were open",
        by_phase[0], by_phase[1], by_phase[2]
    );
    assert!(by_phase[2] >= 3, "too few kills between mark and reply");
    until("all work has ended", async || {
        sqlx::query_scalar::<_, i64>("select count(*) from jobs where state <> 'dead'")
            .fetch_one(&db)
            .await
            .unwrap()
            == 0
    })
    .await;
    for process in &mut processes {
        process.kill().unwrap();
        process.wait().unwrap();
    }
    let received = sink.received.lock().unwrap().clone();
    let count = async |state: &'static str| {
        sqlx::query_scalar::<_, i64>("select count(*) from recipients where state = $1")
            .bind(state)
            .fetch_one(&db)
            .await
            .unwrap()
    };
    Outcome {
        received: received.len(),
        extra_copies: received.values().map(|copies| copies.len() - 1).sum(),
        different_bytes: received
            .values()
            .flat_map(|it| it.iter().filter(|copy| **copy != it[0]))
            .count(),
        unknown: count("unknown").await,
        failed: count("failed").await,
        marked_at_kill,
    }
}

/// Leases of a process, and how many of those messages are between mark and completion.
async fn held(db: &PgPool, pid: i32) -> (i64, i64) {
    sqlx::query_as(
        "select count(distinct job_id), count(*) filter (where recipients.state = 'sending')
         from jobs join recipients on message_id = job_id
         where leased_by in (select process_id from processes where pid = $1) and jobs.state = 'leased'",
    )
    .bind(pid)
    .fetch_one(db)
    .await
    .unwrap()
}

async fn until(what: &str, done: impl AsyncFn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(90);
    while !done().await {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn postroom(url: &str, secret: &str, policy: &str, args: &[&str]) -> Command {
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
async fn seed(db: &PgPool, port: u16) {
    sqlx::query(
        "insert into relays (relay_id, name, host, port, secure, from_address, domain, priority, max_connections)
         values (gen_random_uuid(), 'sink', '127.0.0.1', $1, false, 'app@example.com', 'example.com', 1, 4)",
    )
    .bind(i32::from(port))
    .execute(db)
    .await
    .unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
        "create temp table ids as select gen_random_uuid() as id from generate_series(1, {MESSAGES});
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
