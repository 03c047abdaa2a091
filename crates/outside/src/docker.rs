//! The Docker engine: whether it answers.

use std::{path::Path, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpStream, UnixStream},
};

const PATIENCE: Duration = Duration::from_secs(3);
const LONGEST: u64 = 16 * 1024;

/// Why the engine cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EngineFault {
    #[error("it cannot be reached: {0}")]
    Unreached(#[from] std::io::Error),
    #[error("it does not answer within {} s", PATIENCE.as_secs())]
    Silent,
    #[error("it answers {0}")]
    Refused(String),
}

/// Asks the engine behind a socket whether it is there.
pub async fn ping_socket(path: &Path) -> Result<(), EngineFault> {
    within(async { ping(UnixStream::connect(path).await?).await }).await
}

/// Asks the engine at `host:port`.
pub async fn ping_host(host: &str) -> Result<(), EngineFault> {
    within(async { ping(TcpStream::connect(host).await?).await }).await
}

async fn within(ping: impl Future<Output = Result<(), EngineFault>>) -> Result<(), EngineFault> {
    tokio::time::timeout(PATIENCE, ping).await.unwrap_or(Err(EngineFault::Silent))
}

async fn ping(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<(), EngineFault> {
    stream.write_all(b"GET /_ping HTTP/1.1\r\nHost: docker\r\nConnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.take(LONGEST).read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    let line = answer.lines().next().unwrap_or_default();
    match line.split_ascii_whitespace().nth(1) {
        Some("200") => Ok(()),
        _ if line.is_empty() => Err(EngineFault::Refused("nothing".to_owned())),
        _ => Err(EngineFault::Refused(line.chars().take(100).collect())),
    }
}
