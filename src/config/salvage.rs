//! The settings as far as they can be used, for who must work when some of them are wrong.

use super::{Config, Environment, Origin, Problem, explain};
use crate::secrets::SecretRing;

/// What is wrong, and what remains.
#[derive(Debug)]
pub struct Salvaged {
    pub problems: Vec<Problem>,
    /// The settings, where each wrong one has its default.
    pub config: Option<Config>,
    /// Whether the address of the database is the operator's; else a placeholder that leads nowhere.
    pub has_database: bool,
    /// Whether the secret keys are the operator's; else they fit nothing.
    pub has_secret: bool,
}

/// Reads the settings; leaves out those that are wrong, and in the end the whole file.
pub fn salvage(env: &Environment, file: Option<&str>) -> Salvaged {
    let first = explain(env, file, &Environment::new());
    let problems = match first.config {
        Ok(config) => {
            return Salvaged {
                problems: Vec::new(),
                config: Some(config),
                has_database: true,
                has_secret: true,
            };
        }
        Err(problems) => problems.0,
    };
    let mut right = env.clone();
    for problem in &problems {
        right.remove(&problem.name);
        right.remove(&format!("{}_FILE", problem.name));
    }
    let stand_ins = [
        ("DATABASE_URL", "postgres://nobody@localhost/none".to_owned()),
        ("POSTROOM_SECRET_KEY", SecretRing::generate("none")),
    ];
    let stand_ins = stand_ins.map(|(name, value)| (name.to_owned(), value)).into();
    for file in [file, None] {
        let explained = explain(&right, file, &stand_ins);
        if let Ok(config) = explained.config {
            let is_theirs = |name: &str| {
                let it = explained.settings.iter().find(|it| it.name == name);
                it.is_some_and(|it| matches!(it.origin, Origin::Environment | Origin::File))
            };
            let (has_database, has_secret) =
                (is_theirs("DATABASE_URL"), is_theirs("POSTROOM_SECRET_KEY"));
            return Salvaged { problems, config: Some(config), has_database, has_secret };
        }
    }
    Salvaged { problems, config: None, has_database: false, has_secret: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn one_wrong_setting_does_not_hide_the_others() {
        let secret = SecretRing::generate("a");
        let env = env(&[
            ("DATABASE_URL", "postgres://a@b/c"),
            ("POSTROOM_SECRET_KEY", &secret),
            ("PORT", "many"),
            ("POSTROOM_SLIP", "1"),
        ]);
        let salvaged = salvage(&env, Some("[queue]\nlease = \"2s\"\n"));
        let names: Vec<&str> = salvaged.problems.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["PORT", "POSTROOM_SLIP"]);
        assert!(salvaged.has_database && salvaged.has_secret);
        assert_eq!(salvaged.config.unwrap().queue.lease.as_secs(), 2);
    }

    #[test]
    fn a_wrong_key_leaves_the_database_and_a_wrong_file_leaves_the_environment() {
        let env = env(&[("DATABASE_URL", "postgres://a@b/c"), ("POSTROOM_SECRET_KEY", "rubbish")]);
        let salvaged = salvage(&env, Some("not toml ["));
        assert!(salvaged.has_database && !salvaged.has_secret);
        assert!(salvaged.config.is_some());
        let nothing = salvage(&Environment::new(), None);
        assert!(!nothing.has_database && !nothing.has_secret);
    }
}
