use proptest::prelude::*;

use super::*;

fn email(text: &str) -> EmailAddress {
    text.parse().unwrap_or_else(|err| panic!("{text:?}: {err}"))
}

#[test]
fn keeps_the_local_part_and_folds_the_domain() {
    for (given, kept) in [
        ("Info@BÜCHER.example", "Info@xn--bcher-kva.example"),
        ("δοκιμή@example.net", "δοκιμή@example.net"),
        ("a@例え.テスト", "a@xn--r8jz45g.xn--zckzah"),
        ("o'brien+tag@example.com", "o'brien+tag@example.com"),
        ("\"a b\"@example.com", "\"a b\"@example.com"),
        ("\"a\\\"b\"@example.com", "\"a\\\"b\"@example.com"),
        ("\"a;b,c\"@example.com", "\"a;b,c\"@example.com"),
    ] {
        assert_eq!(email(given).as_str(), kept);
    }
}

#[test]
fn only_the_local_part_asks_for_smtputf8() {
    assert!(email("δοκιμή@example.net").needs_smtputf8());
    assert!(!email("info@bücher.example").needs_smtputf8());
}

#[test]
fn refuses_tricks() {
    let long = format!("{}@example.com", "a".repeat(65));
    let domain = format!("{}.example", ["a".repeat(60).as_str(); 3].join("."));
    for text in [
        "",
        "a",
        "@",
        "a@",
        "@example.com",
        "a@b",
        "a@b@example.com",
        "a b@example.com",
        " a@example.com",
        "a@example.com ",
        "blocked@dest.com(x)",
        "blocked(x)@dest.com",
        "g:blocked@dest.com;",
        "@relay.example:a@example.com",
        "a@example.com,b@example.com",
        "a%b.example@example.com",
        "b!a@example.com",
        "\"a@b.example\"@example.com",
        "\"a%b\"@example.com",
        "\"\\@\"@example.com",
        ".a@example.com",
        "a.@example.com",
        "a..b@example.com",
        "<a@example.com>",
        "\"a<b\"@example.com",
        "\"a\\>b\"@example.com",
        "a@[1.2.3.4]",
        "a@localhost",
        "\"a@example.com",
        "\"\"@example.com",
        "\"a\"b@example.com",
        "\"a\".b@example.com",
        "a\r\n@example.com",
        "a@example.com\r\nRCPT TO:<b@example.com>",
        "\"a\r\n\"@example.com",
        "\"a\\\n\"@example.com",
        "a\0@example.com",
        "a\u{85}@example.com",
        "a\u{2028}@example.com",
        "a\u{a0}@example.com",
        "a\u{202e}@example.com",
        "a\u{200b}@example.com",
        "\"a\t\"@example.com",
        "a\\@example.com",
        &long,
        &format!("{}@{domain}", "é".repeat(33)),
        &format!("{}@{domain}a.aa", "a".repeat(62)),
    ] {
        assert!(text.parse::<EmailAddress>().is_err(), "{text:?}");
    }
}

#[test]
fn lengths_count_to_the_octet() {
    assert!(format!("{}@example.com", "a".repeat(64)).parse::<EmailAddress>().is_ok());
    let domain =
        |n: usize| format!("{}.{}.{}.example", "a".repeat(63), "a".repeat(63), "b".repeat(n));
    let address = |n: usize| format!("{}@{}", "a".repeat(64), domain(n)).parse::<EmailAddress>();
    assert_eq!(address(53).map(|a| a.as_str().len()), Ok(254));
    assert_eq!(address(54), Err(AddressError::TooLong));
}

#[test]
fn equivalent_spellings_share_a_key() {
    for (one, other) in [
        ("A.B@Example.com", "\"a.b\"@EXAMPLE.COM"),
        ("\"\\a\\b\"@example.com", "AB@example.com"),
        ("\"a\\ b\"@example.com", "\"A b\"@example.com"),
        ("É@bücher.example", "é@xn--bcher-kva.example"),
    ] {
        assert_eq!(email(one).lookup_key(), email(other).lookup_key());
    }
    assert_ne!(email("a+b@example.com").lookup_key(), email("a@example.com").lookup_key());
    assert_ne!(email("\"a b\"@example.com").lookup_key(), email("ab@example.com").lookup_key());
}

#[test]
fn is_a_string_in_json() {
    let address: EmailAddress = serde_json::from_str("\"a@Example.com\"").unwrap();
    assert_eq!(serde_json::to_string(&address).unwrap(), "\"a@example.com\"");
    assert!(serde_json::from_str::<EmailAddress>("\"a@b\"").is_err());
}

proptest! {
    #[test]
    fn never_panics(text in any::<String>()) {
        let _ = text.parse::<EmailAddress>();
    }

    #[test]
    fn reads_back_what_it_shows(text in "(\"(\\PC|\\\\\\PC){0,12}\"|[\\w.+\\-]{1,12})@[a-z]{1,9}\\.[a-zé]{2,5}") {
        if let Ok(address) = text.parse::<EmailAddress>() {
            prop_assert_eq!(address.to_string().parse(), Ok(address.clone()));
            let key: EmailAddress = address.lookup_key().parse().unwrap_or(address.clone());
            prop_assert_eq!(key.lookup_key(), address.lookup_key());
        }
    }
}
