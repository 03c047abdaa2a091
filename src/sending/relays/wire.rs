//! Relays as the API takes and shows them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};
use uuid::Uuid;

use super::{Book, Live, store::Row};
use crate::{
    address::{DomainName, EmailAddress},
    app::App,
    config::Config,
    error::{Error, Issue, Result},
    on_unknown::OnUnknown,
};

/// A relay. Its credentials are never part of it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RelayView {
    pub id: Uuid,
    /// `smtp`, or `sandbox`: the one built in, whose port is found when Postroom starts.
    pub kind: String,
    pub name: String,
    pub host: String,
    pub port: u16,
    /// TLS from the first byte on.
    pub secure: bool,
    /// No message without STARTTLS.
    pub require_tls: bool,
    /// Whether its certificate must be good; null inherits the instance's setting.
    pub reject_unauthorized: Option<bool>,
    pub min_tls_version: Option<String>,
    pub user_env_var: Option<String>,
    pub password_env_var: Option<String>,
    pub username: Option<String>,
    /// A sealed password is kept.
    pub has_password: bool,
    /// Credentials may be sent without TLS to a host that is not this one.
    pub allow_clear_auth: bool,
    /// What to say in EHLO; null is this host's name.
    pub helo_name: Option<String>,
    pub from_address: String,
    pub from_name: Option<String>,
    /// Senders of this domain may use it.
    pub domain: Option<String>,
    /// Any sender may use it.
    pub any_sender: bool,
    /// Lower is asked first.
    pub priority: i32,
    pub active: bool,
    /// Connections at once, over all processes.
    pub max_connections: i32,
    /// Messages a minute, over all processes; null is any number.
    pub max_per_minute: Option<i32>,
    pub on_unknown: Option<String>,
    /// Always null: kept for clients that know the field.
    pub domain_id: Option<Uuid>,
    pub created_at: DateTime<Utc>,
    /// How it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<Live>,
}

impl RelayView {
    /// With how it is now.
    pub fn lives(self, book: &Book) -> Self {
        Self { live: Some(book.live(self.id)), ..self }
    }
}

impl From<Row> for RelayView {
    fn from(row: Row) -> Self {
        Self {
            id: row.relay_id,
            kind: row.kind,
            name: row.name,
            host: row.host,
            port: u16::try_from(row.port).unwrap_or(0),
            secure: row.secure,
            require_tls: row.require_tls,
            reject_unauthorized: row.reject_unauthorized,
            min_tls_version: row.min_tls_version,
            user_env_var: row.user_env_var,
            password_env_var: row.password_env_var,
            username: row.username,
            has_password: row.password_sealed.is_some(),
            allow_clear_auth: row.allow_clear_auth,
            helo_name: row.helo_name,
            from_address: row.from_address,
            from_name: row.from_name,
            domain: row.domain,
            any_sender: row.any_sender,
            priority: row.priority,
            active: row.active,
            max_connections: row.max_connections,
            max_per_minute: row.max_per_minute,
            on_unknown: row.on_unknown,
            domain_id: None,
            created_at: row.created_at,
            live: None,
        }
    }
}

/// A relay to be made.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewRelay {
    /// 1 to 100 characters.
    pub name: String,
    /// A host name or an address.
    pub host: String,
    #[schema(minimum = 1)]
    pub port: u16,
    pub secure: bool,
    #[serde(default)]
    pub require_tls: bool,
    pub reject_unauthorized: Option<bool>,
    /// `TLSv1.2` or `TLSv1.3`.
    pub min_tls_version: Option<MinTls>,
    /// A variable of the environment whose name begins with `SMTP_`.
    pub user_env_var: Option<String>,
    pub password_env_var: Option<String>,
    pub username: Option<String>,
    /// Sealed at once; never shown again.
    pub password: Option<String>,
    #[serde(default)]
    pub allow_clear_auth: bool,
    #[schema(value_type = Option<String>)]
    pub helo_name: Option<DomainName>,
    #[schema(value_type = String)]
    pub from_address: EmailAddress,
    /// 1 to 100 characters.
    pub from_name: Option<String>,
    #[schema(value_type = Option<String>)]
    pub domain: Option<DomainName>,
    #[serde(default)]
    pub any_sender: bool,
    /// 0 to 1000.
    pub priority: i32,
    #[serde(default = "yes")]
    pub active: bool,
    /// 1 to 1000.
    #[serde(default = "eight")]
    pub max_connections: i32,
    /// 1 to 1000000; absent is any number.
    pub max_per_minute: Option<i32>,
    pub on_unknown: Option<OnUnknown>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
