//! A private PostgreSQL in a data folder, for one machine without set-up.
//!
//! It listens on a Unix socket only, in a folder of mode 0700, and trusts whoever reaches it:
//! who may enter that folder owns the data files anyway, so a password would guard nothing and
//! one more secret would have to be kept. There is no port to collide with or to scan.
//!
//! It runs in a process group of its own, so that Ctrl-C reaches Postroom first and the database
//! last. A killed Postroom leaves it running; the next start takes it over. A lock in the data
//! folder, which the system releases with its holder, keeps a second Postroom out.

mod account;
mod pid_file;
mod programs;
mod socket;

use super::folder;
use crate::config::environment;
use account::Account;
use anyhow::{Context as _, bail};
use pid_file::PidFile;
use programs::Programs;
use std::{
    fs::{self, File, OpenOptions},
    io::Write as _,
    os::unix::{fs::OpenOptionsExt as _, net::UnixStream, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

const DATABASE: &str = "postroom";
const USER: &str = "postroom";
const PORT: u16 = 5432;
const START_PATIENCE: Duration = Duration::from_secs(60);
const STOP_PATIENCE_SECONDS: &str = "20";
const PAUSE: Duration = Duration::from_millis(20);

/// A running PostgreSQL of our own. Dropping it stops it.
#[derive(Debug)]
pub struct Cluster {
    data: PathBuf,
    socket_folder: PathBuf,
    programs: Programs,
    /// Absent when the server was taken over.
    child: Option<Child>,
    stopped: bool,
    _lock: File,
}

impl Cluster {
    /// Makes the cluster if there is none, and starts it, or takes over the one that runs.
    pub fn start(folder: &Path) -> anyhow::Result<Self> {
        let folder = folder::prepare(folder)?;
        let lock = lock(&folder)?;
        let account = if folder::is_root()? { Some(Account::find()?) } else { None };
        if account.is_some() {
            folder::require_passage(&folder)?;
        }
        let data = folder.join("postgres");
        let programs = Programs::find(&environment(), made_by(&data)?, account)?;
        if !data.exists() {
            create(&folder, &data, &programs, account)?;
        }
        if let Some(socket_folder) = running(&data, &programs)? {
            tracing::info!("taking over the database that an earlier run left");
            let child = None;
            return Ok(Self { data, socket_folder, programs, child, stopped: false, _lock: lock });
        }
        let socket_folder = socket::make_folder(&folder)?;
        if let Some(account) = account {
            account.own(&socket_folder)?;
        }
        let child = Some(serve(&folder, &data, &socket_folder, &programs)?);
        Ok(Self { data, socket_folder, programs, child, stopped: false, _lock: lock })
    }

    /// The address of the database, for `DATABASE_URL`.
    pub fn url(&self) -> String {
        let host = socket::percent_encoded(&self.socket_folder);
        format!("postgres://{USER}@localhost:{PORT}/{DATABASE}?host={host}")
    }

    /// Ends all connections and stops the server, within a bounded time.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.halt()
    }

    fn halt(&mut self) -> anyhow::Result<()> {
        if std::mem::replace(&mut self.stopped, true) {
            return Ok(());
        }
        halt(&self.data, &self.programs)?;
        if let Some(mut child) = self.child.take() {
            child.wait()?;
        }
        let _ = fs::remove_dir(&self.socket_folder);
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Err(error) = self.halt() {
            tracing::warn!("the private database did not stop: {error:#}");
        }
    }
}

fn lock(folder: &Path) -> anyhow::Result<File> {
    let path = folder.join("lock");
    let lock = private_file().truncate(false).open(&path);
    let lock = lock.with_context(|| format!("{} cannot be opened", path.display()))?;
    if lock.try_lock().is_err() {
        bail!("another Postroom uses the data folder {}", folder.display());
    }
    Ok(lock)
}

/// What others could read, or lock, where they may pass through the data folder.
fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).mode(0o600);
    options
}

/// The version that made the data; none when there are no data.
fn made_by(data: &Path) -> anyhow::Result<Option<u32>> {
    if !data.exists() {
        return Ok(None);
    }
    let version = fs::read_to_string(data.join("PG_VERSION"))
        .with_context(|| format!("{} is not a PostgreSQL of this user", data.display()))?;
    Ok(version.trim().parse().ok())
}

