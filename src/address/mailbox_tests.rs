use proptest::prelude::*;

use super::*;

fn parts(text: &str) -> (Option<String>, String) {
    let mailbox: Mailbox = text.parse().unwrap_or_else(|err| panic!("{text:?}: {err}"));
    (mailbox.name().map(str::to_owned), mailbox.address().to_string())
}

#[test]
fn takes_names_in_every_common_form() {
    for (text, name, address) in [
        ("a@example.com", None, "a@example.com"),
        ("  a@example.com ", None, "a@example.com"),
        ("<a@example.com>", None, "a@example.com"),
        ("\"\" <a@example.com>", None, "a@example.com"),
        ("Ann <a@example.com>", Some("Ann"), "a@example.com"),
        ("Ann<a@example.com>", Some("Ann"), "a@example.com"),
        ("John  Q. Public <a@example.com>", Some("John Q. Public"), "a@example.com"),
        ("[Acme] Alerts <a@example.com>", Some("[Acme] Alerts"), "a@example.com"),
        ("\"Quoted, Name\" <a@example.com>", Some("Quoted, Name"), "a@example.com"),
        ("\"a \\\"b\\\" \\\\c\" <a@example.com>", Some("a \"b\" \\c"), "a@example.com"),
        ("Zoë 🚀 <zoë@bücher.example>", Some("Zoë 🚀"), "zoë@xn--bcher-kva.example"),
        ("x <\"a;,b\"@example.com>", Some("x"), "\"a;,b\"@example.com"),
    ] {
        assert_eq!(parts(text), (name.map(str::to_owned), address.to_owned()), "{text:?}");
    }
}

#[test]
fn a_quoted_address_in_the_name_is_not_the_address() {
    let text = "\"<noreply@example.com>\" <ceo@victim.com>";
    assert_eq!(parts(text), (Some("<noreply@example.com>".into()), "ceo@victim.com".into()));
}

#[test]
fn refuses_what_could_be_read_as_two_addresses() {
    for text in [
        "",
        "Ann",
        "Ann a@example.com",
        "<a@example.com> <b@example.com>",
        "a@example.com <b@example.com>",
        "<a@example.com",
        "a@example.com>",
        "<<a@example.com>>",
        "Acme, Inc. <a@example.com>",
        "Ann (x) <a@example.com>",
        "a@example.com (Ann)",
        "g:a@example.com;",
        "g: Ann <a@example.com>;",
        "\"Ann <a@example.com>",
        "Ann <@relay.example:a@example.com>",
        "Ann <a@example.com> x",
        "A\r\nBcc: x@example.org <a@example.com>",
        "\"A\r\nB\" <a@example.com>",
        "A\0 <a@example.com>",
        "A\u{2028} <a@example.com>",
        "A\u{202e} <a@example.com>",
        "A\u{85} <a@example.com>",
        "a@example.com\n",
        "Ann < a@example.com >",
        "<>",
        "Ann <>",
    ] {
        assert!(text.parse::<Mailbox>().is_err(), "{text:?}");
    }
}

#[test]
fn lists_respect_quotes_and_brackets() {
    let list =
        Mailbox::parse_list("\"B, A\" <a@example.com>,b@example.com , <\"c,d\"@example.com>");
    let list: Vec<String> = list.unwrap().iter().map(|m| m.address().to_string()).collect();
    assert_eq!(list, ["a@example.com", "b@example.com", "\"c,d\"@example.com"]);
    for text in
        ["", ",", "a@example.com,", ",a@example.com", "a@example.com;b@example.com", "\"a, b"]
    {
        assert!(Mailbox::parse_list(text).is_err(), "{text:?}");
    }
}

proptest! {
    #[test]
    fn never_panics(text in any::<String>(), other in "[<>\"\\\\,@ a.b]{0,20}") {
        let _ = (text.parse::<Mailbox>(), Mailbox::parse_list(&text));
        let _ = (other.parse::<Mailbox>(), Mailbox::parse_list(&other));
    }

    #[test]
    fn reads_back_what_it_shows(name in any::<String>(), tricky in "[<>\"\\\\,@ a.()é]{0,20}") {
        for name in [name, tricky] {
            let address: EmailAddress = "a@example.com".parse().unwrap();
            if let Ok(mailbox) = Mailbox::new(Some(&name), address) {
                prop_assert_eq!(mailbox.to_string().parse(), Ok(mailbox.clone()));
                let list = Mailbox::parse_list(&format!("{mailbox}, {mailbox}"));
                prop_assert_eq!(list, Ok(vec![mailbox.clone(), mailbox]));
            }
        }
    }
}
