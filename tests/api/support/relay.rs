//! A relay that says what a test wants: replies by command, silence after the dot.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

/// What it says: to RCPT by recipient, to AUTH, to the dot (`None` closes without a word).
#[derive(Clone, Default)]
pub struct Script {
    pub auth: Option<&'static str>,
    pub rcpt: Vec<(&'static str, &'static str)>,
    pub mail: Option<&'static str>,
    /// To the first dot, the second, …; after these it says yes. Without words it leaves.
    pub dot: Vec<&'static str>,
    /// Further lines of EHLO.
    pub offers: &'static str,
    /// How long the answer to the dot takes.
    pub pace: std::time::Duration,
    /// How long the answer to DATA takes.
    pub data_pace: std::time::Duration,
    pub mute_after_dot: bool,
    /// Takes connections, and says nothing at all.
    pub mute: bool,
    /// Instead of a greeting; then it closes.
    pub turns_away: Option<&'static str>,
    /// Closes without a word after each answer to a dot.
    pub closes: bool,
}

pub struct ScriptedRelay {
    pub port: u16,
    sessions: Arc<AtomicUsize>,
    /// At once, at most.
    peak: Arc<AtomicUsize>,
    dots: Arc<AtomicUsize>,
}

impl ScriptedRelay {
    pub async fn start(script: Script) -> Self {
        Self::start_at(0, script).await
    }

    /// At a port where nobody listens.
    pub async fn start_at(port: u16, script: Script) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sessions, dots) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (seen, dotted) = (sessions.clone(), dots.clone());
        let (open, peak) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let highest = peak.clone();
        let tasks = tokio_util::task::TaskTracker::new();
        let clients = tasks.clone();
        tasks.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                seen.fetch_add(1, Ordering::SeqCst);
                let (script, dotted) = (script.clone(), dotted.clone());
                let (open, highest) = (open.clone(), highest.clone());
                clients.spawn(async move {
                    let now = open.fetch_add(1, Ordering::SeqCst) + 1;
                    highest.fetch_max(now, Ordering::SeqCst);
                    _ = converse(client, script, &dotted).await;
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { port, sessions, peak, dots }
    }

    pub fn sessions(&self) -> usize {
        self.sessions.load(Ordering::SeqCst)
    }

    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::SeqCst)
    }

    pub fn dots(&self) -> usize {
        self.dots.load(Ordering::SeqCst)
    }
}

async fn converse(client: TcpStream, script: Script, dots: &AtomicUsize) -> std::io::Result<()> {
    if script.mute {
        return std::future::pending().await;
    }
    let (read, mut write) = client.into_split();
    let mut lines = BufReader::new(read).lines();
    if let Some(words) = script.turns_away {
        return write.write_all(format!("{words}\r\n").as_bytes()).await;
    }
    write.write_all(b"220 scripted\r\n").await?;
    let mut in_data = false;
    while let Some(line) = lines.next_line().await? {
        let verb = line.split(' ').next().unwrap_or_default().to_ascii_uppercase();
        let reply = match (in_data, verb.as_str()) {
            (true, ".") => {
                in_data = false;
                let nth = dots.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(script.pace).await;
                if script.mute_after_dot {
                    return Ok(());
                }
                match script.dot.get(nth).copied() {
                    Some("") => return Ok(()),
                    said => said.unwrap_or("250 2.0.0 Ok: queued as ABC123"),
                }
            }
            (true, _) => continue,
            (_, "EHLO") => {
                let greeting = format!("250-scripted\r\n{}250 AUTH PLAIN\r\n", script.offers);
                write.write_all(greeting.as_bytes()).await?;
                continue;
            }
            (_, "AUTH") => script.auth.unwrap_or("235 2.7.0 Ok"),
            (_, "MAIL") => script.mail.unwrap_or("250 2.1.0 Ok"),
            (_, "RCPT") => {
                let told = script.rcpt.iter().find(|(to, _)| line.contains(to));
                told.map_or("250 2.1.5 Ok", |(_, reply)| reply)
            }
            (_, "DATA") => {
                in_data = true;
                tokio::time::sleep(script.data_pace).await;
                "354 go on"
            }
            (_, "QUIT") => "221 Bye",
            _ => "250 2.0.0 Ok",
        };
        write.write_all(format!("{reply}\r\n").as_bytes()).await?;
        if script.closes && verb == "." {
            return Ok(());
        }
    }
    Ok(())
}
