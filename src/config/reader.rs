//! Reading one setting after the other: where its text comes from, what it means, and the account
//! of both. Each call is the one definition of a setting: name, key, default and documentation.

use super::{
    Environment, file,
    problem::{Problem, Problems},
};
use secrecy::{ExposeSecret as _, SecretString};

const MASK: &str = "***";

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Default,
    Generated,
    File,
    Environment,
}

/// One setting as `config print` and the documentation show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The environment variable.
    pub name: &'static str,
    /// The dotted key of the TOML file.
    pub key: &'static str,
    pub default: &'static str,
    pub doc: &'static str,
    /// Also read from the file that `<name>_FILE` names.
    pub secret: bool,
    /// The value in force, masked when secret.
    pub value: Option<String>,
    pub origin: Origin,
}

pub(super) struct Reader<'a> {
    env: &'a Environment,
    file: Environment,
    generated: &'a Environment,
    settings: Vec<Shown>,
    problems: Vec<Problem>,
}

impl<'a> Reader<'a> {
    pub fn new(env: &'a Environment, file: Option<&str>, generated: &'a Environment) -> Self {
        let (file, problems) = file.map(file::flatten).unwrap_or_default();
        Self { env, file, generated, settings: Vec::new(), problems }
    }

    /// A setting with a default. A wrong value is noted, and the default stands in for it.
    pub fn value<T>(
        &mut self,
        name: &'static str,
        key: &'static str,
        default: &'static str,
        doc: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> T {
        let in_force = self.plain(name, key, default, doc, &parse);
        in_force.unwrap_or_else(|| parse(default).expect("a default is valid"))
    }

    /// A setting that may be absent.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        key: &'static str,
        doc: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        self.plain(name, key, "", doc, &parse)
    }

    /// A secret, from the variable itself or from the file that `<name>_FILE` names.
    pub fn secret<T>(
        &mut self,
        name: &'static str,
        key: &'static str,
        doc: &'static str,
        parse: impl Fn(&SecretString) -> Result<T, String>,
    ) -> Option<T> {
        let (origin, found) = self.find_secret(name, key);
        let parsed = found.and_then(|text| text.map(|text| parse(&text)).transpose());
        let value = match &parsed {
            Ok(None) => None,
            _ => Some(MASK.to_owned()),
        };
        self.settings.push(Shown { name, key, default: "", doc, secret: true, value, origin });
        parsed.unwrap_or_else(|reason| {
            self.complain(name, Some(MASK.to_owned()), reason);
            None
        })
    }

    /// Notes that a setting without a default is missing.
    pub fn require<T>(&mut self, name: &'static str, value: Option<T>) -> Option<T> {
        let wrong = self.problems.iter().any(|problem| problem.name == name);
        if value.is_none() && !wrong {
            self.complain(name, None, format!("is not set (or name a file in {name}_FILE)"));
        }
        value
    }

    /// The account, and every problem. Keys of the file that nobody asked for are problems too.
    pub fn finish(mut self) -> (Vec<Shown>, Problems) {
        for key in std::mem::take(&mut self.file).into_keys() {
            self.complain(&key, None, "is not a known key of the configuration file".to_owned());
        }
        for name in self.unknown_variables() {
            self.complain(&name, None, "is not a known setting".to_owned());
        }
        (self.settings, Problems(self.problems))
    }

    /// Variables that look like settings of ours and are none: a slip of the pen is not silent.
    fn unknown_variables(&self) -> Vec<String> {
        let known = |name: &str| {
            let plain = name.strip_suffix("_FILE").unwrap_or(name);
            self.settings.iter().any(|it| it.name == name || (it.secret && it.name == plain))
        };
        let ours = self.env.keys().filter(|name| name.starts_with("POSTROOM_"));
        let other =
            |name: &&String| *name == "POSTROOM_CONFIG" || name.starts_with("POSTROOM_TEST_");
        ours.filter(|name| !other(name) && !known(name)).cloned().collect()
    }

    fn complain(&mut self, name: &str, value: Option<String>, reason: String) {
        self.problems.push(Problem { name: name.to_owned(), value, reason });
    }

    fn plain<T>(
        &mut self,
        name: &'static str,
        key: &'static str,
        default: &'static str,
        doc: &'static str,
        parse: &impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let (origin, text) = self.find(name, key, default);
        let parsed = if text.is_empty() { None } else { Some(parse(&text)) };
        let value = (!text.is_empty()).then(|| text.clone());
        self.settings.push(Shown { name, key, default, doc, secret: false, value, origin });
        match parsed? {
            Ok(value) => Some(value),
            Err(reason) => {
                self.complain(name, Some(format!("{text:?}")), reason);
                None
            }
        }
    }

    fn find(&mut self, name: &str, key: &str, default: &str) -> (Origin, String) {
        let file = self.file.remove(key);
        let sources = [
            (Origin::Environment, self.env.get(name)),
            (Origin::File, file.as_ref()),
            (Origin::Generated, self.generated.get(name)),
        ];
        let set = sources.into_iter().find_map(|(origin, text)| {
            Some((origin, text?.trim())).filter(|(_, text)| !text.is_empty())
        });
        let (origin, text) = set.unwrap_or((Origin::Default, default));
        (origin, text.to_owned())
    }

    fn find_secret(
        &mut self,
        name: &str,
        key: &str,
    ) -> (Origin, Result<Option<SecretString>, String>) {
        let in_file = (self.file.remove(key), self.file.remove(&format!("{key}_file")));
        let file_name = format!("{name}_FILE");
        let sources = [
            (Origin::Environment, self.env.get(name), self.env.get(&file_name)),
            (Origin::File, in_file.0.as_ref(), in_file.1.as_ref()),
            (Origin::Generated, self.generated.get(name), self.generated.get(&file_name)),
        ];
        for (origin, text, path) in sources {
            let text = text.map(|text| text.trim()).filter(|text| !text.is_empty());
            let path = path.map(|path| path.trim()).filter(|path| !path.is_empty());
            let found = match (text, path) {
                (None, None) => continue,
                (Some(_), Some(_)) => Err(format!("is set twice: here and in {file_name}")),
                (Some(text), None) => Ok(Some(SecretString::from(text))),
                (None, Some(path)) => secret_file(path).map(Some),
            };
            return (origin, found);
        }
        (Origin::Default, Ok(None))
    }
}

fn secret_file(path: &str) -> Result<SecretString, String> {
    let text = std::fs::read_to_string(path)
        .map(SecretString::from)
        .map_err(|error| format!("the file {path} cannot be read: {error}"))?;
    match text.expose_secret().trim() {
        "" => Err(format!("the file {path} is empty")),
        trimmed => Ok(SecretString::from(trimmed)),
    }
}
