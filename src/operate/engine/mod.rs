//! The containers around Postroom: how they are, and restarting one.
//!
//! Only those that the settings name (`DMS_CONTAINER_NAME`, `ENGINE_CONTAINERS`) exist here. A
//! restart is asked for by a person, so it is audited before it begins, and the event tells how it
//! ended. A failing engine is an error with its cause: never an empty list, never "missing".

mod fault;
mod routes;
mod store;

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    app::App,
    audit::Who,
    error::{Error, Result},
    outside::docker::{self, ContainerName, EngineFault, State},
};

pub use routes::router;

/// What a container has for its end. A docker-mailserver needs 15 to 18 s (measured), and more
/// with a full queue.
const STOP: Duration = Duration::from_secs(60);

/// A container.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    pub name: String,
    /// `created`, `running`, `paused`, `restarting`, `removing`, `exited`, `dead`, `unknown`, or
    /// `missing` when the engine knows none of that name.
    pub state: &'static str,
    /// `starting`, `healthy` or `unhealthy`; null without a health check.
    pub health: Option<&'static str>,
    pub image: Option<String>,
    pub started_at: Option<DateTime<Utc>>,
    /// How its last run ended; null while it runs.
    pub exit_code: Option<i64>,
    /// How often the engine started it anew by itself.
    pub restarts: i64,
}

/// A container that was stopped and started again.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Restarted {
    /// Its name.
    pub restarted: String,
    /// How it is now. Its services may need some seconds more.
    pub container: Container,
    /// Milliseconds that it took.
    pub took: u64,
    /// What a restart does not apply, for a container keeps what it was made with.
    pub not_applied: Vec<&'static str>,
    /// What would apply it.
    pub apply_with: String,
}

/// How the containers are, in the order of the settings.
pub async fn list(app: &App) -> Result<Vec<Container>> {
    let names = &app.config.docker.containers;
    let looks = names.iter().map(async |name| look(app, name).await);
    futures_util::future::join_all(looks).await.into_iter().collect()
}

/// Stops a container in order, and starts it.
pub async fn restart(app: &App, who: &Who, name: &str) -> Result<Restarted> {
    let known = |it: &&ContainerName| it.as_str() == name;
    let Some(name) = app.config.docker.containers.iter().find(known) else {
        return Err(Error::NotFound("container"));
    };
    let before = app.engine.inspect(name).await.map_err(fault::of)?;
    if before.state == State::Paused {
        let message = format!("{name} is paused; a paused container cannot be restarted");
        return Err(Error::conflict("CONTAINER_PAUSED", message));
    }
    let id = Uuid::now_v7();
    store::begins(app, who, id, name.as_str()).await?;
    let whole = to_its_end(app.clone(), id, name.clone());
    let took = app.engine.see_through(whole).await.and_then(|it| it).map_err(fault::of)?;
    let is_mailserver = *name == app.config.docker.mailserver;
    Ok(Restarted {
        restarted: name.to_string(),
        container: look(app, name).await?,
        took,
        not_applied: not_applied(is_mailserver),
        apply_with: format!("docker compose up -d --force-recreate {name}"),
    })
}

/// The restart, and the event that tells how it ended, also to a caller that has left. Answers how
/// many milliseconds it took.
async fn to_its_end(app: App, id: Uuid, name: ContainerName) -> Result<u64, EngineFault> {
    let begun = Instant::now();
    let ended = app.engine.restart(&name, STOP).await;
    let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let told = ended.as_ref().err().map(ToString::to_string);
    // It was restarted, whether or not that could be written down.
    if let Err(error) = store::ended(&app, id, name.as_str(), took, told.as_deref()).await {
        tracing::error!(container = %name, %error, "a restart could not be told as an event");
    }
    ended.map(|()| took)
}

async fn look(app: &App, name: &ContainerName) -> Result<Container> {
    match app.engine.inspect(name).await {
        Ok(seen) => Ok(shown(name, seen)),
        Err(EngineFault::NotFound(_)) => Ok(Container {
            name: name.to_string(),
            state: "missing",
            health: None,
            image: None,
            started_at: None,
            exit_code: None,
            restarts: 0,
        }),
        Err(fault) => Err(fault::of(fault)),
    }
}

fn shown(name: &ContainerName, seen: docker::Container) -> Container {
    Container {
        name: name.to_string(),
        state: seen.state.word(),
        health: seen.health.map(docker::Health::word),
        image: seen.image,
        started_at: seen.started_at,
        exit_code: seen.exit_code,
        restarts: seen.restarts,
    }
}

/// Measured on docker-mailserver 15 and 16: a container that starts again skips its set-up.
fn not_applied(is_mailserver: bool) -> Vec<&'static str> {
    const ANY: [&str; 2] = [
        "a new image, and changes of docker-compose.yml: environment, ports, mounts, limits",
        "variables of an env file",
    ];
    const MAILSERVER: [&str; 3] = [
        "user-patches.sh, postfix-main.cf, postfix-master.cf, dovecot.cf: read when the container is made",
        "opendkim/: keys and tables are copied when the container is made",
        "fetchmail.cf",
    ];
    ANY.iter().chain(is_mailserver.then_some(&MAILSERVER).into_iter().flatten()).copied().collect()
}
