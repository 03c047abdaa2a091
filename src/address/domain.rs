//! The name of a domain, in the one spelling the DNS knows.

use std::{fmt, str::FromStr};

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use serde::{Deserialize, Serialize};

use super::AddressError;

/// A domain name in lower-case A-labels (RFC 5890 §2.3.2.1), so `BÜCHER.example` and
/// `xn--bcher-kva.example` are equal.
///
/// Two labels or more, each 1 to 63 octets of letters, digits and inner hyphens (RFC 1035 §2.3.1),
/// 253 octets in all, no trailing dot. Address literals (`[192.0.2.1]`) and bare IPv4 addresses
/// are no domain names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DomainName(String);

impl DomainName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DomainName {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let ascii = Uts46::new()
            .to_ascii(
                text.as_bytes(),
                AsciiDenyList::STD3,
                Hyphens::CheckFirstLast,
                DnsLength::Verify,
            )
            .map_err(|_| AddressError::Domain)?;
        let plain = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
        let (_, top) = ascii.rsplit_once('.').ok_or(AddressError::Domain)?;
        // A top-level label is never all digits (RFC 3696 §2); this refuses IPv4 addresses.
        if !ascii.bytes().all(plain) || top.bytes().all(|b| b.is_ascii_digit()) {
            return Err(AddressError::Domain);
        }
        Ok(Self(ascii.into_owned()))
    }
}

impl TryFrom<String> for DomainName {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<DomainName> for String {
    fn from(domain: DomainName) -> Self {
        domain.0
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn has_one_spelling() {
        for (given, kept) in [
            ("Example.COM", "example.com"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("BÜCHER.example", "xn--bcher-kva.example"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
            ("例え。テスト", "xn--r8jz45g.xn--zckzah"),
            ("r3---sn.example.com", "r3---sn.example.com"),
        ] {
            assert_eq!(given.parse::<DomainName>().map(String::from), Ok(kept.into()), "{given}");
        }
    }

    #[test]
    fn refuses_what_is_no_domain_name() {
        let long = format!("{}.example", ["a".repeat(63).as_str(); 4].join("."));
        for text in [
            "",
            ".",
            "localhost",
            "example.com.",
            ".example.com",
            "a..b",
            "exa_mple.com",
            "-a.example",
            "a-.example",
            "[1.2.3.4]",
            "1.2.3.4",
            "[IPv6:::1]",
            "a b.example",
            "a.example\r\n",
            "a.example\0",
            "a@b.example",
            "a/b.example",
            "a%b.example",
            "xn--a.example",
            "a．example_",
            &long,
            &format!("{}.example", "a".repeat(64)),
        ] {
            assert_eq!(text.parse::<DomainName>(), Err(AddressError::Domain), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn reads_back_what_it_shows(text in any::<String>()) {
            if let Ok(domain) = text.parse::<DomainName>() {
                prop_assert_eq!(domain.to_string().parse(), Ok(domain));
            }
        }

        #[test]
        fn reads_back_international_names(text in "[\\w-]{1,20}\\.[\\p{L}]{2,8}") {
            if let Ok(domain) = text.parse::<DomainName>() {
                prop_assert!(domain.as_str().is_ascii() && domain.as_str().len() <= 253);
                prop_assert_eq!(domain.to_string().parse(), Ok(domain));
            }
        }
    }
}
