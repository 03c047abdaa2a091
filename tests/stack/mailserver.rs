//! Postroom and a real mail server: what is posted leaves through submission, is read by IMAP, and
//! stands in the log as docker-mailserver writes it. On Debian 12 and 13, or on the image that
//! `POSTROOM_TEST_MAILSERVER_IMAGE` names: nothing here may rely on what docker-mailserver lacks.

use std::{
    fs,
    net::TcpListener,
    process::{Child, Stdio},
    sync::Arc,
    time::Duration,
};

use regex::Regex;
use serde_json::{Value, json};
use tokio::{io::AsyncReadExt as _, net::TcpStream, time::Instant};

use crate::{
    database,
    engine::Engine,
    house::{postroom, until},
};

const SENDER: &str = "app@example.test";
const READER: &str = "alice@example.test";
const PASSWORD: &str = "not-a-default";
const PACE: Duration = Duration::from_millis(50);
/// How each line begins: time with microseconds and zone, the first label of the host.
const STAMP: &str = r"(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(?:Z|[+-]\d\d:\d\d) mail ";

#[tokio::test(flavor = "multi_thread")]
async fn mail_goes_through_and_changes_are_applied_on_debian_12() {
    goes_through("12").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mail_goes_through_and_changes_are_applied_on_debian_13() {
    goes_through("13").await;
}

async fn goes_through(debian: &str) {
    let engine = Engine::shared().await;
    let begun = Instant::now();
    let image = engine.mailserver_image(debian).await;
    let made = begun.elapsed();
    let server = MailServer::start(engine, &image, &format!("mail-{debian}")).await;
    let up = begun.elapsed();
    leaves_and_is_read(&server).await;
    let read = begun.elapsed();
    is_applied_with_a_gap(&server).await;
    println!(
        "Debian {debian}: image {made:?}, up {up:?}, read {read:?}, end {:?}",
        begun.elapsed()
    );
}

/// What is posted leaves through submission with TLS and a login, and is read by IMAP.
async fn leaves_and_is_read(server: &MailServer) {
    let house = House::start(server).await;
    let tagged = READER.replace('@', "+tag@");
    let message =
        json!({ "from": SENDER, "to": tagged, "subject": "By submission", "text": "It works." });
    let accepted = house.post("/send", &message).await;
    let id = accepted["jobId"].as_str().or(accepted["id"].as_str()).unwrap().to_owned();
    until("it is sent", async || house.get(&format!("/jobs/{id}")).await["status"] == "done").await;
    let job = house.get(&format!("/jobs/{id}")).await;
    let queue_id = job["recipients"][0]["remoteQueueId"].as_str().unwrap();
    let message_id = job["messageId"].as_str().unwrap();

    until("it is in the mailbox", async || server.imap("/INBOX;MAILINDEX=1").await.is_some()).await;
    let mail = server.imap("/INBOX;MAILINDEX=1").await.unwrap();
    assert!(mail.contains("Subject: By submission") && mail.contains("It works."), "{mail}");
    assert!(mail.contains(message_id), "{message_id} is not in {mail}");
    let authenticated = format!("(Authenticated sender: {SENDER})");
    assert!(mail.contains(&authenticated) && mail.contains("ESMTPSA"), "{mail}");

    let tagged = regex::escape(&tagged);
    let mid = regex::escape(message_id);
    let lines = [
        format!(
            r"postfix/submission/smtpd\[\d+\]: {queue_id}: client=\S+, sasl_method=(?:PLAIN|LOGIN), sasl_username={SENDER}$"
        ),
        format!(r"postfix/sender-cleanup/cleanup\[\d+\]: {queue_id}: message-id={mid}$"),
        format!(
            r"postfix/qmgr\[\d+\]: {queue_id}: from=<{SENDER}>, size=\d+, nrcpt=1 \(queue active\)$"
        ),
        format!(
            r"postfix/lmtp\[\d+\]: {queue_id}: to=<{tagged}>, relay=\S+, delay=[\d.]+, delays=[\d.]+/[\d.]+/[\d.]+/[\d.]+, dsn=2\.0\.0, status=sent \(250 2\.0\.0 .*\)$"
        ),
        format!(r"postfix/qmgr\[\d+\]: {queue_id}: removed$"),
        format!(r"dovecot: imap-login: (?:Login|Logged in): user=<{READER}>, method=\S+, rip="),
    ];
    until("the log says all of it", async || {
        let file = server.exec(&["cat", "/var/log/mail/mail.log"]).await.unwrap_or_default();
        let printed = server.engine.logs(&server.name).await;
        lines.iter().all(|line| {
            let line = Regex::new(&format!("{STAMP}{line}")).unwrap();
            let there = line.is_match(&file) && line.is_match(&printed);
            if !there {
                println!("missing so far: {line}");
            }
            there
        })
    })
    .await;
}

/// Every change makes all users unknown for about 15 ms an account; the watcher's book of checksums
/// says when it is over.
async fn is_applied_with_a_gap(server: &MailServer) {
    let accounts = |n: usize| {
        let more = (0..n).map(|n| format!("user{n}@example.test|{{PLAIN}}{PASSWORD}\n"));
        more.collect::<String>()
    };
    server.write("postfix-accounts.cf", &(server.accounts() + &accounts(100)));
    server.applied("postfix-accounts.cf").await;
    let known = ["doveadm", "user", "user99@example.test"];
    assert!(server.exec(&known).await.is_some(), "applied, and not known");

    server.write("postfix-accounts.cf", &(server.accounts() + &accounts(101)));
    until("a user of long ago is unknown", async || server.exec(&known).await.is_none()).await;
    until("and known again", async || server.exec(&known).await.is_some()).await;
    server.applied("postfix-accounts.cf").await;
    let new = ["doveadm", "user", "user100@example.test"];
    assert!(server.exec(&new).await.is_some(), "applied, and not known");
    server.write("postfix-virtual.cf", &format!("sales@example.test {READER}\n"));
    server.applied("postfix-virtual.cf").await;
    let alias = ["postmap", "-q", "sales@example.test", "texthash:/etc/postfix/virtual"];
    assert_eq!(server.exec(&alias).await.unwrap().trim(), READER);
}

/// A mail server of its own network, with two accounts and a certificate for 127.0.0.1.
struct MailServer {
    engine: Arc<Engine>,
    name: String,
    folder: tempfile::TempDir,
}

impl MailServer {
    async fn start(engine: Arc<Engine>, image: &str, what: &str) -> Self {
        let name = engine.name(what);
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("config")).unwrap();
        fs::create_dir(folder.path().join("tls")).unwrap();
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        fs::write(folder.path().join("tls/cert.pem"), made.cert.pem()).unwrap();
        fs::write(folder.path().join("tls/key.pem"), made.signing_key.serialize_pem()).unwrap();
        let server = Self { engine, name, folder };
        server.write("postfix-accounts.cf", &server.accounts());
        server.run(image).await;
        until("its first user can log in", async || server.imap("/").await.is_some()).await;
        until("submission greets", async || server.greets().await).await;
        server
    }

    async fn run(&self, image: &str) {
        let network = format!("{}-network", self.name);
        self.engine.run(&["network", "create", &network]).await;
        let config =
            format!("{}:/tmp/docker-mailserver", self.folder.path().join("config").display());
        let tls = format!("{}:/tls:ro", self.folder.path().join("tls").display());
        let mut args = vec!["run", "-d", "--name", &self.name, "--network", &network];
        args.extend(["--hostname", "mail.example.test", "--stop-timeout", "60"]);
        args.extend(["-p", "127.0.0.1::587", "-p", "127.0.0.1::993", "-v", &config, "-v", &tls]);
        for setting in [
            "SSL_TYPE=manual",
            "SSL_CERT_PATH=/tls/cert.pem",
            "SSL_KEY_PATH=/tls/key.pem",
            // One queue id from end to end, and a quicker start.
            "ENABLE_AMAVIS=0",
        ] {
            args.extend(["-e", setting]);
        }
        args.push(image);
        self.engine.run(&args).await;
    }

    fn accounts(&self) -> String {
        format!("{SENDER}|{{PLAIN}}{PASSWORD}\n{READER}|{{PLAIN}}{PASSWORD}\n")
    }

    /// A file of the operator, at once and whole.
    fn write(&self, file: &str, text: &str) {
        let (new, path) = (self.folder.path().join("new"), self.folder.path().join("config"));
        fs::write(&new, text).unwrap();
        fs::rename(new, path.join(file)).unwrap();
    }

    /// Waits until the watcher's book has the sum of the file as it is.
    async fn applied(&self, file: &str) {
        let path = format!("/tmp/docker-mailserver/{file}");
        let sum = self.exec(&["sha512sum", &path]).await.unwrap();
        until("the change is applied", async || {
            let book = self.exec(&["cat", "/tmp/docker-mailserver-config-chksum"]).await;
            book.unwrap_or_default().contains(sum.split(' ').next().unwrap())
        })
        .await;
    }

    /// What a command in it prints, if it succeeds.
    async fn exec(&self, args: &[&str]) -> Option<String> {
        // Whoever asks until it is so must not keep the machine from it.
        tokio::time::sleep(PACE).await;
        let mut command = self.engine.command("docker");
        let output = command.args(["exec", &self.name]).args(args).output().await.unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    async fn port(&self, inside: &str) -> u16 {
        let address = self.engine.run(&["port", &self.name, inside]).await;
        address.lines().next().unwrap().rsplit_once(':').unwrap().1.parse().unwrap()
    }

    /// Whether Postfix answers: Docker takes connections for it before that.
    async fn greets(&self) -> bool {
        let port = self.port("587/tcp").await;
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)).await else { return false };
        let mut greeting = [0; 4];
        stream.read_exact(&mut greeting).await.is_ok() && greeting == *b"220 "
    }

    /// What the reader finds there by IMAP, over TLS that is checked.
    async fn imap(&self, path: &str) -> Option<String> {
        let url = format!("imaps://127.0.0.1:{}{path}", self.port("993/tcp").await);
        let mut curl = self.engine.command("curl");
        curl.args(["-sS", "-m", "10", "-u", &format!("{READER}:{PASSWORD}"), "--cacert"]);
        let output = curl.arg(self.cert()).arg(url).output().await.unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn cert(&self) -> std::path::PathBuf {
        self.folder.path().join("tls/cert.pem")
    }
}

