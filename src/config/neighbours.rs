//! Whom we ask about the world: the DNS, and the Docker engine.

use super::{reader::Reader, value};
use crate::outside::docker::{ContainerName, Place};
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
    pub place: Place,
    /// Whether an operator named it, or it is only the usual place.
    pub named: bool,
    /// The container of the mail server.
    pub mailserver: ContainerName,
    /// Whose state is shown, and who may be restarted: the mail server first, each once.
    pub containers: Vec<ContainerName>,
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
            address,
        );
        let verified = r.optional(
            "DOCKER_TLS_VERIFY",
            "docker.tls_verify",
            "Anything but 0 or false: tcp:// means TLS, as for the docker command.",
            |text| Ok::<_, String>(!matches!(text, "0" | "false")),
        );
        let certificates = r.value(
            "DOCKER_CERT_PATH",
            "docker.cert_path",
            "/etc/postroom/docker",
            "The folder with ca.pem, cert.pem and key.pem for a Docker engine with TLS.",
            value::parsed::<PathBuf>("a path"),
        );
        let socket = r.optional(
            "DOCKER_SOCKET_PATH",
            "docker.socket_path",
            "The socket of the Docker engine; without it /var/run/docker.sock.",
            value::parsed::<PathBuf>("a path"),
        );
        let mailserver = r.value(
            "DMS_CONTAINER_NAME",
            "docker.mailserver",
            "mailserver",
            "The container of the mail server.",
            container,
        );
        let others = r.value(
            "ENGINE_CONTAINERS",
            "docker.containers",
            "",
            "Further containers whose state is shown and that may be restarted, with commas.",
            |text| {
                let names: Vec<String> = value::list("a name")(text)?;
                names.iter().map(|name| container(name)).collect::<Result<Vec<_>, _>>()
            },
        );
        let named = host.is_some() || socket.is_some();
        let place = match host {
            Some(Address::Socket(path)) => Place::Socket(path),
            Some(Address::Host { host, tls: false }) if verified != Some(true) => {
                Place::Tcp(with_port(&host, 2375))
            }
            Some(Address::Host { host, .. }) => {
                Place::Tls { host: with_port(&host, 2376), certificates }
            }
            None => Place::Socket(socket.unwrap_or_else(|| PathBuf::from(SOCKET))),
        };
        let mut containers = vec![mailserver.clone()];
        others.into_iter().for_each(|name| {
            if !containers.contains(&name) {
                containers.push(name);
            }
        });
        Self { place, named, mailserver, containers }
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

/// `DOCKER_HOST`, before it is known whether it means TLS.
#[derive(Debug, PartialEq)]
enum Address {
    Socket(PathBuf),
    Host { host: String, tls: bool },
}

fn address(text: &str) -> Result<Address, String> {
    let (scheme, rest) = text.split_once("://").unwrap_or_default();
    let rest = rest.trim_end_matches('/');
    let host = |tls| Ok(Address::Host { host: rest.to_owned(), tls });
    match scheme {
        "unix" if rest.starts_with('/') => Ok(Address::Socket(PathBuf::from(rest))),
        "tcp" | "http" if !rest.is_empty() => host(false),
        "https" if !rest.is_empty() => host(true),
        _ => Err("must be unix:///path, tcp://host:port or https://host:port".to_owned()),
    }
}

fn with_port(host: &str, usual: u16) -> String {
    match host.rsplit_once(':') {
        Some((_, given)) if given.parse::<u16>().is_ok() => host.to_owned(),
        _ => format!("{host}:{usual}"),
    }
}

/// A name as Docker allows them.
fn container(text: &str) -> Result<ContainerName, String> {
    let name = ContainerName::parse(text);
    name.ok_or_else(|| format!("{text:?} is not the name of a container"))
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
        assert_eq!(address("unix:///run/d.sock"), Ok(Address::Socket("/run/d.sock".into())));
        let host = |text| match address(text) {
            Ok(Address::Host { host, tls }) => (with_port(&host, 2375), tls),
            other => panic!("{other:?}"),
        };
        assert_eq!(host("tcp://proxy"), ("proxy:2375".to_owned(), false));
        assert_eq!(host("tcp://proxy:1/"), ("proxy:1".to_owned(), false));
        assert_eq!(host("https://h"), ("h:2375".to_owned(), true));
        for wrong in ["", "tcp://", "proxy:2375", "unix://relative", "ssh://host"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tls_is_meant_as_the_docker_command_means_it() {
        let read = |pairs: &[(&str, &str)]| {
            let env = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).into()));
            let (env, none) = (env.collect(), super::super::Environment::new());
            Docker::read(&mut Reader::new(&env, None, &none))
        };
        let plain = read(&[("DOCKER_HOST", "tcp://h"), ("DOCKER_TLS_VERIFY", "0")]);
        assert_eq!(plain.place, Place::Tcp("h:2375".to_owned()));
        let tls = read(&[
            ("DOCKER_HOST", "tcp://h"),
            ("DOCKER_TLS_VERIFY", "1"),
            ("DOCKER_CERT_PATH", "/certs"),
        ]);
        let certificates = PathBuf::from("/certs");
        assert_eq!(tls.place, Place::Tls { host: "h:2376".to_owned(), certificates });
        let names = |pairs: &[_]| -> Vec<String> {
            read(pairs).containers.iter().map(ToString::to_string).collect()
        };
        assert_eq!(names(&[]), ["mailserver"]);
        let named = [("DMS_CONTAINER_NAME", "mail"), ("ENGINE_CONTAINERS", "nginx, mail,nginx")];
        assert_eq!(names(&named), ["mail", "nginx"]);
    }
}
