//! Who may import whom, and how large a file may be. A new arrow is a decision: make it here.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::{collections::BTreeSet, fs, path::Path};

/// Each area, and the areas it may import. `outside`, `queue` and `interval` are packages of their
/// own (`crates/`), which cannot import any of these.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("on_unknown", &[]),
    ("address", &[]),
    ("secrets", &[]),
    ("metrics", &[]),
    ("config", &["on_unknown", "outside", "secrets"]),
    ("telemetry", &["config"]),
    ("database", &["config", "secrets"]),
    ("events", &["error", "interval"]),
    ("audit", &["error", "interval"]),
    ("upkeep", &["error", "interval"]),
    ("app", &["config", "metrics", "outside", "queue", "secrets"]),
    ("http", &["error", "metrics"]),
    ("accounts", &["address", "app", "audit", "error", "events", "http", "on_unknown", "secrets"]),
    (
        "sending",
        &[
            "accounts",
            "address",
            "app",
            "audit",
            "config",
            "error",
            "events",
            "http",
            "interval",
            "metrics",
            "on_unknown",
            "outside",
            "queue",
            "secrets",
        ],
    ),
    (
        "operate",
        &[
            "accounts",
            "app",
            "audit",
            "config",
            "database",
            "error",
            "events",
            "http",
            "metrics",
            "outside",
            "retention",
            "secrets",
            "sending",
        ],
    ),
    ("retention", &["accounts", "app", "audit", "error", "events", "http", "interval", "metrics"]),
    ("transfer", &["accounts", "address", "app", "audit", "error", "sending"]),
    ("surface", &[]),
    ("background", &["app", "audit", "config", "events", "retention", "sending", "upkeep"]),
    ("router", &["accounts", "app", "http", "operate", "retention", "sending", "surface"]),
];

#[test]
fn imports_run_one_way() {
    let mut broken = BTreeSet::new();
    each_source(&mut |path, text| {
        if path.starts_with("crates") {
            return;
        }
        let area = path.components().nth(1).unwrap().as_os_str().to_str().unwrap();
        let area = area.trim_end_matches(".rs");
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| *name == area) else { return };
        let code: String =
            text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let flat = code.replace(char::is_whitespace, "");
        for group in flat.split("crate::").skip(1) {
            let names = match group.strip_prefix('{') {
                Some(rest) => top_level_names(rest),
                None => {
                    vec![group.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap()]
                }
            };
            for name in names.into_iter().filter(|name| *name != area && !allowed.contains(name)) {
                broken.insert(format!("{} -> {name}", path.display()));
            }
        }
    });
    assert!(broken.is_empty(), "not allowed by MAY_IMPORT: {broken:#?}");
}

#[test]
fn the_packages_below_know_nothing_of_each_other() {
    for package in fs::read_dir("crates").unwrap() {
        let manifest = fs::read_to_string(package.unwrap().path().join("Cargo.toml")).unwrap();
        let (_, dependencies) = manifest.split_once("[dependencies]").unwrap();
        assert!(!dependencies.contains("postroom"), "{manifest}");
    }
}

/// What may be used only in some places: SQL where a table has its owner, the web framework where
/// requests come in, the mail composer where messages are composed.
const ONLY_IN: &[(&str, &[&str])] = &[
    (
        "sqlx::query",
        &[
            "/store.rs",
            "/store/",
            "crates/queue/",
            "src/events.rs",
            "src/audit.rs",
            "src/upkeep.rs",
            "src/database.rs",
            "src/dev/postgres/tests.rs",
            // Counting across tables, and nothing else.
            "src/operate/",
        ],
    ),
    (
        "axum::",
        &[
            "/routes.rs",
            "src/http/",
            "src/accounts/access.rs",
            "src/operate/",
            "src/router.rs",
            "src/serve.rs",
            // The state that its routes share.
            "src/sending/mod.rs",
        ],
    ),
    ("lettre::", &["src/sending/messages/compose/"]),
    (
        "tokio::net::",
        &[
            "crates/outside/",
            "src/sending/sandbox/listener.rs",
            "src/sending/relays/session.rs",
            "src/serve.rs",
            "src/cli/serve.rs",
            "src/dev/",
            "src/operate/probe.rs",
        ],
    ),
    ("std::process::Command", &["src/dev/postgres/"]),
    ("bollard::", &["crates/outside/src/docker/"]),
    // A shell, for constant scripts only.
    ("\"sh\", \"-c\"", &["crates/outside/src/docker/sweep.rs"]),
];

#[test]
fn what_has_a_place_is_used_nowhere_else() {
    let mut broken = BTreeSet::new();
    each_source(&mut |path, text| {
        let path = path.display().to_string();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let code: Vec<&str> = code.collect();
        for (used, places) in ONLY_IN {
            let found = code.iter().any(|line| line.contains(used));
            if found && !places.iter().any(|place| path.contains(place)) {
                broken.insert(format!("{path} uses {used}"));
            }
        }
    });
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn no_file_is_longer_than_400_lines() {
    let mut long = Vec::new();
    each_source(&mut |path, text| {
        if text.lines().count() > 400 {
            long.push(path.display().to_string());
        }
    });
    assert!(long.is_empty(), "{long:?}");
}

/// `app::App,error::{Error,Result}}...` -> `app`, `error`
fn top_level_names(group: &str) -> Vec<&str> {
    let (mut names, mut depth, mut start) = (Vec::new(), 0, 0);
    for (i, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                names.push(&group[start..i]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                names.push(&group[start..i]);
                start = i + 1;
            }
            _ => (),
        }
    }
    names.into_iter().map(|it| it.split("::").next().unwrap()).filter(|it| !it.is_empty()).collect()
}

fn each_source(f: &mut impl FnMut(&Path, &str)) {
    fn visit(dir: &Path, f: &mut impl FnMut(&Path, &str)) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                visit(&path, f);
            } else if path.extension().is_some_and(|it| it == "rs") {
                f(&path, &fs::read_to_string(&path).unwrap());
            }
        }
    }
    visit(Path::new("src"), f);
    visit(Path::new("crates"), f);
}

/// The description of the API knows its shapes by name alone: of two with one name, one is lost.
#[test]
fn no_two_shapes_of_the_api_have_one_name() {
    let (mut known, mut twice) = (BTreeSet::new(), Vec::new());
    each_source(&mut |path, text| {
        for part in text.split("#[derive(").skip(1) {
            let Some((derived, rest)) = part.split_once(")]") else { continue };
            if !derived.contains("ToSchema") {
                continue;
            }
            let (head, _) = rest.split_once(['{', ';']).unwrap_or_default();
            let named = head.split_once("schema(as = ").map(|(_, it)| it);
            let word = |text: &str| {
                text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned()
            };
            let declared =
                head.split_once("struct ").or(head.split_once("enum ")).map(|(_, it)| it);
            let name = word(named.or(declared).unwrap());
            if !known.insert(name.clone()) {
                twice.push(format!("{name} in {}", path.display()));
            }
        }
    });
    assert!(known.len() > 30 && twice.is_empty(), "{twice:?}");
}
