//! An address with a display name.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{
    AddressError, EmailAddress,
    chars::{is_atom, is_invisible_control},
    mailbox_parser,
};

/// `mailbox` of RFC 5322 §3.4: one address, perhaps with a name in front of it.
///
/// A name is never empty, has no space at its ends and no control character; it is the text
/// itself, without quotes or encoded words.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mailbox {
    name: Option<String>,
    address: EmailAddress,
}

impl Mailbox {
    /// With a name that is blank, the address alone.
    pub fn new(name: Option<&str>, address: EmailAddress) -> Result<Self, AddressError> {
        let name = name.map(|name| name.trim_matches(' ')).filter(|name| !name.is_empty());
        if name.is_some_and(|name| name.contains(is_invisible_control)) {
            return Err(AddressError::ControlInName);
        }
        Ok(Self { name: name.map(str::to_owned), address })
    }

    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub fn address(&self) -> &EmailAddress {
        &self.address
    }

    /// A list parted by commas, which may stand within quotes and angle brackets. An empty list
    /// and an empty place in it are errors.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, AddressError> {
        mailbox_parser::split_list(text)?.into_iter().map(str::parse).collect()
    }
}

impl From<EmailAddress> for Mailbox {
    fn from(address: EmailAddress) -> Self {
        Self { name: None, address }
    }
}

impl FromStr for Mailbox {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (name, address) = mailbox_parser::split(text)?;
        Self::new(name.as_deref(), address.parse()?)
    }
}

impl TryFrom<String> for Mailbox {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<Mailbox> for String {
    fn from(mailbox: Mailbox) -> Self {
        mailbox.to_string()
    }
}

impl fmt::Display for Mailbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            None => write!(f, "{}", self.address),
            Some(name) if name.chars().all(|c| is_atom(c) || c == ' ') && !name.contains("  ") => {
                write!(f, "{name} <{}>", self.address)
            }
            Some(name) => {
                let name = name.replace('\\', "\\\\").replace('"', "\\\"");
                write!(f, "\"{name}\" <{}>", self.address)
            }
        }
    }
}

#[cfg(test)]
#[path = "mailbox_tests.rs"]
mod tests;
