//! One command in a container: a place, a process, its output, its exit code; and its certain end.

use std::{pin::Pin, sync::Arc, time::Duration};

use bollard::{
    exec::{StartExecOptions, StartExecResults},
    models::ExecConfig,
};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt as _},
    sync::oneshot,
    time::{Instant, timeout},
};

use super::{
    Command, ContainerName, Engine, EngineFault, ExecFault, Output, State,
    stream::{End, Feed, Printed},
    sweep::Mark,
};

/// From the first signal to the second, inside the container.
const KILL_AFTER: Duration = Duration::from_secs(5);
/// How much later than the container we stop waiting.
const BEHIND: Duration = Duration::from_secs(3);
/// The kernel takes no argument of 128 KiB, and the engine's words for that differ.
const LONGEST_ARGUMENT: usize = 100_000;

pub(super) type Input = Pin<Box<dyn AsyncWrite + Send>>;

impl Engine {
    /// Runs a command, and answers how it ended, whatever its exit code.
    ///
    /// If this future is dropped, the command and its children are ended in the container. Its
    /// place stays taken until that is done.
    pub async fn exec(
        self: &Arc<Self>,
        container: &ContainerName,
        command: Command,
    ) -> Result<Output, ExecFault> {
        check(&command)?;
        let (places, deadline) = (self.places(container), command.deadline);
        let place = match timeout(deadline, places.acquire_owned()).await {
            Ok(place) => place.expect("nobody closes it"),
            Err(_) => {
                let container = container.as_str().to_owned();
                return Err(ExecFault::Busy { container, waited: deadline });
            }
        };
        let (engine, container) = (self.clone(), container.clone());
        let (mut caller, answer) = oneshot::channel();
        self.tasks.spawn(async move {
            let ended = engine.run(&container, command, &mut caller).await;
            drop(place);
            // Whoever left does not wait for it.
            let _left = caller.send(ended);
        });
        answer.await.unwrap_or_else(|_| {
            let why = "the task that ran the command has ended".to_owned();
            Err(EngineFault::Garbled { call: "exec", why }.into())
        })
    }

    async fn run(
        &self,
        container: &ContainerName,
        command: Command,
        caller: &mut oneshot::Sender<Result<Output, ExecFault>>,
    ) -> Result<Output, ExecFault> {
        let mark = Mark::new();
        let (stdin, deadline) = (command.stdin, command.deadline);
        let mut argv =
            ["timeout", "-k", &KILL_AFTER.as_secs().to_string()].map(str::to_owned).to_vec();
        argv.push(deadline.as_secs().to_string());
        argv.extend(command.argv);

        let exec = self.create(container, argv, Some(&mark), stdin.is_some()).await?;
        // Not left in the middle: what may have been started must be known to be ended.
        let begun = Instant::now();
        let (feed, input) = match self.start(container, &exec).await {
            Ok(started) => started,
            Err(fault @ ExecFault::Engine(EngineFault::Silent { .. })) => {
                self.end(container, &mark, &exec).await;
                return Err(fault);
            }
            Err(fault) => return Err(fault),
        };
        let mut printed = Printed::default();
        let mut run = None;
        let conversation = async {
            let heard = converse(feed, input, stdin, &mut printed, command.most_output);
            let (end, seen) = tokio::join!(heard, self.inspect(container));
            run = seen.ok().and_then(|it| it.started_at);
            end
        };
        let end = tokio::select! {
            end = timeout(deadline + KILL_AFTER + BEHIND, conversation) => end,
            () = caller.closed() => {
                let leftover = !self.end(container, &mark, &exec).await;
                // Nobody hears it.
                return Err(ExecFault::TimedOut { after: begun.elapsed(), leftover });
            }
        };
        match end {
            Ok(Ok(End::Closed)) => (),
            Ok(Ok(End::TooMuch)) => {
                self.end(container, &mark, &exec).await;
                return Err(ExecFault::TooMuchOutput { limit: command.most_output });
            }
            Ok(Err(fault)) => {
                self.end(container, &mark, &exec).await;
                return Err(fault.into());
            }
            // The stream stalls for ever in a container that is paused meanwhile.
            Err(_) => return Err(self.stalled(container, &mark, &exec, deadline).await),
        }
        let exit_code = self.exit_code(container, &exec).await?;
        let ran_out = begun.elapsed() >= deadline && matches!(exit_code, 124 | 137 | 143);
        if exit_code == 137 && self.has_ended(container, run).await? {
            return Err(ExecFault::StoppedMidway(container.as_str().to_owned()));
        }
        if ran_out {
            let leftover = !self.sweep(container, &mark).await;
            return Err(ExecFault::TimedOut { after: deadline, leftover });
        }
        let output = printed.with_exit_code(exit_code);
        match never_ran(&output) {
            Some(why) => Err(ExecFault::CannotStart(why)),
            None => Ok(output),
        }
    }

