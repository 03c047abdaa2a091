//! Asks a Postroom whether it is well: one plain HTTP request, for `healthcheck` and `dev`.

use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST: u64 = 64 * 1024;

/// Fails unless the URL (`http` only) answers 200.
pub async fn probe(url: &str) -> anyhow::Result<()> {
    let status = tokio::time::timeout(PATIENCE, status(url))
        .await
        .with_context(|| format!("{url} does not answer in time"))??;
    if status != 200 {
        bail!("{url} answers {status}");
    }
    Ok(())
}

async fn status(url: &str) -> anyhow::Result<u16> {
    let rest = url.strip_prefix("http://").context("the URL must begin with http://")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = if has_port { authority.to_owned() } else { format!("{authority}:80") };
    let mut stream =
        TcpStream::connect(&address).await.with_context(|| format!("{url} cannot be reached"))?;
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(LONGEST).read_to_end(&mut answer).await?;
    let head = String::from_utf8_lossy(&answer);
    let mut words = head.split_ascii_whitespace();
    let version = words.next().filter(|word| word.starts_with("HTTP/1."));
    version
        .and_then(|_| words.next()?.parse().ok())
        .with_context(|| format!("{url} does not answer as HTTP does"))
}
