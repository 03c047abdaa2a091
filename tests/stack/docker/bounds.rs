//! How much at once, and an engine that takes requests and never answers.

use std::time::Duration;

use futures_util::future::join_all;
use postroom::outside::docker::{Command, EngineFault, ExecFault, Limits, Place};
use tokio::time::{Instant, timeout};

use super::{
    Box, client,
    front::{Front, Rule, Rules},
    patient, shell,
};

#[tokio::test]
async fn of_fifty_calls_four_run_at_once_and_all_end() {
    let it = Box::new("fifty").await;
    // Each counts who is in the room with it.
    let visit =
        "mkdir -p /run/room; touch /run/room/$$; ls /run/room | wc -l; sleep 0.2; rm /run/room/$$";
    let calls = (0..50).map(|_| it.exec(shell(visit).deadline(Duration::from_secs(300))));
    let counts: Vec<u32> = join_all(calls)
        .await
        .into_iter()
        .map(|ended| String::from_utf8(ended.unwrap().stdout).unwrap().trim().parse().unwrap())
        .collect();
    let most = counts.iter().max().unwrap();
    assert!((2..=4).contains(most), "{counts:?}");
}

#[tokio::test]
async fn who_finds_no_place_in_time_is_told_so_and_nothing_was_started() {
    let it = Box::new("busy").await;
    let long = || shell("sleep 7005").deadline(Duration::from_secs(60));
    let mut four: Vec<_> = (0..4).map(|_| std::boxed::Box::pin(it.exec(long()))).collect();
    let fifth = async {
        crate::house::until("four run", async || it.running("sleep 7005").await >= 8).await;
        it.exec(Command::new(["touch", "/run/started"]).deadline(Duration::from_secs(1))).await
    };
    let fifth = tokio::select! {
        fifth = fifth => fifth,
        _ = futures_util::future::select_all(four.iter_mut()) => panic!("one of the four ended"),
    };
    assert!(matches!(fifth, Err(ExecFault::Busy { .. })), "{fifth:?}");
    drop(four);
    it.until_gone("sleep 7005").await;
    let there = it.exec(Command::new(["test", "-e", "/run/started"])).await.unwrap();
    assert_eq!(there.exit_code, 1);
}

/// Which call finds nobody.
const MUTE: [(&str, Rules); 3] = [
    ("exec create", |_, path| if path.ends_with("/exec") { Rule::Mute } else { Rule::Pass }),
    ("exec start", |_, path| if path.ends_with("/start") { Rule::Mute } else { Rule::Pass }),
    ("exec inspect", |method, path| match (method, path.contains("/exec/")) {
        ("GET", true) => Rule::Mute,
        _ => Rule::Pass,
    }),
];

#[tokio::test]
async fn a_mute_engine_is_an_error_in_time_whichever_call_it_was() {
    let it = Box::new("mute").await;
    for (call, rules) in MUTE {
        let front = Front::start(it.host.socket(), rules).await;
        let engine = client(Place::Tcp(front.address.clone()), patient(Duration::from_secs(1)));
        let begun = Instant::now();
        let ended = engine.exec(&it.name, Command::new(["true"])).await;
        match ended {
            Err(ExecFault::Engine(EngineFault::Silent { call: which, .. })) => {
                assert_eq!(which, call)
            }
            other => panic!("{call}: {other:?}"),
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{call}");
    }
}

#[tokio::test]
async fn two_hundred_callers_of_a_mute_engine_all_get_their_error_in_time() {
    let it = Box::new("crowd").await;
    let front = Front::start(it.host.socket(), |_, _| Rule::Mute).await;
    let limits = Limits { at_once: 4, call: Duration::from_secs(1) };
    let engine = client(Place::Tcp(front.address.clone()), limits);
    let calls = (0..200)
        .map(|_| engine.exec(&it.name, Command::new(["true"]).deadline(Duration::from_secs(3))));
    // A place in 3 s or none, and a call of one second: not fifty rounds of them.
    let ended = timeout(Duration::from_secs(20), join_all(calls)).await.expect("they all hang");
    let (mut silent, mut busy) = (0, 0);
    for fault in ended.into_iter().map(Result::unwrap_err) {
        match fault {
            ExecFault::Engine(EngineFault::Silent { .. }) => silent += 1,
            ExecFault::Busy { .. } => busy += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(silent >= 4 && busy > 100, "{silent} {busy}");
    engine.settle().await;
}
