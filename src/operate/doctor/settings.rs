//! The settings: everything that is wrong with them, each with its name.

use super::{Check, Patient};

const CHECK: &str = "settings";

pub fn checks(patient: &Patient) -> Vec<Check> {
    let mut checks = Vec::new();
    if let Some(why) = &patient.file {
        let fix = "name a file that exists and can be read (--config, or POSTROOM_CONFIG)";
        checks.push(Check::fail(CHECK, why, fix).of("file"));
    }
    for problem in &patient.settings.problems {
        let found = match &problem.value {
            Some(value) => format!("{value}: {}", problem.reason),
            None => problem.reason.clone(),
        };
        checks.push(Check::fail(CHECK, found, fix(&problem.name)).of(problem.name.clone()));
    }
    if checks.is_empty() {
        checks.push(Check::ok(CHECK, "every setting can be understood"));
    }
    checks
}

fn fix(name: &str) -> String {
    match name {
        "DATABASE_URL" => "set DATABASE_URL to postgres://user:password@host:port/name, or \
                           DATABASE_URL_FILE to a file that holds it"
            .to_owned(),
        "POSTROOM_SECRET_KEY" => "set POSTROOM_SECRET_KEY (or POSTROOM_SECRET_KEY_FILE) to the key of this \
                                  database; for a new one: echo \"first:$(head -c 32 /dev/urandom | base64)\""
            .to_owned(),
        _ => format!(
            "correct {name}, or remove it; `postroom config print` shows every setting and where \
             it comes from"
        ),
    }
}
