//! The Docker engine and its containers, with a stand-in that says what it is told to.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::Setup;

/// What the stand-in says of the mail server's container, and whether commands come through.
#[derive(Clone, Copy)]
pub struct Said {
    /// The engine's `State`, or nothing for a container that is not there.
    state: Option<&'static str>,
    exec: (u16, &'static str),
}

pub const FINE: Said =
    Said { state: Some(r#"{"Status":"running"}"#), exec: (201, r#"{"Id":"e1"}"#) };

const VERSION: &str = r#"{"Version":"28.0","ApiVersion":"1.48","MinAPIVersion":"1.24"}"#;
const UPGRADED: &str = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n";

/// An engine that answers, whatever this machine has.
pub async fn start(said: Said) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio_util::task::TaskTracker::new().spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let read = client.read(&mut request).await.unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..read]).into_owned();
            let path = request.split(' ').nth(1).unwrap_or_default();
            let answer = match path {
                "/version" => json(200, VERSION),
                "/containers/mailserver/json" => match said.state {
                    Some(state) => json(200, &format!(r#"{{"State":{state}}}"#)),
                    None => json(404, r#"{"message":"No such container: mailserver"}"#),
                },
                "/containers/mailserver/exec" => json(said.exec.0, said.exec.1),
                "/exec/e1/json" => json(200, r#"{"Running":false,"ExitCode":0}"#),
                "/exec/e1/start" => UPGRADED.to_owned(),
                _ => json(403, r#"{"message":"not permitted"}"#),
            };
            let _ = client.write_all(answer.as_bytes()).await;
        }
    });
    format!("tcp://{address}")
}

fn json(status: u16, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn a_docker_engine_that_does_not_answer_is_told() {
    let mut setup = Setup::new().await;
    setup.good_relay().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("docker.sock");
    let _mute = tokio::net::UnixListener::bind(&path).unwrap();
    setup.env.remove("DOCKER_HOST");
    setup.set("DOCKER_SOCKET_PATH", path.to_str().unwrap());
    let findings = setup.examine().await;
    findings.is("docker", "", "fail", "does not answer", "restart");
    findings.only(&["docker"]);
    setup.set("DOCKER_SOCKET_PATH", folder.path().join("none").to_str().unwrap());
    setup.examine().await.is("docker", "", "fail", "cannot be reached", "start the Docker engine");
}

#[tokio::test]
async fn a_mail_server_that_is_not_there_or_not_well_is_told() {
    let state = |state| Said { state, ..FINE };
    let exited = r#"{"Status":"exited","ExitCode":137}"#;
    let unhealthy = r#"{"Status":"running","Health":{"Status":"unhealthy"}}"#;
    for (said, level, found, fix) in [
        (state(None), "fail", "no such container", "DMS_CONTAINER_NAME"),
        (state(Some(exited)), "fail", "exit code 137", "docker start mailserver"),
        (state(Some(r#"{"Status":"paused"}"#)), "fail", "paused", "docker unpause mailserver"),
        (state(Some(r#"{"Status":"restarting"}"#)), "fail", "after each start", "docker logs"),
        (state(Some(unhealthy)), "warn", "health check fails", "docker logs"),
    ] {
        let mut setup = Setup::new().await;
        setup.good_relay().await;
        setup.set("DOCKER_HOST", start(said).await);
        let findings = setup.examine().await;
        findings.is("container", "mailserver", level, found, fix);
        findings.only(&["container"]);
    }
}

#[tokio::test]
async fn commands_that_a_proxy_does_not_permit_are_told() {
    let mut setup = Setup::new().await;
    setup.good_relay().await;
    setup.set("DOCKER_HOST", start(Said { exec: (403, "{}"), ..FINE }).await);
    let findings = setup.examine().await;
    findings.is("exec", "mailserver", "fail", "403", "haproxy.cfg");
    findings.only(&["exec"]);
}
