//! Credentials of relays that are named, not stored: variables that begin with `SMTP_`.
//!
//! Whoever may edit a relay chooses the name, so it must never reach any other variable: the
//! map holds nothing else, and it is the captured environment, not the live one.

use super::{Environment, reader::Shown};
use secrecy::SecretString;
use std::{collections::BTreeMap, fmt};

const PREFIX: &str = "SMTP_";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    #[error("the name must begin with SMTP_ and hold capitals, digits and '_' only")]
    NotAllowed,
    #[error("the environment has no variable of that name")]
    Missing,
}

/// The variables that a relay may name. `Debug` shows their names only.
#[derive(Clone, Default)]
pub struct SmtpCredentialEnv {
    values: BTreeMap<String, SecretString>,
    /// Settings of our own that share the prefix.
    ours: Vec<String>,
}

impl SmtpCredentialEnv {
    pub(super) fn capture(env: &Environment, settings: &[Shown]) -> Self {
        let ours: Vec<String> = settings
            .iter()
            .filter(|setting| setting.name.starts_with(PREFIX))
            .flat_map(|setting| [setting.name.to_owned(), format!("{}_FILE", setting.name)])
            .collect();
        let values = env
            .iter()
            .filter(|(name, value)| is_allowed(name, &ours) && !value.is_empty())
            .map(|(name, value)| (name.clone(), SecretString::from(value.as_str())))
            .collect();
        Self { values, ours }
    }

    /// The value of a variable that a relay names.
    pub fn read(&self, name: &str) -> Result<&SecretString, CredentialError> {
        self.check_name(name)?;
        self.values.get(name).ok_or(CredentialError::Missing)
    }

    /// Whether a relay may name this variable, set or not.
    pub fn check_name(&self, name: &str) -> Result<(), CredentialError> {
        is_allowed(name, &self.ours).then_some(()).ok_or(CredentialError::NotAllowed)
    }
}

fn is_allowed(name: &str, ours: &[String]) -> bool {
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    name.len() > PREFIX.len()
        && name.starts_with(PREFIX)
        && name.bytes().all(plain)
        && !ours.iter().any(|our| our == name)
}

impl fmt::Debug for SmtpCredentialEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}
