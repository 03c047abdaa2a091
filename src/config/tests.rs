use super::*;
use secrecy::ExposeSecret as _;
use std::time::Duration;

const URL: &str = "postgres://me:hunter2@db.example:5432/postroom";
const RING: &str = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn env(pairs: &[(&str, &str)]) -> Environment {
    let base = [("DATABASE_URL", URL), ("POSTROOM_SECRET_KEY", RING)];
    let all = base.iter().chain(pairs);
    all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn wrong(pairs: &[(&str, &str)], file: Option<&str>) -> Vec<String> {
    let problems = Config::load(&env(pairs), file).unwrap_err();
    problems.0.iter().map(ToString::to_string).collect()
}

#[test]
fn the_defaults_are_valid_and_are_the_promised_ones() {
    let config = Config::load(&env(&[]), None).unwrap();
    assert_eq!(config.http.address().to_string(), "0.0.0.0:3050");
    assert_eq!(config.http.body_limit, 40 * 1024 * 1024);
    assert_eq!(config.queue.lease, Duration::from_secs(60));
    assert_eq!(config.queue.poll, Duration::from_secs(1));
    assert_eq!(config.sending.on_unknown, crate::on_unknown::OnUnknown::Hold);
    assert_eq!(config.sending.retry_window, Duration::from_secs(5 * 86_400));
    assert_eq!(config.sending.deadlines.dot, Duration::from_secs(600));
    assert!(config.sending.tls_reject_unauthorized);
    assert!(!config.sending.helo_name.is_empty());
    assert_eq!(config.stop.patience, Duration::from_secs(25));
    assert!(!config.metrics.public && config.metrics.token.is_none());
}

#[test]
fn the_environment_wins_over_the_file_and_the_file_over_the_generated_and_the_default() {
    let file = "[http]\nport = 1\nhost = \"::1\"\n[queue]\nlease = 7\n[stop]\npatience = 1.5\n";
    let generated = Environment::from([
        ("HOST".to_owned(), "127.0.0.1".to_owned()),
        ("POSTROOM_SANDBOX".to_owned(), "true".to_owned()),
    ]);
    let config = Config::load_with(&env(&[("PORT", "2")]), Some(file), &generated).unwrap();
    assert_eq!(config.http.address().to_string(), "[::1]:2");
    assert_eq!(config.queue.lease, Duration::from_secs(7));
    assert_eq!(config.stop.patience, Duration::from_millis(1500));
    assert!(config.sandbox.enabled);
}

#[test]
fn an_empty_text_is_no_value() {
    let config = Config::load(&env(&[("PORT", ""), ("HOST", " "), ("METRICS_TOKEN", "")]), None);
    let config = config.unwrap();
    assert_eq!(config.http.port, 3050);
    assert!(config.metrics.token.is_none());
}

#[test]
fn all_wrong_values_are_named_together_with_value_and_reason() {
    let set = [
        ("PORT", "65536"),
        ("METRICS_PUBLIC", "yes"),
        ("TRUST_PROXY", "11"),
        ("POSTROOM_RELAY_DENY", "10.0.0.0/8,nonsense"),
        ("DATABASE_URL", "mysql://me:hunter2@db/x"),
        ("POSTROOM_SECRET_KEY", "k1:hunter2"),
    ];
    let expected = [
        r#"PORT = "65536": must be a whole number from 0 to 65535"#,
        r#"TRUST_PROXY = "11": must be a whole number from 0 to 10"#,
        "DATABASE_URL = ***: must be a URL of the form postgres://user:password@host:port/name",
        r#"POSTROOM_RELAY_DENY = "10.0.0.0/8,nonsense": "nonsense" is not a network such as 10.0.0.0/8"#,
        r#"POSTROOM_SECRET_KEY = ***: the key "k1" is not valid base64"#,
        r#"METRICS_PUBLIC = "yes": must be true or false"#,
    ];
    assert_eq!(wrong(&set, None), expected);
}

#[test]
fn what_is_required_and_missing_is_said() {
    let problems = Config::load(&Environment::new(), None).unwrap_err();
    let names: Vec<_> = problems.0.iter().map(|problem| problem.name.as_str()).collect();
    assert_eq!(names, ["DATABASE_URL", "POSTROOM_SECRET_KEY"]);
}

#[test]
fn unknown_keys_of_the_file_are_refused_by_name() {
    let file = "[http]\nprot = 1\n[secrets]\nkye = \"hunter2\"\n";
    let expected = [
        "http.prot: is not a known key of the configuration file",
        "secrets.kye: is not a known key of the configuration file",
    ];
    assert_eq!(wrong(&[], Some(file)), expected);
}

#[test]
fn a_file_that_is_not_toml_is_refused_by_line_without_repeating_it() {
    let problems = wrong(&[], Some("[database]\nurl = hunter2\n"));
    assert_eq!(problems.len(), 1);
    assert!(problems[0].contains("line 2"), "{problems:?}");
    assert!(!problems[0].contains("hunter2"), "{problems:?}");
}

#[test]
fn secrets_are_read_from_files_and_never_from_two_places() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "sesame\n").unwrap();
    let path = path.to_str().unwrap();
    let config = Config::load(&env(&[("METRICS_TOKEN_FILE", path)]), None).unwrap();
    assert_eq!(config.metrics.token.unwrap().expose_secret(), "sesame");

    let twice = wrong(&[("METRICS_TOKEN_FILE", path), ("METRICS_TOKEN", "hunter2")], None);
    assert_eq!(twice, ["METRICS_TOKEN = ***: is set twice: here and in METRICS_TOKEN_FILE"]);
    let absent = wrong(&[("METRICS_TOKEN_FILE", "/nonexistent/token")], None);
    assert!(absent[0].contains("/nonexistent/token cannot be read"), "{absent:?}");
}

