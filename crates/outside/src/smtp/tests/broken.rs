//! Conversations that break off: where, and with what known.

use bytes::Bytes;
use futures_util::FutureExt;

use super::*;
use crate::smtp::{Answer, scripted::Script};

const MAIL: &str = "MAIL FROM:<me@example.org>";
const OFFERS: [&[&str]; 2] = [&[], &["PIPELINING"]];

/// A script as far as the reply to `phase`, which is missing.
fn until(phase: Phase, offers: &[&str]) -> Script {
    let mut script = Script::new();
    if phase == Phase::Greeting {
        return script;
    }
    if phase == Phase::Ehlo {
        return script.send("220 hi").expect("EHLO client.example");
    }
    script = script.greets(offers);
    if phase == Phase::Auth {
        return script.expect("AUTH PLAIN AHRpbQB0YW5zdGFhZnRhbnN0YWFm");
    }
    let steps = [
        (Phase::Mail, MAIL, "250 ok"),
        (Phase::Rcpt, "RCPT TO:<a@x>", "250 a"),
        (Phase::Data, "DATA", "354 go"),
    ];
    if offers.contains(&"PIPELINING") {
        script = script.batch(&steps.map(|(_, line, _)| line));
        for (_, _, reply) in steps.iter().take_while(|step| step.0 < phase) {
            script = script.send(reply);
        }
    } else {
        for (step, line, reply) in steps {
            script = script.expect(line);
            if step == phase {
                return script;
            }
            script = script.send(reply);
        }
    }
    if phase == Phase::Dot { script.body("hi\r\n.\r\n") } else { script }
}

/// Goes as far as it gets.
async fn attempt(peer: &Peer, deadlines: &Deadlines, auth: Option<Credentials>) -> Fault {
    let endpoint = Endpoint { credentials: auth, ..endpoint(peer) };
    let mut session = match Session::open(&endpoint, deadlines).await {
        Ok(session) => session,
        Err(fault) => return fault,
    };
    let begun = session.begin(&envelope(&["a@x"])).await.unwrap();
    let fault = match begun.fault {
        Some(fault) => fault,
        None => match session.send_body(&[Bytes::from_static(b"hi\r\n")]).await {
            Ok(()) => session.finish().await.unwrap_err(),
            Err(fault) => fault,
        },
    };
    assert_unusable(&mut session).await;
    fault
}

async fn assert_unusable(session: &mut Session) {
    assert!(!session.is_idle());
    assert_protocol(&session.reset().await.unwrap_err(), Phase::Mail);
    let again = session.begin(&envelope(&["a@x"])).await.unwrap();
    assert_protocol(&again.fault.unwrap(), Phase::Mail);
    assert_protocol(&session.send_body(&[]).await.unwrap_err(), Phase::Data);
    assert_protocol(&session.finish().await.unwrap_err(), Phase::Data);
}

fn auth_for(phase: Phase) -> (Option<Credentials>, Vec<&'static str>) {
    if phase == Phase::Auth { (tim(), vec!["AUTH PLAIN"]) } else { (None, vec![]) }
}

const OPENING: [Phase; 3] = [Phase::Greeting, Phase::Ehlo, Phase::Auth];
const TRANSACTION: [Phase; 4] = [Phase::Mail, Phase::Rcpt, Phase::Data, Phase::Dot];

#[tokio::test]
async fn silence_is_a_fault_of_its_phase() {
    for phase in OPENING {
        let (auth, offers) = auth_for(phase);
        let peer = until(phase, &offers).start().await;
        assert_timed_out(&attempt(&peer, &hasty(phase), auth).await, phase);
    }
    for (phase, offers) in TRANSACTION.into_iter().flat_map(|p| OFFERS.map(|o| (p, o))) {
        let peer = until(phase, offers).start().await;
        let fault = attempt(&peer, &hasty(phase), None).await;
        assert_timed_out(&fault, phase);
        assert_eq!(fault.is_unknown(), phase == Phase::Dot);
        peer.done().await;
    }
}

