//! Everything that can go wrong between us and a process in a container, each under its own name.

use std::{io, time::Duration};

use bollard::errors::Error;

/// How much of what an engine says is kept.
const LONGEST: usize = 300;

/// Why an engine did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EngineFault {
    #[error("the Docker engine cannot be reached: {why}")]
    Unreached { kind: io::ErrorKind, why: String },
    /// It took the request, and no answer came.
    #[error("the Docker engine does not answer within {} s ({call})", after.as_secs_f32())]
    Silent { call: &'static str, after: Duration },
    #[error("there is no container {0}")]
    NotFound(String),
    /// It answered, and not as asked. 403 comes from a socket proxy that does not permit the call.
    #[error("the Docker engine answered {status} ({call}): {text}")]
    Refused { call: &'static str, status: u16, text: String },
    #[error("the Docker engine's answer cannot be understood ({call}): {why}")]
    Garbled { call: &'static str, why: String },
}

/// Why a command has no exit code to show. A code other than zero is no fault: it is in the
/// [`Output`](super::Output), and each caller knows what it means.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ExecFault {
    #[error("there is no container {0}")]
    NotFound(String),
    #[error("the container {0} is not running")]
    NotRunning(String),
    #[error("the container {0} is paused")]
    Paused(String),
    #[error("the container {0} is restarting")]
    Restarting(String),
    /// It ran when the command began, and ended before it.
    #[error("the container {0} stopped while a command ran in it")]
    StoppedMidway(String),
    /// No place came free in time; nothing was started.
    #[error("the container {container} was busy for {} s", waited.as_secs_f32())]
    Busy { container: String, waited: Duration },
    /// It ran to its deadline. It and its children are ended inside the container, unless
    /// `leftover` says that this could not be made sure.
    #[error("the command did not end within {} s", after.as_secs_f32())]
    TimedOut { after: Duration, leftover: bool },
    /// It printed more than it may (bytes), and was ended.
    #[error("the command printed more than {limit} bytes")]
    TooMuchOutput { limit: usize },
    /// There is no such program in the container, it may not be run, or it cannot be given these
    /// arguments.
    #[error("the command could not be started: {0}")]
    CannotStart(String),
    #[error(transparent)]
    Engine(#[from] EngineFault),
}

impl EngineFault {
    pub(super) fn of(call: &'static str, error: &Error) -> Self {
        match error {
            Error::DockerResponseServerError { status_code, message } => {
                Self::Refused { call, status: *status_code, text: short(message) }
            }
            Error::SocketNotFoundError(path) => Self::Unreached {
                kind: io::ErrorKind::NotFound,
                why: format!("there is no socket {path}"),
            },
            Error::JsonDataError { .. }
            | Error::JsonSerdeError { .. }
            | Error::StrParseError { .. } => Self::Garbled { call, why: short(&error.to_string()) },
            _ => {
                let kind = io_kind(error).unwrap_or(io::ErrorKind::Other);
                Self::Unreached { kind, why: short(&whole_story(error)) }
            }
        }
    }

    /// 404 and 304, by what they mean for a container.
    pub(super) fn about(self, container: &str) -> Self {
        match self {
            Self::Refused { status: 404, ref text, .. } if names_no_container(text) => {
                Self::NotFound(container.to_owned())
            }
            other => other,
        }
    }
}

impl ExecFault {
    /// What a refused `create` or `start` means. One status stands for four states, so it is the
    /// text that tells (measured on 20.10; the words are the same in 28).
    pub(super) fn at_start(container: &str, fault: EngineFault) -> Self {
        let name = || container.to_owned();
        match &fault {
            EngineFault::Refused { status: 404, text, .. } if names_no_container(text) => {
                Self::NotFound(name())
            }
            // Between create and start the container ended, and its commands with it.
            EngineFault::Refused { call: "exec start", status: 404, .. } => {
                Self::StoppedMidway(name())
            }
            EngineFault::Refused { status: 409, text, .. } => {
                let text = text.to_ascii_lowercase();
                if text.contains("paused") {
                    Self::Paused(name())
                } else if text.contains("restarting") {
                    Self::Restarting(name())
                } else if text.contains("not running") {
                    Self::NotRunning(name())
                } else {
                    Self::Engine(fault)
                }
            }
            _ => Self::Engine(fault),
        }
    }
}

fn names_no_container(text: &str) -> bool {
    text.to_ascii_lowercase().contains("no such container")
}

/// Without line ends, and not for ever.
pub(super) fn short(text: &str) -> String {
    let mut text: String =
        text.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.truncate(text.trim_end().len());
    text
}

fn io_kind(error: &(dyn std::error::Error + 'static)) -> Option<io::ErrorKind> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        cause = error.source();
    }
    None
}

/// The causes too, each once: what the HTTP client says alone is "client error (Connect)".
fn whole_story(error: &dyn std::error::Error) -> String {
    let mut story = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !story.contains(&said) {
            story = format!("{story}: {said}");
        }
        cause = error.source();
    }
    story
}
