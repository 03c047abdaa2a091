//! `postroom dev`: everything on one machine, with nothing to set up.

use std::{
    io::{self, Write as _},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, bail};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::{net::TcpListener, task::spawn_blocking, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{Cluster, default_folder, keep_secrets, prepare};
use crate::{
    accounts::api_keys::{self, KeyMode, NewKey, Scope},
    app::App,
    audit::Who,
    config::{Config, Environment},
    error::Error,
    operate::probe::probe,
    serve, telemetry,
};

const PORT: u16 = 3050;
const READY: Duration = Duration::from_secs(30);
const CLOSING: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Where the data are kept; a place of this user if absent.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Where to listen; 127.0.0.1:3050 if absent, or a free port if that one is taken.
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    pub listen: Option<SocketAddr>,
    /// Say where everything is as one line of JSON.
    #[arg(long)]
    pub json: bool,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let numeric = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    numeric.parse().map_err(|_| "must be an IP address and a port, as in 127.0.0.1:3050".to_owned())
}

/// Runs until told to stop. The database goes last.
pub async fn run(
    args: Args,
    env: Environment,
    file: Option<String>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let folder = args.data_dir.clone().map_or_else(|| default_folder(&env), Ok)?;
    let folder = spawn_blocking(move || prepare(&folder)).await??;
    let place = folder.clone();
    let cluster = spawn_blocking(move || Cluster::start(&place)).await??;
    let lived = live(&args, env, file, &cluster, &folder, &stop).await;
    let halted = spawn_blocking(move || cluster.stop()).await?;
    lived?;
    halted.context("the private database did not stop")
}

async fn live(
    args: &Args,
    env: Environment,
    file: Option<String>,
    cluster: &Cluster,
    folder: &Path,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    if stop.is_cancelled() {
        return Ok(());
    }
    let kept = keep_secrets(folder)?;
    let config = settings(args, env, file.as_deref(), &cluster.url(), &kept.secret_key)?;
    telemetry::init(&config.log);
    let listener = listen(config.http.address(), args.listen.is_none()).await?;
    let url = format!("http://{}", reachable(listener.local_addr()?));
    let house = serve::open(config, true).await?;
    first_key(&house.app, &kept.api_key).await.with_context(|| {
        format!(
            "the kept key {} cannot be used; remove it for a new one",
            folder.join("api-key").display()
        )
    })?;
    let pools = house.pools();
    let sandbox = house.sandbox_address().map(|address| address.to_string()).unwrap_or_default();
    let announced = async {
        let answers = tokio::select! {
            answers = ready(&url) => answers,
            () = stop.cancelled() => return Ok(()),
        };
        let said = answers.and_then(|()| {
            let key = kept.api_key.expose_secret();
            let text = if args.json {
                json(&url, key, &sandbox)
            } else {
                friendly(&url, key, &sandbox, folder)
            };
            let mut out = io::stdout().lock();
            Ok(writeln!(out, "{text}").and_then(|()| out.flush())?)
        });
        if said.is_err() {
            stop.cancel();
        }
        said
    };
    let (served, announced) = tokio::join!(serve::run(house, listener, stop.clone()), announced);
    // One that is on its way back would meet a database that is stopping, and complain.
    let _ = tokio::time::timeout(CLOSING, pools.close()).await;
    served.and(announced)
}

/// The database and the keys are always our own: a variable that is set for a production on the
/// same machine must not lead there. All else an operator may say otherwise.
fn settings(
    args: &Args,
    mut env: Environment,
    file: Option<&str>,
    database: &str,
    secret_key: &SecretString,
) -> anyhow::Result<Config> {
    let own = [("DATABASE_URL", database), ("POSTROOM_SECRET_KEY", secret_key.expose_secret())];
    for (name, value) in own {
        env.remove(&format!("{name}_FILE"));
        env.insert(name.to_owned(), value.to_owned());
    }
    if let Some(listen) = args.listen {
        env.insert("HOST".to_owned(), listen.ip().to_string());
        env.insert("PORT".to_owned(), listen.port().to_string());
    }
    let generated = [
        ("HOST", "127.0.0.1".to_owned()),
        ("PORT", PORT.to_string()),
        ("LOG_FORMAT", "text".to_owned()),
        ("LOG_LEVEL", "warn".to_owned()),
        ("POSTROOM_SANDBOX", "true".to_owned()),
    ];
    let generated = generated.map(|(name, value)| (name.to_owned(), value)).into();
    Ok(Config::load_with(&env, file, &generated)?)
}

