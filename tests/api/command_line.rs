//! The program's commands, run as an operator runs them.

use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::{TestApp, message};

/// Runs the program against this Postroom's database, with this ring of keys.
async fn postroom(t: &TestApp, secret: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postroom"));
    command.args(args).env_clear().env("DATABASE_URL", t.database_url());
    command.env("POSTROOM_SECRET_KEY", secret).env("LOG_LEVEL", "error");
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[tokio::test]
async fn keys_are_listed_without_themselves_and_revoked_by_their_prefix() {
    let t = TestApp::start().await;
    let secret = t.secret().to_owned();
    let made =
        out(&postroom(&t, &secret, &["create-api-key", "--name", "x", "--scopes", "send"]).await);
    let plain = made.trim();
    t.call(plain, "GET", "/jobs", None).await.is(200);
    let listed = out(&postroom(&t, &secret, &["keys", "list", "--json"]).await);
    assert!(!listed.contains(plain));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let table = out(&postroom(&t, &secret, &["keys", "list"]).await);
    assert!(table.lines().any(|it| it.contains(&plain[..8]) && it.contains("good")), "{table}");
    out(&postroom(&t, &secret, &["keys", "revoke", &plain[..8]]).await);
    t.call(plain, "GET", "/jobs", None).await.is(401);
    assert!(!postroom(&t, &secret, &["keys", "revoke", "00000000"]).await.status.success());
    t.stop().await;
}

#[tokio::test]
async fn rekey_seals_every_password_again_and_the_old_key_is_needed_no_more() {
    let t = TestApp::start().await;
    let new = json!({
        "name": "one", "host": "127.0.0.1", "port": 1, "secure": false, "fromAddress": "a@example.com",
        "priority": 1, "username": "user", "password": "secret-word",
    });
    t.post("/admin/api/smtp-accounts", new).await.is(201);
    let (old, fresh) = (t.secret().to_owned(), postroom::secrets::SecretRing::generate("fresh"));
    let both = format!("{fresh},{old}");
    let wrong = postroom(&t, &fresh, &["rekey"]).await;
    assert!(!wrong.status.success(), "without the old key nothing can be opened");
    let said = out(&postroom(&t, &both, &["rekey"]).await);
    assert!(said.starts_with("1 of 1 relay passwords"), "{said}");
    let again = out(&postroom(&t, &both, &["rekey"]).await);
    assert!(again.starts_with("0 of 1 relay passwords"), "{again}");
    let ring = postroom::secrets::SecretRing::parse(&fresh).unwrap();
    postroom::database::check_secret(&t.db, &ring).await.unwrap();
    let sealed: String =
        sqlx::query_scalar("select password_sealed from relays where password_sealed is not null")
            .fetch_one(&t.db)
            .await
            .unwrap();
    assert!(!ring.is_stale(&sealed));
    t.stop().await;
}

#[tokio::test]
async fn a_configuration_file_that_is_not_there_is_a_wrong_setting_and_completions_need_none() {
    let t = TestApp::start().await;
    let secret = t.secret().to_owned();
    let missing = postroom(&t, &secret, &["--config", "/nowhere/at-all", "migrate"]).await;
    assert_eq!(missing.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("/nowhere/at-all"));
    for shell in ["bash", "zsh", "fish"] {
        let script = out(&postroom(&t, "", &["completions", shell]).await);
        assert!(script.contains("create-api-key"), "{shell}");
    }
    t.stop().await;
}

/// A database of mailctl, in the columns that its releases have.
async fn mailctl(folder: &std::path::Path, key: &str) -> std::path::PathBuf {
    use sqlx::ConnectOptions as _;
    let file = folder.join("data.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&file).create_if_missing(true);
    let mut db = options.connect().await.unwrap();
    let sql = format!(
        r#"create table api_keys (id text primary key, name text not null, hash text not null, prefix text not null,
             scopes text not null, expires_at integer, last_used_at integer, revoked_at integer,
             suppression_exempt integer not null default 0, created_at integer not null);
           create table domains (id text primary key, name text not null);
           create table smtp_accounts (id text primary key, name text not null, host text not null, port integer not null,
             secure integer not null, require_tls integer not null default 0, user_env_var text, password_env_var text,
             from_address text not null, from_name text, priority integer not null, active integer not null default 1,
             domain_id text, created_at integer not null);
           create table users (id text primary key, email text not null);
           create table suppressions (id text primary key, address text not null, reason text not null, source text,
             note text, created_at integer not null);
           insert into domains values ('d1', 'example.org');
           insert into users values ('u1', 'a@example.org'), ('u2', 'b@example.org');
           insert into api_keys values
             ('k1', 'app', '{hash}', '{prefix}', '["send"]', null, null, null, 0, 1700000000),
             ('k2', 'odd', '{other}', 'aaaaaaaa', '["wish"]', null, null, null, 0, 1700000000);
           insert into smtp_accounts values
             ('0189c000-0000-7000-8000-000000000001', 'main', 'smtp.example.org', 587, 0, 1, 'SMTP_USER', 'SMTP_PASS',
              'App@example.org', 'App', 10, 1, 'd1', 1700000000),
             ('0189c000-0000-7000-8000-000000000002', 'odd', 'smtp.example.org', 587, 0, 0, 'MAIL_USER', null,
              'b@example.org', null, 20, 1, null, 1700000000),
             ('0189c000-0000-7000-8000-000000000003', 'bad', 'no host', 587, 0, 0, null, null,
              'c@example.org', null, 20, 1, null, 1700000000);
           insert into suppressions values
             ('s1', 'Gone@Example.net', 'hard_bounce', 'b1', null, 1700000000),
             ('s2', 'rubbish', 'manual', null, null, 1700000000);"#,
        hash = postroom::secrets::hash_token(key),
        prefix = &key[..8],
        other = "a".repeat(64),
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut db).await.unwrap();
    file
}

#[tokio::test]
async fn mailctl_is_taken_over_once_and_its_keys_go_on_working() {
    let t = TestApp::start().await;
    let (secret, key) = (t.secret().to_owned(), postroom::secrets::new_api_key());
    let folder = tempfile::tempdir().unwrap();
    let file = mailctl(folder.path(), &key).await;
    let file = file.to_str().unwrap();
    let before = std::fs::read(file).unwrap();

    let import = async |more: &[&str]| -> Value {
        let args = [&["import-mailctl", file, "--json"], more].concat();
        serde_json::from_str(&out(&postroom(&t, &secret, &args).await)).unwrap()
    };
    let counts = |report: &Value| -> Vec<Vec<u64>> {
        let table = |it: &Value| {
            let n = |name: &str| it[name].as_u64().unwrap();
            let left_out = it["leftOut"].as_array().unwrap().len() as u64;
            vec![n("found"), n("taken"), n("known"), left_out]
        };
        report["tables"].as_array().unwrap().iter().map(table).collect()
    };
    let dry = import(&["--dry-run"]).await;
    assert_eq!(counts(&dry), [[2, 1, 0, 1], [3, 2, 0, 1], [2, 1, 0, 1]], "{dry:#}");
    t.call(&key, "GET", "/jobs", None).await.is(401);
    let done = import(&[]).await;
    assert_eq!(counts(&done), counts(&dry));
    let not_yet = json!([
        { "table": "domains", "rows": 1, "names": ["example.org"] },
        { "table": "users", "rows": 2, "names": ["a@example.org", "b@example.org"] },
    ]);
    assert_eq!(done["notYet"], not_yet);
    let again = import(&[]).await;
    assert_eq!(counts(&again), [[2, 0, 1, 1], [3, 0, 2, 1], [2, 0, 1, 1]]);
    assert_eq!(std::fs::read(file).unwrap(), before, "the file is only read");

    t.call(&key, "GET", "/jobs", None).await.is(200);
    let relays = t.get("/admin/api/smtp-accounts").await.is(200);
    let of = |name: &str| relays.as_array().unwrap().iter().find(|it| it["name"] == name).unwrap();
    let (main, odd) = (of("main"), of("odd"));
    assert_eq!((&main["domain"], &main["requireTls"]), (&json!("example.org"), &json!(true)));
    assert_eq!((&main["userEnvVar"], &main["active"]), (&json!("SMTP_USER"), &json!(true)));
    assert_eq!((&odd["userEnvVar"], &odd["active"]), (&json!(null), &json!(false)));
    t.post("/send", message("gone@example.net")).await.is(422);

    let foreign = folder.path().join("foreign");
    std::fs::write(&foreign, "no database").unwrap();
    let refused = postroom(&t, &secret, &["import-mailctl", foreign.to_str().unwrap()]).await;
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&refused.stderr)
            .contains("cannot be read as a database of mailctl")
    );
    t.stop().await;
}