pub enum MinTls {
    #[serde(rename = "TLSv1.2")]
    Tls12,
    #[serde(rename = "TLSv1.3")]
    Tls13,
}

impl MinTls {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tls12 => "TLSv1.2",
            Self::Tls13 => "TLSv1.3",
        }
    }
}

fn yes() -> bool {
    true
}

fn eight() -> i32 {
    8
}

impl NewRelay {
    pub fn check(&self, config: &Config) -> Result<()> {
        let mut issues = Vec::new();
        let mut demand = |good: bool, path: &str, message: &str| {
            if !good {
                issues.push(Issue::new(path, message));
            }
        };
        let short = |text: &str, most: usize| {
            (1..=most).contains(&text.encode_utf16().count()) && !text.chars().any(char::is_control)
        };
        demand(
            short(&self.name, 100),
            "name",
            "1 to 100 characters, none of them a control character",
        );
        demand(is_host(&self.host), "host", "a host name or an address of at most 253 characters");
        let networks = &config.sending.relay_networks;
        demand(
            self.host.parse().is_ok_and(|address| networks.permits(address))
                || !looks_like_address(&self.host),
            "host",
            "relays may not have this address",
        );
        demand(self.port > 0, "port", "from 1 to 65535");
        demand((0..=1000).contains(&self.priority), "priority", "from 0 to 1000");
        demand((1..=1000).contains(&self.max_connections), "maxConnections", "from 1 to 1000");
        demand(
            self.max_per_minute.is_none_or(|it| (1..=1_000_000).contains(&it)),
            "maxPerMinute",
            "from 1 to 1000000",
        );
        demand(
            self.from_name.as_deref().is_none_or(|name| short(name, 100)),
            "fromName",
            "1 to 100 characters, none of them a control character",
        );
        for (path, name) in
            [("userEnvVar", &self.user_env_var), ("passwordEnvVar", &self.password_env_var)]
        {
            demand(
                name.as_deref().is_none_or(|name| config.smtp_credentials.check_name(name).is_ok()),
                path,
                "the name of a variable that begins with SMTP_ (capitals, digits, underscore)",
            );
        }
        demand(
            self.username.is_none() || self.user_env_var.is_none(),
            "username",
            "give a user name or the name of its variable, not both",
        );
        demand(
            self.password.is_none() || self.password_env_var.is_none(),
            "password",
            "give a password or the name of its variable, not both",
        );
        for (path, secret) in [("username", &self.username), ("password", &self.password)] {
            demand(
                secret
                    .as_deref()
                    .is_none_or(|it| (1..=1000).contains(&it.len()) && !it.contains('\0')),
                path,
                "1 to 1000 bytes without NUL",
            );
        }
        if issues.is_empty() { Ok(()) } else { Err(Error::issues(issues)) }
    }
}

/// An address in any of its spellings: `2852039166`, `0xa9fea9fe` and `0251.0376.1` name hosts too.
/// A name has a letter in its last label, and does not begin it like a number.
fn looks_like_address(host: &str) -> bool {
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    host.contains(':') || last.bytes().all(|it| it.is_ascii_digit()) || last.starts_with("0x")
}

/// A host name (letters, digits, hyphens, dots) or an address; nothing that could be anything else.
fn is_host(host: &str) -> bool {
    let name = |host: &str| {
        host.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        })
    };
    (1..=253).contains(&host.len()) && (host.parse::<std::net::IpAddr>().is_ok() || name(host))
}

