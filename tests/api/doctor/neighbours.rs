//! What surrounds a Postroom and its work: the DNS, the queue, what is held.

use super::{Setup, dns, dns::Said, good_zone};

/// A set-up whose domain has this record instead of the good one.
async fn with_record(name: &'static str, said: Option<Said>) -> Setup {
    let mut setup = Setup::new().await;
    setup.good_relay().await;
    let mut zone = good_zone();
    zone.retain(|(known, _)| *known != name);
    zone.extend(said.map(|said| (name, said)));
    setup.set("POSTROOM_DNS_SERVER", dns::start(&zone).await.to_string());
    setup
}

#[tokio::test]
async fn a_sender_policy_that_is_missing_doubled_or_open_is_told() {
    let none = with_record("example.com", None).await.examine().await;
    none.is("spf", "example.com", "fail", "no record", "publish one TXT record at example.com");
    none.only(&["spf"]);
    let two = Said::Texts(vec!["v=spf1 mx -all", "v=spf1 a -all"]);
    let two = with_record("example.com", Some(two)).await.examine().await;
    two.is("spf", "example.com", "fail", "two SPF records", "publish one");
    let open = Said::Texts(vec!["v=spf1 +all"]);
    let open = with_record("example.com", Some(open)).await.examine().await;
    open.is("spf", "example.com", "warn", "everybody", "-all");
    assert_eq!(open.code, 1);
}

#[tokio::test]
async fn a_missing_policy_for_failures_and_a_revoked_key_are_told() {
    let none = with_record("_dmarc.example.com", None).await.examine().await;
    none.is("dmarc", "example.com", "warn", "no record", "_dmarc.example.com");
    none.only(&["dmarc"]);
    let revoked = Said::Texts(vec!["v=DKIM1; p="]);
    let revoked = with_record("mail._domainkey.example.com", Some(revoked)).await;
    let revoked = revoked.examine().await;
    revoked.is("dkim", "example.com", "fail", "revoked", "mail._domainkey.example.com");
    let none = with_record("mail._domainkey.example.com", None).await.examine().await;
    none.is("dkim", "example.com", "warn", "no record", "POSTROOM_DKIM_SELECTORS");
}

#[tokio::test]
async fn a_dns_that_fails_or_is_silent_says_nothing_of_the_records() {
    let failed = with_record("example.com", Some(Said::ServFail)).await.examine().await;
    failed.is("spf", "example.com", "fail", "SERVFAIL", "mend the zone");
    failed.only(&["spf"]);
    let silent = with_record("example.com", Some(Said::Nothing)).await.examine().await;
    silent.is("spf", "example.com", "warn", "no DNS server answers", "POSTROOM_DNS_SERVER");
    silent.only(&["spf"]);
}

#[tokio::test]
async fn held_unknowns_dead_jobs_and_a_stuck_queue_are_told() {
    let setup = Setup::new().await;
    setup.good_relay().await;
    setup
        .sql(
            "insert into messages (message_id, internet_id, from_address, from_header, to_header, subject, size,
                                   smtputf8, has_attachment, priority, n_recipients, n_open, n_unknown)
             values (gen_random_uuid(), 'a@example.com', 'app@example.com', 'x', 'x', 'x', 1, false, false, 1, 1, 0, 1);
             insert into recipients (recipient_id, message_id, position, field, address, lookup_key, envelope_sender,
                                     state, maybe_accepted)
             select gen_random_uuid(), message_id, 0, 'to', 'a@example.net', 'a@example.net', 'app@example.com',
                    'unknown', true from messages;
             insert into jobs (job_id, kind, lane, priority, due_at)
             values (gen_random_uuid(), 'send', 'example.com', 1, now() - interval '2 hours');
             insert into jobs (job_id, kind, lane, priority, state, dead_reason)
             values (gen_random_uuid(), 'send', 'example.com', 1, 'dead', 'x')",
        )
        .await;
    let findings = setup.examine().await;
    assert_eq!(findings.code, 2);
    findings.is("unknown", "", "warn", "1 recipients", "/resolve");
    findings.is("dead", "", "fail", "1 jobs", "/retry");
    findings.is("queue", "", "fail", "example.com", "postroom serve");
    findings.is("workers", "", "fail", "no Postroom", "postroom serve");
    findings.only(&["unknown", "dead", "queue", "workers"]);

    setup.sql("insert into paused_scopes (scope, value, paused_by) values ('sender_domain', 'example.com', 'x')").await;
    setup.examine().await.is("queue", "", "warn", "due for", "resume it");
}
