//! Secrets made once for a machine and kept in its data folder, readable by their owner only.

use crate::secrets::{SecretRing, new_api_key};
use anyhow::Context as _;
use secrecy::SecretString;
use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

/// What a first run made, or a later one found.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The text of `POSTROOM_SECRET_KEY`.
    pub secret_key: SecretString,
    /// The first API key, in plain text, because it is printed at each start.
    pub api_key: SecretString,
}

/// Finds the kept secrets, or makes them.
pub fn keep_secrets(folder: &Path) -> anyhow::Result<Kept> {
    Ok(Kept {
        secret_key: keep(&folder.join("secret-key"), || SecretRing::generate("dev"))?,
        api_key: keep(&folder.join("api-key"), new_api_key)?,
    })
}

/// Two first runs at once agree: the text is complete before it has its name, and only one
/// link with that name can be made.
fn keep(path: &Path, make: impl FnOnce() -> String) -> anyhow::Result<SecretString> {
    let unreadable = || format!("the kept secret {} cannot be read or made", path.display());
    if !path.try_exists().with_context(unreadable)? {
        let draft = path.with_extension(format!("{}.new", std::process::id()));
        let _ = fs::remove_file(&draft);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        writeln!(file, "{}", make())?;
        file.sync_all()?;
        let linked = fs::hard_link(&draft, path);
        fs::remove_file(&draft)?;
        linked
            .or_else(
                |error| if error.kind() == ErrorKind::AlreadyExists { Ok(()) } else { Err(error) },
            )
            .with_context(unreadable)?;
    }
    let text = fs::read_to_string(path).with_context(unreadable)?;
    Ok(SecretString::from(text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret as _;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn secrets_are_made_once_and_only_their_owner_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let first = keep_secrets(folder.path()).unwrap();
        let again = keep_secrets(folder.path()).unwrap();
        assert_eq!(first.api_key.expose_secret(), again.api_key.expose_secret());
        assert_eq!(first.secret_key.expose_secret(), again.secret_key.expose_secret());
        assert!(SecretRing::parse(first.secret_key.expose_secret()).is_ok());

        let mut names = Vec::new();
        for entry in fs::read_dir(folder.path()).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600);
            names.push(entry.file_name());
        }
        names.sort();
        assert_eq!(names, ["api-key", "secret-key"]);
    }
}
