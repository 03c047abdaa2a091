//! Whole transactions, and what each recipient is told.

use bytes::Bytes;

use super::*;
use crate::smtp::{Answer, Begun, NotForThisRelay, Reply, scripted::Script};

const MAIL: &str = "MAIL FROM:<me@example.org>";

/// The codes by recipient, with the phase of a refusal.
fn told(begun: &Begun) -> Vec<String> {
    let tell = |answer: &Answer| match answer {
        Answer::Accepted(reply) => reply.code.to_string(),
        Answer::Refused(refusal) => format!("{} {}", refusal.phase, refusal.reply.code),
        Answer::Unanswered => "-".to_owned(),
    };
    begun.recipients.iter().map(tell).collect()
}

async fn deliver(session: &mut Session, text: &'static str) -> Reply {
    session.send_body(&[Bytes::from_static(text.as_bytes())]).await.unwrap();
    session.finish().await.unwrap()
}

#[tokio::test]
async fn step_by_step_where_pipelining_is_not_offered() {
    let script = Script::new().greets(&["SIZE"]).expect(&format!("{MAIL} SIZE=10"));
    let script = script.send("250 ok").expect("RCPT TO:<a@x>").send("250 2.1.5 ok");
    let script = script.expect("RCPT TO:<b@x>").send("550 5.1.1 who?");
    let script = script.expect("DATA").send("354 go").body("..a\r\nb\r\n.\r\n");
    let script = script.send("250 2.0.0 queued as 4711").expect("QUIT").send("221 bye");
    let peer = script.start().await;
    let mut session = open(&peer).await;
    let begun = session.begin(&envelope(&["a@x", "b@x"])).await.unwrap();
    assert_eq!(told(&begun), ["250", "rcpt 550"]);
    assert!(begun.wants_body());
    let reply = deliver(&mut session, ".a\r\nb\r\n").await;
    assert_eq!((reply.code, reply.text.as_str()), (250, "queued as 4711"));
    session.quit().await;
    peer.done().await;
}

#[tokio::test]
async fn one_write_where_pipelining_is_offered_and_the_session_is_used_again() {
    let batch = [MAIL, "RCPT TO:<a@x>", "RCPT TO:<b@x>", "DATA"];
    let script = Script::new().greets(&["PIPELINING"]).batch(&batch);
    let script = script.send("250 ok\n450 4.2.0 later\n251 elsewhere\n354 go");
    let script = script.body("hi\r\n.\r\n").send("250 ok").batch(&batch);
    let peer = script.send("250 ok\n250 ok\n250 ok\n354 go").body("ho\r\n.\r\n");
    let peer = peer.send("550 5.7.1 spam").expect("RSET").send("250 ok").start().await;
    let mut session = open(&peer).await;
    let begun = session.begin(&envelope(&["a@x", "b@x"])).await.unwrap();
    assert_eq!(told(&begun), ["rcpt 450", "251"]);
    assert_eq!(deliver(&mut session, "hi\r\n").await.code, 250);
    let begun = session.begin(&envelope(&["a@x", "b@x"])).await.unwrap();
    assert_eq!(told(&begun), ["250", "250"]);
    assert_eq!(deliver(&mut session, "ho\r\n").await.code, 550);
    session.reset().await.unwrap();
    drop(session);
    peer.done().await;
}

#[tokio::test]
async fn a_message_may_come_in_chunks_and_calls() {
    let script = Script::new().greets(&["PIPELINING"]).batch(&[MAIL, "RCPT TO:<a@x>", "DATA"]);
    let long = "x".repeat(70_000);
    let script = script.send("250 ok\n250 ok\n354 go");
    let peer = script.body(&format!("a\r\n..{long}\r\n...\r\n.\r\n")).send("250 ok").start().await;
    let mut session = open(&peer).await;
    assert!(session.begin(&envelope(&["a@x"])).await.unwrap().wants_body());
    let chunks = ["a\r", "\n", ".", &long, "\r\n", ".."].map(|c| Bytes::from(c.to_owned()));
    session.send_body(&chunks).await.unwrap();
    assert_eq!(deliver(&mut session, "\r\n").await.code, 250);
    drop(session);
    peer.done().await;
}

#[tokio::test]
async fn nobody_is_accepted_and_the_transaction_is_reset() {
    let script = Script::new().greets(&[]).expect(MAIL).send("250 ok");
    let script = script.expect("RCPT TO:<a@x>").send("550 no").expect("RCPT TO:<b@x>");
    let peer = script.send("451 later").expect("RSET").send("250 ok").start().await;
    let mut session = open(&peer).await;
    let begun = session.begin(&envelope(&["a@x", "b@x"])).await.unwrap();
    assert_eq!(told(&begun), ["rcpt 550", "rcpt 451"]);
    assert!(!begun.wants_body() && begun.fault.is_none());
    assert!(session.is_idle());
    drop(session);
    peer.done().await;
}

#[tokio::test]
async fn a_server_that_wants_a_message_for_nobody_gets_an_empty_one() {
    let batch = [MAIL, "RCPT TO:<a@x>", "RCPT TO:<b@x>", "DATA"];
    let script = Script::new().greets(&["PIPELINING"]).batch(&batch);
    let script = script.send("250 ok\n550 no\n550 no\n354 go").body(".\r\n").send("554 nobody");
    let peer = script.expect("RSET").send("250 ok").start().await;
    let mut session = open(&peer).await;
    let begun = session.begin(&envelope(&["a@x", "b@x"])).await.unwrap();
    assert_eq!(told(&begun), ["rcpt 550", "rcpt 550"]);
    assert!(begun.fault.is_none() && session.is_idle());
    drop(session);
    peer.done().await;
}

