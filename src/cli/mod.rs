//! The command line. A wrong setting, like a wrong argument, ends with status 2.

mod doctor;
mod healthcheck;
mod import_mailctl;
mod keys;
mod openapi;
mod rekey;
mod serve;
mod signals;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::{
    config::{self, Config, Environment, Problem, Problems},
    database, dev, telemetry,
};
use doctor::Unwell;
use keys::Keys;
use signals::on_signals;

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
    CreateApiKey(keys::New),
    /// List or revoke API keys.
    #[command(subcommand)]
    Keys(Keys),
    /// Write the OpenAPI document.
    Openapi {
        /// Where to; standard output if absent.
        file: Option<PathBuf>,
    },
    /// Write a script that completes commands in this shell.
    Completions { shell: clap_complete::Shell },
    /// Seal every secret again, with the first key of the ring. Servers may run meanwhile, if their ring
    /// has both keys.
    Rekey,
    /// Take over relays, keys and suppressions from the SQLite database of mailctl.
    ImportMailctl(import_mailctl::Args),
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
            serve::serve(load(&env, cli.config)?).await
        }
        Command::Dev(args) => {
            let file = text_of(&env, cli.config.as_deref())?;
            dev::run::run(args, env, file, on_signals()?).await
        }
        Command::Migrate => {
            let config = load(&env, cli.config)?;
            let pools = database::open(&config.database).await?;
            database::migrate(&pools.workers).await?;
            println!("the database is up to date");
            Ok(())
        }
        Command::CreateApiKey(new) => keys::create(load(&env, cli.config)?, new).await,
        Command::Keys(command) => keys::keys(load(&env, cli.config)?, command).await,
        Command::Openapi { file } => openapi::openapi(file),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "postroom", &mut std::io::stdout());
            Ok(())
        }
        Command::ImportMailctl(args) => import_mailctl::import(load(&env, cli.config)?, args).await,
        Command::Rekey => rekey::rekey(load(&env, cli.config)?).await,
        Command::Healthcheck { url } => healthcheck::healthcheck(&env, url).await,
        Command::Doctor { json } => doctor::doctor(&env, cli.config.as_deref(), json).await,
        Command::Config(Look::Print) => {
            let file = text_of(&env, cli.config.as_deref())?;
            let explained = config::explain(&env, file.as_deref(), &Environment::new());
            print!("{}", config::print(&explained.settings));
            Ok(explained.config.map(drop)?)
        }
    }
}

/// The text of the configuration file. One that is named and cannot be read is a wrong setting.
fn text_of(env: &Environment, named: Option<&Path>) -> anyhow::Result<Option<String>> {
    let wrong = |error: anyhow::Error| {
        let reason = format!("{error:#}");
        Problems(vec![Problem { name: "configuration file".to_owned(), value: None, reason }])
    };
    Ok(config::file_text(env, named).map_err(wrong)?)
}

fn load(env: &Environment, named: Option<PathBuf>) -> anyhow::Result<Config> {
    let file = text_of(env, named.as_deref())?;
    let config = Config::load(env, file.as_deref())?;
    telemetry::init(&config.log);
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::api_keys::Scope;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn scopes_are_given_with_commas() {
        let args = ["postroom", "create-api-key", "--name", "a", "--scopes", "send,read"];
        let Command::CreateApiKey(new) = Cli::parse_from(args).command else {
            panic!("another command");
        };
        assert_eq!(new.scopes, [Scope::Send, Scope::Read]);
        let wrong = ["postroom", "create-api-key", "--name", "a", "--scopes", "root"];
        assert!(Cli::try_parse_from(wrong).is_err());
    }
}
