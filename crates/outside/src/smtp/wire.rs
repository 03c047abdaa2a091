//! Bytes out, replies in, each under the deadline of its phase.

use std::{future::Future, io, time::Duration};

use bytes::BytesMut;
use futures_util::FutureExt;
use rustls::pki_types::ServerName;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use x509_parser::extensions::GeneralName;

use super::{
    Deadlines, Fault, FaultKind, Phase, Reply, TlsInfo, reply::ReplyReader, stream::Stream,
};

/// How long to wait for the reply of a server that went away while we were writing.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The service is going away (RFC 5321 §3.8).
const SHUTTING_DOWN: u16 = 421;

/// One connection.
#[derive(Debug)]
pub(super) struct Wire {
    stream: Stream,
    buffer: BytesMut,
    deadlines: Deadlines,
}

impl Wire {
    pub(super) fn new(stream: TcpStream, deadlines: Deadlines) -> Self {
        Self { stream: Stream::Clear(stream), buffer: BytesMut::new(), deadlines }
    }

    /// Makes the handshake. Bytes that came before it were sent in clear by nobody knows whom.
    pub(super) async fn secure(
        mut self,
        connector: TlsConnector,
        name: ServerName<'static>,
    ) -> Result<Self, Fault> {
        let phase = Phase::Tls;
        if !self.buffer.is_empty() {
            return Err(Fault::new(phase, FaultKind::InjectedBytes));
        }
        let Stream::Clear(tcp) = self.stream else {
            return Err(Fault::protocol(phase, "TLS within TLS"));
        };
        let limit = self.deadlines.of(phase);
        let stream =
            within(phase, limit, connector.connect(name, tcp)).await.map_err(
                |fault| match fault.kind {
                    FaultKind::Io(error) => Fault::new(phase, FaultKind::Tls(error)),
                    kind => Fault::new(phase, kind),
                },
            )?;
        self.stream = Stream::Tls(Box::new(stream));
        Ok(self)
    }

