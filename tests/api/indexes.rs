//! No list and no look-up reads a large table from end to end.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;
use sqlx::{AssertSqlSafe, PgConnection, Row as _};

use crate::{database, support::TestApp};

/// The tables that grow with what is sent.
const LARGE: &[&str] = &[
    "attempt_recipients",
    "attempts",
    "audit",
    "events",
    "idempotency_keys",
    "jobs",
    "limit_spent",
    "message_content",
    "messages",
    "recipients",
    "sandbox_messages",
    "suppressions",
];

/// Statements that go through a whole table, with a piece of each to know it by, and the reason.
const WHOLE: &[(&str, &str)] = &[
    (
        "from jobs where state <> 'dead'",
        "what waits is counted as a whole, and its rows are hot and few",
    ),
    ("from jobs group by kind", "the same, by kind"),
    ("delete from sandbox_messages", "all of them go"),
    (
        "delete from idempotency_keys where message_id",
        "a day's keys, for an erasure, which is rare",
    ),
];

/// Where a plan reads a table whole although it need not.
fn whole(plan: &Value, found: &mut BTreeSet<String>) {
    let table = plan["Relation Name"].as_str().unwrap_or_default();
    if plan["Node Type"] == "Seq Scan" && LARGE.contains(&table) {
        found.insert(table.to_owned());
    }
    plan["Plans"].as_array().into_iter().flatten().for_each(|it| whole(it, found));
}

async fn explain(conn: &mut PgConnection, query: &str, parameters: usize) -> Value {
    let nothing = vec!["null"; parameters].join(", ");
    let execute =
        if parameters == 0 { "execute it".to_owned() } else { format!("execute it({nothing})") };
    run(conn, &format!("prepare it as {query}")).await;
    let explain = format!("explain (format json) {execute}");
    let plan = sqlx::raw_sql(AssertSqlSafe(explain)).fetch_one(&mut *conn).await;
    run(conn, "deallocate it").await;
    let plan: Value = plan.unwrap_or_else(|error| panic!("{query}: {error}")).get(0);
    plan[0]["Plan"].clone()
}

async fn run(conn: &mut PgConnection, sql: &str) {
    let done = sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(conn).await;
    done.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// Each statement of the program, as the compiler knows it.
fn statements() -> Vec<(String, usize)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(".sqlx");
    let files = fs::read_dir(folder).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap());
    let statements = files.map(|text| {
        let known: Value = serde_json::from_slice(&text).unwrap();
        let parameters = known["describe"]["parameters"]["Left"].as_array().map_or(0, Vec::len);
        (known["query"].as_str().unwrap().to_owned(), parameters)
    });
    statements.collect()
}

#[tokio::test]
async fn every_statement_has_its_index() {
    let (db, _) = database::new().await;
    postroom::database::migrate(&db).await.unwrap();
    let mut conn = db.acquire().await.unwrap();
    // Whatever the tables hold: where an index can serve, it does.
    run(&mut conn, "set enable_seqscan = off; set plan_cache_mode = force_generic_plan").await;
    let (mut broken, mut unused) =
        (Vec::new(), WHOLE.iter().map(|it| it.0).collect::<BTreeSet<_>>());
    let all = statements();
    assert!(all.len() > 100, "the statements are not found");
    for (query, parameters) in all {
        let mut tables = BTreeSet::new();
        whole(&explain(&mut conn, &query, parameters).await, &mut tables);
        let reason = WHOLE.iter().find(|(piece, _)| query.contains(piece));
        match reason {
            Some((piece, _)) => _ = unused.remove(piece),
            None if tables.is_empty() => (),
            None => broken.push(format!("{tables:?}: {query}")),
        }
    }
    assert!(broken.is_empty(), "{} read a large table whole:\n{}", broken.len(), broken.join("\n"));
    assert!(unused.is_empty(), "no such statement any more: {unused:?}");
}

