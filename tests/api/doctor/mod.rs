//! `postroom doctor` on set-ups that are really broken: it names each fault, and its mending.

mod databases;
mod dns;
mod docker;
mod neighbours;
mod relays;

use std::{collections::BTreeMap, process::Stdio, time::Duration};

use postroom::secrets::SecretRing;
use serde_json::Value;
use sqlx::PgPool;
use tokio::process::Command;

use dns::Said;

/// A word that no output may hold.
const SECRET: &str = "sesame-4711";

/// A Postroom set up on a database of its own, with one sender domain in good order.
struct Setup {
    env: BTreeMap<String, String>,
    db: PgPool,
}

/// The records of a domain in good order.
fn good_zone() -> Vec<(&'static str, Said)> {
    vec![
        ("example.com", Said::Texts(vec!["v=spf1 mx -all", "something else"])),
        ("_dmarc.example.com", Said::Texts(vec!["v=DMARC1; p=reject"])),
        ("mail._domainkey.example.com", Said::Texts(vec!["v=DKIM1; k=rsa; p=MIIB"])),
    ]
}

impl Setup {
    /// With the schema, and without a relay.
    async fn new() -> Self {
        let it = Self::empty().await;
        postroom::database::migrate(&it.db).await.unwrap();
        it
    }

    /// On a database without anything.
    async fn empty() -> Self {
        let (db, url) = crate::database::new().await;
        let resolver = dns::start(&good_zone()).await;
        let pairs = [
            ("DATABASE_URL", url),
            ("POSTROOM_SECRET_KEY", SecretRing::generate("test")),
            ("METRICS_TOKEN", SECRET.to_owned()),
            ("POSTROOM_DNS_SERVER", resolver.to_string()),
            ("DOCKER_HOST", docker::start(docker::FINE).await),
            ("POSTROOM_HELO_NAME", "postroom.test".to_owned()),
            ("POSTROOM_SMTP_GREETING_TIMEOUT", "1s".to_owned()),
            ("LOG_LEVEL", "error".to_owned()),
        ];
        let env = pairs.map(|(name, value)| (name.to_owned(), value)).into();
        Self { env, db }
    }

    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.env.insert(name.to_owned(), value.into());
    }

    async fn sql(&self, text: &str) {
        sqlx::raw_sql(sqlx::AssertSqlSafe(text.to_owned())).execute(&self.db).await.unwrap();
    }

    /// A relay for `example.com`; further columns, with their values.
    async fn relay(&self, host: &str, port: u16, columns: &str, values: &str) {
        self.sql(&format!(
            "insert into relays (relay_id, name, host, port, secure, from_address, domain, priority {columns})
             values (gen_random_uuid(), 'main', '{host}', {port}, {}, 'app@example.com', 'example.com', 1 {values})",
            columns.contains("reject_unauthorized"),
        ))
        .await;
    }

    /// A relay with which nothing is wrong.
    async fn good_relay(&self) {
        let relay = crate::support::relay::ScriptedRelay::start(Default::default()).await;
        self.relay("127.0.0.1", relay.port, "", "").await;
    }

    /// What the doctor says.
    async fn examine(&self) -> Findings {
        let child = Command::new(env!("CARGO_BIN_EXE_postroom"))
            .args(["doctor", "--json"])
            .env_clear()
            .envs(&self.env)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let limit = Duration::from_secs(60);
        let output = tokio::time::timeout(limit, child).await.expect("it ends").unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let said = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
        let keys = self.env.get("POSTROOM_SECRET_KEY").and_then(|it| it.split_once(':'));
        for secret in [Some(SECRET), keys.map(|(_, key)| key)].into_iter().flatten() {
            assert!(!said.contains(secret), "a secret is shown: {said}");
        }
        let json = serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {said}"));
        Findings { json, code: output.status.code().unwrap() }
    }
}

struct Findings {
    json: Value,
    code: i32,
}

impl Findings {
    fn find(&self, check: &str, subject: &str) -> &Value {
        let is_it =
            |it: &&Value| it["check"] == check && (subject.is_empty() || it["subject"] == subject);
        let all = self.json["checks"].as_array().unwrap();
        all.iter().find(is_it).unwrap_or_else(|| panic!("no {check} {subject} in {:#}", self.json))
    }

    /// The check has this state, names the fault in these words and its mending in those.
    #[track_caller]
    fn is(&self, check: &str, subject: &str, state: &str, found: &str, fix: &str) {
        let it = self.find(check, subject);
        let text = |field: &str| it[field].as_str().unwrap_or_default().to_owned();
        assert_eq!(it["state"], state, "{it:#}");
        assert!(text("found").contains(found), "{it:#}");
        assert!(text("fix").contains(fix), "{it:#}");
        assert!(!text("fix").is_empty(), "{it:#}");
    }

    /// Nothing but these checks is wrong.
    #[track_caller]
    fn only(&self, checks: &[&str]) {
        for it in self.json["checks"].as_array().unwrap() {
            let wrong = it["state"] == "warn" || it["state"] == "fail";
            let expected = checks.contains(&it["check"].as_str().unwrap());
            assert!(!wrong || expected, "{it:#}");
        }
    }
}

#[tokio::test]
async fn a_good_set_up_has_no_fault() {
    let setup = Setup::new().await;
    setup.good_relay().await;
    let findings = setup.examine().await;
    assert_eq!((findings.code, &findings.json["status"]), (0, &"ok".into()), "{:#}", findings.json);
    for check in [
        "settings",
        "database",
        "database.pooler",
        "migrations",
        "secret",
        "docker",
        "container",
        "exec",
        "spf",
        "dmarc",
        "dkim",
    ] {
        assert_eq!(findings.find(check, "")["state"], "ok", "{:#}", findings.json);
    }
}

#[tokio::test]
async fn a_wrong_setting_is_named_and_the_rest_is_still_looked_at() {
    let mut setup = Setup::new().await;
    setup.good_relay().await;
    setup.set("PORT", "many");
    setup.set("POSTROOM_QEUE_LEASE", "2s");
    let findings = setup.examine().await;
    assert_eq!(findings.code, 2);
    findings.is("settings", "PORT", "fail", "many", "PORT");
    findings.is("settings", "POSTROOM_QEUE_LEASE", "fail", "not a known setting", "remove it");
    findings.only(&["settings"]);
    assert_eq!(findings.find("database", "")["state"], "ok");
}

#[tokio::test]
async fn a_missing_secret_key_and_another_ones_key_are_told_apart() {
    let mut setup = Setup::new().await;
    setup.good_relay().await;
    let key = SecretRing::parse(&setup.env["POSTROOM_SECRET_KEY"]).unwrap();
    postroom::database::check_secret(&setup.db, &key).await.unwrap();
    setup.set("POSTROOM_SECRET_KEY", SecretRing::generate("test"));
    let findings = setup.examine().await;
    findings.is("secret", "", "fail", "not the key of this database", "used before");
    findings.only(&["secret"]);

    setup.env.remove("POSTROOM_SECRET_KEY");
    let findings = setup.examine().await;
    findings.is("settings", "POSTROOM_SECRET_KEY", "fail", "is not set", "/dev/urandom");
    findings.only(&["settings"]);
}
