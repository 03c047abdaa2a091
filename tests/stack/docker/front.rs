//! A front before the real engine: it passes on, stays mute, answers by itself, or speaks as an
//! engine of another version would. One connection is one request, as our client makes them.

use std::{path::PathBuf, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, UnixStream},
};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// What becomes of a request.
#[derive(Clone)]
pub enum Rule {
    Pass,
    /// It is taken, and nobody answers.
    Mute,
    /// This status with this text.
    Say(u16, &'static str),
}

/// Decides by method and path.
pub type Rules = fn(&str, &str) -> Rule;

pub struct Front {
    pub address: String,
    _serving: AbortOnDropHandle<()>,
}

impl Front {
    /// In clear.
    pub async fn start(engine: &str, rules: Rules) -> Self {
        Self::with_tls(engine, rules, None).await
    }

    pub async fn with_tls(
        engine: &str,
        rules: Rules,
        tls: Option<tokio_rustls::TlsAcceptor>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let engine = Arc::new(PathBuf::from(engine));
        let tasks = TaskTracker::new();
        let connections = tasks.clone();
        let serving = AbortOnDropHandle::new(tasks.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (engine, tls) = (engine.clone(), tls.clone());
                connections.spawn(async move {
                    match tls {
                        None => pass(client, &engine, rules).await,
                        Some(tls) => match tls.accept(client).await {
                            Ok(client) => pass(client, &engine, rules).await,
                            Err(_) => None,
                        },
                    }
                });
            }
        }));
        Self { address, _serving: serving }
    }
}

async fn pass(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    engine: &PathBuf,
    rules: Rules,
) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).ok()?;
    let (line, rest) = head.split_once("\r\n")?;
    let mut words = line.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    match rules(method, path) {
        Rule::Mute => {
            // Until the client has had enough.
            let _gone = tokio::io::copy(&mut client, &mut tokio::io::sink()).await;
        }
        Rule::Say(status, text) => {
            let body = format!("{{\"message\":\"{text}\"}}");
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
            );
            client.write_all(answer.as_bytes()).await.ok()?;
        }
        Rule::Pass => {
            let path = without_version(path);
            let mut engine = UnixStream::connect(engine).await.ok()?;
            engine
                .write_all(format!("{method} {path} HTTP/1.1\r\n{rest}").as_bytes())
                .await
                .ok()?;
            tokio::io::copy_bidirectional(&mut client, &mut engine).await.ok()?;
        }
    }
    Some(())
}

/// The version that a path asks for, as 53 in `/v1.53/info`.
pub fn version(path: &str) -> Option<u32> {
    path.strip_prefix("/v1.")?.split('/').next()?.parse().ok()
}

fn without_version(path: &str) -> &str {
    match version(path) {
        Some(_) => {
            path.find('/').and_then(|_| path[1..].find('/')).map_or(path, |at| &path[at + 1..])
        }
        None => path,
    }
}
