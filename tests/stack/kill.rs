//! The kill test: four processes on one database, one killed after the other while they send.

use std::{process::Child, time::Duration};

use sqlx::PgPool;

use crate::{
    database,
    house::{postroom, seed, until},
    sink::Sink,
};

const PROCESSES: usize = 4;
const MESSAGES: i32 = 400;
const KILLS: usize = 14;
const PACE: Duration = Duration::from_millis(60);

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
    let sink = Sink::start(PACE).await;
    let secret = postroom::secrets::SecretRing::generate("kill");
    let migrated = postroom(&url, &secret, policy, &["migrate"]).status().unwrap();
    assert!(migrated.success());
    seed(&db, sink.port, MESSAGES).await;

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
