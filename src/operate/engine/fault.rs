//! What a failing Docker engine is to whoever asked for something.

use crate::{
    error::{Error, Failing},
    outside::docker::EngineFault,
};

pub(super) fn of(fault: EngineFault) -> Error {
    let (failing, code) = match &fault {
        EngineFault::NotFound(_) => return Error::NotFound("container"),
        EngineFault::Unreached { .. } => (Failing::Away, "DOCKER_UNREACHABLE"),
        EngineFault::Silent { .. } => (Failing::Late, "DOCKER_TIMEOUT"),
        EngineFault::Refused { .. } => (Failing::Wrong, "DOCKER_REFUSED"),
        EngineFault::Garbled { .. } => (Failing::Wrong, "DOCKER_GARBLED"),
    };
    Error::Neighbour { failing, code, message: fault.to_string() }
}
