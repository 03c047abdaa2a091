//! The sandbox's door: a real SMTP listener. The dot is answered when the message is on disk.

use std::time::Duration;

use sqlx::PgPool;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

use super::{
    session::{Conversation, Next},
    store,
};

/// A client that says nothing for so long is left.
const IDLE: Duration = Duration::from_secs(5 * 60);
/// No line is read beyond this, in bytes.
const LINE: u64 = 64 * 1024;

/// Serves until told to stop.
pub async fn listen(
    db: PgPool,
    listener: TcpListener,
    tasks: TaskTracker,
    stop: CancellationToken,
) {
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((client, _)) => {
                let (db, stop) = (db.clone(), stop.clone());
                tasks.spawn(async move {
                    tokio::select! {
                        () = stop.cancelled() => (),
                        _ended = converse(&db, client) => (),
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the sandbox could not accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn converse(db: &PgPool, client: TcpStream) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let (read, mut write) = client.into_split();
    let mut read = BufReader::new(read);
    let mut conversation = Conversation::default();
    write.write_all(b"220 sandbox ESMTP Postroom\r\n").await?;
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut bounded = (&mut read).take(LINE);
        let n = tokio::time::timeout(IDLE, bounded.read_until(b'\n', &mut line)).await??;
        if n == 0 {
            return Ok(());
        }
        match conversation.line(&line) {
            Next::Nothing => (),
            Next::Say(reply) => write.write_all(reply.as_bytes()).await?,
            Next::Keep(message) => {
                let id = Uuid::now_v7();
                let reply = match store::keep(db, id, &message).await {
                    Ok(()) => format!("250 2.0.0 Ok: queued as {id}\r\n"),
                    Err(error) => {
                        tracing::warn!(%error, "the sandbox could not keep a message");
                        "451 4.3.0 not kept, try again\r\n".to_owned()
                    }
                };
                write.write_all(reply.as_bytes()).await?;
            }
            Next::Close(reply) => return write.write_all(reply.as_bytes()).await,
        }
    }
}