/// The usual port may be taken, and then any other will do; one that was asked for must be free.
async fn listen(address: SocketAddr, usual: bool) -> anyhow::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Err(error)
            if error.kind() == io::ErrorKind::AddrInUse && usual && address.port() == PORT =>
        {
            Ok(TcpListener::bind((address.ip(), 0)).await?)
        }
        bound => bound.with_context(|| format!("{address} cannot be listened on")),
    }
}

fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

async fn first_key(app: &App, plain: &SecretString) -> anyhow::Result<()> {
    let plain = plain.expose_secret();
    match api_keys::authenticate(app, plain).await {
        Ok(_) => return Ok(()),
        Err(Error::Unauthenticated) => (),
        Err(error) => return Err(error.into()),
    }
    if !crate::secrets::is_api_key(plain) {
        bail!("it is not 64 hexadecimal characters");
    }
    let new = NewKey {
        name: "first key of postroom dev".to_owned(),
        scopes: vec![Scope::Send, Scope::Read, Scope::Admin],
        mode: KeyMode::Live,
        suppression_exempt: false,
        sender_domains: None,
        sender_addresses: None,
        networks: None,
        on_unknown: None,
        expires_at: None,
    };
    api_keys::create_from(app, &Who::command_line(), new, plain).await?;
    Ok(())
}

/// Waits until requests are answered, whatever the answer of the first ones is.
async fn ready(url: &str) -> anyhow::Result<()> {
    let until = Instant::now() + READY;
    loop {
        match probe(&format!("{url}/health")).await {
            Ok(()) => return Ok(()),
            Err(error) if Instant::now() >= until => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

fn json(url: &str, key: &str, sandbox: &str) -> String {
    serde_json::json!({ "url": url, "apiKey": key, "sandboxSmtp": sandbox }).to_string()
}

fn friendly(url: &str, key: &str, sandbox: &str, folder: &Path) -> String {
    let body = r#"{"to":"you@example.com","subject":"Hello","text":"It works."}"#;
    let send = format!(
        "curl {url}/send -H 'X-Api-Key: {key}' -H 'Content-Type: application/json' -d '{body}'"
    );
    let mut text = format!(
        "Postroom is ready at {url}\n\n  API key       {key}\n  mail sandbox  {}\n\nSend a message:\n\n  {send}\n",
        if sandbox.is_empty() { "off" } else { sandbox },
    );
    if !sandbox.is_empty() {
        text.push_str(&format!(
            "\nSee that it arrived (nothing leaves this machine):\n\n  curl {url}/sandbox/messages -H 'X-Api-Key: {key}'\n"
        ));
    }
    text.push_str(&format!("\nCtrl-C stops everything; the data stay in {}", folder.display()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::SecretRing;

    const OURS: &str = "postgres://postroom@localhost:5432/postroom?host=%2Ftmp%2Fx";

    fn args(listen: Option<&str>) -> Args {
        let listen = listen.map(|text| address(text).unwrap());
        Args { data_dir: None, listen, json: false }
    }

    #[test]
    fn the_database_is_ours_whatever_the_environment_says() {
        let env = Environment::from([
            ("DATABASE_URL".to_owned(), "postgres://a@production/b".to_owned()),
            ("POSTROOM_SECRET_KEY_FILE".to_owned(), "/nonexistent".to_owned()),
            ("LOG_LEVEL".to_owned(), "debug".to_owned()),
        ]);
        let key = SecretString::from(SecretRing::generate("dev"));
        let config = settings(&args(None), env, None, OURS, &key).unwrap();
        assert_eq!(config.database.url.expose_secret(), OURS);
        assert_eq!(config.http.address().to_string(), "127.0.0.1:3050");
        assert_eq!(config.log.level, crate::config::LogLevel::Debug);
        assert!(config.sandbox.enabled);
    }

    #[test]
    fn the_command_line_wins_over_the_environment() {
        let env = Environment::from([("PORT".to_owned(), "1".to_owned())]);
        let key = SecretString::from(SecretRing::generate("dev"));
        let config = settings(&args(Some("localhost:4000")), env, None, OURS, &key).unwrap();
        assert_eq!(config.http.address().to_string(), "127.0.0.1:4000");
    }
}
