//! What is known of a container, and starting it anew.

use std::time::Duration;

use bollard::{
    models::{ContainerInspectResponse, ContainerStateStatusEnum, HealthStatusEnum},
    query_parameters::{InspectContainerOptions, RestartContainerOptions},
};
use chrono::{DateTime, Utc};

use super::{ContainerName, Engine, EngineFault};

impl Health {
    /// As the engine calls it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
        }
    }
}

/// Beyond what a container has for its end: for its start, and for a busy engine.
const AFTER_STOP: Duration = Duration::from_secs(40);

#[derive(Debug, Clone, PartialEq)]
pub struct Container {
    pub state: State,
    /// Absent without a health check (docker-mailserver 15 has none).
    pub health: Option<Health>,
    /// As it was named when the container was made.
    pub image: Option<String>,
    pub started_at: Option<DateTime<Utc>>,
    /// Of its last end, if it is not running.
    pub exit_code: Option<i64>,
    /// How often the engine has started it anew by itself.
    pub restarts: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Created,
    Running,
    Paused,
    Restarting,
    Removing,
    Exited,
    Dead,
    /// The engine has a word for it that we do not know.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Starting,
    Healthy,
    Unhealthy,
}

impl State {
    /// As the engine calls it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Restarting => "restarting",
            Self::Removing => "removing",
            Self::Exited => "exited",
            Self::Dead => "dead",
            Self::Unknown => "unknown",
        }
    }

    /// The engine's own `Running` is true for a paused and a restarting container as well
    /// (measured), so it is not asked.
    pub fn runs(self) -> bool {
        matches!(self, Self::Running | Self::Paused)
    }
}

impl Engine {
    pub async fn inspect(&self, container: &ContainerName) -> Result<Container, EngineFault> {
        let options = None::<InspectContainerOptions>;
        let ask = |docker: bollard::Docker| async move {
            docker.inspect_container(container.as_str(), options).await
        };
        let seen = self.call("container inspect", ask).await;
        Ok(read(seen.map_err(|fault| fault.about(container.as_str()))?))
    }

    /// Stops the container, gives it `stop` to end in order (the engine's own ten seconds would
    /// kill a docker-mailserver, which needs 15 to 18, measured), and starts it. Some engines stop
    /// halfway when the caller leaves: [`see_through`](Self::see_through) is for that.
    pub async fn restart(
        &self,
        container: &ContainerName,
        stop: Duration,
    ) -> Result<(), EngineFault> {
        let t = Some(i32::try_from(stop.as_secs()).unwrap_or(i32::MAX));
        let options = RestartContainerOptions { t, ..Default::default() };
        let ask = |docker: bollard::Docker| async move {
            docker.restart_container(container.as_str(), Some(options)).await
        };
        let asked = self.call_within(stop + AFTER_STOP, "container restart", ask).await;
        asked.map_err(|fault| fault.about(container.as_str()))
    }
}

/// Every field may be missing: an engine speaks the newest version it knows, not the one we do.
fn read(seen: ContainerInspectResponse) -> Container {
    let state = seen.state.unwrap_or_default();
    let health = state.health.and_then(|it| it.status).and_then(|status| match status {
        HealthStatusEnum::STARTING => Some(Health::Starting),
        HealthStatusEnum::HEALTHY => Some(Health::Healthy),
        HealthStatusEnum::UNHEALTHY => Some(Health::Unhealthy),
        _ => None,
    });
    let now = state.status.map_or(State::Unknown, |status| match status {
        ContainerStateStatusEnum::CREATED => State::Created,
        ContainerStateStatusEnum::RUNNING => State::Running,
        ContainerStateStatusEnum::PAUSED => State::Paused,
        ContainerStateStatusEnum::RESTARTING => State::Restarting,
        ContainerStateStatusEnum::REMOVING => State::Removing,
        ContainerStateStatusEnum::EXITED => State::Exited,
        ContainerStateStatusEnum::DEAD => State::Dead,
        _ => State::Unknown,
    });
    // A container that never ran started in the year 1.
    let started_at = state
        .started_at
        .and_then(|at| DateTime::parse_from_rfc3339(&at).ok())
        .map(|at| at.to_utc())
        .filter(|at| at.timestamp() > 0);
    Container {
        state: now,
        health,
        image: seen.config.and_then(|it| it.image),
        started_at,
        exit_code: state.exit_code.filter(|_| !now.runs()),
        restarts: seen.restart_count.unwrap_or(0),
    }
}
