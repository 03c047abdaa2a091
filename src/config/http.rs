//! How requests come in.

use super::{reader::Reader, value};
use std::net::{IpAddr, SocketAddr};

const MEBIBYTE: usize = 1024 * 1024;

#[derive(Debug, Clone)]
pub struct Http {
    pub host: IpAddr,
    /// Zero asks the system for a free port.
    pub port: u16,
    /// The largest body of a request, in bytes.
    pub body_limit: usize,
    /// The largest body of a batch of messages, in bytes.
    pub batch_body_limit: usize,
    /// How many proxies stand in front; the address of the client is that many hops from the right.
    pub trust_proxy: u8,
}

impl Http {
    pub(super) fn read(r: &mut Reader<'_>) -> Self {
        Self {
            host: r.value(
                "HOST",
                "http.host",
                "0.0.0.0",
                "The address to listen on.",
                value::parsed("an IP address"),
            ),
            port: r.value(
                "PORT",
                "http.port",
                "3050",
                "The port to listen on; 0 takes a free one.",
                value::whole(0..=65_535),
            ),
            body_limit: MEBIBYTE
                * r.value::<usize>(
                    "BODY_LIMIT_MB",
                    "http.body_limit_mb",
                    "40",
                    "The largest body of a request, in MiB.",
                    mebibytes,
                ),
            batch_body_limit: MEBIBYTE
                * r.value::<usize>(
                    "BATCH_BODY_LIMIT_MB",
                    "http.batch_body_limit_mb",
                    "100",
                    "The largest body of a batch of messages, in MiB.",
                    mebibytes,
                ),
            trust_proxy: r.value(
                "TRUST_PROXY",
                "http.trust_proxy",
                "0",
                "How many proxies in front are trusted to tell the client's address (0 to 10).",
                value::whole(0..=10),
            ),
        }
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.host, self.port)
    }
}

fn mebibytes(text: &str) -> Result<usize, String> {
    value::whole::<u32>(1..=1024)(text).map(|mib| mib as usize)
}