    /// Makes a command known to the engine; nothing runs yet. Answers its id.
    pub(super) async fn create(
        &self,
        container: &ContainerName,
        argv: Vec<String>,
        mark: Option<&Mark>,
        attach_stdin: bool,
    ) -> Result<String, ExecFault> {
        let wanted = ExecConfig {
            attach_stdin: Some(attach_stdin),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            tty: Some(false),
            env: mark.map(|it| vec![it.as_str().to_owned()]),
            cmd: Some(argv),
            ..ExecConfig::default()
        };
        let create = |docker: bollard::Docker| async move {
            docker.create_exec(container.as_str(), wanted).await
        };
        let created = self.call("exec create", create).await;
        Ok(created.map_err(|fault| ExecFault::at_start(container.as_str(), fault))?.id)
    }

    /// Starts it: what it prints, and where its input goes.
    pub(super) async fn start(
        &self,
        container: &ContainerName,
        exec: &str,
    ) -> Result<(Feed, Input), ExecFault> {
        let id = exec.to_owned();
        let start = |docker: bollard::Docker| async move {
            docker.start_exec(&id, None::<StartExecOptions>).await
        };
        let started = self.call("exec start", start).await;
        match started.map_err(|fault| ExecFault::at_start(container.as_str(), fault))? {
            StartExecResults::Attached { output, input } => Ok((output, input)),
            StartExecResults::Detached => {
                let why = "it detached, which nobody asked for".to_owned();
                Err(EngineFault::Garbled { call: "exec start", why }.into())
            }
        }
    }

    /// The exit code of a command whose output has ended. The engine may call it running for a
    /// moment longer.
    pub(super) async fn exit_code(
        &self,
        container: &ContainerName,
        exec: &str,
    ) -> Result<i64, ExecFault> {
        let asked = Instant::now();
        let mut pause = Duration::from_millis(5);
        loop {
            let id = exec.to_owned();
            let inspect = |docker: bollard::Docker| async move { docker.inspect_exec(&id).await };
            let seen = match self.call("exec inspect", inspect).await {
                // It was forgotten with its container's run.
                Err(EngineFault::Refused { status: 404, .. }) => {
                    return Err(ExecFault::StoppedMidway(container.as_str().to_owned()));
                }
                seen => seen?,
            };
            if let (Some(code), false) = (seen.exit_code, seen.running.unwrap_or(false)) {
                return Ok(code);
            }
            if asked.elapsed() > self.limits.call {
                let why = "the output has ended, and the command has no exit code".to_owned();
                return Err(EngineFault::Garbled { call: "exec inspect", why }.into());
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(200));
        }
    }

    /// Whether the run of the container that began at `run` has ended, and so all its commands. They
    /// are gone first; the engine calls the container running for a moment longer.
    async fn has_ended(
        &self,
        container: &ContainerName,
        run: Option<DateTime<Utc>>,
    ) -> Result<bool, ExecFault> {
        for _ in 0..20 {
            match self.inspect(container).await {
                Ok(it) if it.state.runs() && it.started_at == run => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                Ok(_) | Err(EngineFault::NotFound(_)) => return Ok(true),
                Err(fault) => return Err(fault.into()),
            }
        }
        Ok(false)
    }

