//! The API against its own description: Schemathesis reads `/openapi.json` and attacks every
//! operation, with a key that may do everything.
//!
//! Both run in a network namespace of their own that has only loopback, so that whatever is made up
//! as a relay's host leads nowhere. Neither a server's error, nor a status or a body that is not
//! described, may come of it; `schema/schemathesis.toml` says what else is checked.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
};

use sqlx::PgPool;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixListener,
};
use uuid::Uuid;

use crate::{
    database,
    house::{postroom, seed, until},
};

/// The namespace has no other listener.
const PORT: &str = "3000";

/// Some of what must be reached for the attack to be one.
const MUST_SUCCEED: &[&str] = &[
    "POST /admin/api/api-keys",
    "PATCH /admin/api/api-keys/{id}",
    "POST /admin/api/smtp-accounts",
    "PATCH /admin/api/smtp-accounts/{id}",
    "POST /send",
    "GET /jobs",
    "GET /jobs/{id}",
    "GET /sandbox/messages",
];

#[tokio::test(flavor = "multi_thread")]
async fn the_api_keeps_to_its_description() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let schemathesis = here.join(".ci/schemathesis");
    // Out here it can still be installed.
    assert!(Command::new(&schemathesis).arg("--version").status().unwrap().success());
    let (db, url) = database::new().await;
    let secret = postroom::secrets::SecretRing::generate("schema");
    assert!(postroom(&url, &secret, "hold", &["migrate"]).status().unwrap().success());
    // Its relay does not answer: what the sandbox does not take waits.
    seed(&db, 1, 3).await;
    let key = key(&url, &secret);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");

    let mut serve = postroom(&url, &secret, "hold", &["serve", "--sandbox"]);
    let engine = folder.path().join("engine");
    tokio_util::task::TaskTracker::new().spawn(no_containers(UnixListener::bind(&engine).unwrap()));
    serve.env("PORT", PORT).env("DOCKER_SOCKET_PATH", &engine);
    let mut serve = alone(&serve);
    serve.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap());
    let server = Server(serve.spawn().expect("unshare, of util-linux"));
    until("the sandbox is a relay", async || !kept(&db).await.1.is_empty()).await;
    let (own, sandbox) = kept(&db).await;

    let settings = here.join("tests/stack/schema");
    let reached = folder.path().join("reached");
    let mut attack = Command::new(schemathesis);
    attack
        .arg("--config-file")
        .arg(settings.join("schemathesis.toml"))
        .args(["run", &format!("http://127.0.0.1:{PORT}/openapi.json")])
        .current_dir(folder.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SCHEMATHESIS_HOOKS", settings.join("hooks.py"))
        .env("POSTROOM_TEST_KEY", &key)
        .env("POSTROOM_TEST_KEPT", format!("{own},{sandbox}"))
        .env("POSTROOM_TEST_REACHED", &reached);
    if let Some(seed) = postroom::config::environment().get("POSTROOM_TEST_SEED") {
        attack.args(["--seed", seed]);
    }
    let mut attack = beside(&server.0, &attack);
    let output = tokio::task::spawn_blocking(move || attack.output().unwrap()).await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");

    let logged = std::fs::read_to_string(&log).unwrap();
    assert!(!logged.contains("panicked"), "{logged}");
    let reached = std::fs::read_to_string(&reached).unwrap();
    let missed: Vec<_> =
        MUST_SUCCEED.iter().filter(|it| !reached.lines().any(|line| line == **it)).collect();
    assert!(missed.is_empty(), "these never succeeded: {missed:?}\n{said}");
}

/// A key that may do everything.
fn key(url: &str, secret: &str) -> String {
    let args = ["create-api-key", "--name", "all", "--scopes", "send,read,admin"];
    let output = postroom(url, secret, "hold", &args).stdout(Stdio::piped()).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The ids of the key and of the sandbox's relay, as far as there are any.
async fn kept(db: &PgPool) -> (String, String) {
    let ids: Vec<(Option<Uuid>, Option<Uuid>)> = sqlx::query_as(
        "select (select api_key_id from api_keys where name = 'all'),
                (select relay_id from relays where kind = 'sandbox')",
    )
    .fetch_all(db)
    .await
    .unwrap();
    let text = |id: Option<Uuid>| id.map(|id| id.to_string()).unwrap_or_default();
    (text(ids[0].0), text(ids[0].1))
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The same command in a new network namespace that has nothing but loopback. Each program on the
/// way takes the place of the one before: the process is the command's own.
fn alone(command: &Command) -> Command {
    let mut unshare = Command::new("unshare");
    if !nix::unistd::geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    unshare.args(["--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]);
    wrapped(unshare, command)
}

/// The same command in the namespace of a process.
fn beside(process: &Child, command: &Command) -> Command {
    let mut nsenter = Command::new("nsenter");
    if !nix::unistd::geteuid().is_root() {
        nsenter.args(["--user", "--preserve-credentials"]);
    }
    nsenter.args(["--net", "--target", &process.id().to_string()]);
    wrapped(nsenter, command)
}

fn wrapped(mut wrapper: Command, command: &Command) -> Command {
    wrapper.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        wrapper.env(name, value.unwrap_or_default());
    }
    if let Some(folder) = command.get_current_dir() {
        wrapper.current_dir(folder);
    }
    wrapper
}

/// A Docker engine without containers: no test may restart one of this machine.
async fn no_containers(listener: UnixListener) {
    while let Ok((mut client, _)) = listener.accept().await {
        let _asked = client.read(&mut [0; 4096]).await;
        let answer = "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 37\r\n\r\n\
                      {\"message\":\"No such container: none\"}";
        let _ = client.write_all(answer.as_bytes()).await;
    }
}
