//! Which relays may carry mail of a sender, in the order in which they are tried.
//!
//! A relay carries a sender's mail when it belongs to the sender's domain, is the sender's own,
//! or is marked for any sender: SPF and DKIM hold there and nowhere else, so failover stays
//! within this set too.

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// What choosing needs to know of a relay. Domains and addresses are lower case.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub relay_id: Uuid,
    /// Lower is tried earlier.
    pub priority: i32,
    pub active: bool,
    pub sandbox: bool,
    pub domain: Option<String>,
    pub from_address: String,
    pub any_sender: bool,
    pub created_at: DateTime<Utc>,
}

/// How closely a relay belongs to a sender; the closest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Own,
    Anyone,
}

/// The indexes of the relays that may serve this sender, the first to be tried first.
///
/// Relays of the same standing and priority take turns: each message has its `rotation`, and 0
/// gives the oldest relay first. A sandbox only counts where no real relay serves the sender: what a
/// fault of the real one put there would be called sent, and never arrive.
pub fn eligible(
    candidates: &[Candidate],
    sender_domain: &str,
    sender: &str,
    rotation: usize,
) -> Vec<usize> {
    let standing = |relay: &Candidate| match relay {
        Candidate { active: false, .. } => None,
        _ if relay.domain.as_deref() == Some(sender_domain) => Some(Standing::Own),
        _ if relay.from_address == sender => Some(Standing::Own),
        _ if relay.any_sender => Some(Standing::Anyone),
        _ => None,
    };
    let mut found: Vec<((Standing, i32), usize)> = (0..candidates.len())
        .filter_map(|at| Some(((standing(&candidates[at])?, candidates[at].priority), at)))
        .collect();
    if found.iter().any(|(_, at)| !candidates[*at].sandbox) {
        found.retain(|(_, at)| !candidates[*at].sandbox);
    }
    found.sort_by_key(|(place, at)| (*place, candidates[*at].created_at, candidates[*at].relay_id));
    for equals in found.chunk_by_mut(|a, b| a.0 == b.0) {
        let turn = rotation % equals.len();
        equals.rotate_left(turn);
    }
    found.into_iter().map(|(_, at)| at).collect()
}

/// The active relays that could serve some sender of this domain, in the order of the candidates:
/// the lane of the domain takes its capacity from them.
pub fn lane_relays(candidates: &[Candidate], sender_domain: &str) -> Vec<usize> {
    let serves = |relay: &Candidate| {
        let of_domain = |address: &str| {
            address.rsplit_once('@').is_some_and(|(_, domain)| domain == sender_domain)
        };
        relay.active
            && (relay.any_sender
                || relay.domain.as_deref() == Some(sender_domain)
                || of_domain(&relay.from_address))
    };
    // As in `eligible`: where a real relay serves all senders of the domain, no sandbox does.
    let serves_all = |relay: &Candidate| {
        let all = relay.any_sender || relay.domain.as_deref() == Some(sender_domain);
        relay.active && !relay.sandbox && all
    };
    let is_real = candidates.iter().any(serves_all);
    (0..candidates.len())
        .filter(|at| serves(&candidates[*at]) && !(is_real && candidates[*at].sandbox))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relay(n: u32, domain: Option<&str>, from: &str) -> Candidate {
        Candidate {
            relay_id: Uuid::from_u128(u128::from(n)),
            priority: 10,
            active: true,
            sandbox: false,
            domain: domain.map(str::to_owned),
            from_address: from.to_owned(),
            any_sender: false,
            created_at: DateTime::from_timestamp(i64::from(n), 0).unwrap(),
        }
    }

    fn any(n: u32) -> Candidate {
        Candidate { any_sender: true, ..relay(n, None, "x@relay.example") }
    }

    fn order(candidates: &[Candidate]) -> Vec<usize> {
        eligible(candidates, "example.com", "news@example.com", 0)
    }

    #[test]
    fn a_foreign_relay_is_never_chosen() {
        let foreign = relay(1, Some("example.org"), "a@example.org");
        // The same domain in its address is not enough: the account may only send as itself.
        let other_address = relay(2, None, "other@example.com");
        let sub_domain = relay(3, Some("mail.example.com"), "a@mail.example.com");
        let resting = Candidate { active: false, ..relay(4, Some("example.com"), "a@example.com") };
        assert_eq!(order(&[foreign, other_address, sub_domain, resting]), [0usize; 0]);
    }

    #[test]
    fn the_senders_own_relays_come_before_those_for_anyone_whatever_their_priority() {
        let anyone = Candidate { priority: 1, ..any(1) };
        let by_address = Candidate { priority: 7, ..relay(2, None, "news@example.com") };
        let by_domain = Candidate { priority: 5, ..relay(3, Some("example.com"), "a@b.example") };
        assert_eq!(order(&[anyone, by_address, by_domain]), [2, 1, 0]);
    }

    #[test]
    fn a_relay_for_anyone_that_is_also_the_domains_own_counts_as_its_own() {
        let both = Candidate {
            any_sender: true,
            priority: 9,
            ..relay(2, Some("example.com"), "a@b.example")
        };
        assert_eq!(order(&[Candidate { priority: 1, ..any(1) }, both]), [1, 0]);
    }

    #[test]
    fn equals_take_turns_and_the_rest_keeps_its_place() {
        let equal = |n| relay(n, Some("example.com"), "a@example.com");
        let last = Candidate { priority: 20, ..equal(9) };
        let candidates = [last, equal(3), equal(1), equal(2)];
        let turn = |n| eligible(&candidates, "example.com", "news@example.com", n);
        assert_eq!(turn(0), [2, 3, 1, 0]);
        assert_eq!(turn(1), [3, 1, 2, 0]);
        assert_eq!(turn(2), [1, 2, 3, 0]);
        assert_eq!(turn(3), turn(0));
    }

    #[test]
    fn nothing_falls_into_the_sandbox_while_a_real_relay_serves_the_sender() {
        let sandbox = || Candidate { sandbox: true, priority: 0, ..any(1) };
        assert_eq!(order(&[sandbox()]), [0]);
        assert_eq!(order(&[sandbox(), any(2)]), [1]);
        assert_eq!(order(&[sandbox(), relay(2, Some("example.org"), "a@example.org")]), [0]);
    }

    #[test]
    fn a_lane_has_every_relay_that_some_sender_of_the_domain_could_use() {
        let candidates = [
            any(1),
            relay(2, Some("example.com"), "a@b.example"),
            relay(3, None, "other@example.com"),
            relay(4, Some("example.org"), "a@notexample.com"),
            Candidate { active: false, ..any(5) },
        ];
        assert_eq!(lane_relays(&candidates, "example.com"), [0, 1, 2]);
        for at in order(&candidates) {
            assert!(lane_relays(&candidates, "example.com").contains(&at));
        }
    }

    #[test]
    fn a_lane_counts_no_places_of_a_sandbox_that_its_messages_cannot_use() {
        let sandbox = Candidate { sandbox: true, ..any(1) };
        let whole = [sandbox.clone(), relay(2, Some("example.com"), "a@example.com")];
        assert_eq!(lane_relays(&whole, "example.com"), [1]);
        // One sender's own relay leaves the sandbox to the other senders of the domain.
        let one = [sandbox, relay(2, None, "a@example.com")];
        assert_eq!(lane_relays(&one, "example.com"), [0, 1]);
    }
}
