//! The user that PostgreSQL runs as when we are root: `postgres`, else `nobody`.

use anyhow::Context as _;
use std::{fs, os::unix::fs::chown, path::Path};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Account {
    pub uid: u32,
    pub gid: u32,
}

impl Account {
    pub fn find() -> anyhow::Result<Self> {
        let users = fs::read_to_string("/etc/passwd").context("/etc/passwd cannot be read")?;
        ["postgres", "nobody"].into_iter().find_map(|name| lookup(&users, name)).context(
            "PostgreSQL does not run as root, and there is neither a user postgres nor a user \
             nobody: start Postroom as an ordinary user",
        )
    }

    pub fn own(self, path: &Path) -> anyhow::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
            .with_context(|| format!("{} cannot be given to PostgreSQL's user", path.display()))
    }
}

fn lookup(users: &str, name: &str) -> Option<Account> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        (uid != 0).then_some(Account { uid, gid })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_whole_name_and_is_never_root() {
        let users = "postgresql:x:7:8::/:/bin/sh\nnobody:x:0:0::/:/bin/sh\npostgres:x:101:104:a,b:/:/bin/sh\n";
        assert_eq!(lookup(users, "postgres"), Some(Account { uid: 101, gid: 104 }));
        assert_eq!(lookup(users, "nobody"), None);
    }
}
