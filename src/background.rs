//! The timetable: every chore with its period, and how long what is kept. The jobs run in `serve`.

use std::{sync::Arc, time::Duration};

use tokio::sync::Notify;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    app::App,
    audit,
    config::Config,
    events,
    retention::{self, Class, Retention},
    sending::{limits, messages, messages::expire, sandbox},
    upkeep::{Chore, keep_doing},
};

const SECONDS: Duration = Duration::from_secs(1);

/// Starts all chores; they end when told to stop.
pub fn chores(app: &App, retention: &Retention, tasks: &TaskTracker, stop: &CancellationToken) {
    macro_rules! chore {
        ($name:expr, $every:expr, $bell:expr, $round:expr) => {{
            let chore = Chore { name: $name, every: $every, bell: $bell };
            let (db, stop) = (app.workers_db.clone(), stop.clone());
            tasks.spawn(async move { keep_doing(db, chore, $round, stop).await });
        }};
        ($name:literal, $every:expr, $round:path) => {{
            let app = app.clone();
            chore!($name, $every, Arc::new(Notify::new()), || $round(&app));
        }};
    }
    chore!("messages.expire", 15 * SECONDS, expire::expire);
    chore!("limits.forget", 3600 * SECONDS, limits::forget);
    let (kept, told) = (retention.clone(), stop.clone());
    chore!(retention::CHORE, 3600 * SECONDS, retention.bell.clone(), || kept.run(&told));
}

/// What is kept for a time, in the order in which it is forgotten.
pub fn classes(config: &Config) -> Vec<Class> {
    let windows = &config.retention;
    macro_rules! class {
        ($name:literal, $what:literal, $tables:expr, $window:expr, $($owner:ident)::+) => {
            Class {
                name: $name,
                what: $what,
                tables: &$tables,
                window: $window,
                forget: |conn, age, behind, most| Box::pin($($owner)::+::forget(conn, age, behind, most)),
                count: |conn, age, most| Box::pin($($owner)::+::count(conn, age, most)),
                oldest: |conn| Box::pin($($owner)::+::oldest(conn)),
            }
        };
    }
    vec![
        class!(
            "content",
            "bodies and attachments of messages that have settled",
            ["message_content"],
            windows.content,
            messages::retained::content
        ),
        class!(
            "messages",
            "settled messages with their recipients and attempts",
            ["messages", "recipients", "attempts", "attempt_recipients"],
            windows.messages,
            messages::retained::messages
        ),
        // Each brings its own end along.
        class!(
            "idempotency",
            "idempotency keys whose time is over",
            ["idempotency_keys"],
            Some(Duration::ZERO),
            messages::retained::keys
        ),
        class!("events", "what happened", ["events"], windows.events, events),
        class!(
            "sandbox",
            "messages in the sandbox",
            ["sandbox_messages"],
            windows.sandbox,
            sandbox
        ),
        class!("audit", "who changed what", ["audit"], windows.audit, audit),
    ]
}
