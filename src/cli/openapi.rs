//! `postroom openapi`.

use std::path::PathBuf;

use anyhow::Context as _;
use tokio_util::task::TaskTracker;

use crate::{
    background, config::Config, database, retention::Retention, router, secrets::SecretRing,
    sending::Sending, serve,
};

/// The document of everything, the sandbox too. Needs no database: nothing is asked of it.
pub fn openapi(file: Option<PathBuf>) -> anyhow::Result<()> {
    let settings = [
        ("DATABASE_URL", "postgres://nobody@localhost/none".to_owned()),
        ("POSTROOM_SECRET_KEY", SecretRing::generate("none")),
        ("POSTROOM_SANDBOX", "true".to_owned()),
    ];
    let env = settings.map(|(name, value)| (name.to_owned(), value)).into();
    let config = Config::load(&env, None)?;
    let pools = database::pools(&config.database)?;
    let app = serve::app(config, &pools);
    let sending = Sending::idle(&app, &TaskTracker::new());
    let retention = Retention::new(app.clone(), background::classes(&app.config));
    let mut text = router::openapi(&app, &sending, &retention).to_pretty_json()?;
    text.push('\n');
    match file {
        Some(file) => std::fs::write(&file, text)
            .with_context(|| format!("{} cannot be written", file.display())),
        None => {
            print!("{text}");
            Ok(())
        }
    }
}
