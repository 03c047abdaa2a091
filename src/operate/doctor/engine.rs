//! The Docker engine and the containers that Postroom has to do with, if there are to be any.

use std::sync::Arc;

use super::Check;
use crate::{
    config::Docker,
    outside::docker::{
        Command, Container, ContainerName, Engine, EngineFault, ExecFault, Health, Limits, Place,
        State,
    },
};

const CHECK: &str = "docker";
const CONTAINER: &str = "container";
/// Shorter than elsewhere: somebody waits for the table.
const PATIENCE: Limits = Limits { at_once: 1, call: super::check::PATIENCE };

pub async fn checks(settings: &Docker) -> Vec<Check> {
    if let Place::Socket(path) = &settings.place
        && !settings.named
        && !path.exists()
    {
        return vec![Check::skipped(CHECK, "not used: there is no socket, and none is named")];
    }
    let engine = Arc::new(Engine::new(settings.place.clone(), PATIENCE));
    // Nobody asked for the usual place: that it is dead may be meant.
    let level = if settings.named { Check::fail } else { Check::warn };
    let mut checks = match engine.version().await {
        Ok(it) => {
            let (place, engine) = (&settings.place, it.engine);
            vec![Check::ok(
                CHECK,
                format!("{place} is Docker {engine}, API {} to {}", it.oldest_api, it.api),
            )]
        }
        Err(fault) => {
            let found = format!("{}: {fault}", settings.place);
            return vec![level(CHECK, found, fix(&fault).to_owned())];
        }
    };
    for name in &settings.containers {
        let check = match engine.inspect(name).await {
            Ok(seen) => container(name, &seen),
            Err(fault) => absent(name, settings, &fault, level),
        };
        checks.push(check.of(name.as_str()));
    }
    let runs = checks.iter().any(|it| {
        it.check == CONTAINER
            && it.subject.as_deref() == Some(settings.mailserver.as_str())
            && it.fix.is_none()
    });
    if runs {
        checks.push(way_in(&engine, &settings.mailserver).await);
    }
    checks
}

fn container(name: &ContainerName, seen: &Container) -> Check {
    match (seen.state, seen.health) {
        (State::Running, Some(Health::Unhealthy)) => Check::warn(
            CONTAINER,
            "it runs, and its health check fails",
            format!("look at its log: docker logs --tail 50 {name}"),
        ),
        (State::Running, health) => {
            let health = match health {
                Some(Health::Healthy) => ", healthy",
                Some(_) => ", starting",
                None => "",
            };
            Check::ok(CONTAINER, format!("it runs{health}"))
        }
        (State::Paused, _) => {
            Check::fail(CONTAINER, "it is paused", format!("docker unpause {name}"))
        }
        (State::Restarting, _) => Check::fail(
            CONTAINER,
            "it ends soon after each start",
            format!("look at its log: docker logs --tail 50 {name}"),
        ),
        (state, _) => {
            let code = seen.exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
            Check::fail(
                CONTAINER,
                format!("it does not run ({}{code})", state.word()),
                format!("docker start {name}; if it ends again: docker logs --tail 50 {name}"),
            )
        }
    }
}

/// A container that the engine says nothing of.
fn absent(
    name: &ContainerName,
    settings: &Docker,
    fault: &EngineFault,
    level: fn(&'static str, String, String) -> Check,
) -> Check {
    match fault {
        EngineFault::NotFound(_) if *name == settings.mailserver => level(
            CONTAINER,
            "there is no such container".to_owned(),
            "start the mail server, or name its container in DMS_CONTAINER_NAME".to_owned(),
        ),
        EngineFault::NotFound(_) => level(
            CONTAINER,
            "there is no such container".to_owned(),
            "start it, or take it out of ENGINE_CONTAINERS".to_owned(),
        ),
        fault => Check::fail(CONTAINER, fault.to_string(), fix(fault).to_owned()),
    }
}

/// Whether a command comes through, for a socket proxy may permit less than all that is needed.
async fn way_in(engine: &Arc<Engine>, mailserver: &ContainerName) -> Check {
    let check = match engine.exec(mailserver, Command::new(["true"])).await {
        Ok(it) if it.success() => Check::ok("exec", "commands come through"),
        Ok(it) => Check::fail(
            "exec",
            format!("the command true ends with {}", it.exit_code),
            "look at the mail server's image",
        ),
        Err(ExecFault::Engine(fault)) => Check::fail("exec", fault.to_string(), fix(&fault)),
        Err(fault) => Check::fail(
            "exec",
            fault.to_string(),
            "commands need the programs sh, timeout and grep in the container",
        ),
    };
    check.of(mailserver.as_str())
}

fn fix(fault: &EngineFault) -> &'static str {
    use std::io::ErrorKind;
    match fault {
        EngineFault::Unreached { kind: ErrorKind::PermissionDenied, .. } => {
            "let the user of Postroom use the socket (its group), or put a socket proxy before it"
        }
        EngineFault::Unreached { .. } => {
            "start the Docker engine (or the socket proxy), or correct DOCKER_HOST, DOCKER_SOCKET_PATH and DOCKER_CERT_PATH"
        }
        EngineFault::Silent { .. } => {
            "the engine hangs: look at its log and restart it (systemctl restart docker)"
        }
        EngineFault::Refused { status: 403, .. } => {
            "let the socket proxy permit what deploy/socket-proxy/haproxy.cfg permits"
        }
        EngineFault::NotFound(_) | EngineFault::Refused { .. } | EngineFault::Garbled { .. } => {
            "see that a Docker engine listens there (20.10 or newer), and correct DOCKER_HOST and DOCKER_SOCKET_PATH"
        }
    }
}