/// A change of a relay: any of the fields of [`NewRelay`]. Null takes an optional one away.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct RelayPatch(pub serde_json::Map<String, serde_json::Value>);

impl PartialSchema for RelayPatch {
    fn schema() -> RefOr<Schema> {
        let mut schema = NewRelay::schema();
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            object.required.clear();
        }
        schema
    }
}

impl ToSchema for RelayPatch {}

impl RelayPatch {
    /// The row after the change. The patched whole is checked as a new relay is, so that a patch
    /// can reach no state that could not be made.
    pub(super) fn apply(self, app: &App, row: Row) -> Result<Row> {
        if row.kind == "sandbox"
            && self.0.keys().any(|key| !matches!(key.as_str(), "active" | "name" | "priority"))
        {
            return Err(Error::refused(
                "SANDBOX_RELAY",
                "only active, name and priority of the sandbox's relay can be changed",
            ));
        }
        let mut whole = serde_json::json!({
            "name": row.name, "host": row.host, "port": row.port.max(1), "secure": row.secure,
            "requireTls": row.require_tls, "rejectUnauthorized": row.reject_unauthorized,
            "minTlsVersion": row.min_tls_version, "userEnvVar": row.user_env_var,
            "passwordEnvVar": row.password_env_var, "username": row.username,
            "allowClearAuth": row.allow_clear_auth, "heloName": row.helo_name,
            "fromAddress": row.from_address, "fromName": row.from_name, "domain": row.domain,
            "anySender": row.any_sender, "priority": row.priority, "active": row.active,
            "maxConnections": row.max_connections, "maxPerMinute": row.max_per_minute,
            "onUnknown": row.on_unknown,
        });
        let said_password = self.0.get("password").cloned();
        if let Some(fields) = whole.as_object_mut() {
            fields.extend(self.0);
        }
        let new: NewRelay = serde_path_to_error::deserialize(whole)
            .map_err(|error| Error::invalid(error.path().to_string(), error.inner().to_string()))?;
        new.check(&app.config)?;
        let elsewhere = new.host != row.host || (new.allow_clear_auth && !row.allow_clear_auth);
        if row.password_sealed.is_some() && elsewhere && said_password.is_none() {
            return Err(Error::refused(
                "PASSWORD_NEEDED",
                "the kept password is not sent to another host, nor in clear: give it again",
            ));
        }
        // A variable named for the password takes the sealed one's place.
        let password_sealed = match (&said_password, &new.password_env_var) {
            (Some(_), _) => seal(app, row.relay_id, new.password.as_deref())?,
            (None, Some(_)) => None,
            (None, None) => row.password_sealed.clone(),
        };
        let port = if row.kind == "sandbox" { row.port } else { i32::from(new.port) };
        Ok(Row {
            name: new.name,
            host: new.host,
            port,
            secure: new.secure,
            require_tls: new.require_tls,
            reject_unauthorized: new.reject_unauthorized,
            min_tls_version: new.min_tls_version.map(|it| it.as_str().to_owned()),
            user_env_var: new.user_env_var,
            password_env_var: new.password_env_var,
            username: new.username,
            password_sealed,
            allow_clear_auth: new.allow_clear_auth,
            helo_name: new.helo_name.map(|it| it.as_str().to_owned()),
            from_address: new.from_address.to_string(),
            from_name: new.from_name,
            domain: new.domain.map(|it| it.as_str().to_owned()),
            any_sender: new.any_sender,
            priority: new.priority,
            active: new.active,
            max_connections: new.max_connections,
            max_per_minute: new.max_per_minute,
            on_unknown: new.on_unknown.map(|it| it.as_str().to_owned()),
            ..row
        })
    }
}

/// The words that bind a sealed password to its row.
pub(super) fn bound_to(relay: Uuid) -> String {
    format!("relays/password/{relay}")
}

pub(super) fn seal(app: &App, relay: Uuid, password: Option<&str>) -> Result<Option<String>> {
    Ok(password.map(|password| app.secrets.seal(password, &bound_to(relay))))
}
