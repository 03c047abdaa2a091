//! A mail address, without a name.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{
    AddressError, DomainName,
    chars::{is_atom, is_quotable},
};

/// `Mailbox` of RFC 5321 §4.1.2 with the UTF-8 local part of RFC 6531 §3.3.
///
/// The local part is kept as given (no case folding, no normalisation: it belongs to the receiving
/// side, RFC 5321 §2.4); the domain is a [`DomainName`]. Local part at most 64 octets (§4.5.3.1.1),
/// the whole at most 254 (a path is 256 with its brackets, §4.5.3.1.3).
///
/// Refused, because mail servers read them as another address and a list of addresses would miss
/// them: comments, groups, source routes, white space outside quotes, `%` and `!` in any local
/// part, and `@` in a quoted one (Postfix rewrites all three). `<` and `>` in a quoted one, because
/// they end a path for servers that do not read quotes: no relay is told them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EmailAddress {
    local: String,
    domain: DomainName,
    whole: String,
}

impl EmailAddress {
    /// The part before the `@`, with its quotes if it has any.
    pub fn local(&self) -> &str {
        &self.local
    }

    pub fn domain(&self) -> &DomainName {
        &self.domain
    }

    pub fn as_str(&self) -> &str {
        &self.whole
    }

    /// Whether only a server with SMTPUTF8 can take this address (RFC 6531 §3.2). A domain never
    /// asks for it, since it is kept in A-labels.
    pub fn needs_smtputf8(&self) -> bool {
        !self.local.is_ascii()
    }

    /// The form in which addresses are compared and looked up: lower case throughout, and without
    /// quotes or backslashes that change nothing (RFC 5321 §4.1.2 calls such forms equivalent).
    pub fn lookup_key(&self) -> String {
        let plain = match unquote(&self.local) {
            Some(inner) if is_dot_atom(&inner) => inner,
            Some(inner) => format!("\"{}\"", inner.replace('\\', "\\\\").replace('"', "\\\"")),
            None => self.local.clone(),
        };
        let lower: String = plain.chars().flat_map(char::to_lowercase).collect();
        format!("{lower}@{}", self.domain)
    }
}

impl FromStr for EmailAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (local, domain) = match text.strip_prefix('"') {
            Some(rest) => {
                let quoted = 1 + end_of_quotes(rest).ok_or(AddressError::OpenQuote)?;
                let domain = text[quoted..].strip_prefix('@').ok_or(AddressError::Form)?;
                (&text[..quoted], domain)
            }
            None => text.split_once('@').ok_or(AddressError::Form)?,
        };
        match unquote(local) {
            Some(inner) if !is_quoted_local(&inner) => return Err(AddressError::Local),
            None if !is_dot_atom(local) || local.contains(['%', '!']) => {
                return Err(AddressError::Local);
            }
            _ => {}
        }
        if local.len() > 64 {
            return Err(AddressError::LocalTooLong);
        }
        let domain: DomainName = domain.parse()?;
        let whole = format!("{local}@{domain}");
        if whole.len() > 254 {
            return Err(AddressError::TooLong);
        }
        Ok(Self { local: local.to_owned(), domain, whole })
    }
}

/// The length of a quoted string after its opening quote, the closing one included.
fn end_of_quotes(rest: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in rest.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// What stands between the quotes, without its backslashes; nothing if there are no quotes.
fn unquote(local: &str) -> Option<String> {
    let inner = local.strip_prefix('"')?.strip_suffix('"')?;
    let mut plain = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        plain.push(if c == '\\' { chars.next()? } else { c });
    }
    Some(plain)
}

fn is_dot_atom(text: &str) -> bool {
    text.split('.').all(|atom| !atom.is_empty() && atom.chars().all(is_atom))
}

fn is_quoted_local(inner: &str) -> bool {
    !inner.is_empty()
        && inner.chars().all(is_quotable)
        && !inner.contains(['%', '!', '@', '<', '>'])
}

impl TryFrom<String> for EmailAddress {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<EmailAddress> for String {
    fn from(address: EmailAddress) -> Self {
        address.whole
    }
}

impl fmt::Display for EmailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.whole)
    }
}

#[cfg(test)]
#[path = "email_tests.rs"]
mod tests;
