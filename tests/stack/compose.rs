//! The production set-up: what docker-compose.yml must say of each service, and the README's commands
//! run as they stand, on images made here.

use std::{fs, path::Path, sync::Arc};

use serde_json::{Value, json};

use crate::engine::Engine;

const FILE: &str = include_str!("../../docker-compose.yml");
const README: &str = include_str!("../../README.md");

fn compose() -> Value {
    let mut file: serde_yaml_ng::Value = serde_yaml_ng::from_str(FILE).unwrap();
    file.apply_merge().unwrap();
    serde_json::to_value(file).unwrap()
}

#[test]
fn every_service_is_watched_limited_and_pinned() {
    let file = compose();
    let services = file["services"].as_object().unwrap();
    let names: Vec<_> = services.keys().map(String::as_str).collect();
    assert_eq!(names, ["mailserver", "nginx", "postgres", "postroom", "socket-proxy"]);
    for (name, service) in services {
        assert!(service["healthcheck"]["test"].is_array(), "{name} has no health check");
        assert!(service["mem_limit"].is_string(), "{name} has no limit of memory");
        assert!(service["pids_limit"].is_number(), "{name} has no limit of processes");
        assert_eq!(service["restart"], "unless-stopped", "{name}");
        let log = &service["logging"]["options"];
        assert!(log["max-size"].is_string() && log["max-file"].is_string(), "{name}: {log}");
        let (_, tag) = service["image"].as_str().unwrap().rsplit_once(':').unwrap();
        assert!(tag != "latest" && tag.starts_with(|c: char| c.is_ascii_digit()), "{name}: {tag}");
        assert!(!service["privileged"].is_boolean() && service["network_mode"].is_null(), "{name}");
        // The mail server is many programs of several users, and its image wants to be written.
        if name != "mailserver" {
            assert_eq!(service["read_only"], true, "{name}");
            assert_eq!(service["cap_drop"], json!(["ALL"]), "{name}");
            assert_eq!(service["security_opt"], json!(["no-new-privileges:true"]), "{name}");
        }
    }
    let postroom = &services["postroom"];
    assert_eq!(postroom["stop_grace_period"], "40s");
    assert!(postroom["cap_add"].is_null() && services["socket-proxy"]["cap_add"].is_null());
}

