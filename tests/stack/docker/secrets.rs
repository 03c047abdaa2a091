//! What goes to stdin is seen by the command, and by nobody else.

use std::time::Duration;

use postroom::outside::docker::{Command, ExecFault};

use super::{Box, shell};
use crate::house::until;

const SECRET: &str = "correct-horse-battery";

#[tokio::test]
async fn a_secret_on_stdin_is_in_no_list_event_inspection_or_error() {
    let it = Box::new("secrets").await;
    let name = it.name.as_str();
    let since = it.docker(&["exec", name, "date", "+%s"]).await;
    let command = shell("read -r x; sleep 7008").stdin(format!("{SECRET}\n"));
    let running = it.exec(command.deadline(Duration::from_secs(2)));
    let (ended, seen) = tokio::join!(running, async {
        until("it runs", async || it.running("sleep 7008").await > 0).await;
        let processes = it.docker(&["top", name, "-eo", "pid,args"]).await;
        let inspected = it.docker(&["inspect", name]).await;
        processes + &inspected
    });
    assert!(seen.contains("sleep 7008"), "the looking finds nothing at all: {seen}");
    let read =
        it.exec(shell("read -r x; echo ${#x}; echo $x >&2; exit 9").stdin(format!("{SECRET}\n")));
    let read = read.await.unwrap();
    assert_eq!(read.stdout, format!("{}\n", SECRET.len()).as_bytes(), "the command did get it");
    let unstarted = it.exec(Command::new(["/none"]).stdin(SECRET)).await;
    let capped = it.exec(Command::new(["cat"]).stdin(SECRET).most_output(3)).await;
    assert!(matches!(capped, Err(ExecFault::TooMuchOutput { .. })), "{capped:?}");
    let faults =
        format!("{ended:?} {read:?} {unstarted:?} {capped:?} {}", ended.as_ref().unwrap_err());

    let filter = format!("container={name}");
    let until = it.docker(&["exec", name, "date", "-d", "+5 sec", "+%s"]).await;
    let events =
        it.docker(&["events", "--since", &since, "--until", &until, "--filter", &filter]).await;
    assert!(events.contains("exec_create"), "{events}");
    let logs = it.host.logs(name).await;
    for (where_, text) in
        [("top and inspect", seen), ("events", events), ("faults", faults), ("logs", logs)]
    {
        assert!(!text.contains(SECRET), "{where_}: {text}");
    }
}
