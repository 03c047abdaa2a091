//! The data folder: where it is, and who may look into it.

use crate::config::Environment;
use anyhow::{Context as _, bail};
use std::{
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::Command,
};

/// Where the data of `postroom dev` is: `POSTROOM_DATA`, else the usual place of this user.
///
/// The home of root is closed to the user that PostgreSQL runs as, so root has another place.
pub fn default_folder(env: &Environment) -> anyhow::Result<PathBuf> {
    let set = |name: &str| env.get(name).filter(|text| !text.trim().is_empty()).map(PathBuf::from);
    if let Some(folder) = set("POSTROOM_DATA") {
        return Ok(folder);
    }
    if is_root()? {
        return Ok(PathBuf::from("/var/lib/postroom"));
    }
    let shared = set("XDG_DATA_HOME").filter(|path| path.is_absolute());
    let share = shared.or_else(|| set("HOME").map(|home| home.join(".local/share")));
    let share = share.context("neither POSTROOM_DATA, XDG_DATA_HOME nor HOME is set")?;
    Ok(share.join("postroom"))
}

/// Makes the folder, if need be, and gives its absolute path. Others may not look into it; when
/// we are root they may pass through it, since PostgreSQL runs as somebody else.
pub fn prepare(folder: &Path) -> anyhow::Result<PathBuf> {
    let shown = folder.display();
    fs::create_dir_all(folder)
        .with_context(|| format!("the data folder {shown} cannot be made"))?;
    let folder = folder.canonicalize()?;
    let mode = if is_root()? { 0o711 } else { 0o700 };
    let owned = fs::metadata(&folder)?;
    if owned.permissions().mode() & 0o777 != mode {
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode))
            .with_context(|| format!("the data folder {shown} belongs to somebody else"))?;
    }
    Ok(folder)
}

/// Refuses a folder that another user could not pass through to reach what is inside.
pub(super) fn require_passage(folder: &Path) -> anyhow::Result<()> {
    for step in folder.ancestors() {
        let mode = fs::metadata(step)?.mode();
        if mode & 0o001 == 0 {
            bail!(
                "PostgreSQL does not run as root, and another user cannot pass through {}: choose \
                 another data folder, or run: chmod o+x {0}",
                step.display()
            );
        }
    }
    Ok(())
}

/// Whether we are root. The system's own program tells it, so that no unsafe call is needed.
pub(super) fn is_root() -> io::Result<bool> {
    let output = Command::new("id").arg("-u").output()?;
    Ok(output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operators_word_wins() {
        let env = Environment::from([("POSTROOM_DATA".to_owned(), "/srv/p".to_owned())]);
        assert_eq!(default_folder(&env).unwrap(), Path::new("/srv/p"));
    }

    #[test]
    fn root_has_a_place_that_postgres_can_reach_and_others_their_own() {
        let env = Environment::from([("HOME".to_owned(), "/home/ann".to_owned())]);
        let expected = if is_root().unwrap() {
            "/var/lib/postroom"
        } else {
            "/home/ann/.local/share/postroom"
        };
        assert_eq!(default_folder(&env).unwrap(), Path::new(expected));
    }

    #[test]
    fn a_closed_folder_on_the_way_is_named() {
        let closed = tempfile::tempdir().unwrap();
        fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let inner = closed.path().join("data");
        fs::create_dir(&inner).unwrap();
        let error = require_passage(&inner).unwrap_err().to_string();
        assert!(error.contains(&closed.path().display().to_string()), "{error}");
    }
}
