//! How the program is told to stop.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// A token that the first SIGTERM or Ctrl-C cancels; the second one ends the process at once.
pub fn on_signals() -> anyhow::Result<CancellationToken> {
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = CancellationToken::new();
    TaskTracker::new().spawn({
        let stop = stop.clone();
        async move {
            for round in 0..2 {
                tokio::select! {
                    _ = terminate.recv() => (),
                    _ = interrupt.recv() => (),
                }
                if round == 0 {
                    stop.cancel();
                }
            }
            std::process::exit(130);
        }
    });
    Ok(stop)
}
