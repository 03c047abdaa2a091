//! `postmaster.pid`: what a running, or a killed, PostgreSQL left of itself.

use std::{
    fs,
    path::{Path, PathBuf},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PidFile {
    pub pid: u32,
    /// Where its sockets are, once it listens.
    pub socket_folder: Option<PathBuf>,
    /// It takes connections.
    pub ready: bool,
}

impl PidFile {
    pub fn path(data: &Path) -> PathBuf {
        data.join("postmaster.pid")
    }

    pub fn read(data: &Path) -> Option<Self> {
        parse(&fs::read_to_string(Self::path(data)).ok()?)
    }

    /// Whether the number still belongs to a PostgreSQL of this folder. Numbers are used again,
    /// soonest in a container; a server's working folder is its data. Where the system does not
    /// tell, it may be one: PostgreSQL itself then refuses to run twice.
    pub fn is_alive(&self, data: &Path) -> bool {
        let process = Path::new("/proc").join(self.pid.to_string());
        if !Path::new("/proc/self").exists() {
            return true;
        }
        match fs::read_link(process.join("cwd")) {
            Ok(folder) => folder == data,
            Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
        }
    }
}

/// Line by line: number, data folder, start, port, socket folder, address, memory, status.
fn parse(text: &str) -> Option<PidFile> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let socket = lines.get(4).filter(|line| !line.is_empty());
    Some(PidFile {
        pid: lines.first()?.parse().ok()?,
        socket_folder: socket.map(PathBuf::from),
        ready: lines.get(7) == Some(&"ready"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_read_while_it_is_being_written_and_when_it_is_complete() {
        assert_eq!(parse(""), None);
        assert_eq!(
            parse("41\n/data\n1700000000\n"),
            Some(PidFile { pid: 41, socket_folder: None, ready: false })
        );
        let whole = "41\n/data\n1700000000\n5432\n/tmp/s\n\n  1 2\nready   \n";
        let socket_folder = Some(PathBuf::from("/tmp/s"));
        assert_eq!(parse(whole), Some(PidFile { pid: 41, socket_folder, ready: true }));
    }

    #[test]
    fn a_number_used_again_by_another_program_is_not_a_server() {
        let ours = PidFile { pid: std::process::id(), socket_folder: None, ready: false };
        assert!(!ours.is_alive(Path::new("/nonexistent")));
    }
}
