//! Nothing stays behind: at the deadline, and when the caller goes away.

use std::time::Duration;

use postroom::outside::docker::{Command, ExecFault};
use tokio::time::{Instant, timeout};

use super::{Box, shell};
use crate::house::until;

/// A shell that ignores the polite signal, its child, and a grandchild in a session of its own:
/// each sleeps so many seconds.
fn stubborn(seconds: &str) -> Command {
    shell(&format!(
        "trap '' TERM HUP; setsid sleep {seconds} & bash -c 'trap \"\" TERM; sleep {seconds}; :' & sleep {seconds}; wait"
    ))
}

#[tokio::test]
async fn at_its_deadline_a_command_ends_with_all_its_children() {
    let it = Box::new("deadline").await;
    let begun = Instant::now();
    let command = stubborn("7001").deadline(Duration::from_secs(1));
    let (ended, ()) = tokio::join!(it.exec(command), async {
        until("all four run", async || it.running("sleep 7001").await >= 4).await;
    });
    let took = begun.elapsed();
    match ended {
        Err(ExecFault::TimedOut { after, leftover: false }) => {
            assert_eq!(after, Duration::from_secs(1));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(it.running("sleep 7001").await, 0, "something is left behind");
    assert!(took < Duration::from_secs(30), "{took:?}");

    let polite = it.exec(Command::new(["sleep", "7002"]).deadline(Duration::from_secs(1))).await;
    assert!(matches!(polite, Err(ExecFault::TimedOut { leftover: false, .. })), "{polite:?}");
    // What ends with the code of a deadline, in time, has only that code.
    let early = it.exec(shell("exit 124").deadline(Duration::from_secs(20))).await.unwrap();
    assert_eq!(early.exit_code, 124);
}

#[tokio::test]
async fn when_the_caller_goes_away_the_command_ends_with_all_its_children() {
    let it = Box::new("cancelled").await;
    let left = async {
        until("all four run", async || it.running("sleep 7003").await >= 4).await;
    };
    tokio::select! {
        ended = it.exec(stubborn("7003").deadline(Duration::from_secs(600))) => panic!("{ended:?}"),
        () = left => (),
    }
    it.until_gone("sleep 7003").await;
    it.engine.settle().await;
}

#[tokio::test]
async fn a_caller_that_leaves_at_any_moment_leaves_nothing_behind() {
    let it = Box::new("impatient").await;
    for wait in (0..40).map(|n| Duration::from_millis(n * 8)) {
        let command = Command::new(["sleep", "7004"]).deadline(Duration::from_secs(600));
        let ended = timeout(wait, it.exec(command)).await;
        assert!(ended.is_err(), "{ended:?}");
    }
    // Every call has now ended by itself or been swept.
    timeout(Duration::from_secs(120), it.engine.settle()).await.unwrap();
    assert_eq!(it.running("sleep 7004").await, 0);
}
