//! The pools, the migrations, and the check that the secret key is the one of this database.

use std::time::Duration;

use anyhow::{Context as _, bail};
use secrecy::ExposeSecret as _;
use sqlx::{
    Connection as _, PgConnection, PgPool,
    migrate::{MigrateError, Migrator},
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{config, secrets::SecretRing};

const ACQUIRE: Duration = Duration::from_secs(5);
/// Claims, heartbeats and hints are short: a few connections carry them all.
const RELAXED_CONNECTIONS: u32 = 4;

/// The migrations that this binary knows.
static MIGRATIONS: Migrator = sqlx::migrate!();

/// Pools apart, so that no use of the database starves another.
#[derive(Debug, Clone)]
pub struct Pools {
    pub api: PgPool,
    pub workers: PgPool,
    /// `synchronous_commit = off`: for writes whose loss costs nothing.
    pub relaxed: PgPool,
    /// One connection, which listens.
    pub listener: PgPool,
}

impl Pools {
    /// Waits until every connection is back, and ends it in order.
    pub async fn close(&self) {
        tokio::join!(
            self.api.close(),
            self.workers.close(),
            self.relaxed.close(),
            self.listener.close()
        );
    }
}

/// Makes the pools, after one connection has shown that the database can be reached: its own words
/// say why not, where a pool only says that it waited.
pub async fn open(database: &config::Database) -> anyhow::Result<Pools> {
    let options: PgConnectOptions =
        database.url.expose_secret().parse().context("DATABASE_URL cannot be understood")?;
    tokio::time::timeout(ACQUIRE, PgConnection::connect_with(&options))
        .await
        .context("the database does not answer")?
        .context("the database cannot be reached")?
        .close()
        .await?;
    pools(database)
}

/// How each connection is made.
pub fn options(database: &config::Database) -> anyhow::Result<PgConnectOptions> {
    let options: PgConnectOptions =
        database.url.expose_secret().parse().context("DATABASE_URL cannot be understood")?;
    Ok(options.application_name("postroom").options([
        ("statement_timeout", format!("{}ms", database.statement_timeout.as_millis())),
        ("lock_timeout", "5s".to_owned()),
        ("idle_in_transaction_session_timeout", "60s".to_owned()),
    ]))
}

/// Makes the pools; they connect when they are first used. Needs a runtime around it.
pub fn pools(database: &config::Database) -> anyhow::Result<Pools> {
    let pool = |most: u32, durable: bool| -> anyhow::Result<PgPool> {
        // Said in words: a server-wide "off" must not weaken what a 202 promises.
        let commit = if durable { "on" } else { "off" };
        let options = options(database)?.options([("synchronous_commit", commit)]);
        Ok(PgPoolOptions::new()
            .max_connections(most)
            .acquire_timeout(ACQUIRE)
            .connect_lazy_with(options))
    };
    Ok(Pools {
        api: pool(database.api_connections, true)?,
        workers: pool(database.worker_connections, true)?,
        relaxed: pool(RELAXED_CONNECTIONS, false)?,
        listener: pool(1, true)?,
    })
}

/// Brings the schema up to date; refuses one that a newer Postroom made. Several processes may do
/// it at once: one does the work, and the others wait for it.
pub async fn migrate(db: &PgPool) -> anyhow::Result<()> {
    // A connection of its own, since a migration may take longer than a statement of a request.
    let mut conn = db.acquire().await.context("the database does not answer")?.detach();
    sqlx::query!(
        "select set_config('statement_timeout', '0', false) as statement,
                set_config('lock_timeout', '60s', false) as lock"
    )
    .fetch_one(&mut conn)
    .await?;
    let done = MIGRATIONS.run(&mut conn).await;
    // What remains open closes with the process.
    let _ = conn.close().await;
    match done {
        Ok(()) => Ok(()),
        Err(MigrateError::VersionMissing(version)) => bail!(
            "the database belongs to a newer Postroom: it has the migration {version}, which this \
             one does not know; start the newer one"
        ),
        Err(error) => Err(error).context("the database could not be brought up to date"),
    }
}

/// How the schema of a database stands to what this binary knows, by versions of migrations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Schema {
    pub applied: usize,
    /// Known here, and not applied.
    pub missing: Vec<i64>,
    /// Applied, and not known here: a newer Postroom made them.
    pub newer: Vec<i64>,
    /// Begun and not finished, or applied with another text.
    pub broken: Vec<i64>,
}

/// Seals the check value again, with the first key of the ring; fails unless the ring opens it.
pub async fn reseal_check(conn: &mut PgConnection, ring: &SecretRing) -> anyhow::Result<()> {
    let kept = sqlx::query_scalar!(
        "select value from installation where name = 'secret_check' for update"
    )
    .fetch_optional(&mut *conn)
    .await?
    .context("no server has used this database yet: there is nothing to seal again")?;
    ring.check(&kept).context("POSTROOM_SECRET_KEY does not hold the key of this database")?;
    sqlx::query!(
        "update installation set value = $1 where name = 'secret_check'",
        ring.check_value()
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Looks at the schema, and changes nothing.
pub async fn schema(db: &PgPool) -> Result<Schema, sqlx::Error> {
    let mut conn = db.acquire().await?;
    let there =
        sqlx::query_scalar!(r#"select to_regclass('_sqlx_migrations') is not null as "it!""#);
    let mut found: Vec<(i64, bool, Vec<u8>)> = Vec::new();
    if there.fetch_one(&mut *conn).await? {
        // The table is the library's, so the compiler's check does not know it.
        let rows = "select version, success, checksum from _sqlx_migrations order by version";
        found = sqlx::query_as(rows).fetch_all(&mut *conn).await?;
    }
    Ok(compare(&found))
}

fn compare(found: &[(i64, bool, Vec<u8>)]) -> Schema {
    let known = || MIGRATIONS.iter().filter(|it| !it.migration_type.is_down_migration());
    let mut schema = Schema { applied: found.len(), ..Schema::default() };
    for (version, success, checksum) in found {
        match known().find(|it| it.version == *version) {
            None => schema.newer.push(*version),
            Some(it) if !success || it.checksum.as_ref() != checksum.as_slice() => {
                schema.broken.push(*version);
            }
            Some(_) => (),
        }
    }
    schema.missing = known()
        .map(|it| it.version)
        .filter(|version| !found.iter().any(|(known, ..)| known == version))
        .collect();
    schema
}

/// Refuses a secret key that is not the one that sealed what is in this database.
pub async fn check_secret(db: &PgPool, ring: &SecretRing) -> anyhow::Result<()> {
    sqlx::query!(
        "insert into installation (name, value) values ('secret_check', $1)
         on conflict (name) do nothing",
        ring.check_value(),
    )
    .execute(db)
    .await
    .context("the secret key could not be compared with the database")?;
    let kept = sqlx::query_scalar!("select value from installation where name = 'secret_check'")
        .fetch_one(db)
        .await?;
    ring.check(&kept).context(
        "POSTROOM_SECRET_KEY is not the key of this database: what it has sealed cannot be opened \
         with it; start with the key that was used before",
    )
}
