//! The Docker engine: the one way into a container, and what can be known of one.
//!
//! Read in this order: [`Place`] (where an engine listens), `fault.rs` (everything that can go
//! wrong, each under its own name), [`Command`] and [`Output`] (what is asked and answered),
//! `exec.rs` (one command from its place in the queue to its exit code), `stream.rs` (what it
//! prints), `sweep.rs` (nothing of it stays behind), `containers.rs` (states, restarts).
//!
//! # Invariants
//!
//! * Every call to the engine has a deadline, and so has every command: inside the container,
//!   where the process is, and here a little later.
//! * A client that leaves does not end a process, measured: the stream closes and the process goes
//!   on for ever. So `timeout` runs around each command, and whoever stops waiting sends a sweep.
//! * At most a few commands at a time per container: the engine starts processes one after the
//!   other (50 at once took 3-4 s), so more would only wait elsewhere, unseen.
//! * Arguments are shown to everybody (process list, `docker events`): secrets go to stdin. No
//!   fault, log line or `Debug` shows arguments, input or output.
//! * Paths are asked for without a version, so engines from 20.10 to 29 answer as they speak.

mod command;
mod containers;
mod exec;
mod fault;
mod place;
mod stream;
mod sweep;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use bollard::{API_DEFAULT_VERSION, Docker};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

pub use command::{Chunk, Command, Output, Stream};
pub use containers::{Container, Health, State};
pub use fault::{EngineFault, ExecFault};
pub use place::{ContainerName, Place};

/// How much is asked of an engine, and how long it may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Commands at a time in one container.
    pub at_once: usize,
    /// For one call (not for what a command does).
    pub call: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { at_once: 4, call: Duration::from_secs(10) }
    }
}

/// A Docker engine. Nothing is opened until something is asked, so it may start later than we do.
#[derive(Debug)]
pub struct Engine {
    place: Place,
    limits: Limits,
    /// Per container: who may run a command now.
    places: Mutex<HashMap<String, Arc<Semaphore>>>,
    /// Commands run here, and so outlive a caller that leaves.
    tasks: TaskTracker,
}

/// What an engine says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// As `28.2.2`.
    pub engine: String,
    /// The newest and the oldest API it speaks, as `1.50` and `1.24`.
    pub api: String,
    pub oldest_api: String,
}

impl Engine {
    pub fn new(place: Place, limits: Limits) -> Self {
        Self { place, limits, places: Mutex::default(), tasks: TaskTracker::new() }
    }

    /// Runs something to its end, though whoever waits for it leaves.
    pub async fn see_through<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, EngineFault> {
        let ended = self.tasks.spawn(work).await;
        ended.map_err(|error| EngineFault::Garbled { call: "task", why: error.to_string() })
    }

    /// Waits for the commands whose callers left, and for restarts. Nothing may be asked any more.
    pub async fn settle(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Whether it answers, and as what.
    pub async fn version(&self) -> Result<Version, EngineFault> {
        let said = self.call("version", |docker| async move { docker.version().await }).await?;
        Ok(Version {
            engine: said.version.unwrap_or_default(),
            api: said.api_version.unwrap_or_default(),
            oldest_api: said.min_api_version.unwrap_or_default(),
        })
    }

    /// Whether it is there. Asks for less than [`version`](Self::version).
    pub async fn ping(&self) -> Result<(), EngineFault> {
        self.call("ping", |docker| async move { docker.ping().await }).await.map(drop)
    }

    /// One call, within its deadline from the first byte to the last.
    async fn call<T, F>(
        &self,
        what: &'static str,
        ask: impl FnOnce(Docker) -> F,
    ) -> Result<T, EngineFault>
    where
        F: Future<Output = Result<T, bollard::errors::Error>>,
    {
        self.call_within(self.limits.call, what, ask).await
    }

    async fn call_within<T, F>(
        &self,
        patience: Duration,
        what: &'static str,
        ask: impl FnOnce(Docker) -> F,
    ) -> Result<T, EngineFault>
    where
        F: Future<Output = Result<T, bollard::errors::Error>>,
    {
        let docker = self.open()?;
        match tokio::time::timeout(patience, ask(docker)).await {
            Ok(answer) => answer.map_err(|error| EngineFault::of(what, &error)),
            Err(_) => Err(EngineFault::Silent { call: what, after: patience }),
        }
    }

    /// A client. It keeps no connections, so making one costs nothing but for reading certificates.
    fn open(&self) -> Result<Docker, EngineFault> {
        // Its own deadline covers heads only; ours are shorter and cover all.
        const NEVER: u64 = 7 * 24 * 3600;
        let version = API_DEFAULT_VERSION;
        let opened = match &self.place {
            Place::Socket(path) => {
                Docker::connect_with_unix(&path.display().to_string(), NEVER, version)
            }
            Place::Tcp(host) => Docker::connect_with_http(host, NEVER, version),
            Place::Tls { host, certificates } => Docker::connect_with_ssl(
                host,
                &certificates.join("key.pem"),
                &certificates.join("cert.pem"),
                &certificates.join("ca.pem"),
                NEVER,
                version,
            ),
        };
        opened.map_err(|error| EngineFault::of("connect", &error))
    }

    /// The places for commands in one container.
    fn places(&self, container: &ContainerName) -> Arc<Semaphore> {
        let mut places = self.places.lock().expect("no holder panics");
        let new = || Arc::new(Semaphore::new(self.limits.at_once));
        places.entry(container.as_str().to_owned()).or_insert_with(new).clone()
    }
}
