//! The only place that looks at the environment of the process.

use std::collections::BTreeMap;

/// Variables by name. A copy: what changes in the process later is not seen.
pub type Environment = BTreeMap<String, String>;

/// Captures the environment of this process.
///
/// Text that is not Unicode is kept with replacement characters, so that a wrong value is
/// refused by name rather than silently taken for unset.
#[expect(clippy::disallowed_methods, reason = "the one reading of the environment")]
pub fn environment() -> Environment {
    std::env::vars_os()
        .map(|(name, value)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        })
        .collect()
}

/// The name of this machine, as far as the system tells it.
pub fn machine_name() -> String {
    ["/proc/sys/kernel/hostname", "/etc/hostname"]
        .into_iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .map(|text| text.trim().to_owned())
        .find(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".to_owned())
}
