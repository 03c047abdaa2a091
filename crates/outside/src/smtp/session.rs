//! A session with one relay: opened, greeted, encrypted, authenticated; reused; ended.

use std::{net::SocketAddr, time::Duration};

use super::{
    Capabilities, Deadlines, Endpoint, Fault, FaultKind, Phase, TlsInfo, TlsMode, auth,
    body::Stuffer, commands::check_helo_name, connect, tls, wire::Wire,
};

/// How long [`Session::quit`] waits.
const GOODBYE: Duration = Duration::from_secs(5);

/// A session with a relay that is ready for transactions.
#[derive(Debug)]
pub struct Session {
    pub(super) line: Line,
    capabilities: Capabilities,
    peer: SocketAddr,
    tls: Option<TlsInfo>,
}

/// Where both sides stand between two calls. A call takes the line, and gives it back only if they
/// agree; so a call that fails or is dropped leaves it closed.
#[derive(Debug, Default)]
pub(super) enum Line {
    /// The server waits for MAIL.
    Idle(Wire),
    /// The server waits for the bytes of a message.
    Body(Wire, Stuffer),
    #[default]
    Closed,
}

impl Session {
    /// Resolves the host and opens a session at the first address that answers.
    pub async fn open(endpoint: &Endpoint, deadlines: &Deadlines) -> Result<Self, Fault> {
        let addresses = connect::resolve(endpoint, deadlines.connect).await?;
        Self::connect_from(endpoint, &addresses, deadlines).await
    }

    /// [`Session::open`] with addresses that were resolved, and judged, elsewhere.
    pub async fn connect_from(
        endpoint: &Endpoint,
        addresses: &[SocketAddr],
        deadlines: &Deadlines,
    ) -> Result<Self, Fault> {
        check_helo_name(&endpoint.helo_name).map_err(|kind| Fault::new(Phase::Ehlo, kind))?;
        let tcp = connect::connect(addresses, deadlines.connect).await?;
        let peer = tcp.peer_addr().map_err(|error| Fault::io(Phase::Connect, error))?;
        let mut wire = Wire::new(tcp, deadlines.clone());
        if endpoint.tls.mode == TlsMode::Implicit {
            wire = secure(wire, endpoint).await?;
        }
        greet(&mut wire).await?;
        let mut capabilities = hello(&mut wire, endpoint).await?;
        if starttls(&mut wire, endpoint.tls.mode, &capabilities).await? {
            wire = secure(wire, endpoint).await?;
            // What was offered in clear may have been forged (RFC 3207 §4.2).
            capabilities = hello(&mut wire, endpoint).await?;
        }
        let tls = wire.tls_info();
        if let Some(credentials) = &endpoint.credentials {
            if tls.is_none() && !endpoint.allows_clear_auth(peer.ip()) {
                return Err(Fault::new(Phase::Auth, FaultKind::ClearAuthRefused));
            }
            auth::authenticate(&mut wire, credentials, &capabilities).await?;
        }
        Ok(Self { line: Line::Idle(wire), capabilities, peer, tls })
    }

    /// What the server offers, after TLS if there is TLS.
    pub fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// The address the session is connected to.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// `None` in clear.
    pub fn tls_info(&self) -> Option<&TlsInfo> {
        self.tls.as_ref()
    }

    /// Whether the session can take another transaction. It looks, without waiting, whether the
    /// server has said something or left meanwhile; the line is closed if it has.
    pub fn is_idle(&mut self) -> bool {
        let line = std::mem::take(&mut self.line);
        if let Line::Idle(mut wire) = line {
            if wire.expect_silence(Phase::Mail).is_ok() {
                self.line = Line::Idle(wire);
                return true;
            }
            return false;
        }
        self.line = line;
        false
    }

    /// RSET: also shows that the server is still there.
    pub async fn reset(&mut self) -> Result<(), Fault> {
        let mut wire = self.take_idle()?;
        wire.reset().await?;
        self.line = Line::Idle(wire);
        Ok(())
    }

    /// QUIT, and waits at most five seconds for the answer. Within a message it is
    /// [`Session::abandon`].
    pub async fn quit(self) {
        if let Line::Idle(wire) = self.line {
            wire.quit(GOODBYE).await;
        }
    }

    /// Closes the connection as it is. Without the final dot the server drops the message
    /// (RFC 5321 §4.1.1.4).
    pub fn abandon(self) {}

    pub(super) fn take_idle(&mut self) -> Result<Wire, Fault> {
        match std::mem::take(&mut self.line) {
            Line::Idle(wire) => Ok(wire),
            Line::Body(..) => Err(Fault::protocol(Phase::Mail, "a message is under way")),
            Line::Closed => Err(Fault::protocol(Phase::Mail, "the session is closed")),
        }
    }
}

async fn secure(wire: Wire, endpoint: &Endpoint) -> Result<Wire, Fault> {
    let fault = |error| Fault::new(Phase::Tls, FaultKind::Tls(error));
    let name = tls::server_name(&endpoint.host).map_err(fault)?;
    let connector = tls::connector(endpoint.tls, tls::system_roots().await).map_err(fault)?;
    wire.secure(connector, name).await
}

async fn greet(wire: &mut Wire) -> Result<(), Fault> {
    let greeting = wire.read(Phase::Greeting).await?;
    if greeting.code == 220 { Ok(()) } else { Err(Fault::reply(Phase::Greeting, greeting)) }
}

/// EHLO, or HELO where EHLO is unknown (RFC 5321 §3.2).
async fn hello(wire: &mut Wire, endpoint: &Endpoint) -> Result<Capabilities, Fault> {
    let reply = wire.ask(Phase::Ehlo, &format!("EHLO {}", endpoint.helo_name)).await?;
    if reply.is_positive() {
        return Ok(Capabilities::parse(&reply));
    }
    if !matches!(reply.code, 500 | 502) {
        return Err(Fault::reply(Phase::Ehlo, reply));
    }
    let reply = wire.ask(Phase::Ehlo, &format!("HELO {}", endpoint.helo_name)).await?;
    if reply.is_positive() {
        Ok(Capabilities::default())
    } else {
        Err(Fault::reply(Phase::Ehlo, reply))
    }
}

/// Whether the server now waits for the handshake.
async fn starttls(wire: &mut Wire, mode: TlsMode, offered: &Capabilities) -> Result<bool, Fault> {
    match mode {
        TlsMode::None | TlsMode::Implicit => return Ok(false),
        TlsMode::Opportunistic if !offered.starttls => return Ok(false),
        TlsMode::StartTls if !offered.starttls => {
            return Err(Fault::new(Phase::Tls, FaultKind::TlsNotOffered));
        }
        TlsMode::Opportunistic | TlsMode::StartTls => {}
    }
    let reply = wire.ask(Phase::Tls, "STARTTLS").await?;
    if reply.code == 220 {
        wire.expect_no_injection()?;
        return Ok(true);
    }
    if mode == TlsMode::Opportunistic && reply.is_refusal() {
        return Ok(false);
    }
    Err(Fault::reply(Phase::Tls, reply))
}
