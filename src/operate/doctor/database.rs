//! The database: reachable, new enough, without a pooler in the way, with the schema of this binary
//! and the secrets of this key.

use std::time::Duration;

use sqlx::{Connection as _, PgConnection};

use super::{
    Check,
    check::{PATIENCE, asked},
    pooler,
};
use crate::{
    app::App,
    config, database,
    operate::store::{self, Server},
};

/// The oldest server that our statements are written for.
const OLDEST: i32 = 150_000;
/// Clocks further apart than this, in seconds, are worth a word.
const APART: f64 = 2.0;

/// The looks at the server, and whether it can be used.
pub async fn checks(app: &App) -> (Vec<Check>, bool) {
    let place = place(&app.config.database);
    let mut conn = match reach(&app.config.database).await {
        Ok(conn) => conn,
        Err(check) => return (vec![check], false),
    };
    let mut checks = vec![Check::ok("database", format!("{place} answers"))];
    let before = app.now();
    match asked("database.version", store::server(&mut conn)).await {
        Err(check) => {
            // Behind a pooler, others of its sessions may have prepared the same.
            let prepared = check.found.contains("prepared statement");
            checks.push(if prepared { pooler::in_the_way(&check.found) } else { check });
            return (checks, false);
        }
        Ok(server) => {
            checks.push(version(&server));
            let (took, now) = (app.now() - before, app.now());
            let halfway = now - took / 2;
            let apart = (server.now - halfway).as_seconds_f64();
            checks.push(clock(apart, took.as_seconds_f64()));
        }
    }
    checks.push(pooler::check(&app.config.database, &mut conn).await);
    let _ = tokio::time::timeout(Duration::from_secs(1), conn.close()).await;
    (checks, true)
}

/// Where the database is, without who asks and with what password.
fn place(database: &config::Database) -> String {
    let options = database::options(database);
    let named = options.ok().map(|it| {
        let name = it.get_database().unwrap_or("postgres").to_owned();
        match it.get_socket() {
            Some(folder) => format!("{name} at {}", folder.display()),
            None => format!("{name} at {}:{}", it.get_host(), it.get_port()),
        }
    });
    named.unwrap_or_else(|| "the database".to_owned())
}

async fn reach(database: &config::Database) -> Result<PgConnection, Check> {
    let place = place(database);
    let options = database::options(database)
        .map_err(|error| Check::fail("database", error.to_string(), "correct DATABASE_URL"))?;
    match tokio::time::timeout(PATIENCE, PgConnection::connect_with(&options)).await {
        Ok(Ok(conn)) => Ok(conn),
        Ok(Err(error)) if pooler::refuses_options(&error) => {
            Err(pooler::in_the_way(&pooler::words(&error)))
        }
        Ok(Err(error)) => {
            let (found, fix) = unreached(&error, &place);
            Err(Check::fail("database", found, fix))
        }
        Err(_) => Err(Check::fail(
            "database",
            format!("{place} does not answer within {} s", PATIENCE.as_secs()),
            "look whether a firewall drops the packets, and whether the host in DATABASE_URL is right",
        )),
    }
}