/// A Postroom whose only relay is the mail server.
struct House {
    process: Child,
    url: String,
    key: String,
    http: reqwest::Client,
}

impl House {
    async fn start(server: &MailServer) -> Self {
        let (_, database) = database::new().await;
        let secret = postroom::secrets::SecretRing::generate("mail");
        let run = |args: &[&str]| {
            let mut command = postroom(&database, &secret, "hold", args);
            command.env("SSL_CERT_FILE", server.cert());
            command
        };
        assert!(run(&["migrate"]).status().unwrap().success());
        let create = ["create-api-key", "--name", "test", "--scopes", "send,read,admin"];
        let key = run(&create).stdout(Stdio::piped()).output().unwrap();
        let key = String::from_utf8(key.stdout).unwrap().trim().to_owned();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = run(&["serve"]).env("PORT", port.to_string()).spawn().unwrap();
        let url = format!("http://127.0.0.1:{port}");
        let house = Self { process, url, key, http: reqwest::Client::new() };
        let health = format!("{}/health", house.url);
        until("Postroom answers", async || house.http.get(&health).send().await.is_ok()).await;
        let relay = json!({ "name": "mailserver", "host": "127.0.0.1", "port": server.port("587/tcp").await,
                            "secure": false, "requireTls": true, "username": SENDER, "password": PASSWORD,
                            "fromAddress": SENDER, "domain": "example.test", "priority": 1 });
        house.post("/admin/api/smtp-accounts", &relay).await;
        house
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        Self::answer(self.http.post(format!("{}{path}", self.url)).json(body), &self.key).await
    }

    async fn get(&self, path: &str) -> Value {
        Self::answer(self.http.get(format!("{}{path}", self.url)), &self.key).await
    }

    async fn answer(request: reqwest::RequestBuilder, key: &str) -> Value {
        let answer = request.header("x-api-key", key).send().await.unwrap();
        let (status, body) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{status} {body}");
        serde_json::from_str(&body).unwrap()
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
