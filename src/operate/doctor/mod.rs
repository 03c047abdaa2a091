//! `postroom doctor`: looks at everything that Postroom needs, and says of each fault how to mend it.
//!
//! It works when the settings are wrong or the database is away: that is what it is for. Every look
//! has a deadline, and nothing is changed. Nothing secret is ever shown: neither passwords nor keys,
//! nor the address of the database as it was given.
//!
//! `check.rs` is what a look found, `show.rs` the table and the JSON. Each other file looks at one
//! thing: `settings.rs`, `database.rs` (with `pooler.rs`), `work.rs` (queue, what is held), `relays.rs`, `domains.rs`
//! (`records.rs` are the rules, pure), `engine.rs` (Docker).

mod check;
mod database;
mod domains;
mod engine;
mod pooler;
mod records;
mod relays;
mod settings;
mod show;
mod work;

use futures_util::future::join_all;

pub use check::{Check, State};
pub use show::{json, table, verdict};

use crate::{app::App, config::Salvaged};

/// Who is examined.
pub struct Patient {
    /// The settings as far as they can be used.
    pub settings: Salvaged,
    /// Why the file of settings cannot be read.
    pub file: Option<String>,
    /// The handles over those settings; none where even the defaults do not help.
    pub app: Option<App>,
}

/// Looks at everything.
pub async fn examine(patient: &Patient) -> Vec<Check> {
    let mut checks = settings::checks(patient);
    let Some(app) = &patient.app else { return checks };
    let (of_database, of_engine) = tokio::join!(
        async {
            match patient.settings.has_database {
                true => over_the_database(app, patient.settings.has_secret).await,
                false => vec![Check::skipped("database", "its address is not known")],
            }
        },
        engine::checks(&app.config.docker),
    );
    checks.extend(of_database);
    checks.extend(of_engine);
    checks
}

/// What can be seen only with a database, from the ground up: a look that would say nothing new
/// after a failure below it is left out, and says so.
async fn over_the_database(app: &App, has_secret: bool) -> Vec<Check> {
    let (mut checks, reached) = database::checks(app).await;
    const REST: [&str; 6] = ["migrations", "secret", "queue", "relays", "domains", "workers"];
    if !reached {
        let away = |name| Check::skipped(name, "the database cannot be used");
        checks.extend(REST.map(away));
        return checks;
    }
    let (migrations, is_whole) = database::migrations(app).await;
    checks.push(migrations);
    if !is_whole {
        checks.extend(REST[1..].iter().map(|name| Check::skipped(name, "the schema is missing")));
        return checks;
    }
    let (secret, work, of_relays, of_domains) = tokio::join!(
        database::secret(app, has_secret),
        work::checks(app),
        relays::checks(app),
        domains::checks(app),
    );
    checks.push(secret);
    checks.extend(work);
    checks.extend(of_relays);
    checks.extend(of_domains);
    checks
}

/// Several looks at once.
async fn all<F: Future<Output = Vec<Check>>>(looks: impl IntoIterator<Item = F>) -> Vec<Check> {
    join_all(looks).await.into_iter().flatten().collect()
}