/// Makes cluster and database beside their place and moves them there when they are complete, so
/// that an interrupted first run leaves nothing that looks finished.
fn create(
    folder: &Path,
    data: &Path,
    programs: &Programs,
    account: Option<Account>,
) -> anyhow::Result<()> {
    let draft = folder.join("postgres.new");
    if draft.exists() {
        fs::remove_dir_all(&draft)?;
    }
    fs::create_dir(&draft)?;
    if let Some(account) = account {
        account.own(&draft)?;
    }
    let mut initdb = programs.command("initdb");
    initdb.arg("--pgdata").arg(&draft).args(["--username", USER, "--auth", "trust"]);
    initdb.args(["--encoding", "UTF8", "--no-locale"]);
    programs.run(&mut initdb, "making the database cluster")?;

    let mut single = programs.command("postgres");
    single.args(["--single", "-j", "-D"]).arg(&draft).arg("postgres");
    single.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = single.spawn().context("postgres cannot be run")?;
    let mut input = child.stdin.take().context("postgres has no input")?;
    input.write_all(format!("create database {DATABASE};\n").as_bytes())?;
    drop(input);
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || said.contains("ERROR:") {
        bail!("making the database failed ({}): {}", output.status, said.trim());
    }
    fs::rename(&draft, data).context("the new cluster cannot be moved to its place")
}

/// Looks for a server that an earlier run left: its sockets, if it serves. One that does not is
/// stopped, and what a dead one left is cleared away.
fn running(data: &Path, programs: &Programs) -> anyhow::Result<Option<PathBuf>> {
    let deadline = Instant::now() + START_PATIENCE;
    while let Some(left) = PidFile::read(data) {
        if !left.is_alive(data) {
            fs::remove_file(PidFile::path(data))?;
            let _ = left.socket_folder.map(socket::clear_folder);
            return Ok(None);
        }
        match left.socket_folder {
            Some(folder) if left.ready => {
                if UnixStream::connect(socket::path(&folder, PORT)).is_ok() {
                    return Ok(Some(folder));
                }
                halt(data, programs)?;
            }
            _ if Instant::now() > deadline => halt(data, programs)?,
            _ => thread::sleep(PAUSE),
        }
    }
    Ok(None)
}

fn halt(data: &Path, programs: &Programs) -> anyhow::Result<()> {
    if PidFile::read(data).is_none_or(|left| !left.is_alive(data)) {
        return Ok(());
    }
    let mut stop = programs.command("pg_ctl");
    stop.arg("stop").arg("-D").arg(data).args(["-m", "fast", "-w", "-t", STOP_PATIENCE_SECONDS]);
    let fast = programs.run(&mut stop, "stopping the database");
    if fast.is_ok() || PidFile::read(data).is_none_or(|left| !left.is_alive(data)) {
        return Ok(());
    }
    let mut stop = programs.command("pg_ctl");
    stop.arg("stop").arg("-D").arg(data).args(["-m", "immediate", "-w", "-t", "5"]);
    programs.run(&mut stop, "stopping the database at once")
}

/// Starts the server and waits until it takes connections. Backends of a killed server may hold
/// its memory for a moment, which is the one failure worth another try.
fn serve(
    folder: &Path,
    data: &Path,
    socket_folder: &Path,
    programs: &Programs,
) -> anyhow::Result<Child> {
    let log = folder.join("postgres.log");
    let deadline = Instant::now() + START_PATIENCE;
    loop {
        let mut child = spawn(&log, data, socket_folder, programs)?;
        let ended = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if PidFile::read(data).is_some_and(|file| file.pid == child.id() && file.ready) {
                return Ok(child);
            }
            if Instant::now() > deadline {
                let _ = halt(data, programs);
                let _ = child.kill();
                child.wait()?;
                bail!("the database was not ready after {} s", START_PATIENCE.as_secs());
            }
            thread::sleep(PAUSE);
        };
        let said = fs::read_to_string(&log).unwrap_or_default();
        if !said.contains("still in use") || Instant::now() > deadline {
            let fatal = said.lines().rev().find(|line| line.contains("FATAL:"));
            let reason = fatal.unwrap_or("it said nothing");
            bail!("the database ended at its start ({ended}, see {}): {reason}", log.display());
        }
        thread::sleep(10 * PAUSE);
    }
}

fn spawn(
    log: &Path,
    data: &Path,
    socket_folder: &Path,
    programs: &Programs,
) -> anyhow::Result<Child> {
    let output = private_file().truncate(true).open(log);
    let output = output.with_context(|| format!("{} cannot be made", log.display()))?;
    let mut server = programs.command("postgres");
    server.arg("-D").arg(data).arg("-k").arg(socket_folder);
    server.args(["-c", "listen_addresses=", "-c", "logging_collector=off"]);
    server.args(["-c", "log_destination=stderr", "-c", "max_connections=100", "-p"]);
    server.arg(PORT.to_string()).process_group(0);
    server.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    server.spawn().context("postgres cannot be run")
}

#[cfg(test)]
mod tests;
