//! The first run: `postroom dev`, the lines it prints, Ctrl-C, and a second start.

use std::{
    io::Read as _,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::time::Instant;

#[tokio::test]
async fn the_printed_lines_work_as_they_stand_and_a_second_start_finds_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let first = start(&data).await;
    let lines: Vec<&str> =
        first.text.lines().map(str::trim).filter(|it| it.starts_with("curl ")).collect();
    assert_eq!(lines.len(), 2, "{}", first.text);
    let sent = shell(lines[0]);
    assert!(sent.contains("\"ok\":true"), "{sent}");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !shell(lines[1]).contains("\"messageId\"") {
        assert!(Instant::now() < deadline, "it does not arrive: {}", shell(lines[1]));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    first.stop();

    let second = start(&data).await;
    let again = second.text.lines().map(str::trim).rfind(|it| it.starts_with("curl ")).unwrap();
    assert!(shell(again).contains("\"messageId\""), "the data or the key is another");
    second.stop();
}

struct Dev {
    child: Child,
    text: String,
}

async fn start(data: &Path) -> Dev {
    let mut child = Command::new(env!("CARGO_BIN_EXE_postroom"))
        .args(["dev", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    // It prints when it is ready, and this word last.
    let text = tokio::task::spawn_blocking(move || {
        let (mut text, mut bytes) = (String::new(), [0; 4096]);
        while !text.contains("Ctrl-C") {
            let n = out.read(&mut bytes).unwrap();
            assert!(n > 0, "it ended before it was ready: {text}");
            text.push_str(&String::from_utf8_lossy(&bytes[..n]));
        }
        text
    })
    .await
    .unwrap();
    Dev { child, text }
}

impl Dev {
    /// Ctrl-C: it ends by itself, without an error.
    fn stop(mut self) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), Signal::SIGINT).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

fn shell(line: &str) -> String {
    let output = Command::new("sh").args(["-c", line]).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
