//! Test recipients: addresses of a reserved domain (RFC 6761 §6.4) that stand for an outcome.
//!
//! They run the real code, from accepting to the events, and no relay is asked. They write nothing
//! into the list of suppressions.

/// The domain of all test recipients.
const DOMAIN: &str = "test.invalid";

/// What becomes of a test recipient: its local part, to which `+anything` may be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestAddress {
    /// `delivered@`: sent, then delivered.
    Delivered,
    /// `deferred@`: refused for now, each time it is tried.
    Deferred,
    /// `bounced@`: sent, then bounced.
    Bounced,
    /// `complained@`: sent, then complained.
    Complained,
    /// `suppressed@`: on a list of suppressions that is built in.
    Suppressed,
    /// Any other: refused for good.
    NoSuchUser,
}

impl TestAddress {
    /// By the lookup key of an address; none for one that is real.
    pub fn of(lookup_key: &str) -> Option<Self> {
        let local = lookup_key.strip_suffix(DOMAIN)?.strip_suffix('@')?;
        Some(match local.split('+').next().unwrap_or_default() {
            "delivered" => Self::Delivered,
            "deferred" => Self::Deferred,
            "bounced" => Self::Bounced,
            "complained" => Self::Complained,
            "suppressed" => Self::Suppressed,
            _ => Self::NoSuchUser,
        })
    }

    /// Why it is suppressed, if it is by its name.
    pub fn suppressed(lookup_key: &str) -> Option<String> {
        let is_suppressed = Self::of(lookup_key) == Some(Self::Suppressed);
        is_suppressed.then(|| "a test address that is always suppressed".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_reserved_domain_is_a_test() {
        assert_eq!(TestAddress::of("bounced@test.invalid"), Some(TestAddress::Bounced));
        assert_eq!(TestAddress::of("bounced+7@test.invalid"), Some(TestAddress::Bounced));
        assert_eq!(TestAddress::of("bouncer@test.invalid"), Some(TestAddress::NoSuchUser));
        for real in ["bounced@test.invalid.example", "bounced@atest.invalid", "bounced@invalid"] {
            assert_eq!(TestAddress::of(real), None, "{real}");
        }
    }
}
