//! `postroom serve`.

use anyhow::Context as _;
use tokio::net::TcpListener;

use super::signals::on_signals;
use crate::{config::Config, serve};

/// Serves until told to stop.
pub async fn serve(config: Config) -> anyhow::Result<()> {
    let stop = on_signals()?;
    let address = config.http.address();
    let opened = tokio::select! {
        opened = serve::open(config, true) => Some(opened?),
        () = stop.cancelled() => None,
    };
    let Some(house) = opened else { return Ok(()) };
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("{address} cannot be listened on"))?;
    tracing::info!(address = %listener.local_addr()?, "listening");
    serve::run(house, listener, stop).await
}