#[tokio::test]
async fn a_closed_connection_is_a_fault_of_its_phase() {
    for phase in OPENING {
        let (auth, offers) = auth_for(phase);
        let peer = until(phase, &offers).close().start().await;
        assert_closed(&attempt(&peer, &patient(), auth).await, phase);
    }
    for (phase, offers) in TRANSACTION.into_iter().flat_map(|p| OFFERS.map(|o| (p, o))) {
        let peer = until(phase, offers).close().start().await;
        let fault = attempt(&peer, &patient(), None).await;
        assert_closed(&fault, phase);
        assert_eq!(fault.is_unknown(), phase == Phase::Dot);
    }
}

#[tokio::test]
async fn a_server_that_shuts_down_says_so_in_any_phase() {
    for phase in OPENING {
        let (auth, offers) = auth_for(phase);
        let peer = until(phase, &offers).send("421 4.3.2 bye").close().start().await;
        assert_said(&attempt(&peer, &patient(), auth).await, phase, 421);
    }
    for (phase, offers) in TRANSACTION.into_iter().flat_map(|p| OFFERS.map(|o| (p, o))) {
        let peer = until(phase, offers).send("421 4.3.2 bye").close().start().await;
        let fault = attempt(&peer, &patient(), None).await;
        assert_said(&fault, phase, 421);
        assert!(!fault.is_unknown(), "the server did say");
    }
}

#[tokio::test]
async fn a_reply_that_makes_no_sense_is_a_fault_of_its_phase() {
    for (phase, offers) in TRANSACTION.into_iter().flat_map(|p| OFFERS.map(|o| (p, o))) {
        let nonsense = if phase == Phase::Data { "250 ok" } else { "354 go" };
        let peer = until(phase, offers).send(nonsense).start().await;
        assert_protocol(&attempt(&peer, &patient(), None).await, phase);
    }
}

#[tokio::test]
async fn the_answers_before_the_break_are_kept() {
    let recipients = ["a@x", "b@x", "c@x"];
    let commands = recipients.map(|r| format!("RCPT TO:<{r}>"));
    let batch = [MAIL, &commands[0], &commands[1], &commands[2], "DATA"];
    let script = Script::new().greets(&["PIPELINING"]).batch(&batch);
    let peer = script.send("250 ok\n550 5.1.1 who?\n250 ok\n421 bye").close().start().await;
    let begun = open(&peer).await.begin(&envelope(&recipients)).await.unwrap();
    assert!(matches!(&begun.recipients[0], Answer::Refused(refusal) if refusal.reply.code == 550));
    assert!(matches!(&begun.recipients[1], Answer::Accepted(_)));
    assert_eq!(begun.recipients[2], Answer::Unanswered);
    assert!(!begun.wants_body());
    assert_said(&begun.fault.unwrap(), Phase::Rcpt, 421);
}

#[tokio::test]
async fn a_server_that_left_while_the_session_rested_is_noticed() {
    let peer = Script::new().greets(&[]).send("421 4.4.2 idle").close().start().await;
    let mut session = open(&peer).await;
    peer.done().await;
    let fault = session.begin(&envelope(&["a@x"])).await.unwrap().fault.unwrap();
    assert_said(&fault, Phase::Mail, 421);
    assert!(!session.is_idle());
}

#[tokio::test]
async fn an_answer_before_the_dot_is_not_the_answer_to_the_dot() {
    for (early, is_refusal) in [("552 5.3.4 too much", true), ("250 ok", false)] {
        let batch = [MAIL, "RCPT TO:<a@x>", "DATA"];
        let script = Script::new().greets(&["PIPELINING"]).batch(&batch);
        let script = script.send("250 ok\n250 ok\n354 go").body("hi\r\n").send(early);
        let peer = script.close().start().await;
        let mut session = open(&peer).await;
        assert!(session.begin(&envelope(&["a@x"])).await.unwrap().wants_body());
        session.send_body(&[Bytes::from_static(b"hi\r\n")]).await.unwrap();
        peer.done().await;
        let fault = session.finish().await.unwrap_err();
        assert!(!fault.is_unknown());
        if is_refusal {
            assert_said(&fault, Phase::Data, 552);
        } else {
            assert_protocol(&fault, Phase::Data);
        }
    }
}

