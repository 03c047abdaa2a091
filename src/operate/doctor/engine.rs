//! The Docker engine, if there is to be one.

use super::Check;
use crate::{
    config::{Docker, DockerEngine},
    outside::docker::{EngineFault, ping_host, ping_socket},
};

const CHECK: &str = "docker";

pub async fn check(settings: &Docker) -> Check {
    let (place, answer) = match &settings.engine {
        DockerEngine::Socket(path) if !settings.named && !path.exists() => {
            return Check::skipped(CHECK, "not used: there is no socket, and none is named");
        }
        DockerEngine::Socket(path) => (path.display().to_string(), ping_socket(path).await),
        DockerEngine::Tcp(host) => (host.clone(), ping_host(host).await),
        DockerEngine::Tls(host) => {
            return Check::skipped(CHECK, format!("{host} speaks TLS, which is not looked at yet"));
        }
    };
    match answer {
        Ok(()) => Check::ok(CHECK, format!("the engine at {place} answers")),
        Err(fault) => {
            let (found, fix) = (format!("{place}: {fault}"), fix(&fault));
            // Nobody asked for the usual place: that it is dead may be meant.
            let level = if settings.named { Check::fail } else { Check::warn };
            level(CHECK, found, fix.to_owned())
        }
    }
}

fn fix(fault: &EngineFault) -> &'static str {
    use std::io::ErrorKind;
    match fault {
        EngineFault::Unreached(io) if io.kind() == ErrorKind::PermissionDenied => {
            "let the user of Postroom use the socket (its group), or put a socket proxy before it"
        }
        EngineFault::Unreached(_) => {
            "start the Docker engine (or the socket proxy), or correct DOCKER_HOST and DOCKER_SOCKET_PATH"
        }
        EngineFault::Silent => {
            "the engine hangs: look at its log and restart it (systemctl restart docker)"
        }
        EngineFault::Refused(_) => {
            "let the socket proxy permit /_ping, or correct DOCKER_HOST and DOCKER_SOCKET_PATH"
        }
    }
}
