//! What goes in and what comes out.

use std::time::Duration;

use postroom::outside::docker::{Command, ExecFault, Stream};
use tokio::time::Instant;

use super::{Box, shell};

#[tokio::test]
async fn what_a_command_prints_arrives_as_it_was_printed() {
    let it = Box::new("printed").await;
    let run = async |line: &str| it.exec(shell(line)).await.unwrap();

    let split = run("echo out; echo err >&2; exit 3").await;
    assert_eq!((split.exit_code, split.success()), (3, false), "a code is no fault");
    assert_eq!((&split.stdout[..], &split.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));

    // The engine keeps the order of what is not printed at once.
    let order = run("echo 1; sleep 0.3; echo 2 >&2; sleep 0.3; echo 3").await;
    assert_eq!(order.interleaved(), b"1\n2\n3\n");
    let streams: Vec<Stream> = order.order.iter().map(|it| it.stream).collect();
    assert_eq!(streams, [Stream::Stdout, Stream::Stderr, Stream::Stdout]);

    let character = run(r"printf '\303'; sleep 0.2; printf '\274'").await;
    assert_eq!(character.stdout, "ü".as_bytes());

    let all: Vec<u8> = (0..=255).collect();
    let binary = it.exec(Command::new(["cat"]).stdin(all.clone())).await.unwrap();
    assert_eq!(binary.stdout, all);
    assert_eq!(run("").await.stdout, b"");
    assert_eq!(run("kill -9 $$").await.exit_code, 137);
}

#[tokio::test]
async fn arguments_are_never_a_line_for_a_shell() {
    let it = Box::new("arguments").await;
    let hostile = "a b;$(id)`id`'\"\\ *\n\u{7}|&>x ü";
    let said = it.exec(Command::new(["printf", "%s", hostile])).await.unwrap();
    assert_eq!(String::from_utf8(said.stdout).unwrap(), hostile);
    let option = it.exec(Command::new(["printf", "%s", "--signal=9", "-k"])).await.unwrap();
    assert_eq!(option.stdout, b"--signal=9-k");
    let long = "x".repeat(100_000);
    let said = it.exec(Command::new(["printf", "%s", &long])).await.unwrap();
    assert_eq!(said.stdout.len(), long.len());
}

#[tokio::test]
async fn input_is_given_whole_and_has_an_end() {
    let it = Box::new("input").await;
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let echo = it.exec(Command::new(["cat"]).stdin(large.clone())).await.unwrap();
    assert!(echo.stdout == large, "{echo:?}");
    // Who reads nothing of it is not waited for, and it is no fault.
    let deaf = it.exec(Command::new(["true"]).stdin(large)).await.unwrap();
    assert!(deaf.success());
    let none = it.exec(Command::new(["cat"]).deadline(Duration::from_secs(10))).await.unwrap();
    assert_eq!(none.stdout, b"", "without input there is its end");
    let empty = it.exec(Command::new(["cat"]).stdin("")).await.unwrap();
    assert!(empty.success());
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let it = Box::new("unstarted").await;
    for (program, why) in
        [("/no/such/program", "No such file"), ("/etc/passwd", "ermission denied")]
    {
        match it.exec(Command::new([program])).await {
            Err(ExecFault::CannotStart(said)) => assert!(said.contains(why), "{said}"),
            other => panic!("{program}: {other:?}"),
        }
    }
    // Without `timeout` the engine itself cannot start anything; it says so on stdout.
    it.docker(&["exec", it.name.as_str(), "mv", "/usr/bin/timeout", "/usr/bin/was-timeout"]).await;
    match it.exec(Command::new(["true"])).await {
        Err(ExecFault::CannotStart(said)) => assert!(said.contains("timeout"), "{said}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_command_that_prints_for_ever_is_ended_at_its_limit() {
    let it = Box::new("limit").await;
    let begun = Instant::now();
    let ended = it.exec(Command::new(["yes", "printing"]).most_output(1_000_000)).await;
    assert!(matches!(ended, Err(ExecFault::TooMuchOutput { limit: 1_000_000 })), "{ended:?}");
    assert_eq!(it.running("printing").await, 0, "it prints on");
    assert!(begun.elapsed() < Duration::from_secs(20), "the deadline ended it, not the limit");
    let exactly = shell("head -c 1000000 /dev/zero").most_output(1_000_000);
    assert_eq!(it.exec(exactly).await.unwrap().stdout.len(), 1_000_000);
}
