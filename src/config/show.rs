//! The settings for people: what is in force, and what there is.

use super::{Environment, Origin, Shown, explain};
use std::fmt::Write as _;

/// What `config print` shows: every setting, its value (secrets masked) and where it came from.
pub fn print(settings: &[Shown]) -> String {
    let names = settings.iter().map(|setting| setting.name.len()).max().unwrap_or_default();
    let values = settings.iter().map(|setting| shown(setting).len()).max().unwrap_or_default();
    settings.iter().fold(String::new(), |mut text, setting| {
        let (name, value) = (setting.name, shown(setting));
        let origin = match setting.origin {
            Origin::Default => "default",
            Origin::Generated => "generated",
            Origin::File => "file",
            Origin::Environment => "environment",
        };
        writeln!(text, "{name:names$}  {value:values$}  {origin}").expect("a String takes all");
        text
    })
}

/// The same list as a table in Markdown: variable, key of the file, default and meaning.
pub fn documentation() -> String {
    let none = Environment::new();
    let head = "| variable | key | default | meaning |\n|---|---|---|---|\n".to_owned();
    explain(&none, None, &none).settings.iter().fold(head, |mut text, setting| {
        let file =
            if setting.secret { format!(", `{}_FILE`", setting.name) } else { String::new() };
        let default = match setting.default {
            "" => "–".to_owned(),
            default => format!("`{default}`"),
        };
        let (name, key, doc) = (setting.name, setting.key, setting.doc);
        writeln!(text, "| `{name}`{file} | `{key}` | {default} | {doc} |")
            .expect("a String takes all");
        text
    })
}

fn shown(setting: &Shown) -> &str {
    setting.value.as_deref().unwrap_or("-")
}
