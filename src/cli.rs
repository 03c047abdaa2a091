//! The command line. A wrong setting, like a wrong argument, ends with status 2.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use chrono::TimeDelta;
use clap::{Parser, Subcommand};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    accounts::api_keys::{self, NewKey, Scope},
    app,
    audit::Who,
    config::{self, Config, Environment, Problems},
    database, dev,
    operate::{doctor, probe::probe},
    router,
    secrets::SecretRing,
    sending::Sending,
    serve, telemetry,
};

/// A self-hosted sending service that tells the truth about every message.
#[derive(Debug, Parser)]
#[command(name = "postroom", version)]
struct Cli {
    /// The configuration file (TOML); the environment wins over it.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve; brings the database up to date first.
    Serve {
        /// Run the built-in mail sandbox as a relay.
        #[arg(long)]
        sandbox: bool,
    },
    /// Run everything on this machine, with a private database and a mail sandbox.
    Dev(dev::run::Args),
    /// Bring the database up to date.
    Migrate,
    /// Make an API key, and print it this once.
    CreateApiKey {
        /// What the key is for.
        #[arg(long)]
        name: String,
        /// send, read, admin; with commas.
        #[arg(long, value_delimiter = ',', required = true, value_parser = scope)]
        scopes: Vec<Scope>,
        /// The key stops working after this many days.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..=36_500))]
        expires_in_days: Option<u32>,
    },
    /// Write the OpenAPI document.
    Openapi {
        /// Where to; standard output if absent.
        file: Option<PathBuf>,
    },
    /// Ask a running Postroom whether it is well.
    Healthcheck {
        /// The URL of its health page; this machine's if absent.
        #[arg(long)]
        url: Option<String>,
    },
    /// Look for what is wrong, and say how to mend it. Ends with status 0 if all is well, 1 after a
    /// warning, 2 after a failure.
    Doctor {
        /// One JSON document instead of the table.
        #[arg(long)]
        json: bool,
    },
    /// Look at the settings.
    #[command(subcommand)]
    Config(Look),
}

#[derive(Debug, Subcommand)]
enum Look {
    /// Every setting, its value (secrets masked), and where it comes from.
    Print,
}

fn scope(text: &str) -> Result<Scope, String> {
    match text.trim() {
        "send" => Ok(Scope::Send),
        "read" => Ok(Scope::Read),
        "admin" => Ok(Scope::Admin),
        _ => Err("must be send, read or admin".to_owned()),
    }
}

/// The whole program.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("postroom: no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let ended = runtime.block_on(run(cli));
    // What was cut off, and may block, must not keep the process.
    runtime.shutdown_background();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<Unwell>() => {
            ExitCode::from(error.downcast::<Unwell>().map_or(2, |it| it.0))
        }
        Err(error) => match error.downcast_ref::<Problems>() {
            Some(problems) => {
                eprintln!("{problems}");
                ExitCode::from(2)
            }
            None => {
                eprintln!("postroom: {error:#}");
                ExitCode::FAILURE
            }
        },
    }
}

async fn run(cli: Cli) -> anyhow::Result<()> {
    let mut env = config::environment();
    match cli.command {
        Command::Serve { sandbox } => {
            if sandbox {
                env.insert("POSTROOM_SANDBOX".to_owned(), "true".to_owned());
            }
            serve(load(&env, cli.config)?).await
        }
        Command::Dev(args) => {
            let file = config::file_text(&env, cli.config.as_deref())?;
            dev::run::run(args, env, file, on_signals()?).await
        }
        Command::Migrate => {
            let config = load(&env, cli.config)?;
            let pools = database::open(&config.database).await?;
            database::migrate(&pools.workers).await?;
            println!("the database is up to date");
            Ok(())
        }
        Command::CreateApiKey { name, scopes, expires_in_days } => {
            let expires_at =
                expires_in_days.map(|days| app::now() + TimeDelta::days(i64::from(days)));
            create_api_key(load(&env, cli.config)?, name, scopes, expires_at).await
        }
        Command::Openapi { file } => openapi(file),
        Command::Healthcheck { url } => probe(&url.unwrap_or_else(|| own_health(&env))).await,
        Command::Doctor { json } => doctor(&env, cli.config.as_deref(), json).await,
        Command::Config(Look::Print) => {
            let file = config::file_text(&env, cli.config.as_deref())?;
            let explained = config::explain(&env, file.as_deref(), &Environment::new());
            print!("{}", config::print(&explained.settings));
            Ok(explained.config.map(drop)?)
        }
    }
}

