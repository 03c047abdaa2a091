//! The domains that relays send for: whether receivers can believe what comes from them.

use super::{
    Check, all,
    check::asked,
    records::{self, Record},
};
use crate::{
    app::App,
    operate::store,
    outside::dns::{Answer, Dns, DnsFault},
};

/// More are not looked at: a run must end.
const MOST: usize = 50;

pub async fn checks(app: &App) -> Vec<Check> {
    const CHECK: &str = "domains";
    let domains = match asked(CHECK, store::sender_domains(&app.db)).await {
        Ok(domains) if domains.is_empty() => {
            return vec![Check::skipped(CHECK, "no relay names a sender's domain")];
        }
        Ok(domains) => domains,
        Err(check) => return vec![check],
    };
    let dns = match Dns::new(app.config.dns.server) {
        Ok(dns) => dns,
        Err(fault) => return vec![unanswered("dns", "", &fault)],
    };
    let selectors = &app.config.dns.dkim_selectors;
    let mut checks = all(domains.iter().take(MOST).map(|it| of_domain(&dns, it, selectors))).await;
    if domains.len() > MOST {
        let more = format!("{} more domains are not looked at", domains.len() - MOST);
        checks.push(Check::skipped(CHECK, more));
    }
    checks
}

async fn of_domain(dns: &Dns, domain: &str, selectors: &[String]) -> Vec<Check> {
    let policy = format!("_dmarc.{domain}");
    let (spf, dmarc, dkim) =
        tokio::join!(dns.texts(domain), dns.texts(&policy), dkim(dns, domain, selectors));
    let spf_fix = format!(
        "publish one TXT record at {domain} that names the servers of its relays, such as \"v=spf1 mx -all\""
    );
    let dmarc_fix = format!("publish one TXT record at {policy}, such as \"v=DMARC1; p=none\"");
    vec![
        told("spf", domain, spf.map(|it| read(it, records::spf)), spf_fix),
        told("dmarc", domain, dmarc.map(|it| read(it, records::dmarc)), dmarc_fix),
        dkim,
    ]
}

/// The first of the names under which a key is found.
async fn dkim(dns: &Dns, domain: &str, selectors: &[String]) -> Check {
    let mut worst = None;
    for selector in selectors {
        let name = format!("{selector}._domainkey.{domain}");
        let found = dns.texts(&name).await.map(|it| read(it, records::dkim));
        let is_missing = matches!(found, Ok(Record::Missing));
        let fix = format!(
            "publish the key that the relay signs with as a TXT record at {name}, or name the right \
             selector in POSTROOM_DKIM_SELECTORS"
        );
        let check = told("dkim", domain, found, fix);
        if !is_missing {
            return check;
        }
        worst = worst.or(Some(check));
    }
    worst.unwrap_or_else(|| Check::skipped("dkim", "no selector is named").of(domain))
}

fn read(answer: Answer<String>, rule: fn(&[String]) -> Record) -> Record {
    match answer {
        Answer::Found(texts) => rule(&texts),
        Answer::NoRecord | Answer::NoName => Record::Missing,
    }
}

fn told(check: &'static str, domain: &str, found: Result<Record, DnsFault>, fix: String) -> Check {
    let check = match found {
        Ok(Record::Good(text)) => Check::ok(check, text),
        // Without a sender policy much is refused; without the others less is believed.
        Ok(Record::Missing) if check == "spf" => Check::fail(check, "there is no record", fix),
        Ok(Record::Missing) => Check::warn(check, "there is no record", fix),
        Ok(Record::Weak(why)) => Check::warn(check, why, fix),
        Ok(Record::Broken(why)) => Check::fail(check, why, fix),
        Err(fault) => unanswered(check, domain, &fault),
    };
    check.of(domain)
}

/// Nothing is known: that is not the same as a record that is missing.
fn unanswered(check: &'static str, domain: &str, fault: &DnsFault) -> Check {
    let found = format!("nothing is known: {fault}");
    match fault {
        DnsFault::Failed(_) => Check::fail(
            check,
            found,
            format!(
                "mend the zone of {domain} (DNSSEC, or name servers that do not answer): receivers see the same"
            ),
        ),
        DnsFault::Silent | DnsFault::Unasked(_) => Check::warn(
            check,
            found,
            "let this machine reach its DNS server, or name another one in POSTROOM_DNS_SERVER",
        ),
    }
}