/// The others are empty here, and an empty table is read whole.
const FILLED: &[&str] = &["audit", "events", "messages", "recipients", "sandbox_messages"];

/// Lists are put together from what is asked for, so they are asked, and the database tells.
#[tokio::test]
async fn no_list_goes_through_a_large_table() {
    let t = TestApp::start().await;
    t.sql(
        "create temp table made as select v7_floor(now() - n * interval '1 minute') as id, n from generate_series(1, 20000) as n;
         insert into messages (message_id, created_at, api_key_id, internet_id, from_address, from_header, to_header, subject,
                               size, smtputf8, has_attachment, priority, n_recipients, n_open, n_accepted, outcome,
                               settled_at, tags)
         select id, now() - n * interval '1 minute', (select api_key_id from api_keys limit 1), id || '@example.com',
                'app@example.com', 'app@example.com', 'a@example.net', 'x', 100, false, false, 1, 1, 0,
                (n % 100 > 0)::int, case when n % 100 > 0 then 'sent' else 'failed' end, now() - n * interval '1 minute',
                case when n % 50 = 0 then array['rare'] else '{}' end from made;
         insert into recipients (recipient_id, message_id, position, field, address, lookup_key, envelope_sender, state)
         select gen_random_uuid(), id, 0, 'to', n || '@example.net', n || '@example.net', 'app@example.com',
                case when n % 100 > 0 then 'sent' else 'failed' end from made;
         insert into events (event_id, kind, subject, subject_id, data) select id, 'x', 'message', id, '{}' from made;
         insert into audit (audit_id, actor, action, subject, subject_id) select id, 'x', 'x', 'x', id::text from made;
         insert into sandbox_messages (sandbox_message_id, internet_id, helo, mail_from, rcpt_to, raw)
         select id, id || '@example.com', 'x', 'x', array[n || '@example.net'], 'x' from made;
         drop table made; analyze; select pg_stat_reset()",
    )
    .await;
    let key = t.get("/me/key").await.is(200)["id"].as_str().unwrap().to_owned();
    let times = "since=2026-11-30T00:00:00Z&until=2026-12-01T00:00:00Z";
    for query in [
        "",
        "status=pending",
        "status=processing",
        "status=done",
        "status=dead",
        "outcome=sent",
        "outcome=failed",
        "outcome=partial",
        "outcome=unknown",
        "outcome=expired",
        "recipient=77@example.net",
        "recipient=nobody@example.net",
        "tag=rare",
        "tag=none",
        "scheduled=true",
        "cursor=01900000-0000-7000-8000-000000000000",
        times,
        &format!("key={key}"),
        &format!("key={key}&status=dead&tag=rare&{times}"),
    ] {
        t.get(&format!("/jobs?{query}")).await.is(200);
    }
    for path in
        ["/admin/api/recipients/77@example.net", "/sandbox/messages", "/admin/api/retention"]
    {
        t.get(path).await.is(200);
    }
    let id: uuid::Uuid =
        sqlx::query_scalar("select message_id from messages order by message_id limit 1")
            .fetch_one(&t.db)
            .await
            .unwrap();
    t.get(&format!("/jobs/{id}")).await.is(200);
    let url = t.database_url().to_owned();
    // What a connection has counted is told when it ends.
    t.leave().await;
    let db = sqlx::PgPool::connect(&url).await.unwrap();
    let sql = "select relname::text, seq_scan from pg_stat_user_tables where relname = any($1) and seq_scan > 0";
    let read: Vec<(String, i64)> = sqlx::query_as(sql).bind(FILLED).fetch_all(&db).await.unwrap();
    assert_eq!(read, [], "read from end to end");
    let looked: i64 =
        sqlx::query_scalar("select idx_scan from pg_stat_user_tables where relname = 'messages'")
            .fetch_one(&db)
            .await
            .unwrap();
    assert!(looked > 10, "nothing was counted: {looked}");
}
