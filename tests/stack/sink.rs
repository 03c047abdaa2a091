//! An SMTP sink that answers slowly enough for a kill to fall between any two steps, and counts
//! what reached it.

use std::{
    collections::HashMap,
    net::Ipv4Addr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

/// By Message-ID: the bodies received whole, in order.
pub type Received = Arc<Mutex<HashMap<String, Vec<Vec<u8>>>>>;

/// A message with this in it is taken, but its dot is never answered.
pub const STUCK: &str = "Subject: stuck";
const FOREVER: Duration = Duration::from_secs(3_600);

pub struct Sink {
    pub port: u16,
    pub received: Received,
    /// RCPT commands so far.
    pub begun: Arc<AtomicUsize>,
}

impl Sink {
    /// RCPT and the dot each take `pace`: the windows in which faults shall fall.
    pub async fn start(pace: Duration) -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST, pace).await
    }

    /// As [`start`](Self::start), at an address that others than this machine may reach.
    pub async fn start_at(address: Ipv4Addr, pace: Duration) -> Self {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (received, begun) = (Received::default(), Arc::new(AtomicUsize::new(0)));
        let (kept, asked) = (received.clone(), begun.clone());
        let tasks = tokio_util::task::TaskTracker::new();
        let clients = tasks.clone();
        tasks.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (kept, asked) = (kept.clone(), asked.clone());
                clients.spawn(async move { _ = converse(client, &kept, &asked, pace).await });
            }
        });
        Self { port, received, begun }
    }
}

async fn converse(
    client: TcpStream,
    kept: &Received,
    asked: &AtomicUsize,
    pace: Duration,
) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let (read, mut write) = client.into_split();
    let mut read = BufReader::new(read);
    write.write_all(b"220 sink\r\n").await?;
    let (mut line, mut data) = (Vec::new(), None::<Vec<u8>>);
    loop {
        line.clear();
        if read.read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        if let Some(body) = &mut data {
            if line != b".\r\n" {
                body.extend_from_slice(&line);
                continue;
            }
            let body = data.take().unwrap_or_default();
            let text = String::from_utf8_lossy(&body).into_owned();
            let id = text.lines().find_map(|it| it.strip_prefix("Message-ID: ")).unwrap_or("none");
            kept.lock().unwrap().entry(id.to_owned()).or_default().push(body);
            let stuck = text.contains(STUCK);
            tokio::time::sleep(if stuck { FOREVER } else { pace }).await;
            write.write_all(b"250 2.0.0 Ok\r\n").await?;
            continue;
        }
        let verb = String::from_utf8_lossy(&line[..line.len().min(4)]).to_ascii_uppercase();
        let reply = match verb.as_str() {
            "RCPT" => {
                asked.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(pace).await;
                "250 2.1.5 Ok\r\n"
            }
            "DATA" => {
                data = Some(Vec::new());
                "354 go on\r\n"
            }
            "QUIT" => return write.write_all(b"221 Bye\r\n").await,
            _ => "250 2.0.0 Ok\r\n",
        };
        write.write_all(reply.as_bytes()).await?;
    }
}
