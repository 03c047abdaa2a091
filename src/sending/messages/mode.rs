//! How a message leaves, or does not. Settled when it is accepted, and kept with it.

use super::TestAddress;
use crate::accounts::api_keys::{Key, KeyMode};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Through relays.
    Live,
    /// Into the sandbox: its key captures.
    Capture,
    /// Through nothing: all its recipients are test addresses.
    Test,
}

impl Mode {
    /// The mode of a message of this key to these addresses, given by their lookup keys.
    pub fn of<'a>(key: &Key, mut lookup_keys: impl Iterator<Item = &'a str>) -> Self {
        match key.mode {
            KeyMode::Capture => Self::Capture,
            KeyMode::Live if lookup_keys.all(|it| TestAddress::of(it).is_some()) => Self::Test,
            KeyMode::Live => Self::Live,
        }
    }

    /// The word kept in a row. It is also the lane of what needs no relay; a domain has a dot, so
    /// no sender's lane is called so.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Capture => "capture",
            Self::Test => "test",
        }
    }

    /// From the word kept in a row, which a constraint holds to these three.
    pub fn from_row(word: &str) -> Self {
        match word {
            "capture" => Self::Capture,
            "test" => Self::Test,
            _ => Self::Live,
        }
    }

    /// The lane of its job: the sender's domain, which stands for its relays; its own where it
    /// needs none.
    pub fn lane(self, sender_domain: &str) -> String {
        if self == Self::Live { sender_domain } else { self.as_str() }.to_owned()
    }

    /// Whether a lane is one that needs no relay.
    pub fn is_own_lane(lane: &str) -> bool {
        [Self::Capture, Self::Test].iter().any(|mode| mode.as_str() == lane)
    }
}
