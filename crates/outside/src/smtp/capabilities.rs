//! What a server offers in its reply to EHLO (RFC 5321 §4.1.1.1).

use super::Reply;

/// What the server offered. Nothing at all after HELO.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// RFC 2920.
    pub pipelining: bool,
    /// RFC 1870: whether `SIZE=` may be said.
    pub size: bool,
    /// The largest message the server takes, in octets; `None` when it names no fixed limit.
    pub size_limit: Option<u64>,
    /// RFC 6152.
    pub eight_bit_mime: bool,
    /// RFC 6531.
    pub smtputf8: bool,
    /// RFC 3207.
    pub starttls: bool,
    /// RFC 3461.
    pub dsn: bool,
    /// RFC 2034.
    pub enhanced_status_codes: bool,
    /// RFC 4954: those of the offered mechanisms that we speak.
    pub auth: Vec<AuthMechanism>,
}

/// The mechanisms we speak; the first that is offered is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AuthMechanism {
    /// RFC 4616.
    Plain,
    /// An old draft, and all that some servers offer.
    Login,
}

impl Capabilities {
    /// Reads the lines behind the first, which is the server's name. Keywords and mechanisms are
    /// case-insensitive; what we do not know is passed over.
    pub(super) fn parse(reply: &Reply) -> Self {
        let mut found = Self::default();
        for line in reply.text.lines().skip(1) {
            // Old servers say "AUTH=LOGIN PLAIN", with or without a blank behind the sign.
            let line = line.replacen('=', " ", usize::from(is_old_auth(line)));
            let mut words = line.split_ascii_whitespace();
            let keyword = words.next().unwrap_or_default().to_ascii_uppercase();
            match keyword.as_str() {
                "PIPELINING" => found.pipelining = true,
                "SIZE" => {
                    found.size = true;
                    found.size_limit =
                        words.next().and_then(|n| n.parse().ok()).filter(|&limit| limit > 0);
                }
                "8BITMIME" => found.eight_bit_mime = true,
                "SMTPUTF8" => found.smtputf8 = true,
                "STARTTLS" => found.starttls = true,
                "DSN" => found.dsn = true,
                "ENHANCEDSTATUSCODES" => found.enhanced_status_codes = true,
                "AUTH" => found.auth.extend(words.filter_map(AuthMechanism::parse)),
                _ => {}
            }
        }
        found.auth.sort_unstable();
        found.auth.dedup();
        found
    }
}

impl AuthMechanism {
    fn parse(word: &str) -> Option<Self> {
        match word.to_ascii_uppercase().as_str() {
            "PLAIN" => Some(Self::Plain),
            "LOGIN" => Some(Self::Login),
            _ => None,
        }
    }
}

fn is_old_auth(line: &str) -> bool {
    line.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("AUTH="))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Capabilities {
        Capabilities::parse(&Reply { code: 250, enhanced: None, text: text.to_owned() })
    }

    #[test]
    fn everything_is_read_whatever_its_case() {
        let got = parse(
            "pipelining.example\nPIPElining\nsize 1000\n8bitmime\nSmtpUtf8\nStartTLS\ndsn\n\
             EnhancedStatusCodes\nauth login XOAUTH2 plain\nCHUNKING",
        );
        let want = Capabilities {
            pipelining: true,
            size: true,
            size_limit: Some(1000),
            eight_bit_mime: true,
            smtputf8: true,
            starttls: true,
            dsn: true,
            enhanced_status_codes: true,
            auth: vec![AuthMechanism::Plain, AuthMechanism::Login],
        };
        assert_eq!(got, want);
    }

    #[test]
    fn the_old_form_of_auth_is_read_once() {
        let both = vec![AuthMechanism::Plain, AuthMechanism::Login];
        assert_eq!(parse("x\nAUTH PLAIN LOGIN\nAUTH=PLAIN LOGIN").auth, both);
        assert_eq!(parse("x\nauth= login").auth, [AuthMechanism::Login]);
    }

    #[test]
    fn a_size_without_limit_is_no_limit() {
        for text in ["x\nSIZE", "x\nSIZE 0", "x\nSIZE many"] {
            assert_eq!((parse(text).size, parse(text).size_limit), (true, None), "{text}");
        }
    }

    #[test]
    fn the_first_line_is_a_name() {
        assert_eq!(parse("PIPELINING"), Capabilities::default());
    }
}
