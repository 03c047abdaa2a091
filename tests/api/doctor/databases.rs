//! Databases that are away, refuse, are empty, or belong to another Postroom.

use std::time::Duration;

use sqlx::postgres::PgConnectOptions;

use super::{SECRET, Setup};

#[tokio::test]
async fn a_database_that_is_away_is_told_with_its_place_and_without_its_password() {
    let mut setup = Setup::empty().await;
    // Bound and closed again: nobody listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    setup.set("DATABASE_URL", format!("postgres://app:{SECRET}@127.0.0.1:{port}/mail"));
    let findings = setup.examine().await;
    assert_eq!(findings.code, 2);
    let place = format!("mail at 127.0.0.1:{port}");
    findings.is("database", "", "fail", &place, "start PostgreSQL");
    findings.only(&["database"]);
}

#[tokio::test]
async fn a_database_that_hangs_does_not_hang_the_doctor() {
    let mut setup = Setup::empty().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    setup.set("DATABASE_URL", format!("postgres://app:{SECRET}@127.0.0.1:{port}/mail"));
    let begun = std::time::Instant::now();
    let findings = setup.examine().await;
    assert!(begun.elapsed() < Duration::from_secs(30));
    findings.is("database", "", "fail", "does not answer within", "firewall");
}

#[tokio::test]
async fn a_database_that_is_not_there_is_to_be_made() {
    let mut setup = Setup::empty().await;
    let url = setup.env["DATABASE_URL"].clone();
    let options: PgConnectOptions = url.parse().unwrap();
    let wrong = url.replace(options.get_database().unwrap(), "no_such_database");
    setup.set("DATABASE_URL", wrong);
    let findings = setup.examine().await;
    findings.is("database", "", "fail", "no_such_database", "createdb");
}

#[tokio::test]
async fn a_database_without_a_schema_is_to_be_migrated() {
    let setup = Setup::empty().await;
    let findings = setup.examine().await;
    assert_eq!(findings.code, 2);
    findings.is("migrations", "", "fail", "empty", "postroom migrate");
    findings.only(&["migrations"]);
}

#[tokio::test]
async fn a_schema_that_is_newer_or_half_done_is_told() {
    let setup = Setup::new().await;
    setup.good_relay().await;
    setup
        .sql(
            "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
              values (99991231000000, 'later', true, '\\x00', 0)",
        )
        .await;
    let findings = setup.examine().await;
    findings.is("migrations", "", "fail", "99991231000000", "newer Postroom");
    findings.only(&["migrations"]);

    setup.sql("delete from _sqlx_migrations where version = 99991231000000").await;
    setup.sql("update _sqlx_migrations set success = false where version = (select max(version) from _sqlx_migrations)").await;
    setup.examine().await.is("migrations", "", "fail", "unfinished", "backup");
}
