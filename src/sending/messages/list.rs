//! `GET /jobs`: which messages are listed.

use chrono::{DateTime, Datelike as _, Utc};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::{
    address::EmailAddress,
    error::{Error, Result},
};

/// What narrows a list of messages; each field that is there does.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Filter {
    #[param(inline)]
    pub status: Option<Status>,
    #[param(inline)]
    pub outcome: Option<Outcome>,
    /// An address the message goes to.
    #[param(format = "email")]
    pub recipient: Option<String>,
    pub tag: Option<String>,
    /// Accepted at this time or later …
    pub since: Option<DateTime<Utc>>,
    /// … and before this one.
    pub until: Option<DateTime<Utc>>,
    /// The id of the key that sent it.
    pub key: Option<Uuid>,
    /// Whether its time of sending is still to come.
    pub scheduled: Option<bool>,
}

/// As a message shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Pending,
    Processing,
    Done,
    Dead,
}

/// As a message shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = OutcomeFilter)]
pub enum Outcome {
    Sent,
    Partial,
    Failed,
    Unknown,
    Suppressed,
    Cancelled,
    Expired,
}

impl Filter {
    /// What every recipient's address is compared by.
    pub fn lookup_key(&self) -> Result<Option<String>> {
        let Some(text) = &self.recipient else { return Ok(None) };
        let address: EmailAddress =
            text.parse().map_err(|_| Error::invalid("recipient", "must be an address"))?;
        Ok(Some(address.lookup_key()))
    }

    /// The times, if they are some that can be meant.
    pub fn checked(self) -> Result<Self> {
        meant("since", self.since)?;
        meant("until", self.until)?;
        Ok(self)
    }
}

/// Refuses times that no message can have, and no database keeps.
pub fn meant(field: &str, time: Option<DateTime<Utc>>) -> Result<()> {
    match time {
        Some(time) if !(1970..=9999).contains(&time.year()) => {
            Err(Error::invalid(field, "must be a time from 1970 to 9999"))
        }
        _ => Ok(()),
    }
}
