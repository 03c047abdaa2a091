//! Where to, and as whom.

use std::net::IpAddr;

use secrecy::SecretString;

use super::TlsPolicy;

/// A relay, and how to speak to it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// A name in A-labels or an address; also the name the certificate must carry.
    pub host: String,
    pub port: u16,
    pub tls: TlsPolicy,
    /// What EHLO says we are: a domain, or an address literal in brackets (RFC 5321 §4.1.1.1).
    pub helo_name: String,
    /// None: no AUTH.
    pub credentials: Option<Credentials>,
    /// Whether the password may cross a network without TLS. To a loopback address it always may.
    pub clear_auth: bool,
}

#[derive(Debug, Clone)]
pub struct Credentials {
    pub user: String,
    pub password: SecretString,
}

impl Endpoint {
    /// Whether AUTH without TLS is allowed to the peer at `address`.
    pub(super) fn allows_clear_auth(&self, address: IpAddr) -> bool {
        self.clear_auth || address.to_canonical().is_loopback()
    }
}
