//! A new session with a relay: its host resolved, and only at addresses that relays may have.

use crate::{
    app::App,
    outside::smtp::{Deadlines, Endpoint, Fault, FaultKind, Phase, Session},
};

/// Opens a session, up to and with the login.
pub async fn open(app: &App, endpoint: &Endpoint) -> Result<Session, Fault> {
    let deadlines = deadlines(app);
    let host = (endpoint.host.as_str(), endpoint.port);
    let found = match tokio::time::timeout(deadlines.connect, tokio::net::lookup_host(host)).await {
        Ok(Ok(found)) => found.collect::<Vec<_>>(),
        Ok(Err(error)) => return Err(Fault { phase: Phase::Dns, kind: FaultKind::Resolve(error) }),
        Err(_) => {
            return Err(Fault { phase: Phase::Dns, kind: FaultKind::TimedOut(deadlines.connect) });
        }
    };
    let networks = &app.config.sending.relay_networks;
    let permitted: Vec<_> = found.into_iter().filter(|it| networks.permits(it.ip())).collect();
    if permitted.is_empty() {
        let why = "relays may not have this address";
        return Err(Fault { phase: Phase::Dns, kind: FaultKind::Malformed(why) });
    }
    Session::connect_from(endpoint, &permitted, &deadlines).await
}

fn deadlines(app: &App) -> Deadlines {
    let of = &app.config.sending.deadlines;
    Deadlines {
        connect: of.connect,
        tls: of.greeting,
        greeting: of.greeting,
        ehlo: of.ehlo,
        auth: of.ehlo,
        mail: of.mail,
        rcpt: of.rcpt,
        data: of.data,
        dot: of.dot,
    }
}
