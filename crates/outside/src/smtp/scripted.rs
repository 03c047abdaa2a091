//! A server that follows a script: one connection, step by step, and every surprise is a panic.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;

enum Step {
    Expect(String),
    Batch(Vec<String>),
    Body(String),
    Send(Vec<u8>),
    Delay(Duration),
    Tls(Arc<ServerConfig>),
    FailTls(Arc<ServerConfig>),
    Gone,
    Close,
}

/// What the server does. A script that ends hangs: the connection stays open, mute, until the
/// client leaves.
#[derive(Default)]
pub(super) struct Script(Vec<Step>);

pub(super) struct Peer {
    pub(super) address: SocketAddr,
    task: JoinHandle<()>,
}

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

impl Script {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// The greeting, EHLO, and what is offered.
    pub(super) fn greets(self, offers: &[&str]) -> Self {
        self.send("220 scripted ESMTP").hello(offers)
    }

    pub(super) fn hello(self, offers: &[&str]) -> Self {
        let lines: Vec<String> = offers.iter().map(|offer| format!("250-{offer}\r\n")).collect();
        self.expect("EHLO client.example")
            .raw(&format!("250-scripted\r\n{}250 HELP\r\n", lines.concat()))
    }

    /// One line from the client.
    pub(super) fn expect(self, line: &str) -> Self {
        self.then(Step::Expect(line.to_owned()))
    }

    /// These lines, all of them before anything is answered.
    pub(super) fn batch(self, lines: &[&str]) -> Self {
        self.then(Step::Batch(lines.iter().map(|&line| line.to_owned()).collect()))
    }

    /// These very bytes, the final dot among them if it is to come.
    pub(super) fn body(self, bytes: &str) -> Self {
        self.then(Step::Body(bytes.to_owned()))
    }

    /// One line, or several.
    pub(super) fn send(self, lines: &str) -> Self {
        self.raw(&format!("{}\r\n", lines.replace('\n', "\r\n")))
    }

    pub(super) fn raw(self, bytes: &str) -> Self {
        self.then(Step::Send(bytes.as_bytes().to_vec()))
    }

    pub(super) fn delay(self, time: Duration) -> Self {
        self.then(Step::Delay(time))
    }

    pub(super) fn tls(self, config: &Arc<ServerConfig>) -> Self {
        self.then(Step::Tls(config.clone()))
    }

    /// A handshake that the client breaks off.
    pub(super) fn fail_tls(self, config: &Arc<ServerConfig>) -> Self {
        self.then(Step::FailTls(config.clone()))
    }

    /// The client leaves, and says nothing more.
    pub(super) fn gone(self) -> Self {
        self.then(Step::Gone)
    }

    pub(super) fn close(self) -> Self {
        self.then(Step::Close)
    }

    fn then(mut self, step: Step) -> Self {
        self.0.push(step);
        self
    }

    pub(super) async fn start(self) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = TaskTracker::new().spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            self.play(Box::new(stream)).await;
        });
        Peer { address, task }
    }

    async fn play(self, mut stream: Box<dyn Duplex>) {
        for step in self.0 {
            match step {
                Step::Expect(line) => hear(&mut stream, &format!("{line}\r\n")).await,
                Step::Batch(lines) => hear(&mut stream, &(lines.join("\r\n") + "\r\n")).await,
                Step::Body(bytes) => hear(&mut stream, &bytes).await,
                Step::Send(bytes) => stream.write_all(&bytes).await.unwrap(),
                Step::Delay(time) => tokio::time::sleep(time).await,
                Step::Tls(config) => {
                    stream = Box::new(TlsAcceptor::from(config).accept(stream).await.unwrap());
                }
                Step::FailTls(config) => {
                    assert!(TlsAcceptor::from(config).accept(stream).await.is_err());
                    return;
                }
                Step::Gone => {
                    let mut rest = Vec::new();
                    let _ = stream.read_to_end(&mut rest).await;
                    assert_eq!(String::from_utf8_lossy(&rest), "", "the client should have left");
                    return;
                }
                Step::Close => {
                    let _ = stream.shutdown().await;
                    return;
                }
            }
        }
        let _ = stream.read_to_end(&mut Vec::new()).await;
    }
}

impl Peer {
    /// The script was played to its end. The client must have left.
    pub(super) async fn done(self) {
        self.task.await.unwrap();
    }
}

async fn hear(stream: &mut Box<dyn Duplex>, expected: &str) {
    let mut heard = vec![0; expected.len()];
    let mut n = 0;
    while n < heard.len() && expected.as_bytes().starts_with(&heard[..n]) {
        match stream.read(&mut heard[n..]).await.unwrap() {
            0 => break,
            more => n += more,
        }
    }
    assert_eq!(String::from_utf8_lossy(&heard[..n]), expected);
}