fn unreached(error: &sqlx::Error, place: &str) -> (String, String) {
    use std::io::ErrorKind;
    match error {
        sqlx::Error::Io(io) if io.kind() == ErrorKind::ConnectionRefused => (
            format!("nothing listens at {place}"),
            "start PostgreSQL, or correct host and port in DATABASE_URL; from a container, localhost is \
             the container itself"
                .to_owned(),
        ),
        sqlx::Error::Io(io) if io.kind() == ErrorKind::NotFound => (
            format!("there is no socket: {place}"),
            "start PostgreSQL, or correct the folder of its socket in DATABASE_URL".to_owned(),
        ),
        sqlx::Error::Io(io) => (
            format!("{place} cannot be reached: {io}"),
            "correct the host in DATABASE_URL; look whether its name resolves and the network is there"
                .to_owned(),
        ),
        sqlx::Error::Tls(tls) => (
            format!("no TLS with {place}: {tls}"),
            "give the server a certificate that can be verified, name its authority (sslrootcert), or \
             choose another sslmode in DATABASE_URL"
                .to_owned(),
        ),
        sqlx::Error::Database(refused) => {
            let fix = match refused.code().as_deref() {
                Some("28P01" | "28000") => {
                    "correct user and password in DATABASE_URL, or pg_hba.conf of the server"
                }
                Some("3D000") => "make the database (createdb), or correct its name in DATABASE_URL",
                Some("53300") => {
                    "raise max_connections of the server, or lower POSTROOM_DATABASE_*_CONNECTIONS"
                }
                Some("57P03") => "wait until the server has started; its log says what it does",
                Some("42501") => "grant the user of DATABASE_URL the right to connect",
                _ => "the log of PostgreSQL says more",
            };
            (format!("{place} refuses: {}", refused.message()), fix.to_owned())
        }
        other => {
            (format!("{place} cannot be used: {other}"), "the log of PostgreSQL says more".to_owned())
        }
    }
}

fn version(server: &Server) -> Check {
    let said = format!("PostgreSQL {}", server.version);
    match server.number < OLDEST {
        true => {
            Check::fail("database.version", said, "upgrade the server to PostgreSQL 15 or newer")
        }
        false => Check::ok("database.version", said),
    }
}

/// How far the database's clock is from ours, in seconds; the answer took so long.
fn clock(apart: f64, took: f64) -> Check {
    let said = format!("the clock of the database is {apart:+.1} s from this machine's");
    if apart.abs() <= APART + took {
        return Check::ok("clock", said);
    }
    let fix = "let both machines follow the same time (chrony or systemd-timesyncd); due times go by \
               the database's clock, log lines and certificates by this one";
    Check::warn("clock", said, fix)
}

/// The look at the schema, and whether the rest can be looked at.
pub async fn migrations(app: &App) -> (Check, bool) {
    const CHECK: &str = "migrations";
    let schema = async { Ok(database::schema(&app.db).await?) };
    let schema = match asked(CHECK, schema).await {
        Ok(schema) => schema,
        Err(check) => return (check, false),
    };
    if let Some(version) = schema.newer.last() {
        let found = format!("the schema is newer than this binary: it has the migration {version}");
        let fix = "start the newer Postroom that made it, or restore the backup from before it";
        return (Check::fail(CHECK, found, fix), true);
    }
    if let Some(version) = schema.broken.first() {
        let found = format!("the migration {version} is unfinished, or is another one than here");
        let fix = "restore the last backup, or use the binary that applied it";
        return (Check::fail(CHECK, found, fix), false);
    }
    let fix = "run `postroom migrate` (`postroom serve` does it too, when it starts)";
    match schema.missing.as_slice() {
        [] => (Check::ok(CHECK, format!("all {} are applied", schema.applied)), true),
        _ if schema.applied == 0 => {
            (Check::fail(CHECK, "none is applied: the database is empty", fix), false)
        }
        missing => {
            let found = format!("{} not applied yet, from {} on", missing.len(), missing[0]);
            (Check::warn(CHECK, found, fix), true)
        }
    }
}

/// Whether the secret key is the one that sealed what is in the database.
pub async fn secret(app: &App, has_secret: bool) -> Check {
    const CHECK: &str = "secret";
    if !has_secret {
        return Check::skipped(CHECK, "POSTROOM_SECRET_KEY is missing or wrong");
    }
    match asked(CHECK, store::secret_check(&app.db)).await {
        Err(check) => check,
        Ok(None) => Check::ok(CHECK, "nothing is sealed yet"),
        Ok(Some(kept)) => match app.secrets.check(&kept) {
            Ok(()) => Check::ok(CHECK, "the key is the one of this database"),
            Err(_) => Check::fail(
                CHECK,
                "POSTROOM_SECRET_KEY is not the key of this database: passwords of relays cannot be opened",
                "start with the key that was used before (after a turn of keys: both, the new one first)",
            ),
        },
    }
}
