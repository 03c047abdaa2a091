//! Where the socket is. A path of more than 107 bytes cannot be bound, so a deep data folder gets
//! its socket in `/tmp`, whatever `TMPDIR` says.

use crate::secrets::new_api_key;
use anyhow::Context as _;
use std::{
    fs::{self, DirBuilder},
    os::unix::{ffi::OsStrExt as _, fs::DirBuilderExt as _},
    path::{Path, PathBuf},
};

/// Room for a path in `sockaddr_un`, its end included, on the system that gives least.
const LONGEST: usize = 103;

/// A new folder of mode 0700. `mkdir` refuses a name that exists, so nobody can lay one out.
pub(super) fn make_folder(data_folder: &Path) -> anyhow::Result<PathBuf> {
    let name = format!("postroom-{}", &new_api_key()[..12]);
    let near = data_folder.join("socket");
    clear_folder(near.clone());
    let short = path(&near, u16::MAX).as_os_str().len() < LONGEST && is_plain(&near);
    let folder = if short { near } else { Path::new("/tmp").join(name) };
    DirBuilder::new()
        .mode(0o700)
        .create(&folder)
        .with_context(|| format!("the folder {} cannot be made", folder.display()))?;
    Ok(folder)
}

/// Removes what a killed server left, and nothing else.
pub(super) fn clear_folder(folder: PathBuf) {
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        if entry.file_name().as_bytes().starts_with(b".s.PGSQL.") {
            let _ = fs::remove_file(entry.path());
        }
    }
    let _ = fs::remove_dir(folder);
}

pub(super) fn path(folder: &Path, port: u16) -> PathBuf {
    folder.join(format!(".s.PGSQL.{port}"))
}

/// PostgreSQL takes a list of folders with commas and quotes.
fn is_plain(path: &Path) -> bool {
    let special = |byte: &u8| matches!(byte, b',' | b'"' | b' ' | b'\n');
    !path.as_os_str().as_bytes().iter().any(special)
}

pub(super) fn percent_encoded(path: &Path) -> String {
    path.as_os_str().as_bytes().iter().fold(String::new(), |mut text, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                text.push(char::from(*byte));
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_deep_or_strange_data_folder_gets_a_short_plain_socket_folder_of_its_own() {
        let root = tempfile::tempdir().unwrap();
        for name in ["plain", "with, comma", &"deep".repeat(25)] {
            let data = root.path().join(name);
            fs::create_dir(&data).unwrap();
            let folder = make_folder(&data).unwrap();
            assert!(path(&folder, u16::MAX).as_os_str().len() < LONGEST);
            assert!(is_plain(&folder));
            assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
            clear_folder(folder.clone());
            assert!(!folder.exists());
        }
    }

    #[test]
    fn a_path_in_a_url_is_encoded_byte_by_byte() {
        assert_eq!(percent_encoded(Path::new("/tmp/a b/ü")), "%2Ftmp%2Fa%20b%2F%C3%BC");
    }
}
