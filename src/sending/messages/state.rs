//! The states of a recipient; the page that explains them is the documentation of [`crate::sending`].

/// What is learnt of a recipient after a server accepted it. It never undoes that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Learnt {
    Delivered,
    Bounced,
    Complained,
}

impl Learnt {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Bounced => "bounced",
            Self::Complained => "complained",
        }
    }

    pub fn event(self) -> &'static str {
        match self {
            Self::Delivered => "recipient.delivered",
            Self::Bounced => "recipient.bounced",
            Self::Complained => "recipient.complained",
        }
    }
}

/// What a step of a job, or a person, can make of a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecipientState {
    Queued,
    Deferred,
    Unknown,
    Sent,
    Failed,
    Suppressed,
    Cancelled,
    Expired,
}

impl RecipientState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Deferred => "deferred",
            Self::Unknown => "unknown",
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Suppressed => "suppressed",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
        }
    }

    pub fn event(self) -> &'static str {
        match self {
            Self::Queued => "recipient.queued",
            Self::Deferred => "recipient.deferred",
            Self::Unknown => "recipient.unknown",
            Self::Sent => "recipient.sent",
            Self::Failed => "recipient.failed",
            Self::Suppressed => "recipient.suppressed",
            Self::Cancelled => "recipient.cancelled",
            Self::Expired => "recipient.expired",
        }
    }

    pub fn is_settled(self) -> bool {
        !matches!(self, Self::Queued | Self::Deferred | Self::Unknown)
    }

    pub fn is_accepted(self) -> bool {
        self == Self::Sent
    }
}
