//! A Docker engine for the tests that need one, with our image on it. The engine that answers is
//! used, else one is started. `engine.bash` does the work and cleans up when its input ends, so
//! also when this process dies.

use std::{
    path::Path,
    process::Stdio,
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    sync::Mutex,
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_postroom");
/// Debian is made anew at times, and another run may hold the only engine there may be.
const PATIENCE: Duration = Duration::from_secs(1_500);

pub struct Engine {
    /// What all names begin with.
    pub prefix: String,
    /// A folder from which `--target prebuilt` is built: it holds the program alone.
    pub program: tempfile::TempDir,
    host: String,
    keeper: Option<Child>,
}

impl Engine {
    /// The engine that all tests of this process share; it ends with the last of them.
    pub async fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Engine>> = Mutex::const_new(Weak::new());
        let mut shared = SHARED.lock().await;
        if let Some(engine) = shared.upgrade() {
            return engine;
        }
        let engine = Arc::new(Self::start().await);
        *shared = Arc::downgrade(&engine);
        engine
    }

    async fn start() -> Self {
        let prefix = format!("postroom-test-{}", std::process::id());
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stack/engine.bash");
        let mut keeper = Command::new(script)
            .arg(&prefix)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(keeper.stdout.take().unwrap()).lines();
        let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
        let line = line.expect("there is no Docker engine to be had; the reason is above");
        let host = line.strip_prefix("ready").unwrap().trim().to_owned();
        let program = tempfile::tempdir().unwrap();
        std::fs::copy(PROGRAM, program.path().join("postroom")).unwrap();
        let engine = Self { prefix, program, host, keeper: Some(keeper) };
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let base = format!("BASE={}-base", engine.prefix);
        let build = ["build", "-q", "--network", "host", "--build-arg", &base, "-t"];
        let (ours, dockerfile) = (engine.name("postroom"), root.join("Dockerfile"));
        let rest =
            [&ours, "--target", "prebuilt", "-f", text(&dockerfile), text(engine.program.path())];
        engine.run(&[&build[..], &rest[..]].concat()).await;
        let (others, folder) = (engine.name("standins"), root.join("tests/stack/standins"));
        engine.run(&[&build[..], &[&others, text(&folder)]].concat()).await;
        engine
    }

    pub fn name(&self, what: &str) -> String {
        format!("{}-{what}", self.prefix)
    }

    /// A program that finds the engine, which the classic builder is enough for.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("DOCKER_BUILDKIT", "0").stdin(Stdio::null()).kill_on_drop(true);
        if !self.host.is_empty() {
            command.env("DOCKER_HOST", &self.host);
        }
        command
    }

    /// Runs `docker`, which must succeed; what it prints.
    pub async fn run(&self, args: &[&str]) -> String {
        let output = self.command("docker").args(args).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "docker {args:?}: {said}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Where the engine listens, for who brings its socket into a container.
    pub fn socket(&self) -> &str {
        self.host.strip_prefix("unix://").unwrap_or("/var/run/docker.sock")
    }

    /// The image of the test mail server on Debian 12 or 13, or the one of the environment.
    pub async fn mailserver_image(&self, debian: &str) -> String {
        let name = self.name(&format!("mailserver-{debian}"));
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mailserver/image");
        let made = self.command(script).args([debian, &name]).output().await.unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        name
    }

    /// What both streams of a container hold.
    pub async fn logs(&self, container: &str) -> String {
        let output = self.command("docker").args(["logs", container]).output().await.unwrap();
        let (out, err) = (output.stdout, output.stderr);
        String::from_utf8_lossy(&out).into_owned() + &String::from_utf8_lossy(&err)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Its input ends; then it cleans up, and only then is it gone.
        let Some(mut keeper) = self.keeper.take() else { return };
        drop(keeper.stdin.take());
        while matches!(keeper.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
