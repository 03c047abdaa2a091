//! A DNS server of a test's own, on loopback.

use std::{collections::HashMap, net::SocketAddr, sync::Arc};

use tokio::net::UdpSocket;

/// What it says of a name. Names that it does not know do not exist.
#[derive(Clone)]
pub enum Said {
    Texts(Vec<&'static str>),
    ServFail,
    /// It takes the question, and says nothing.
    Nothing,
}

/// Starts a server that knows these names.
pub async fn start(zone: &[(&str, Said)]) -> SocketAddr {
    let zone: HashMap<String, Said> =
        zone.iter().map(|(name, said)| ((*name).to_owned(), said.clone())).collect();
    let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let address = socket.local_addr().unwrap();
    tokio_util::task::TaskTracker::new().spawn(async move {
        let mut question = [0; 1500];
        while let Ok((n, from)) = socket.recv_from(&mut question).await {
            if let Some(answer) = answer(&question[..n], &zone) {
                let _ = socket.send_to(&answer, from).await;
            }
        }
    });
    address
}

/// One answer to one question (RFC 1035, 4.1).
fn answer(question: &[u8], zone: &HashMap<String, Said>) -> Option<Vec<u8>> {
    let (mut at, mut labels) = (12, Vec::new());
    while question[at] != 0 {
        let length = usize::from(question[at]);
        labels.push(String::from_utf8_lossy(&question[at + 1..=at + length]).to_lowercase());
        at += 1 + length;
    }
    let end = at + 5;
    let (code, texts): (u8, &[&str]) = match zone.get(&labels.join(".")) {
        Some(Said::Texts(texts)) => (0, texts),
        Some(Said::ServFail) => (2, &[]),
        Some(Said::Nothing) => return None,
        None => (3, &[]),
    };
    let count = u8::try_from(texts.len()).unwrap();
    let mut answer = question[..2].to_vec();
    // An answer, recursion wanted and to be had; one question, so many answers.
    answer.extend([0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0]);
    answer.extend(&question[12..end]);
    for text in texts {
        let length = u8::try_from(text.len()).unwrap();
        // The name of the question, TXT, IN, one minute, then the text with its length.
        answer.extend([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 60, 0, length + 1, length]);
        answer.extend(text.as_bytes());
    }
    Some(answer)
}