#[test]
fn only_the_intended_is_published_and_no_password_is_written_down() {
    let file = compose();
    let mut published = Vec::new();
    for (name, service) in file["services"].as_object().unwrap() {
        let inside = |port: &Value| port.as_str().unwrap().rsplit_once(':').unwrap().1.to_owned();
        let ports = service["ports"].as_array().into_iter().flatten();
        published.extend(ports.map(|port| format!("{name} {}", inside(port))));
        for (variable, value) in service["environment"].as_object().into_iter().flatten() {
            let secret = ["PASS", "KEY", "URL", "TOKEN"].iter().any(|it| variable.contains(it));
            assert!(!secret || value.as_str().unwrap().starts_with('/'), "{name}: {variable}");
        }
        let socket = service["volumes"].as_array().into_iter().flatten();
        let socket = socket.filter_map(Value::as_str).any(|it| it.contains("docker.sock"));
        assert_eq!(socket, name == "socket-proxy", "{name} reaches the engine");
    }
    let intended = [
        "mailserver 25",
        "mailserver 465",
        "mailserver 587",
        "mailserver 993",
        "nginx 80",
        "nginx 443",
    ];
    assert_eq!(published, intended);
    for network in ["database", "docker"] {
        assert_eq!(file["networks"][network]["internal"], true, "{network}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_readme_sets_it_up_backs_it_up_and_upgrades_it() {
    let it = Set::new(Engine::shared().await).await;
    let ended = it.bash(&it.script()).await;
    assert!(ended.0, "{}\n{}", ended.1, it.all_logs().await);
    assert!(ended.1.contains("\"ok\":true"), "the message was not accepted: {}", ended.1);

    // It went through nginx, Postroom, TLS and a login, into the mail server's one folder.
    let count = ["exec", &it.container("mailserver"), "sh", "-c", "cat /var/mail/all/new/*"];
    let mail = it.engine.run(&count).await;
    assert!(mail.contains("Subject: Hello") && mail.contains("It works."), "{mail}");
    assert!(
        mail.contains("(Authenticated sender: postroom@example.com)") || mail.contains("ESMTPSA"),
        "{mail}"
    );
    assert!(it.folder.path().join("postroom.dump").metadata().unwrap().len() > 10_000);
    it.proxy_permits_what_is_needed().await;
    it.postroom_reaches_the_containers().await;
    let stopped = it.bash("docker compose stop && docker compose down -v").await;
    assert!(stopped.0, "{}", stopped.1);
}

/// A copy of what an operator has, with names, a certificate and images for this machine.
struct Set {
    engine: Arc<Engine>,
    project: String,
    folder: tempfile::TempDir,
}

impl Set {
    async fn new(engine: Arc<Engine>) -> Self {
        let (folder, project) = (tempfile::tempdir().unwrap(), engine.name("compose"));
        let (root, here) = (Path::new(env!("CARGO_MANIFEST_DIR")), folder.path());
        let copied = tokio::process::Command::new("cp")
            .args(["-r", "docker-compose.yml", ".env.example", "deploy"])
            .arg(here)
            .current_dir(root)
            .status();
        assert!(copied.await.unwrap().success());
        let live = here.join("certificates/live/postroom");
        fs::create_dir_all(&live).unwrap();
        fs::create_dir_all(here.join("bin")).unwrap();
        let names = ["mail.example.com".to_owned(), "postroom.example.com".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        fs::write(live.join("fullchain.pem"), made.cert.pem()).unwrap();
        fs::write(live.join("privkey.pem"), made.signing_key.serialize_pem()).unwrap();

        // What the operator writes into .env; Docker chooses the ports.
        let mut env = fs::read_to_string(here.join(".env.example")).unwrap();
        env = env.replace("MAIL_HOST=\n", "MAIL_HOST=mail.example.com\n");
        env = env.replace("MAIL_DOMAIN=\n", "MAIL_DOMAIN=example.com\n");
        env = env.replace("=/etc/letsencrypt\n", "=./certificates\n");
        env = env.replace("=/var/www/acme\n", "=./acme\n");
        for port in ["HTTP", "HTTPS", "SMTP", "SUBMISSIONS", "SUBMISSION", "IMAPS"] {
            env += &format!("{port}_PORT=127.0.0.1:\n");
        }
        fs::write(here.join(".env.example"), env).unwrap();
        fs::copy(root.join("Dockerfile"), engine.program.path().join("Dockerfile")).unwrap();
        let set = Self { engine, project, folder };
        // The names of containers are the machine's, so those of this test are its own.
        let rules = set.folder.path().join("deploy/socket-proxy/haproxy.cfg");
        let named = fs::read_to_string(&rules)
            .unwrap()
            .replace("(mailserver|nginx)", &format!("{}-(mailserver|nginx)", set.project))
            .replace(
                "/containers/mailserver/",
                &format!("/containers/{}/", set.container("mailserver")),
            );
        fs::write(&rules, named).unwrap();
        fs::write(here_override(&set), set.overrides().to_string()).unwrap();
        set
    }

    /// Images made here, and the authority of the certificate; nothing else is changed.
    fn overrides(&self) -> Value {
        let standin = self.engine.name("standins");
        let socket = self.engine.socket();
        json!({ "services": {
            "postroom": {
                "image": self.engine.name("postroom"),
                "build": { "context": self.engine.program.path(), "target": "prebuilt", "network": "host",
                           "args": { "BASE": self.engine.name("base") } },
                "environment": { "SSL_CERT_FILE": "/run/authority.pem",
                                 "DMS_CONTAINER_NAME": self.container("mailserver"),
                                 "ENGINE_CONTAINERS": self.container("nginx") },
                "volumes": ["./certificates/live/postroom/fullchain.pem:/run/authority.pem:ro"] },
            "postgres": { "image": standin, "command": ["postgres.bash"] },
            "mailserver": { "image": standin, "command": ["mailserver.bash"],
                            "container_name": self.container("mailserver") },
            "nginx": { "image": standin, "container_name": self.container("nginx") },
            "socket-proxy": { "image": standin, "volumes": [format!("{socket}:/var/run/docker.sock:ro")] } } })
    }

    fn container(&self, service: &str) -> String {
        format!("{}-{service}", self.project)
    }

    /// The README's commands in their order, each block once all are healthy.
    fn script(&self) -> String {
        let (_, section) = README.split_once("## In production\n").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let mut script = HEALTHY.to_owned();
        let mut blocks = 0;
        let mut inside = false;
        for line in section.lines() {
            let command = line.strip_prefix("    ");
            if !inside && command.is_some() && blocks > 0 {
                script += "healthy\n";
            }
            blocks += usize::from(!inside && command.is_some());
            inside = command.is_some();
            script += command.unwrap_or_default();
            script += "\n";
        }
        assert!(blocks >= 6, "the README's commands are not found: {script}");
        script + "healthy\n"
    }

    /// Runs commands as an operator's shell would: whether they succeeded, and what they said.
    async fn bash(&self, script: &str) -> (bool, String) {
        let here = self.folder.path();
        // Where Compose is no part of docker, its older form stands in.
        let compose = self.engine.command("docker").args(["compose", "version"]).output().await;
        if !compose.unwrap().status.success() {
            let shim = here.join("bin/docker");
            fs::write(&shim, SHIM).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(&shim, mode).unwrap();
        }
        let path = postroom::config::environment().remove("PATH").unwrap();
        let output = self
            .engine
            .command("bash")
            .args(["-euxo", "pipefail", "-c", &format!("exec 2>&1\n{script}")])
            .current_dir(here)
            .env("PATH", format!("{}:{path}", here.join("bin").display()))
            .env("REAL_PATH", path)
            .env("CURL_HOME", here)
            .env("PROJECT", &self.project)
            .env("COMPOSE_PROJECT_NAME", &self.project)
            .env("COMPOSE_FILE", "docker-compose.yml:override.yml")
            .output()
            .await
            .unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    async fn all_logs(&self) -> String {
        let name = format!("name={}", self.project);
        let names =
            self.engine.run(&["ps", "-a", "--format", "{{.Names}}", "--filter", &name]).await;
        let mut logs = String::new();
        for name in names.lines() {
            logs += &format!("== {name}\n{}", self.engine.logs(name).await);
        }
        logs
    }

    /// Through the proxy, from inside the production image.
    async fn postroom_reaches_the_containers(&self) {
        let (_, said) = self.bash("docker compose exec -T postroom postroom doctor --json").await;
        let of = |check: &str, subject: &str| {
            let document = &said[said.find("\n{").expect("a document")..];
            let mut documents = serde_json::Deserializer::from_str(document).into_iter::<Value>();
            let findings = documents.next().unwrap().unwrap();
            let all = findings["checks"].as_array().unwrap();
            let wanted = |it: &&Value| {
                it["check"] == check && (subject.is_empty() || it["subject"] == subject)
            };
            all.iter().find(wanted).unwrap_or_else(|| panic!("{check} {subject}: {said}"))["state"]
                .clone()
        };
        let (mailserver, nginx) = (self.container("mailserver"), self.container("nginx"));
        for (check, subject) in [
            ("docker", ""),
            ("container", &mailserver),
            ("container", &nginx),
            ("exec", &mailserver),
        ] {
            assert_eq!(of(check, subject), "ok", "{check} {subject}: {said}");
        }
    }

    /// From beside the proxy itself: what it passes on, and what it refuses.
    async fn proxy_permits_what_is_needed(&self) {
        let name = format!("name={}.socket-proxy", self.project);
        let proxy = self.engine.run(&["ps", "-q", "--filter", &name]).await;
        let ask = async |method: &str, path: &str| {
            let url = format!("http://127.0.0.1:2375{path}");
            let curl = [
                "curl",
                "-s",
                "--path-as-is",
                "-o",
                "/dev/null",
                "-w",
                "%{http_code}",
                "-X",
                method,
                &url,
            ];
            self.engine.run(&[&["exec", &proxy][..], &curl[..]].concat()).await
        };
        for path in ["/_ping", "/version", "/v1.41/version"] {
            assert_eq!(ask("GET", path).await, "200", "{path}");
        }
        let (mailserver, nginx) = (self.container("mailserver"), self.container("nginx"));
        for path in [&mailserver, &nginx].map(|it| format!("/v1.41/containers/{it}/json")) {
            assert_eq!(ask("GET", &path).await, "200", "{path}");
        }
        // The engine's own answers: these commands do not exist.
        let id = "0".repeat(64);
        assert_eq!(ask("GET", &format!("/exec/{id}/json")).await, "404");
        assert_eq!(ask("POST", &format!("/exec/{id}/start")).await, "400");
        for (method, path) in [
            ("POST", "/version"),
            ("GET", "/info"),
            ("GET", "/containers/json"),
            ("GET", "/images/json"),
            ("GET", "/containers/postroom/json"),
            ("GET", "/containers/MAILSERVER/json/../../../info"),
            ("GET", "//version"),
            ("GET", "/%76ersion"),
            ("POST", "/containers/MAILSERVER/json"),
            ("GET", "/containers/MAILSERVER/exec"),
            ("GET", "/containers/MAILSERVER/restart"),
            ("POST", "/containers/MAILSERVER/stop"),
            ("POST", "/containers/MAILSERVER/../postroom/restart"),
            ("POST", "/containers/NGINX/exec"),
            ("POST", "/containers/postroom/exec"),
            ("POST", "/containers/postroom/restart"),
            ("GET", "/containers/MAILSERVER/logs"),
            ("POST", "/exec/x/start"),
            ("DELETE", "/containers/MAILSERVER"),
            ("POST", "/v1.41/containers/create"),
            ("PUT", "/containers/MAILSERVER/archive?path=/"),
            ("DELETE", "/version"),
        ] {
            let path = path.replace("MAILSERVER", &mailserver).replace("NGINX", &nginx);
            assert_eq!(ask(method, &path).await, "403", "{method} {path}");
        }
    }
}

fn here_override(set: &Set) -> std::path::PathBuf {
    set.folder.path().join("override.yml")
}

/// Waits until each container of the project is healthy, then tells curl where the names lead.
const HEALTHY: &str = r#"
healthy() {
    { set +x; } 2>/dev/null
    local states=
    for _ in $(seq 240); do
        states=$(docker inspect -f '{{.Name}} {{.State.Status}} {{.State.Health.Status}}' $(docker ps -aq --filter "name=$PROJECT"))
        [ "$(grep -c ' running healthy$' <<<"$states")" != 5 ] || break
        sleep 0.5
    done
    echo "$states"
    [ "$(grep -c ' running healthy$' <<<"$states")" = 5 ]
    printf 'connect-to = "postroom.example.com:443:%s"\ncacert = "%s"\n' \
        "$(docker port "$(docker ps -q --filter "name=$PROJECT.nginx")" 443/tcp)" \
        "$PWD/certificates/live/postroom/fullchain.pem" >.curlrc
    set -x
}
"#;

const SHIM: &str = r#"#!/bin/sh
PATH=$REAL_PATH
[ "$1" != compose ] || { shift; exec docker-compose "$@"; }
exec docker "$@"
"#;