    /// `None` in clear.
    pub(super) fn tls_info(&self) -> Option<TlsInfo> {
        let Stream::Tls(stream) = &self.stream else { return None };
        let connection = stream.get_ref().1;
        let version = connection.protocol_version().map(|v| format!("{v:?}"));
        let cipher = connection.negotiated_cipher_suite().map(|c| format!("{:?}", c.suite()));
        let certificate = connection.peer_certificates().and_then(<[_]>::first);
        let parsed = certificate
            .and_then(|it| x509_parser::parse_x509_certificate(it).ok())
            .map(|(_, parsed)| parsed);
        let parsed = parsed.as_ref();
        let names = parsed.and_then(|it| it.subject_alternative_name().ok().flatten());
        Some(TlsInfo {
            version: version.unwrap_or_default(),
            cipher: cipher.unwrap_or_default(),
            expires: parsed.map(|it| it.validity().not_after.timestamp()),
            subject: parsed.map(|it| it.subject().to_string()),
            issuer: parsed.map(|it| it.issuer().to_string()),
            names: names.map_or_else(Vec::new, |it| {
                let name = |it: &GeneralName<'_>| match it {
                    GeneralName::DNSName(name) => Some((*name).to_owned()),
                    _ => None,
                };
                it.value.general_names.iter().filter_map(name).collect()
            }),
        })
    }

    /// Says one command, without its line end, and hears the reply.
    pub(super) async fn ask(&mut self, phase: Phase, command: &str) -> Result<Reply, Fault> {
        self.send(phase, format!("{command}\r\n").as_bytes()).await?;
        self.read(phase).await
    }

    /// Writes all of `bytes` and flushes.
    ///
    /// It is our turn: bytes that have already come would be taken for the reply to what is written
    /// now, and a recipient would get a reply that was not its own.
    pub(super) async fn send(&mut self, phase: Phase, bytes: &[u8]) -> Result<(), Fault> {
        self.expect_silence(phase)?;
        self.write(phase, bytes).await
    }

    /// [`Wire::send`], whatever has come.
    pub(super) async fn write(&mut self, phase: Phase, bytes: &[u8]) -> Result<(), Fault> {
        let stream = &mut self.stream;
        let write = async {
            stream.write_all(bytes).await?;
            stream.flush().await
        };
        match within(phase, self.deadlines.of(phase), write).await {
            Err(Fault { kind: FaultKind::Closed, .. }) => Err(self.last_words(phase).await),
            result => result,
        }
    }

    /// The next reply. 421 is a fault wherever it is said.
    pub(super) async fn read(&mut self, phase: Phase) -> Result<Reply, Fault> {
        let limit = self.deadlines.of(phase);
        match timeout(limit, self.read_unbounded(phase)).await {
            Err(_) => Err(Fault::new(phase, FaultKind::TimedOut(limit))),
            Ok(Ok(reply)) if reply.code == SHUTTING_DOWN => Err(Fault::reply(phase, reply)),
            Ok(result) => result,
        }
    }

    async fn read_unbounded(&mut self, phase: Phase) -> Result<Reply, Fault> {
        let mut reader = ReplyReader::default();
        loop {
            let progress = reader.read(&mut self.buffer);
            if let Some(reply) = progress.map_err(|bad| Fault::protocol(phase, bad.to_string()))? {
                return Ok(reply);
            }
            let read = self.stream.read_buf(&mut self.buffer).await;
            if read.map_err(|error| Fault::io(phase, error))? == 0 {
                return Err(Fault::new(phase, FaultKind::Closed));
            }
        }
    }

    /// Looks, without waiting, whether the server spoke or left before its turn.
    pub(super) fn expect_silence(&mut self, phase: Phase) -> Result<(), Fault> {
        if self.buffer.is_empty() {
            match self.stream.read_buf(&mut self.buffer).now_or_never() {
                None => return Ok(()),
                Some(Ok(0)) => return Err(Fault::new(phase, FaultKind::Closed)),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(Fault::io(phase, error)),
            }
        }
        match ReplyReader::default().read(&mut self.buffer) {
            Ok(Some(reply)) if reply.is_refusal() => Err(Fault::reply(phase, reply)),
            _ => Err(Fault::protocol(phase, "the server spoke out of turn")),
        }
    }

    /// [`Wire::expect_silence`] between the reply to STARTTLS and the handshake.
    pub(super) fn expect_no_injection(&mut self) -> Result<(), Fault> {
        match self.expect_silence(Phase::Tls) {
            Err(Fault { kind: FaultKind::Reply(_) | FaultKind::Protocol(_), .. }) => {
                Err(Fault::new(Phase::Tls, FaultKind::InjectedBytes))
            }
            result => result,
        }
    }

    /// The reason a server gave before it closed the connection, if it gave one.
    async fn last_words(&mut self, phase: Phase) -> Fault {
        match timeout(LAST_WORDS, self.read_unbounded(phase)).await {
            Ok(Ok(reply)) if reply.is_refusal() => Fault::reply(phase, reply),
            _ => Fault::new(phase, FaultKind::Closed),
        }
    }

    /// Ends what was begun on the server, keeps the connection.
    pub(super) async fn reset(&mut self) -> Result<(), Fault> {
        let reply = self.ask(Phase::Mail, "RSET").await?;
        if reply.is_positive() { Ok(()) } else { Err(Fault::reply(Phase::Mail, reply)) }
    }

    /// Says goodbye; whether anybody hears does not matter.
    pub(super) async fn quit(mut self, limit: Duration) {
        let _ = timeout(limit, async {
            self.ask(Phase::Mail, "QUIT").await?;
            self.stream.shutdown().await.map_err(|error| Fault::io(Phase::Mail, error))
        })
        .await;
    }
}

/// Runs a step of the network under the deadline of its phase.
pub(super) async fn within<T>(
    phase: Phase,
    limit: Duration,
    step: impl Future<Output = io::Result<T>>,
) -> Result<T, Fault> {
    match timeout(limit, step).await {
        Ok(result) => result.map_err(|error| Fault::io(phase, error)),
        Err(_) => Err(Fault::new(phase, FaultKind::TimedOut(limit))),
    }
}