    /// Why a command is still silent when even its second signal must have come.
    async fn stalled(
        &self,
        container: &ContainerName,
        mark: &Mark,
        exec: &str,
        deadline: Duration,
    ) -> ExecFault {
        let name = container.as_str().to_owned();
        match self.inspect(container).await {
            // It ends by itself once the container goes on: its deadline is inside.
            Ok(it) if it.state == State::Paused => ExecFault::Paused(name),
            Ok(it) if !it.state.runs() => ExecFault::StoppedMidway(name),
            Err(EngineFault::NotFound(_)) => ExecFault::StoppedMidway(name),
            Err(fault @ EngineFault::Silent { .. }) => fault.into(),
            _ => {
                let leftover = !self.end(container, mark, exec).await;
                ExecFault::TimedOut { after: deadline, leftover }
            }
        }
    }
}

/// What the kernel or the engine would refuse in words of their own.
fn check(command: &Command) -> Result<(), ExecFault> {
    let why = if command.argv.is_empty() {
        "it has no name"
    } else if command.argv.iter().any(|it| it.contains('\0')) {
        "an argument holds a NUL"
    } else if command.argv.iter().any(|it| it.len() > LONGEST_ARGUMENT) {
        "an argument is longer than 100,000 bytes"
    } else {
        return Ok(());
    };
    Err(ExecFault::CannotStart(why.to_owned()))
}

/// Gives a command its input, and takes in what it prints. Both ways are closed in the end: an
/// engine whose output nobody takes does not notice that the command has ended.
async fn converse(
    mut feed: Feed,
    mut input: Input,
    stdin: Option<Bytes>,
    printed: &mut Printed,
    limit: usize,
) -> Result<End, EngineFault> {
    let given = async {
        // A command need not read its input: that it is not taken is no fault.
        if let Some(bytes) = stdin
            && input.write_all(&bytes).await.is_ok()
        {
            let _not_taken = input.shutdown().await;
        }
        // What is printed tells when it is over.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        end = printed.take_in(&mut feed, limit) => end,
        () = given => unreachable!("it waits for ever"),
    }
}

/// The reason, if what was printed is not the command's, but about it: the engine says so on
/// stdout (measured), `timeout` on stderr.
fn never_ran(output: &Output) -> Option<String> {
    if !matches!(output.exit_code, 126 | 127) {
        return None;
    }
    let starts = |bytes: &[u8], with: &str| bytes.starts_with(with.as_bytes());
    let text = if starts(&output.stdout, "OCI runtime exec failed") {
        &output.stdout
    } else if starts(&output.stderr, "timeout: ") {
        &output.stderr
    } else {
        return None;
    };
    Some(super::fault::short(&String::from_utf8_lossy(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_command_that_never_ran_is_a_fault() {
        let of = |exit_code, stdout: &str, stderr: &str| {
            let (stdout, stderr) = (stdout.into(), stderr.into());
            never_ran(&Output { exit_code, stdout, stderr, order: Vec::new() })
        };
        let oci = "OCI runtime exec failed: exec failed: \"nope\": not found\r\n";
        assert!(of(126, oci, "").is_some_and(|it| it.ends_with("not found")));
        assert!(of(127, "", "timeout: failed to run command 'x': No such file").is_some());
        assert_eq!(of(127, "", "sh: 1: x: not found"), None);
        assert_eq!(of(1, oci, ""), None);
    }

    #[test]
    fn what_cannot_be_an_argument_is_refused_before_anything_is_asked() {
        let why = |command: Command| check(&command).err().map(|it| it.to_string());
        assert_eq!(why(Command::new(["true"])), None);
        assert!(why(Command::new(Vec::<String>::new())).is_some());
        assert!(why(Command::new(["a\0b"])).unwrap().contains("NUL"));
        assert!(why(Command::new(["x".repeat(100_001)])).unwrap().contains("longer"));
    }
}
