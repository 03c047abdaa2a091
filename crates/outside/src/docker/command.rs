//! What is asked of a container, and what it answers.

use std::{fmt, time::Duration};

use bytes::Bytes;

/// How long a command may take unless it says otherwise.
const USUAL: Duration = Duration::from_secs(30);
/// How much it may print, both streams together, unless it says otherwise.
const USUAL_OUTPUT: usize = 4 * 1024 * 1024;

/// A command for a container: arguments as they are, never a line for a shell.
#[derive(Clone)]
pub struct Command {
    pub(super) argv: Vec<String>,
    pub(super) stdin: Option<Bytes>,
    pub(super) deadline: Duration,
    pub(super) most_output: usize,
}

impl Command {
    /// The program and its arguments. They can be seen by others: no secret may be among them.
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        let argv = argv.into_iter().map(Into::into).collect();
        Self { argv, stdin: None, deadline: USUAL, most_output: USUAL_OUTPUT }
    }

    /// What it reads, to the end. Here is the place for secrets.
    pub fn stdin(mut self, bytes: impl Into<Bytes>) -> Self {
        self.stdin = Some(bytes.into());
        self
    }

    /// When it is ended inside the container: counted in whole seconds, rounded up, at least one.
    /// What ignores the first signal is killed five seconds later.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        let partly = u64::from(deadline.subsec_nanos() > 0);
        self.deadline = Duration::from_secs((deadline.as_secs() + partly).max(1));
        self
    }

    /// How many bytes it may print, both streams together.
    pub fn most_output(mut self, bytes: usize) -> Self {
        self.most_output = bytes;
        self
    }
}

/// Shows none of the arguments.
impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("arguments", &self.argv.len())
            .field("stdin_bytes", &self.stdin.as_ref().map(Bytes::len))
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Some bytes of one stream. Where one chunk ends says nothing: characters and lines are split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    pub stream: Stream,
    pub bytes: usize,
}

/// How a command ended, and what it printed: bytes, in no promised encoding.
#[derive(Clone, PartialEq, Eq)]
pub struct Output {
    /// 128 + n when signal n ended it.
    pub exit_code: i64,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// In which order the two streams came. Between them it is the engine's best effort.
    pub order: Vec<Chunk>,
}

impl Output {
    pub fn success(&self) -> bool {
        self.exit_code == 0
    }

    /// Both streams in the order they came.
    pub fn interleaved(&self) -> Vec<u8> {
        let (mut out, mut err) = (&self.stdout[..], &self.stderr[..]);
        let mut all = Vec::with_capacity(out.len() + err.len());
        for chunk in &self.order {
            let from = match chunk.stream {
                Stream::Stdout => &mut out,
                Stream::Stderr => &mut err,
            };
            let (now, later) = from.split_at(chunk.bytes.min(from.len()));
            all.extend_from_slice(now);
            *from = later;
        }
        all
    }
}

/// Shows how much was printed, and none of it.
impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output")
            .field("exit_code", &self.exit_code)
            .field("stdout_bytes", &self.stdout.len())
            .field("stderr_bytes", &self.stderr.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_whole_seconds_and_never_none() {
        let of = |deadline| Command::new(["true"]).deadline(deadline).deadline.as_secs();
        assert_eq!(of(Duration::ZERO), 1);
        assert_eq!(of(Duration::from_millis(1001)), 2);
        assert_eq!(of(Duration::from_secs(60)), 60);
    }

    #[test]
    fn what_is_asked_and_answered_is_not_shown() {
        let command = Command::new(["login", "argument-x"]).stdin("secret-x");
        let output = Output {
            exit_code: 1,
            stdout: b"printed-x".to_vec(),
            stderr: b"printed-x".to_vec(),
            order: Vec::new(),
        };
        let shown = format!("{command:?} {output:?}");
        assert!(!shown.contains("-x"), "{shown}");
    }
}
