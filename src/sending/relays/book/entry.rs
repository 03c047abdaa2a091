//! A relay as the sender uses it: where it is, how it is spoken to, and whose mail it carries.

use chrono::{DateTime, Utc};
use secrecy::{ExposeSecret as _, SecretString};
use uuid::Uuid;

use super::Book;
use crate::{
    address::{EmailAddress, Mailbox},
    on_unknown::OnUnknown,
    outside::smtp::{Credentials, Endpoint, TlsMode, TlsPolicy, TlsVersion},
    sending::relays::{eligible::Candidate, store, wire},
};

/// A relay that can be used.
#[derive(Debug, Clone)]
pub struct Relay {
    pub id: Uuid,
    pub name: String,
    /// The sender of a message that names none.
    pub from: Option<Mailbox>,
    /// Over all processes.
    pub max_connections: usize,
    /// Messages a minute, over all processes.
    pub max_per_minute: Option<i32>,
    pub on_unknown: Option<OnUnknown>,
    /// Why it cannot be used though it is active: its credentials are not to be had.
    pub endpoint: std::result::Result<Endpoint, String>,
    pub(super) candidate: Candidate,
    /// Another one after every change.
    pub version: DateTime<Utc>,
}

impl Book {
    pub(super) fn relay(&self, row: store::Row, sandbox_port: u16) -> Relay {
        let sandbox = row.kind == "sandbox";
        let candidate = Candidate {
            relay_id: row.relay_id,
            priority: row.priority,
            active: row.active,
            sandbox,
            domain: row.domain.clone(),
            from_address: row.from_address.to_lowercase(),
            any_sender: row.any_sender,
            created_at: row.created_at,
        };
        let on_unknown = match row.on_unknown.as_deref() {
            Some("hold") => Some(OnUnknown::Hold),
            Some("resend") => Some(OnUnknown::Resend),
            _ => None,
        };
        Relay {
            id: row.relay_id,
            name: row.name.clone(),
            from: sender(&row),
            max_connections: usize::try_from(row.max_connections).unwrap_or(1),
            max_per_minute: row.max_per_minute,
            on_unknown,
            endpoint: self.endpoint(&row, if sandbox { Some(sandbox_port) } else { None }),
            candidate,
            version: row.updated_at,
        }
    }

    fn endpoint(
        &self,
        row: &store::Row,
        sandbox_port: Option<u16>,
    ) -> std::result::Result<Endpoint, String> {
        let config = &self.app.config.sending;
        let mode = match (row.secure, row.require_tls, row.kind.as_str()) {
            (_, _, "sandbox") => TlsMode::None,
            (true, _, _) => TlsMode::Implicit,
            (false, true, _) => TlsMode::StartTls,
            (false, false, _) => TlsMode::Opportunistic,
        };
        let min_version = match row.min_tls_version.as_deref() {
            Some("TLSv1.3") => TlsVersion::Tls13,
            _ => TlsVersion::Tls12,
        };
        let verify = row.reject_unauthorized.unwrap_or(config.tls_reject_unauthorized);
        Ok(Endpoint {
            host: row.host.clone(),
            port: sandbox_port.unwrap_or_else(|| u16::try_from(row.port).unwrap_or(0)),
            tls: TlsPolicy { mode, verify, min_version },
            helo_name: row.helo_name.clone().unwrap_or_else(|| config.helo_name.clone()),
            credentials: self.credentials(row)?,
            clear_auth: row.allow_clear_auth,
        })
    }

    fn credentials(&self, row: &store::Row) -> std::result::Result<Option<Credentials>, String> {
        let named = |name: &str| {
            self.app.config.smtp_credentials.read(name).cloned().map_err(|error| error.to_string())
        };
        let user = match (&row.username, &row.user_env_var) {
            (Some(user), _) => user.clone(),
            (None, Some(name)) => named(name)?.expose_secret().to_owned(),
            (None, None) => return Ok(None),
        };
        let password = match (&row.password_sealed, &row.password_env_var) {
            (Some(sealed), _) => {
                self.app.secrets.open(sealed, &wire::bound_to(row.relay_id)).map_err(|_| {
                    "its sealed password cannot be opened with the present key".to_owned()
                })?
            }
            (None, Some(name)) => named(name)?,
            (None, None) => SecretString::from(String::new()),
        };
        Ok(Some(Credentials { user, password }))
    }
}

fn sender(row: &store::Row) -> Option<Mailbox> {
    let address: EmailAddress = row.from_address.parse().ok()?;
    Mailbox::new(row.from_name.as_deref(), address).ok()
}
