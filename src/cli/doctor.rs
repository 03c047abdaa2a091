//! `postroom doctor`.

use std::path::Path;

use crate::{
    config::{self, Environment},
    database,
    operate::doctor,
    serve,
};

/// Works with whatever there is of settings; what it found stands in the exit code.
pub async fn doctor(env: &Environment, named: Option<&Path>, json: bool) -> anyhow::Result<()> {
    let (text, file) = match config::file_text(env, named) {
        Ok(text) => (text, None),
        Err(error) => (None, Some(format!("{error:#}"))),
    };
    let settings = config::salvage(env, text.as_deref());
    let app = match &settings.config {
        Some(config) => Some(serve::app(config.clone(), &database::pools(&config.database)?)),
        None => None,
    };
    let checks = doctor::examine(&doctor::Patient { settings, file, app }).await;
    print!("{}", if json { doctor::json(&checks) } else { doctor::table(&checks) });
    match doctor::verdict(&checks).1 {
        0 => Ok(()),
        code => Err(Unwell(code).into()),
    }
}

/// The doctor found something, and has said it.
#[derive(Debug, thiserror::Error)]
#[error("something is not well")]
pub struct Unwell(pub u8);
