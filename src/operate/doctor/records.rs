//! What the DNS records of a sender domain must say: pure rules (RFC 7208, RFC 6376, RFC 7489).

/// How a record is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    Good(String),
    Missing,
    /// It is there, and works against its purpose or could do better.
    Weak(&'static str),
    /// It is there, and receivers treat it as broken.
    Broken(&'static str),
}

/// The texts that begin with this version as a whole word: `v=spf10` is no `v=spf1`.
fn of_version<'a>(texts: &'a [String], version: &str, ends: &[char]) -> Vec<&'a str> {
    let is_one = |text: &&str| {
        let head = text.get(..version.len());
        let rest = text.get(version.len()..).unwrap_or_default();
        head.is_some_and(|head| head.eq_ignore_ascii_case(version))
            && (rest.is_empty() || rest.starts_with(ends))
    };
    texts.iter().map(|text| text.trim()).filter(is_one).collect()
}

/// A sender policy.
pub fn spf(texts: &[String]) -> Record {
    match of_version(texts, "v=spf1", &[' ']).as_slice() {
        [] => Record::Missing,
        [one] => {
            let terms: Vec<String> =
                one.split_ascii_whitespace().skip(1).map(str::to_ascii_lowercase).collect();
            let has = |term: &str| terms.iter().any(|it| it == term);
            if has("+all") || has("all") {
                Record::Weak("it lets everybody send (+all)")
            } else if has("?all") {
                Record::Weak("it says nothing of everybody else (?all)")
            } else if !has("-all")
                && !has("~all")
                && !terms.iter().any(|it| it.starts_with("redirect="))
            {
                Record::Weak("it has no end (~all or -all), so it refuses nobody")
            } else {
                Record::Good((*one).to_owned())
            }
        }
        [_, _, ..] => {
            Record::Broken("there are two SPF records, so receivers treat all as an error")
        }
    }
}

/// The value of a tag in a list of `tag=value` pairs with semicolons.
fn tag<'a>(record: &'a str, name: &str) -> Option<&'a str> {
    record.split(';').find_map(|pair| {
        let (tag, value) = pair.split_once('=')?;
        tag.trim().eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// What is to become of mail that fails.
pub fn dmarc(texts: &[String]) -> Record {
    match of_version(texts, "v=DMARC1", &[' ', ';']).as_slice() {
        [] => Record::Missing,
        [one] => match tag(one, "p").map(str::to_ascii_lowercase).as_deref() {
            Some("none" | "quarantine" | "reject") => Record::Good((*one).to_owned()),
            Some(_) => Record::Broken("its policy p is none of none, quarantine and reject"),
            None => Record::Broken("it has no policy (p)"),
        },
        [_, _, ..] => Record::Broken("there are two DMARC records, so receivers ignore both"),
    }
}

/// A key that signatures are verified with.
pub fn dkim(texts: &[String]) -> Record {
    let is_key = |text: &&String| {
        !of_version(std::slice::from_ref(*text), "v=DKIM1", &[' ', ';']).is_empty()
            || (tag(text, "v").is_none() && tag(text, "p").is_some())
    };
    let keys: Vec<&String> = texts.iter().filter(is_key).collect();
    match keys.as_slice() {
        [] => Record::Missing,
        [one] => match tag(one, "p") {
            None => Record::Broken("it has no key (p)"),
            Some("") => Record::Broken("its key is revoked (p is empty)"),
            Some(_) => Record::Good("a key is published".to_owned()),
        },
        [_, _, ..] => Record::Broken("there are two keys under one name, so receivers take either"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn a_sender_policy_is_one_and_closes() {
        let is = |all: &[&str]| spf(&texts(all));
        assert!(matches!(is(&["v=spf1 mx -all", "other"]), Record::Good(_)));
        assert!(matches!(is(&["V=SPF1 redirect=_spf.example.net"]), Record::Good(_)));
        assert_eq!(is(&["v=spf10 -all"]), Record::Missing);
        assert_eq!(is(&[]), Record::Missing);
        assert!(matches!(is(&["v=spf1 mx -all", "v=spf1 -all"]), Record::Broken(_)));
        for open in ["v=spf1 +all", "v=spf1 all", "v=spf1 mx ?all", "v=spf1 mx", "v=spf1"] {
            assert!(matches!(is(&[open]), Record::Weak(_)), "{open}");
        }
    }

    #[test]
    fn a_policy_for_failures_is_one_and_says_p() {
        let is = |all: &[&str]| dmarc(&texts(all));
        assert!(matches!(is(&["v=DMARC1; p=none"]), Record::Good(_)));
        assert!(matches!(is(&["v=DMARC1;p=reject;rua=mailto:a@example.net"]), Record::Good(_)));
        assert_eq!(is(&["v=DMARC10; p=none"]), Record::Missing);
        assert!(matches!(is(&["v=DMARC1; sp=none"]), Record::Broken(_)));
        assert!(matches!(is(&["v=DMARC1; p=maybe"]), Record::Broken(_)));
        assert!(matches!(is(&["v=DMARC1; p=none", "v=DMARC1; p=none"]), Record::Broken(_)));
    }

    #[test]
    fn a_revoked_key_is_no_key() {
        let is = |all: &[&str]| dkim(&texts(all));
        assert!(matches!(is(&["v=DKIM1; k=rsa; p=MIIB"]), Record::Good(_)));
        assert!(matches!(is(&["k=rsa; p=MIIB"]), Record::Good(_)));
        assert!(matches!(is(&["v=DKIM1; p="]), Record::Broken(_)));
        assert!(matches!(is(&["v=DKIM1; k=rsa"]), Record::Broken(_)));
        assert_eq!(is(&["v=spf1 -all"]), Record::Missing);
    }
}
