//! The relays: each is spoken to as for a message, up to the login, and what failed is told with
//! its phase. Nothing is sent.

use std::time::Duration;

use super::{Check, all, check::asked};
use crate::{
    app::App,
    operate::store,
    outside::smtp::{Fault, FaultKind, Phase, TlsInfo},
    sending::relays::{self, Book, Relay},
};

/// However long its phases may take, a relay gets this much.
const PATIENCE: Duration = Duration::from_secs(25);
/// A certificate that ends within so many days is worth a word.
const SOON: i64 = 14;

pub async fn checks(app: &App) -> Vec<Check> {
    let book = match asked("relays", Book::open(app.clone())).await {
        Ok(book) => book,
        Err(check) => return vec![check],
    };
    let known = book.relays();
    if !known.is_empty() {
        return all(known.iter().map(|relay| async { vec![one(app, relay).await] })).await;
    }
    // The sandbox has an address only within the process that runs it.
    match asked("relays", store::active_relays(&app.db)).await {
        Ok(0) => vec![Check::fail(
            "relays",
            "no relay is active: nothing can leave",
            "add one (POST /admin/api/smtp-accounts), or make one active",
        )],
        Ok(_) => vec![Check::ok("relays", "the mail sandbox is the only one")],
        Err(check) => vec![check],
    }
}

async fn one(app: &App, relay: &Relay) -> Check {
    let endpoint = match &relay.endpoint {
        Ok(endpoint) => endpoint,
        Err(why) => {
            let fix = "set the variable that it names (SMTP_…), or its password anew: PATCH \
                       /admin/api/smtp-accounts/{id}";
            return Check::fail("relay.credentials", why, fix).of(&relay.name);
        }
    };
    let place = format!("{}:{}", endpoint.host, endpoint.port);
    let check = match tokio::time::timeout(PATIENCE, relays::open_session(app, endpoint)).await {
        Ok(Ok(session)) => {
            let tls = session.tls_info().cloned();
            session.quit().await;
            well(&place, tls.as_ref(), endpoint.credentials.is_some(), app.now().timestamp())
        }
        Ok(Err(fault)) => {
            Check::fail(name(fault.phase), format!("{place}: {}", words(&fault)), fix(&fault))
        }
        Err(_) => Check::fail(
            "relay.connect",
            format!("{place} took longer than {} s", PATIENCE.as_secs()),
            "look at the load and the log of that server",
        ),
    };
    check.of(&relay.name)
}

fn well(place: &str, tls: Option<&TlsInfo>, logs_in: bool, now: i64) -> Check {
    let login = if logs_in { ", login accepted" } else { "" };
    let Some(tls) = tls else { return Check::ok("relay", format!("{place}: in clear{login}")) };
    let found = format!("{place}: {}{login}", tls.version);
    let Some(days) = tls.expires.map(|at| (at - now) / 86_400) else {
        return Check::ok("relay", found);
    };
    let found = format!("{found}, certificate good for {days} days");
    match days <= SOON {
        true => Check::warn("relay.tls", found, "renew the certificate of that server"),
        false => Check::ok("relay", found),
    }
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Dns => "relay.dns",
        Phase::Connect => "relay.connect",
        Phase::Tls => "relay.tls",
        Phase::Greeting => "relay.greeting",
        Phase::Ehlo => "relay.ehlo",
        Phase::Auth => "relay.auth",
        Phase::Mail | Phase::Rcpt | Phase::Data | Phase::Dot => "relay",
    }
}

fn words(fault: &Fault) -> String {
    match std::error::Error::source(&fault.kind) {
        Some(source) => format!("{}: {source}", fault.kind),
        None => fault.kind.to_string(),
    }
}

/// How to mend it, by what failed and where.
fn fix(fault: &Fault) -> &'static str {
    match (fault.phase, &fault.kind) {
        (Phase::Dns, FaultKind::Malformed(_)) => {
            "choose a host in a network that POSTROOM_RELAY_ALLOW and POSTROOM_RELAY_DENY permit"
        }
        (Phase::Dns, _) => {
            "correct the host of the relay, or the DNS of this machine (/etc/resolv.conf)"
        }
        (Phase::Connect, FaultKind::TimedOut(_)) => {
            "look for a firewall in between; many networks close port 25, and port 587 is open"
        }
        (Phase::Connect, _) => {
            "start that server, or correct host and port: 465 with secure, 587 without"
        }
        (Phase::Tls, FaultKind::Tls(error)) => certificate(&error.to_string()),
        (Phase::Tls, FaultKind::TlsNotOffered) => {
            "let that server offer STARTTLS, or use the port with TLS from the first byte (465, secure)"
        }
        (Phase::Tls | Phase::Greeting, _) => {
            "choose secure for a port with TLS from the first byte (465), and not for one that speaks \
             clear first (25, 587); the log of that server says more"
        }
        (Phase::Ehlo, _) => {
            "set heloName of the relay (or POSTROOM_HELO_NAME) to a name that resolves to this machine"
        }
        (Phase::Auth, FaultKind::ClearAuthRefused) => {
            "require TLS (requireTls or secure); allowClearAuth only where nobody can listen"
        }
        (Phase::Auth, FaultKind::AuthNotOffered) => {
            "require TLS (many servers offer AUTH only within it), or remove the credentials"
        }
        (Phase::Auth, _) => {
            "correct username and password of the relay (PATCH /admin/api/smtp-accounts/{id}); after \
             many refusals the server may have locked the account or this address"
        }
        _ => "look at the log of that server",
    }
}

fn certificate(error: &str) -> &'static str {
    if error.contains("xpired") || error.contains("NotValidYet") {
        "renew the certificate of that server (and look at both clocks)"
    } else if error.contains("UnknownIssuer") {
        "give that server a certificate of a known authority, or make its authority known here \
         (SSL_CERT_FILE); rejectUnauthorized: false trusts anybody"
    } else if error.contains("NotValidForName") || error.contains("not valid for name") {
        "set the host of the relay to a name that its certificate holds"
    } else {
        "choose secure for a port with TLS from the first byte (465), and not for one that speaks \
         clear first (25, 587); an old server may know no TLS 1.2"
    }
}
