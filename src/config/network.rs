//! Which addresses a relay may have.

use ipnet::IpNet;
use std::net::IpAddr;

/// Networks of relays. Private ones are allowed by default, since the mail server lives there;
/// link-local ones, where clouds keep their secrets, never are.
#[derive(Debug, Clone, Default)]
pub struct RelayNetworks {
    /// When empty, every network that is not denied.
    pub allow: Vec<IpNet>,
    pub deny: Vec<IpNet>,
}

impl RelayNetworks {
    /// Whether a relay may be reached at this address, which is the one to connect to.
    pub fn permits(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let within = |nets: &[IpNet]| nets.iter().any(|net| net.contains(&address));
        !never(address) && !within(&self.deny) && (self.allow.is_empty() || within(&self.allow))
    }
}

fn never(address: IpAddr) -> bool {
    let link_local = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    link_local || address.is_multicast() || address.is_unspecified()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nets(list: &[&str]) -> Vec<IpNet> {
        list.iter().map(|net| net.parse().unwrap()).collect()
    }

    #[test]
    fn private_networks_are_open_and_link_local_ones_are_not_even_when_allowed() {
        let open = RelayNetworks::default();
        let listed = RelayNetworks { allow: nets(&["0.0.0.0/0", "::/0"]), deny: vec![] };
        for networks in [open, listed] {
            for good in ["10.0.0.1", "127.0.0.1", "192.0.2.1", "::1", "2001:db8::1"] {
                assert!(networks.permits(good.parse().unwrap()), "{good}");
            }
            for bad in ["169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "0.0.0.0"] {
                assert!(!networks.permits(bad.parse().unwrap()), "{bad}");
            }
        }
    }

    #[test]
    fn a_denied_network_wins_over_an_allowed_one() {
        let networks = RelayNetworks { allow: nets(&["10.0.0.0/8"]), deny: nets(&["10.1.0.0/16"]) };
        assert!(networks.permits("10.0.0.1".parse().unwrap()));
        assert!(!networks.permits("10.1.0.1".parse().unwrap()));
        assert!(!networks.permits("::ffff:10.1.0.1".parse().unwrap()));
        assert!(!networks.permits("192.0.2.1".parse().unwrap()));
    }
}