fn load(env: &Environment, named: Option<PathBuf>) -> anyhow::Result<Config> {
    let file = config::file_text(env, named.as_deref())?;
    let config = Config::load(env, file.as_deref())?;
    telemetry::init(&config.log);
    Ok(config)
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let stop = on_signals()?;
    let address = config.http.address();
    let opened = tokio::select! {
        opened = serve::open(config, true) => Some(opened?),
        () = stop.cancelled() => None,
    };
    let Some(house) = opened else { return Ok(()) };
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("{address} cannot be listened on"))?;
    tracing::info!(address = %listener.local_addr()?, "listening");
    serve::run(house, listener, stop).await
}

/// Works with whatever there is of settings; what it found stands in the exit code.
async fn doctor(env: &Environment, named: Option<&Path>, json: bool) -> anyhow::Result<()> {
    let (text, file) = match config::file_text(env, named) {
        Ok(text) => (text, None),
        Err(error) => (None, Some(format!("{error:#}"))),
    };
    let settings = config::salvage(env, text.as_deref());
    let app = match &settings.config {
        Some(config) => Some(serve::app(config.clone(), &database::pools(&config.database)?)),
        None => None,
    };
    let checks = doctor::examine(&doctor::Patient { settings, file, app }).await;
    print!("{}", if json { doctor::json(&checks) } else { doctor::table(&checks) });
    match doctor::verdict(&checks).1 {
        0 => Ok(()),
        code => Err(Unwell(code).into()),
    }
}

/// The doctor found something, and has said it.
#[derive(Debug, thiserror::Error)]
#[error("something is not well")]
struct Unwell(u8);

async fn create_api_key(
    config: Config,
    name: String,
    scopes: Vec<Scope>,
    expires_at: Option<chrono::DateTime<chrono::Utc>>,
) -> anyhow::Result<()> {
    let pools = database::pools(&config.database)?;
    let app = serve::app(config, &pools);
    let new = NewKey {
        name,
        scopes,
        suppression_exempt: false,
        sender_domains: None,
        sender_addresses: None,
        networks: None,
        on_unknown: None,
        expires_at,
    };
    match api_keys::create(&app, &Who::command_line(), new).await {
        Ok((_, plain)) => {
            println!("{plain}");
            Ok(())
        }
        Err(crate::error::Error::Invalid { issues, .. }) => {
            let said: Vec<_> =
                issues.iter().map(|issue| format!("{}: {}", issue.path, issue.message)).collect();
            bail!("{}", said.join("; "))
        }
        Err(error) => Err(error).context("the key could not be made"),
    }
}

/// The document of everything, the sandbox too. Needs no database: nothing is asked of it.
fn openapi(file: Option<PathBuf>) -> anyhow::Result<()> {
    let settings = [
        ("DATABASE_URL", "postgres://nobody@localhost/none".to_owned()),
        ("POSTROOM_SECRET_KEY", SecretRing::generate("none")),
        ("POSTROOM_SANDBOX", "true".to_owned()),
    ];
    let env = settings.map(|(name, value)| (name.to_owned(), value)).into();
    let config = Config::load(&env, None)?;
    let pools = database::pools(&config.database)?;
    let app = serve::app(config, &pools);
    let sending = Sending::idle(&app, &TaskTracker::new());
    let mut text = router::openapi(&app, &sending).to_pretty_json()?;
    text.push('\n');
    match file {
        Some(file) => std::fs::write(&file, text)
            .with_context(|| format!("{} cannot be written", file.display())),
        None => {
            print!("{text}");
            Ok(())
        }
    }
}

fn own_health(env: &Environment) -> String {
    let port = env.get("PORT").map(|port| port.trim()).filter(|port| !port.is_empty());
    let port = port.and_then(|port| port.parse().ok()).unwrap_or(3050);
    format!("http://{}/health", SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

/// A token that the first SIGTERM or Ctrl-C cancels; the second one ends the process at once.
fn on_signals() -> anyhow::Result<CancellationToken> {
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = CancellationToken::new();
    TaskTracker::new().spawn({
        let stop = stop.clone();
        async move {
            for round in 0..2 {
                tokio::select! {
                    _ = terminate.recv() => (),
                    _ = interrupt.recv() => (),
                }
                if round == 0 {
                    stop.cancel();
                }
            }
            std::process::exit(130);
        }
    });
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn scopes_are_given_with_commas() {
        let args = ["postroom", "create-api-key", "--name", "a", "--scopes", "send,read"];
        let Command::CreateApiKey { scopes, .. } = Cli::parse_from(args).command else {
            panic!("another command");
        };
        assert_eq!(scopes, [Scope::Send, Scope::Read]);
        let wrong = ["postroom", "create-api-key", "--name", "a", "--scopes", "root"];
        assert!(Cli::try_parse_from(wrong).is_err());
    }
}