#[test]
fn nothing_shown_of_the_settings_holds_a_secret() {
    let env = env(&[("METRICS_TOKEN", "hunter2"), ("SMTP_PASSWORD", "hunter2")]);
    let explained = explain(&env, None, &Environment::new());
    let shown = format!("{}{explained:?}", print(&explained.settings));
    assert!(shown.contains("METRICS_TOKEN"));
    assert!(!shown.contains("hunter2") && !shown.contains("AAECAwQF"), "{shown}");
}

#[test]
fn print_names_the_origin_of_every_value() {
    let file = "[queue]\nlease = \"7s\"\n";
    let explained = explain(&env(&[("PORT", "2")]), Some(file), &Environment::new());
    let text = print(&explained.settings);
    let line = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(line("PORT "), ["PORT", "2", "environment"]);
    assert_eq!(line("POSTROOM_QUEUE_LEASE"), ["POSTROOM_QUEUE_LEASE", "7s", "file"]);
    assert_eq!(line("HOST "), ["HOST", "0.0.0.0", "default"]);
    assert_eq!(line("METRICS_TOKEN"), ["METRICS_TOKEN", "-", "default"]);
}

#[test]
fn a_slip_of_the_pen_is_not_silent() {
    let known =
        [("POSTROOM_SANDBOX", "true"), ("POSTROOM_TEST_IMAGE", "x"), ("POSTROOM_CONFIG", "")];
    assert!(Config::load(&env(&known), None).is_ok());
    let problems = wrong(&[("POSTROOM_SANDBX", "true"), ("POSTROOM_SANDBOX_FILE", "x")], None);
    assert_eq!(
        problems,
        [
            "POSTROOM_SANDBOX_FILE: is not a known setting",
            "POSTROOM_SANDBX: is not a known setting"
        ]
    );
}

#[test]
fn the_readme_has_the_table_of_settings() {
    assert!(include_str!("../../README.md").contains(&documentation()), "{}", documentation());
}

#[test]
fn every_setting_is_named_once_and_documented() {
    let settings = explain(&Environment::new(), None, &Environment::new()).settings;
    let names: std::collections::BTreeSet<_> = settings.iter().map(|s| s.name).collect();
    let keys: std::collections::BTreeSet<_> = settings.iter().map(|s| s.key).collect();
    assert_eq!(names.len(), settings.len());
    assert_eq!(keys.len(), settings.len());
    assert!(settings.iter().all(|setting| setting.doc.ends_with('.')));
    assert!(names.iter().all(|name| documentation().contains(*name)));
}

#[test]
fn a_relay_reads_variables_with_the_prefix_and_no_other() {
    let env = env(&[
        ("SMTP_RELAY_PASSWORD", "sesame"),
        ("SMTP_TLS_REJECT_UNAUTHORIZED", "false"),
        ("SMTP_EMPTY", ""),
        ("HOME", "/root"),
    ]);
    let credentials = Config::load(&env, None).unwrap().smtp_credentials;
    assert_eq!(credentials.read("SMTP_RELAY_PASSWORD").unwrap().expose_secret(), "sesame");
    assert_eq!(credentials.read("SMTP_EMPTY").unwrap_err(), CredentialError::Missing);
    assert_eq!(credentials.read("SMTP_OTHER").unwrap_err(), CredentialError::Missing);
    for name in ["SMTP_TLS_REJECT_UNAUTHORIZED", "DATABASE_URL", "HOME", "SMTP_", "smtp_x", ""] {
        assert_eq!(credentials.read(name).unwrap_err(), CredentialError::NotAllowed, "{name}");
    }
}

#[test]
fn the_configuration_of_tests_is_valid() {
    assert_eq!(Config::for_tests(URL).http.port, 0);
}
