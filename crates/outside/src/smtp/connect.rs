//! From a name to a socket.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    net::{TcpStream, lookup_host},
    time::{Instant, timeout},
};

use super::{Endpoint, Fault, FaultKind, Phase};

/// All addresses of the endpoint, in the order the resolver gave.
pub(super) async fn resolve(
    endpoint: &Endpoint,
    limit: Duration,
) -> Result<Vec<SocketAddr>, Fault> {
    let fault = |kind| Fault::new(Phase::Dns, kind);
    let lookup = lookup_host((endpoint.host.as_str(), endpoint.port));
    match timeout(limit, lookup).await {
        Err(_) => Err(fault(FaultKind::TimedOut(limit))),
        Ok(Err(error)) => Err(fault(FaultKind::Resolve(error))),
        Ok(Ok(addresses)) => Ok(addresses.collect()),
    }
}

/// The first address that answers. All of them share `limit`, so that one that swallows packets
/// leaves time for the others; the fault is the last one's.
pub(super) async fn connect(addresses: &[SocketAddr], limit: Duration) -> Result<TcpStream, Fault> {
    let end = Instant::now() + limit;
    let nothing = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    let mut last = Fault::new(Phase::Dns, FaultKind::Resolve(nothing));
    for (index, address) in addresses.iter().enumerate() {
        let share =
            fair_share(end.saturating_duration_since(Instant::now()), addresses.len() - index);
        last = match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => match stream.set_nodelay(true) {
                Ok(()) => return Ok(stream),
                Err(error) => Fault::io(Phase::Connect, error),
            },
            Ok(Err(error)) => Fault::new(Phase::Connect, FaultKind::Io(error)),
            Err(_) => Fault::new(Phase::Connect, FaultKind::TimedOut(limit)),
        };
    }
    Err(last)
}

fn fair_share(left: Duration, waiting: usize) -> Duration {
    left / u32::try_from(waiting).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_dead_address_does_not_hide_a_live_one() {
        let dead = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let live = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = live.local_addr().unwrap();
        let stream = connect(&[dead, address], Duration::from_secs(5)).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
        assert!(stream.nodelay().unwrap());
    }

    #[tokio::test]
    async fn a_refused_connection_says_so() {
        let dead = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let fault = connect(&[dead], Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(fault.phase, Phase::Connect);
        let FaultKind::Io(error) = fault.kind else { panic!("{fault:?}") };
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[tokio::test]
    async fn no_address_at_all_is_a_fault_of_the_name() {
        let fault = connect(&[], Duration::from_secs(5)).await.unwrap_err();
        assert!(matches!(fault, Fault { phase: Phase::Dns, kind: FaultKind::Resolve(_) }));
    }

    #[test]
    fn the_time_is_shared_by_those_who_wait() {
        assert_eq!(fair_share(Duration::from_secs(9), 3), Duration::from_secs(3));
        assert_eq!(fair_share(Duration::from_secs(9), 1), Duration::from_secs(9));
    }
}
