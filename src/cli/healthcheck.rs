//! `postroom healthcheck`.

use std::net::{Ipv4Addr, SocketAddr};

use crate::{config::Environment, operate::probe::probe};

/// Fails unless the health page answers 200: the one named, or this machine's.
pub async fn healthcheck(env: &Environment, url: Option<String>) -> anyhow::Result<()> {
    probe(&url.unwrap_or_else(|| own_health(env))).await
}

fn own_health(env: &Environment) -> String {
    let port = env.get("PORT").map(|port| port.trim()).filter(|port| !port.is_empty());
    let port = port.and_then(|port| port.parse().ok()).unwrap_or(3050);
    format!("http://{}/health", SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}
