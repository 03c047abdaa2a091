//! Nothing of a command stays behind in the container.
//!
//! The engine cannot end a command, and the process number that it tells is one of its own machine.
//! So each command carries a mark in its environment, which its children inherit, and a second
//! command looks for it. The script is constant; the mark is an argument.

use std::time::Duration;

use tokio::time::Instant;

use super::{ContainerName, Engine, EngineFault, ExecFault};

const SCRIPT: &str = include_str!("sweep.sh");
/// Longer than its rounds take, with a busy machine in mind.
const DEADLINE: Duration = Duration::from_secs(20);

/// What a command and its children are known by.
#[derive(Debug, Clone)]
pub(super) struct Mark(String);

impl Mark {
    pub(super) fn new() -> Self {
        Self(format!("POSTROOM_EXEC={}", uuid::Uuid::new_v4().simple()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Engine {
    /// Ends a command that nobody waits for any more. The engine confirms a start before there is a
    /// process, and a sweep in between would find nothing: so it sweeps until the command has ended.
    pub(super) async fn end(&self, container: &ContainerName, mark: &Mark, exec: &str) -> bool {
        let begun = Instant::now();
        loop {
            let swept = self.sweep(container, mark).await;
            let id = exec.to_owned();
            let inspect = |docker: bollard::Docker| async move { docker.inspect_exec(&id).await };
            let ended = match self.call("exec inspect", inspect).await {
                Ok(seen) => seen.exit_code.is_some() && !seen.running.unwrap_or(false),
                Err(EngineFault::Refused { status: 404, .. }) => true,
                Err(_) => false,
            };
            if ended || begun.elapsed() > self.limits.call {
                return swept && ended;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Ends all that carries the mark, and answers whether that is sure.
    pub(super) async fn sweep(&self, container: &ContainerName, mark: &Mark) -> bool {
        let swept = tokio::time::timeout(DEADLINE, self.sweep_once(container, mark)).await;
        match swept {
            Ok(Ok(0)) => true,
            // Without the container there are no processes.
            Ok(Err(ExecFault::NotRunning(_) | ExecFault::NotFound(_))) => true,
            other => {
                tracing::warn!(container = %container, ended = ?other, "what a command left behind in a container may still run");
                false
            }
        }
    }

    async fn sweep_once(&self, container: &ContainerName, mark: &Mark) -> Result<i64, ExecFault> {
        let wrapped = ["timeout", "-k", "2", "15", "sh", "-c", SCRIPT, "sweep", mark.as_str()];
        let exec = self.create(container, wrapped.map(str::to_owned).into(), None, false).await?;
        let (mut feed, _input) = self.start(container, &exec).await?;
        let mut printed = super::stream::Printed::default();
        printed.take_in(&mut feed, 4096).await?;
        self.exit_code(container, &exec).await
    }
}
