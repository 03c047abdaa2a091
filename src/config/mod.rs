//! Every setting: read once at the start, checked completely, and never read again elsewhere.
//!
//! Later sources win: built-in default, generated value (first run), TOML file, environment. An
//! empty text is no value. All wrong values are named together. The loader is a function of its
//! arguments; only [`environment()`] looks at the process.

mod credentials;
mod database;
mod environment;
mod file;
mod http;
mod log;
mod neighbours;
mod network;
mod operation;
mod problem;
mod queue;
mod reader;
mod retention;
mod salvage;
mod sending;
mod show;
mod value;

pub use credentials::{CredentialError, SmtpCredentialEnv};
pub use database::Database;
pub use environment::{Environment, environment, machine_name};
pub use http::Http;
pub use log::{Log, LogFormat, LogLevel};
pub use neighbours::{Dns, Docker};
pub use network::RelayNetworks;
pub use operation::{Dev, Metrics, Ready, Sandbox, Secrets, Stop};
pub use problem::{Problem, Problems};
pub use queue::Queue;
pub use reader::{Origin, Shown};
pub use retention::Retention;
pub use salvage::{Salvaged, salvage};
pub use sending::{Sending, SmtpDeadlines};
pub use show::{documentation, print};

use anyhow::Context as _;
use reader::Reader;
use std::path::Path;

/// The checked settings, one struct per concern.
#[derive(Debug, Clone)]
pub struct Config {
    pub http: Http,
    pub database: Database,
    pub queue: Queue,
    pub sending: Sending,
    pub secrets: Secrets,
    pub log: Log,
    pub metrics: Metrics,
    pub ready: Ready,
    pub stop: Stop,
    pub retention: Retention,
    pub sandbox: Sandbox,
    pub dns: Dns,
    pub docker: Docker,
    pub dev: Dev,
    /// The variables that relays may name for their credentials.
    pub smtp_credentials: SmtpCredentialEnv,
}

/// What the settings are and where they came from, also when some of them are wrong.
#[derive(Debug)]
pub struct Explained {
    pub settings: Vec<Shown>,
    pub config: Result<Config, Problems>,
}

impl Config {
    /// Reads the settings from an environment and the text of a TOML file.
    pub fn load(env: &Environment, file: Option<&str>) -> Result<Self, Problems> {
        explain(env, file, &Environment::new()).config
    }

    /// As [`load`](Self::load), with values that were generated for a first run. They stand above
    /// the defaults and below whatever the operator says.
    pub fn load_with(
        env: &Environment,
        file: Option<&str>,
        generated: &Environment,
    ) -> Result<Self, Problems> {
        explain(env, file, generated).config
    }

    /// The defaults over a database of a test: any free loopback port, a key of its own.
    pub fn for_tests(database_url: &str) -> Self {
        let pairs = [
            ("HOST", "127.0.0.1".to_owned()),
            ("PORT", "0".to_owned()),
            ("DATABASE_URL", database_url.to_owned()),
            ("POSTROOM_DATABASE_API_CONNECTIONS", "4".to_owned()),
            ("POSTROOM_DATABASE_WORKER_CONNECTIONS", "4".to_owned()),
            ("POSTROOM_HELO_NAME", "postroom.test".to_owned()),
            ("POSTROOM_SECRET_KEY", crate::secrets::SecretRing::generate("test")),
        ];
        let env = pairs.map(|(name, value)| (name.to_owned(), value)).into();
        Self::load(&env, None).expect("the settings of tests are valid")
    }
}

/// Reads everything and keeps the account of it, for `config print`.
pub fn explain(env: &Environment, file: Option<&str>, generated: &Environment) -> Explained {
    let mut reader = Reader::new(env, file, generated);
    let http = Http::read(&mut reader);
    let database = Database::read(&mut reader);
    let queue = Queue::read(&mut reader);
    let sending = Sending::read(&mut reader);
    let secrets = Secrets::read(&mut reader);
    let log = Log::read(&mut reader);
    let metrics = Metrics::read(&mut reader);
    let ready = Ready::read(&mut reader);
    let stop = Stop::read(&mut reader);
    let retention = Retention::read(&mut reader);
    let sandbox = Sandbox::read(&mut reader);
    let dns = Dns::read(&mut reader);
    let docker = Docker::read(&mut reader);
    let dev = Dev::read(&mut reader);
    let (settings, problems) = reader.finish();
    let config = match (database, secrets) {
        (Some(database), Some(secrets)) if problems.is_empty() => {
            let smtp_credentials = SmtpCredentialEnv::capture(env, &settings);
            Ok(Config {
                http,
                database,
                queue,
                sending,
                secrets,
                log,
                metrics,
                ready,
                stop,
                retention,
                sandbox,
                dns,
                docker,
                dev,
                smtp_credentials,
            })
        }
        _ => Err(problems),
    };
    Explained { settings, config }
}

/// The text of the configuration file: the one named on the command line, else the one that
/// `POSTROOM_CONFIG` names, else none. A named file that cannot be read is an error.
pub fn file_text(env: &Environment, named: Option<&Path>) -> anyhow::Result<Option<String>> {
    let from_env = env.get("POSTROOM_CONFIG").map(|path| path.trim()).filter(|p| !p.is_empty());
    let Some(path) = named.or(from_env.map(Path::new)) else { return Ok(None) };
    std::fs::read_to_string(path)
        .map(Some)
        .with_context(|| format!("the configuration file {} cannot be read", path.display()))
}

#[cfg(test)]
mod tests;
