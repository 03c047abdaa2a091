//! Each state of a container is a fault with its own name.

use std::time::Duration;

use postroom::outside::docker::{Command, ContainerName, EngineFault, ExecFault, State};

use super::{Box, shell};
use crate::house::until;

fn is(fault: Result<impl std::fmt::Debug, ExecFault>, wanted: fn(&ExecFault) -> bool) {
    match fault {
        Err(fault) if wanted(&fault) => (),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_container_that_cannot_take_a_command_says_what_it_is() {
    let it = Box::made("states", &[]).await;
    let name = it.name.as_str();
    let run = async || it.exec(Command::new(["true"])).await;
    let state = async || it.engine.inspect(&it.name).await.unwrap().state;

    let nobody = ContainerName::parse("there-is-no-such-container").unwrap();
    is(it.engine.exec(&nobody, Command::new(["true"])).await, |it| {
        matches!(it, ExecFault::NotFound(_))
    });
    let seen = it.engine.inspect(&nobody).await;
    assert!(matches!(seen, Err(EngineFault::NotFound(_))), "{seen:?}");

    assert_eq!(state().await, State::Created);
    is(run().await, |it| matches!(it, ExecFault::NotRunning(_)));
    it.docker(&["start", name]).await;
    assert_eq!(state().await, State::Running);
    assert!(run().await.unwrap().success());
    it.docker(&["pause", name]).await;
    assert_eq!(state().await, State::Paused);
    is(run().await, |it| matches!(it, ExecFault::Paused(_)));
    it.docker(&["unpause", name]).await;
    it.docker(&["stop", name]).await;
    let stopped = it.engine.inspect(&it.name).await.unwrap();
    assert_eq!(stopped.state, State::Exited);
    assert!(stopped.exit_code.is_some() && stopped.started_at.is_some(), "{stopped:?}");
    is(run().await, |it| matches!(it, ExecFault::NotRunning(_)));
}

#[tokio::test]
async fn a_container_that_restarts_again_and_again_says_so() {
    let it = Box::with("restarting", &["--restart", "always"], &["false"]).await;
    it.docker(&["start", it.name.as_str()]).await;
    // Between its runs, which are over at once: the engine waits longer each time.
    until("a command meets it between two runs", async || {
        matches!(it.exec(Command::new(["true"])).await, Err(ExecFault::Restarting(_)))
    })
    .await;
    assert!(!it.engine.inspect(&it.name).await.unwrap().state.runs() || it.running("x").await == 0);
}

#[tokio::test]
async fn a_container_that_ends_midway_is_told_from_a_command_that_was_killed() {
    for (what, end) in [("killed", "kill"), ("stopped", "stop"), ("restarted", "restart")] {
        let it = Box::new(&format!("midway-{what}")).await;
        let command = shell("echo begun; sleep 7006").deadline(Duration::from_secs(120));
        let (ended, ()) = tokio::join!(it.exec(command), async {
            until("it runs", async || it.running("sleep 7006").await > 0).await;
            it.docker(&[end, it.name.as_str()]).await;
        });
        is(ended, |it| matches!(it, ExecFault::StoppedMidway(_)));
    }
}

#[tokio::test]
async fn a_container_paused_midway_is_told_and_ends_the_command_when_it_goes_on() {
    let it = Box::new("midway-paused").await;
    let command = shell("sleep 7007").deadline(Duration::from_secs(1));
    let (ended, ()) = tokio::join!(it.exec(command), async {
        until("it runs", async || it.running("sleep 7007").await > 0).await;
        it.docker(&["pause", it.name.as_str()]).await;
    });
    is(ended, |it| matches!(it, ExecFault::Paused(_)));
    it.docker(&["unpause", it.name.as_str()]).await;
    it.until_gone("sleep 7007").await;
}
