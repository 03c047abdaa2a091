//! Where an engine listens, and what its containers are called.

use std::{fmt, path::PathBuf};

/// Where a Docker engine takes requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Socket(PathBuf),
    /// `host:port`, in clear.
    Tcp(String),
    /// `host:port`; the folder holds `ca.pem`, `cert.pem` and `key.pem`, as `DOCKER_CERT_PATH` does.
    Tls {
        host: String,
        certificates: PathBuf,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path) => write!(f, "{}", path.display()),
            Self::Tcp(host) => f.write_str(host),
            Self::Tls { host, .. } => write!(f, "{host} (TLS)"),
        }
    }
}

/// A container's name as the engine allows them, `[a-zA-Z0-9][a-zA-Z0-9_.-]+`: it goes into paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContainerName(String);

impl ContainerName {
    pub fn parse(text: &str) -> Option<Self> {
        let (first, rest) = text.split_at_checked(1)?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        let fits = first.bytes().all(|it| it.is_ascii_alphanumeric())
            && (1..=254).contains(&rest.len())
            && rest.bytes().all(plain);
        fits.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ContainerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_place_in_a_path() {
        for name in ["mailserver", "a1", "0_x.y-z"] {
            assert_eq!(ContainerName::parse(name).unwrap().as_str(), name);
        }
        for wrong in ["", "a", "-ab", ".ab", "a/b", "a?b", "a b", "a%2f", "ä1", "../x", "a\n"] {
            assert_eq!(ContainerName::parse(wrong), None, "{wrong}");
        }
    }
}