#[tokio::test]
async fn what_breaks_when_all_have_their_answer_only_spoils_the_session() {
    let batch = [MAIL, "RCPT TO:<a@x>", "DATA"];
    let script = Script::new().greets(&["PIPELINING"]).batch(&batch);
    let peer = script.send("250 ok\n550 no").close().start().await;
    let mut session = open(&peer).await;
    let begun = session.begin(&envelope(&["a@x"])).await.unwrap();
    assert_eq!(told(&begun), ["rcpt 550"]);
    assert!(begun.fault.is_none() && !session.is_idle());

    let script = Script::new().greets(&["PIPELINING"]).batch(&batch);
    let peer = script.send("250 ok\n550 no\n503 nobody").expect("RSET").gone().start().await;
    let mut session = Session::open(&endpoint(&peer), &hasty(Phase::Mail)).await.unwrap();
    let begun = session.begin(&envelope(&["a@x"])).await.unwrap();
    assert_eq!(told(&begun), ["rcpt 550"]);
    assert!(begun.fault.is_none() && !session.is_idle());
    peer.done().await;
}

#[tokio::test]
async fn a_refused_sender_is_refused_for_all() {
    let batch = [MAIL, "RCPT TO:<a@x>", "RCPT TO:<b@x>", "DATA"];
    let script = Script::new().greets(&["PIPELINING"]).batch(&batch);
    let script = script.send("553 5.7.1 not yours\n503 a\n503 b\n503 c");
    let peer = script.expect("RSET").send("250 ok").start().await;
    let mut session = open(&peer).await;
    let begun = session.begin(&envelope(&["a@x", "b@x"])).await.unwrap();
    assert_eq!(told(&begun), ["mail 553", "mail 553"]);
    assert!(begun.fault.is_none() && session.is_idle());
    drop(session);
    peer.done().await;

    let peer = Script::new().greets(&[]).expect(MAIL).send("452 full").gone().start().await;
    let mut session = open(&peer).await;
    let begun = session.begin(&envelope(&["a@x"])).await.unwrap();
    assert_eq!(told(&begun), ["mail 452"]);
    assert!(session.is_idle());
    drop(session);
    peer.done().await;
}

#[tokio::test]
async fn refused_data_is_refused_for_those_who_were_accepted() {
    let batch = [MAIL, "RCPT TO:<a@x>", "RCPT TO:<b@x>", "DATA"];
    let script = Script::new().greets(&["PIPELINING"]).batch(&batch);
    let script = script.send("250 ok\n250 ok\n550 no\n451 4.3.0 not now");
    let peer = script.expect("RSET").send("250 ok").start().await;
    let mut session = open(&peer).await;
    let begun = session.begin(&envelope(&["a@x", "b@x"])).await.unwrap();
    assert_eq!(told(&begun), ["data 451", "rcpt 550"]);
    assert!(!begun.wants_body() && session.is_idle());
    drop(session);
    peer.done().await;
}

#[tokio::test]
async fn more_recipients_than_a_batch_are_all_answered() {
    let addresses: Vec<String> = (0..230).map(|n| format!("r{n}@x")).collect();
    let lines: Vec<String> = addresses.iter().map(|a| format!("RCPT TO:<{a}>")).collect();
    let mut script = Script::new().greets(&["PIPELINING"]);
    for (index, lines) in lines.chunks(100).enumerate() {
        let mut batch: Vec<&str> = lines.iter().map(String::as_str).collect();
        let mut replies = vec!["250 ok"; batch.len()];
        if index == 0 {
            batch.insert(0, MAIL);
            replies.insert(0, "250 ok");
        }
        if index == 2 {
            batch.push("DATA");
            replies.push("354 go");
        }
        script = script.batch(&batch).send(&replies.join("\n"));
    }
    let peer = script.start().await;
    let mut session = open(&peer).await;
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let begun = session.begin(&envelope(&addresses)).await.unwrap();
    assert_eq!(told(&begun), vec!["250"; 230]);
    assert!(begun.wants_body());
}

#[tokio::test]
async fn what_the_relay_cannot_take_is_not_offered_to_it() {
    let peer = Script::new().greets(&["SIZE 9"]).gone().start().await;
    let mut session = open(&peer).await;
    let refused = session.begin(&envelope(&["a@x"])).await.unwrap_err();
    assert_eq!(refused, NotForThisRelay::TooBig { limit: 9 });
    let small = Envelope { size: 1, ..envelope(&["jürgen@x"]) };
    assert_eq!(session.begin(&small).await.unwrap_err(), NotForThisRelay::NoSmtpUtf8);
    let hostile = Envelope { size: 1, ..envelope(&["a@x", "b@x>\r\nDATA"]) };
    let begun = session.begin(&hostile).await.unwrap();
    assert_eq!(told(&begun), ["-", "-"]);
    let fault = begun.fault.unwrap();
    assert!(matches!(fault, Fault { phase: Phase::Mail, kind: FaultKind::Malformed(_) }));
    assert!(session.is_idle());
    session.abandon();
    peer.done().await;
}
