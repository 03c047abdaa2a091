//! Who wakes whom: a bell in this process, and `NOTIFY` for the others. Both are hints; a lost
//! ring costs one poll.

use std::{sync::Arc, time::Duration};

use sqlx::{PgPool, postgres::PgListener};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// What a notification is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// There is due work.
    Jobs,
    /// What the way out depends on was changed: a relay, its breaker, a pause, a limit; or a process
    /// came or went, among which connections are divided.
    Relays,
}

impl Channel {
    const ALL: [Self; 2] = [Self::Jobs, Self::Relays];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Jobs => "postroom_jobs",
            Self::Relays => "postroom_relays",
        }
    }
}

/// Rings for due work. Cheap to clone.
#[derive(Clone)]
pub struct Bell {
    here: Arc<Notify>,
    elsewhere: Arc<Notify>,
    db: PgPool,
}

impl Bell {
    pub(super) fn new(db: PgPool) -> Self {
        Self { here: Arc::default(), elsewhere: Arc::default(), db }
    }

    /// To be called after the commit that made work due.
    pub fn ring(&self) {
        self.here.notify_one();
        self.elsewhere.notify_one();
    }

    /// Wakes this process only.
    pub fn ring_here(&self) {
        self.here.notify_one();
    }

    pub(super) async fn rung(&self) {
        self.here.notified().await;
    }

    /// Passes rings on to other processes: many rings, one statement.
    pub async fn pass_on(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.elsewhere.notified() => (),
            }
            // A failure is no news: everyone polls.
            let _hint = sqlx::query!("select pg_notify($1, '')", Channel::Jobs.as_str())
                .execute(&self.db)
                .await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Listens until told to stop, on a connection of its own. Whatever goes wrong with it means:
/// look again, since a notification may have been lost.
pub async fn listen(db: PgPool, heard: impl Fn(Channel), stop: CancellationToken) {
    let look_everywhere = || Channel::ALL.into_iter().for_each(&heard);
    while !stop.is_cancelled() {
        let listening = async {
            let mut listener = PgListener::connect_with(&db).await?;
            listener.listen_all(Channel::ALL.map(Channel::as_str)).await?;
            look_everywhere();
            loop {
                match listener.try_recv().await? {
                    Some(note) => Channel::ALL
                        .into_iter()
                        .filter(|channel| channel.as_str() == note.channel())
                        .for_each(&heard),
                    None => look_everywhere(),
                }
            }
        };
        let ended: std::result::Result<std::convert::Infallible, sqlx::Error> = tokio::select! {
            () = stop.cancelled() => return,
            ended = listening => ended,
        };
        let Err(error) = ended;
        tracing::warn!(%error, "not listening to the database for the moment");
        look_everywhere();
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(Duration::from_secs(1)) => (),
        }
    }
}
