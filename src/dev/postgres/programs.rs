//! Where the programs of PostgreSQL are, and how they are run: without our environment, and
//! never as root, which they refuse.

use super::account::Account;
use crate::config::Environment;
use anyhow::{Context as _, bail};
use std::{
    fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::Command,
};

/// The oldest version that our statements are written for.
const OLDEST: u32 = 15;

/// One installation of PostgreSQL.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    folder: PathBuf,
    account: Option<Account>,
}

impl Programs {
    /// Finds an installation: of the version that made the data if there are data, else the one
    /// that `PG_BIN_DIR` or `PATH` names, else the newest of the usual places.
    pub fn find(
        env: &Environment,
        made_by: Option<u32>,
        account: Option<Account>,
    ) -> anyhow::Result<Self> {
        let found: Vec<_> = candidates(env)
            .into_iter()
            .filter_map(|folder| major(&folder).map(|major| (folder, major)))
            .collect();
        let fits = |major: u32| made_by.map_or(major >= OLDEST, |wanted| wanted == major);
        if let Some((folder, _)) = found.iter().find(|(_, major)| fits(*major)) {
            return Ok(Self { folder: folder.clone(), account });
        }
        let there: Vec<_> = found.iter().map(|(_, major)| major.to_string()).collect();
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        match made_by {
            Some(wanted) => bail!(
                "the database was made by PostgreSQL {wanted}, and that version is not here \
                 (found: {there}): install it, or choose another data folder"
            ),
            None => bail!(
                "PostgreSQL {OLDEST} or newer is needed (found: {there}): install the package \
                 postgresql, or name the folder of its programs in PG_BIN_DIR"
            ),
        }
    }

    /// A command of this installation, run as the account that owns the data.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.folder.join(program));
        command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LC_ALL", "C");
        command.current_dir("/");
        if let Some(account) = &self.account {
            command.uid(account.uid).gid(account.gid);
        }
        command
    }

    /// Runs a command to its end; its words are the error when it fails.
    pub fn run(&self, command: &mut Command, what: &str) -> anyhow::Result<()> {
        let output = command.output().with_context(|| format!("{what} cannot be run"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("{what} failed ({}): {}", output.status, said.trim());
        }
        Ok(())
    }
}

fn candidates(env: &Environment) -> Vec<PathBuf> {
    if let Some(folder) = env.get("PG_BIN_DIR").filter(|folder| !folder.trim().is_empty()) {
        return vec![PathBuf::from(folder.trim())];
    }
    let path = env.get("PATH").into_iter().flat_map(std::env::split_paths);
    let mut usual: Vec<PathBuf> = ["/usr/lib/postgresql", "/opt/homebrew/opt", "/usr/local/opt"]
        .into_iter()
        .filter_map(|parent| fs::read_dir(parent).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path().join("bin")))
        .filter(|folder| folder.join("initdb").is_file())
        .collect();
    usual.sort_by_key(|folder| std::cmp::Reverse(major(folder)));
    path.filter(|folder| folder.is_absolute()).chain(usual).collect()
}

/// The major version of an installation; none when it is incomplete or does not run.
///
/// On a `PATH` may be links: initdb looks for its neighbours beside the real file, so it is the
/// folder as given that must have them all.
fn major(folder: &Path) -> Option<u32> {
    if !["initdb", "pg_ctl", "postgres"].iter().all(|name| folder.join(name).is_file()) {
        return None;
    }
    let output = Command::new(folder.join("postgres")).arg("--version").output().ok()?;
    version(&String::from_utf8_lossy(&output.stdout))
}

/// `postgres (PostgreSQL) 15.18 (Debian …)`, `… 19beta1`.
fn version(text: &str) -> Option<u32> {
    let number = text.split("(PostgreSQL) ").nth(1)?;
    let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    number[..digits].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        assert_eq!(version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some(15));
        assert_eq!(version("postgres (PostgreSQL) 19beta1"), Some(19));
        assert_eq!(version("something else"), None);
    }

    #[test]
    fn a_missing_installation_is_said_in_one_sentence() {
        let env = Environment::from([("PG_BIN_DIR".to_owned(), "/nonexistent".to_owned())]);
        let error = Programs::find(&env, None, None).unwrap_err().to_string();
        assert!(error.starts_with("PostgreSQL 15 or newer is needed (found: none)"), "{error}");
        let error = Programs::find(&env, Some(14), None).unwrap_err().to_string();
        assert!(error.starts_with("the database was made by PostgreSQL 14"), "{error}");
    }
}
