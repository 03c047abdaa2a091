//! Whom we ask about the world: the DNS, and the Docker engine.

use super::{reader::Reader, value};
use std::{
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

/// Where Docker listens unless somebody says otherwise.
const SOCKET: &str = "/var/run/docker.sock";

#[derive(Debug, Clone)]
pub struct Dns {
    /// The server to ask, when it is not the system's.
    pub server: Option<SocketAddr>,
    /// Under which names sender domains publish their DKIM keys.
    pub dkim_selectors: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Docker {
    pub engine: DockerEngine,
    /// Whether an operator named it, or it is only the usual place.
    pub named: bool,
}

/// Where the Docker engine takes requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DockerEngine {
    Socket(PathBuf),
    /// `host:port`, without TLS.
    Tcp(String),
    /// `host:port`, with TLS.
    Tls(String),
}

impl Dns {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            server: r.optional(
                "POSTROOM_DNS_SERVER",
                "dns.server",
                "The DNS server to ask, as an address with or without a port; without it the system's.",
                dns_server,
            ),
            dkim_selectors: r.value(
                "POSTROOM_DKIM_SELECTORS",
                "dns.dkim_selectors",
                "mail",
                "Names of the DKIM keys of sender domains that `postroom doctor` looks for, with commas.",
                selectors,
            ),
        }
    }
}

impl Docker {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        let host = r.optional(
            "DOCKER_HOST",
            "docker.host",
            "The Docker engine, as unix:///path, tcp://host:port or https://host:port; wins over the socket.",
            engine,
        );
        let socket = r.optional(
            "DOCKER_SOCKET_PATH",
            "docker.socket_path",
            "The socket of the Docker engine; without it /var/run/docker.sock.",
            value::parsed::<PathBuf>("a path"),
        );
        let named = host.is_some() || socket.is_some();
        let socket = DockerEngine::Socket(socket.unwrap_or_else(|| PathBuf::from(SOCKET)));
        Self { engine: host.unwrap_or(socket), named }
    }
}

fn dns_server(text: &str) -> Result<SocketAddr, String> {
    let with_port = text.parse::<SocketAddr>();
    let either = with_port.or_else(|_| text.parse::<IpAddr>().map(|ip| SocketAddr::from((ip, 53))));
    either.map_err(|_| "must be an IP address, with a port or without".to_owned())
}

fn selectors(text: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = value::list("a name")(text)?;
    let plain = |name: &String| {
        let inside =
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        inside && (1..=63).contains(&name.len())
    };
    match names.iter().all(plain) {
        true => Ok(names),
        false => Err("must be names of DKIM keys, such as mail".to_owned()),
    }
}

fn engine(text: &str) -> Result<DockerEngine, String> {
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let rest = rest.trim_end_matches('/');
    let with_port = |port: u16| match rest.rsplit_once(':') {
        Some((_, given)) if given.parse::<u16>().is_ok() => rest.to_owned(),
        _ => format!("{rest}:{port}"),
    };
    match scheme {
        "unix" if rest.starts_with('/') => Ok(DockerEngine::Socket(PathBuf::from(rest))),
        "tcp" | "http" if !rest.is_empty() => Ok(DockerEngine::Tcp(with_port(2375))),
        "https" if !rest.is_empty() => Ok(DockerEngine::Tls(with_port(2376))),
        _ => Err("must be unix:///path, tcp://host:port or https://host:port".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dns_server_has_a_port_or_the_usual_one() {
        assert_eq!(dns_server("192.0.2.1"), Ok(SocketAddr::from(([192, 0, 2, 1], 53))));
        assert_eq!(dns_server("127.0.0.1:5353"), Ok(SocketAddr::from(([127, 0, 0, 1], 5353))));
        assert_eq!(dns_server("[::1]:53").unwrap().port(), 53);
        assert!(dns_server("dns.example").is_err());
    }

    #[test]
    fn an_engine_is_a_socket_or_a_host() {
        assert_eq!(engine("unix:///run/d.sock"), Ok(DockerEngine::Socket("/run/d.sock".into())));
        assert_eq!(engine("tcp://proxy"), Ok(DockerEngine::Tcp("proxy:2375".to_owned())));
        assert_eq!(engine("tcp://proxy:1/"), Ok(DockerEngine::Tcp("proxy:1".to_owned())));
        assert_eq!(engine("https://h"), Ok(DockerEngine::Tls("h:2376".to_owned())));
        for wrong in ["", "tcp://", "proxy:2375", "unix://relative", "ssh://host"] {
            assert!(engine(wrong).is_err(), "{wrong}");
        }
    }
}