#[tokio::test]
async fn the_last_words_of_a_server_that_left_within_the_message_are_heard() {
    let batch = [MAIL, "RCPT TO:<a@x>", "DATA"];
    let script = Script::new().greets(&["PIPELINING"]).batch(&batch);
    let script = script.send("250 ok\n250 ok\n354 go").body("x").send("552 5.3.4 too much");
    let peer = script.close().start().await;
    let mut session = open(&peer).await;
    assert!(session.begin(&envelope(&["a@x"])).await.unwrap().wants_body());
    let line = Bytes::from("x".repeat(998) + "\r\n");
    let fault = session.send_body(&vec![line; 50_000]).await.unwrap_err();
    assert_said(&fault, Phase::Data, 552);
}

#[tokio::test]
async fn an_abandoned_message_gets_no_dot() {
    let script = Script::new().greets(&[]).expect(MAIL).send("250 ok");
    let script = script.expect("RCPT TO:<a@x>").send("250 ok").expect("DATA").send("354 go");
    let peer = script.body("hi\r\n").gone().start().await;
    let mut session = open(&peer).await;
    assert!(session.begin(&envelope(&["a@x"])).await.unwrap().wants_body());
    session.send_body(&[Bytes::from_static(b"hi\r\n")]).await.unwrap();
    session.quit().await;
    peer.done().await;
}

#[tokio::test]
async fn a_line_end_alone_in_the_message_gets_no_dot() {
    let script = Script::new().greets(&[]).expect(MAIL).send("250 ok");
    let script = script.expect("RCPT TO:<a@x>").send("250 ok").expect("DATA").send("354 go");
    let peer = script.gone().start().await;
    let mut session = open(&peer).await;
    assert!(session.begin(&envelope(&["a@x"])).await.unwrap().wants_body());
    let smuggled = Bytes::from_static(b"hi\n.\r\nMAIL FROM:<evil@x>\r\n");
    let fault = session.send_body(&[smuggled]).await.unwrap_err();
    assert!(matches!(fault, Fault { phase: Phase::Data, kind: FaultKind::Malformed(_) }));
    assert_unusable(&mut session).await;
    peer.done().await;
}

#[tokio::test]
async fn a_dropped_call_closes_the_session() {
    let peer = Script::new().greets(&[]).expect(MAIL).gone().start().await;
    let mut session = open(&peer).await;
    assert!(session.begin(&envelope(&["a@x"])).now_or_never().is_none());
    assert_unusable(&mut session).await;
    peer.done().await;
}

#[tokio::test]
async fn calls_out_of_turn_close_the_session() {
    let peer = Script::new().greets(&[]).gone().start().await;
    let mut session = open(&peer).await;
    assert_protocol(&session.finish().await.unwrap_err(), Phase::Data);
    assert_unusable(&mut session).await;
    peer.done().await;
}

#[tokio::test]
async fn a_message_nobody_reads_is_a_fault_of_data() {
    let batch = [MAIL, "RCPT TO:<a@x>", "DATA"];
    let script = Script::new().greets(&["PIPELINING"]).batch(&batch);
    let script = script.send("250 ok\n250 ok\n354 go");
    let peer = script.delay(Duration::from_secs(3600)).start().await;
    let mut session = Session::open(&endpoint(&peer), &hasty(Phase::Data)).await.unwrap();
    assert!(session.begin(&envelope(&["a@x"])).await.unwrap().wants_body());
    let line = Bytes::from("x".repeat(998) + "\r\n");
    let fault = session.send_body(&vec![line; 50_000]).await.unwrap_err();
    assert_timed_out(&fault, Phase::Data);
    assert_unusable(&mut session).await;
}

#[tokio::test]
async fn calls_may_move_between_threads() {
    async fn every_call(endpoint: Endpoint) -> Result<(), Fault> {
        let mut session = Session::open(&endpoint, &patient()).await?;
        let _ = session.begin(&envelope(&[])).await;
        session.send_body(&[]).await?;
        session.finish().await?;
        session.reset().await?;
        session.quit().await;
        Ok(())
    }
    fn assert_send<T: Send>(_: T) {}
    let peer = Script::new().start().await;
    assert_send(every_call(endpoint(&peer)));
}
