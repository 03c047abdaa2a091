//! The one way into a container, on a real engine.

mod bounds;
mod commands;
mod endings;
mod engines;
mod front;
mod routes;
mod secrets;
mod states;

use std::{path::PathBuf, sync::Arc, time::Duration};

use postroom::outside::docker::{Command, ContainerName, Engine, ExecFault, Limits, Output, Place};

use crate::{engine, house::until};

/// A container that does nothing, and our client of its engine.
pub struct Box {
    pub host: Arc<engine::Engine>,
    pub engine: Arc<Engine>,
    pub name: ContainerName,
}

impl Box {
    pub async fn new(what: &str) -> Self {
        let it = Self::made(what, &[]).await;
        it.docker(&["start", it.name.as_str()]).await;
        it
    }

    /// Not started yet, and with these options.
    pub async fn made(what: &str, options: &[&str]) -> Self {
        Self::with(what, options, &["sleep", "infinity"]).await
    }

    pub async fn with(what: &str, options: &[&str], command: &[&str]) -> Self {
        let host = engine::Engine::shared().await;
        let name = host.name(&format!("exec-{what}"));
        let image = host.name("base");
        let create =
            ["create", "--name", &name, "--network", "none", "--init", "--stop-timeout", "1"];
        host.run(&[&create[..], options, &[&image], command].concat()).await;
        let engine = client(Place::Socket(PathBuf::from(host.socket())), Limits::default());
        Self { host, engine, name: ContainerName::parse(&name).unwrap() }
    }

    pub async fn docker(&self, args: &[&str]) -> String {
        self.host.run(args).await
    }

    pub async fn exec(&self, command: Command) -> Result<Output, ExecFault> {
        self.engine.exec(&self.name, command).await
    }

    /// The processes in the container whose arguments hold this.
    pub async fn running(&self, what: &str) -> usize {
        let all = self.docker(&["top", self.name.as_str(), "-eo", "pid,args"]).await;
        all.lines().filter(|line| line.contains(what)).count()
    }

    pub async fn until_gone(&self, what: &str) {
        until("no process is left", async || self.running(what).await == 0).await;
    }
}

pub fn client(place: Place, limits: Limits) -> Arc<Engine> {
    Arc::new(Engine::new(place, limits))
}

/// Limits whose calls may take so long.
pub fn patient(call: Duration) -> Limits {
    Limits { call, ..Limits::default() }
}

/// A constant line for a shell in a test container.
pub fn shell(line: &str) -> Command {
    Command::new(["bash", "-c", line])
}
