//! What sending feels of retention: messages a second, and how long a claim takes, before, while and
//! after two million ended rows are forgotten. `make bench-retention`; the ratios are what counts.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement that cannot be made has failed"
)]

#[path = "../tests/shared/database.rs"]
mod database;
#[path = "../tests/stack/sink.rs"]
mod sink;

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use postroom::{
    app::App,
    audit::Who,
    config::{Config, Environment},
    metrics::Snapshot,
    secrets::SecretRing,
    serve,
};
use sqlx::{AssertSqlSafe, PgPool};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Each is five rows: itself, its content, a recipient, an attempt, the attempt's recipient.
const ENDED: i32 = 400_000;
const PHASE: Duration = Duration::from_secs(20);
/// Messages that wait at any time.
const BACKLOG: i64 = 4_000;

#[tokio::main]
async fn main() {
    let (db, url) = database::new().await;
    let env: Environment = [
        ("DATABASE_URL", url),
        ("POSTROOM_SECRET_KEY", SecretRing::generate("bench")),
        ("POSTROOM_HELO_NAME", "bench.test".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    let house = serve::open(Config::load(&env, None).unwrap(), true).await.unwrap();
    let (app, retention) = (house.app.clone(), house.retention.clone());
    let sink = sink::Sink::start(Duration::ZERO).await;
    let relay = format!(
        "insert into relays (relay_id, name, host, port, secure, from_address, domain, priority, max_connections)
         values (gen_random_uuid(), 'sink', '127.0.0.1', {}, false, 'app@example.com', 'example.com', 1, 8)",
        sink.port,
    );
    run(&db, relay).await;
    let begun = Instant::now();
    run(&db, ended()).await;
    println!("{} ended rows made in {:.0?}", ENDED * 5, begun.elapsed());

    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let served = tasks.spawn(serve::run(house, listener, stop.clone()));
    let feeding = tasks.spawn(feed(db.clone(), stop.clone()));
    tokio::time::sleep(Duration::from_secs(5)).await;

    let before = measure(&app, async || false).await;
    let asked = Instant::now();
    retention.ask(&Who::command_line()).await.unwrap();
    let meanwhile = measure(&app, async || is_running(&db).await).await;
    println!("forgotten in {:.0?}, and as many rows again made meanwhile", asked.elapsed());
    let after = measure(&app, async || false).await;
    let quiet = f64::midpoint(before.rate, after.rate);
    for (phase, it) in [("before", before), ("while", meanwhile), ("after", after)] {
        println!(
            "{phase:7} {:6.0} messages/s ({:.2} of quiet)   claim p50 <= {:5.1} ms, p99 <= {:6.1} ms",
            it.rate,
            it.rate / quiet,
            it.p50,
            it.p99,
        );
    }
    let old =
        "select count(*) from attempts where attempt_id < v7_floor(now() - interval '100 days')";
    let left: i64 = sqlx::query_scalar(old).fetch_one(&db).await.unwrap();
    assert_eq!(left, 0, "not all was forgotten");
    let (begun, taken) = (sink.begun.load(Ordering::SeqCst), sink.received.lock().unwrap().len());
    assert!(taken > 0 && taken <= begun, "{taken} of {begun} reached the relay");
    stop.cancel();
    feeding.await.unwrap();
    served.await.unwrap().unwrap();
}

async fn run(db: &PgPool, sql: String) {
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(db).await.unwrap();
}

async fn is_running(db: &PgPool) -> bool {
    let open = "select exists (select from retention_runs where ended_at is null)";
    sqlx::query_scalar(open).fetch_one(db).await.unwrap()
}

/// Messages that were sent 400 days ago.
fn ended() -> String {
    format!(
        "create temp table made as
             select v7_floor(now() - interval '400 days' + n * interval '1 ms') as id, now() - interval '400 days' as at
             from generate_series(1, {ENDED}) as n;
         insert into messages (message_id, created_at, internet_id, from_address, from_header, to_header, subject, size,
                               smtputf8, has_attachment, priority, n_recipients, n_open, n_accepted, outcome, settled_at)
         select id, at, id || '@example.com', 'app@example.com', 'app@example.com', 'a@example.net', 'x', 1000, false,
                false, 1, 1, 0, 1, 'sent', at from made;
         insert into message_content (message_id, seq, bytes)
         select id, 0, convert_to(repeat(md5(id::text), 31), 'UTF8') from made;
         insert into recipients (recipient_id, message_id, position, field, address, lookup_key, envelope_sender, state)
         select id, id, 0, 'to', 'a@example.net', 'a@example.net', 'app@example.com', 'sent' from made;
         insert into attempts (attempt_id, message_id, relay_name, started_at, ended_at, phase)
         select id, id, 'r', at, at, 'dot' from made;
         insert into attempt_recipients (attempt_id, recipient_id, result) select id, id, 'sent' from made;
         drop table made; analyze"
    )
}

/// Keeps messages waiting.
async fn feed(db: PgPool, stop: CancellationToken) {
    let fresh = format!(
        "create temp table fresh as select gen_random_uuid() as id from generate_series(1, {BACKLOG});
         insert into messages (message_id, internet_id, from_address, from_header, to_header, subject, size, smtputf8,
                               has_attachment, priority, n_recipients, n_open)
         select id, id || '@example.com', 'app@example.com', 'app@example.com', 'a@example.net', 'x', 100, false,
                false, 1, 1, 1 from fresh;
         insert into message_content (message_id, seq, bytes)
         select id, 0, convert_to(E'Message-ID: <' || id || E'@example.com>\\r\\n\\r\\nx\\r\\n', 'UTF8') from fresh;
         insert into recipients (recipient_id, message_id, position, field, address, lookup_key, envelope_sender, state,
                                 next_at)
         select gen_random_uuid(), id, 0, 'to', 'a@example.net', 'a@example.net', 'app@example.com', 'queued', now()
         from fresh;
         insert into jobs (job_id, kind, lane, priority) select id, 'send', 'example.com', 1 from fresh;
         drop table fresh"
    );
    while !stop.is_cancelled() {
        let waiting: i64 =
            sqlx::query_scalar("select count(*) from jobs").fetch_one(&db).await.unwrap();
        if waiting < BACKLOG {
            run(&db, fresh.clone()).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

struct Seen {
    /// Messages a second.
    rate: f64,
    /// Milliseconds, by the bounds of the histogram.
    p50: f64,
    p99: f64,
}

/// What was sent and claimed in a phase, which lasts as long as something goes on.
async fn measure(app: &App, goes_on: impl AsyncFn() -> bool) -> Seen {
    let (begun, (sent, claims)) = (Instant::now(), counted(app));
    while begun.elapsed() < PHASE || goes_on().await {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let (sent_then, claims_then) = counted(app);
    let rate = (sent_then - sent) / begun.elapsed().as_secs_f64();
    let new = claims_then.iter().zip(&claims).map(|(then, now)| (then.0, then.1 - now.1));
    let new: Vec<(f64, f64)> = new.collect();
    let all = new.last().unwrap().1;
    let of = |share| new.iter().find(|it| it.1 >= share * all).unwrap().0 * 1000.0;
    Seen { rate, p50: of(0.5), p99: of(0.99) }
}

/// How many were sent so far, and how many claims took no longer than each bound (seconds).
fn counted(app: &App) -> (f64, Vec<(f64, f64)>) {
    let text = app.metrics.render(&Snapshot::default());
    let value = |line: &str| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
    let sent =
        text.lines().find(|it| it.starts_with("postroom_recipients_total{outcome=\"sent\"}"));
    let claims = text.lines().filter_map(|line| {
        let (bound, _) =
            line.strip_prefix("postroom_queue_claim_seconds_bucket{le=\"")?.split_once('"')?;
        Some((bound.replace("+Inf", "inf").parse().unwrap(), value(line)))
    });
    (sent.map_or(0.0, value), claims.collect())
}
