//! MAIL, RCPT, DATA, the message, the dot; and what became of each recipient.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::time::timeout;

use super::{
    Envelope, Fault, FaultKind, NotForThisRelay, Phase, Reply, Session,
    body::{BareLineEnd, Stuffer},
    commands::Commands,
    session::Line,
    wire::Wire,
};

/// Recipients in one write. The replies to so many fit into the buffers of the sockets, so that the
/// two sides never wait for each other to read (RFC 2920 §3.1).
const BATCH: usize = 100;

/// Octets of the message in one write, before the dots are doubled.
const PIECE: usize = 32 * 1024;

/// How long to wait for a clean session once every recipient has an answer.
const TIDYING: Duration = Duration::from_secs(5);

const DATA: &[u8] = b"DATA\r\n";
const GO_AHEAD: u16 = 354;

/// How far a transaction came before its message.
#[derive(Debug)]
pub struct Begun {
    /// One for each recipient, in the order of the envelope.
    pub recipients: Vec<Answer>,
    /// Why the conversation broke off, if it did. The answers that were read stand: a refusal is a
    /// refusal, while an acceptance has come to nothing.
    pub fault: Option<Fault>,
}

/// What the server said of one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Accepted(Reply),
    Refused(Refusal),
    /// The conversation broke off before.
    Unanswered,
}

/// A refusal (4xx or 5xx), and the command it answered: MAIL and DATA are refused for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// [`Phase::Mail`], [`Phase::Rcpt`] or [`Phase::Data`].
    pub phase: Phase,
    pub reply: Reply,
}

impl Begun {
    /// Whether the server waits for the message: [`Session::send_body`] is next.
    pub fn wants_body(&self) -> bool {
        self.fault.is_none() && self.has_accepted()
    }

    fn unanswered(envelope: &Envelope) -> Self {
        Self { recipients: vec![Answer::Unanswered; envelope.recipients.len()], fault: None }
    }

    fn has_accepted(&self) -> bool {
        self.recipients.iter().any(|answer| matches!(answer, Answer::Accepted(_)))
    }

    /// A refusal for all who are not refused yet.
    fn refuse_the_rest(&mut self, phase: Phase, reply: &Reply) {
        for answer in &mut self.recipients {
            if !matches!(answer, Answer::Refused(_)) {
                *answer = Answer::Refused(Refusal { phase, reply: reply.clone() });
            }
        }
    }
}

impl Session {
    /// Begins a transaction: MAIL, every RCPT, DATA; in one write where PIPELINING is offered.
    ///
    /// When no recipient is accepted there is nothing more to do: the session is clean again, or,
    /// should the clean-up fail, closed, which [`Session::is_idle`] tells.
    pub async fn begin(&mut self, envelope: &Envelope) -> Result<Begun, NotForThisRelay> {
        envelope.check_against(self.capabilities())?;
        let mut begun = Begun::unanswered(envelope);
        let commands = match Commands::new(envelope, self.capabilities()) {
            Ok(commands) => commands,
            Err(kind) => {
                begun.fault = Some(Fault::new(Phase::Mail, kind));
                return Ok(begun);
            }
        };
        if let Err(fault) = self.converse(&commands, &mut begun).await {
            begun.fault = Some(fault);
        }
        Ok(begun)
    }

    async fn converse(&mut self, commands: &Commands, begun: &mut Begun) -> Result<(), Fault> {
        let mut wire = self.take_idle()?;
        let stand = if self.capabilities().pipelining && !commands.rcpts.is_empty() {
            in_batches(&mut wire, commands, begun).await?
        } else {
            step_by_step(&mut wire, commands, begun).await?
        };
        match stand {
            Stand::Body => self.line = Line::Body(wire, Stuffer::new()),
            Stand::Clean => self.line = Line::Idle(wire),
            // Every recipient has an answer: what breaks from here on spoils the session only, and
            // is not worth a long wait.
            Stand::Open(unheard) => {
                if let Ok(Ok(())) = timeout(TIDYING, tidy(&mut wire, unheard)).await {
                    self.line = Line::Idle(wire);
                }
            }
        }
        Ok(())
    }

    /// Sends the message, dots doubled, up to but without the final dot; it may be called more than
    /// once. Lines must end in CRLF: a CR or LF alone is [`FaultKind::Malformed`], and the server
    /// will not get the dot.
    pub async fn send_body(&mut self, chunks: &[Bytes]) -> Result<(), Fault> {
        let (mut wire, mut stuffer) = self.take_body()?;
        let mut out = BytesMut::with_capacity(PIECE + PIECE / 8);
        for piece in chunks.iter().flat_map(|chunk| chunk.chunks(PIECE)) {
            stuffer.stuff(piece, &mut out)?;
            if out.len() >= PIECE {
                wire.send(Phase::Data, &out).await?;
                out.clear();
            }
        }
        wire.send(Phase::Data, &out).await?;
        self.line = Line::Body(wire, stuffer);
        Ok(())
    }

    /// Sends the final dot and reads the reply, whatever it is but 421; the session is clean after
    /// it.
    ///
    /// Once the dot has begun to leave, every fault has [`Phase::Dot`], and [`Fault::is_unknown`]
    /// tells whether the message may have been taken. A fault with [`Phase::Data`] means that the
    /// dot was not sent.
    pub async fn finish(&mut self) -> Result<Reply, Fault> {
        let (mut wire, stuffer) = self.take_body()?;
        let dot = stuffer.end()?;
        wire.expect_silence(Phase::Data)?;
        wire.write(Phase::Dot, dot).await?;
        let reply = wire.read(Phase::Dot).await?;
        if !reply.is_positive() && !reply.is_refusal() {
            return Err(Fault::reply(Phase::Dot, reply));
        }
        self.line = Line::Idle(wire);
        Ok(reply)
    }

    fn take_body(&mut self) -> Result<(Wire, Stuffer), Fault> {
        match std::mem::take(&mut self.line) {
            Line::Body(wire, stuffer) => Ok((wire, stuffer)),
            Line::Idle(_) => Err(Fault::protocol(Phase::Data, "no transaction is under way")),
            Line::Closed => Err(Fault::protocol(Phase::Data, "the session is closed")),
        }
    }
}

impl From<BareLineEnd> for Fault {
    fn from(_: BareLineEnd) -> Self {
        Self::new(Phase::Data, FaultKind::Malformed("a CR or LF alone in the message"))
    }
}

/// Where the server stands when each recipient has an answer.
enum Stand {
    /// It waits for the message.
    Body,
    /// It waits for MAIL.
    Clean,
    /// It holds, or may hold, a transaction that will not go on.
    Open(Unheard),
}

/// Replies under way that no longer matter.
#[derive(Default)]
struct Unheard {
    n_rcpts: usize,
    data: bool,
}

async fn step_by_step(
    wire: &mut Wire,
    commands: &Commands,
    begun: &mut Begun,
) -> Result<Stand, Fault> {
    wire.send(Phase::Mail, commands.mail.as_bytes()).await?;
    if let Some(refusal) = hear_mail(wire).await? {
        begun.refuse_the_rest(Phase::Mail, &refusal);
        return Ok(Stand::Clean);
    }
    for (line, answer) in commands.rcpts.iter().zip(&mut begun.recipients) {
        wire.send(Phase::Rcpt, line.as_bytes()).await?;
        *answer = hear_rcpt(wire).await?;
    }
    if !begun.has_accepted() {
        return Ok(Stand::Open(Unheard::default()));
    }
    wire.send(Phase::Data, DATA).await?;
    hear_data(wire, begun).await
}

/// The first batch starts with MAIL, the last one ends with DATA; mostly they are one.
async fn in_batches(
    wire: &mut Wire,
    commands: &Commands,
    begun: &mut Begun,
) -> Result<Stand, Fault> {
    let mut written = commands.mail.clone().into_bytes();
    let mut heard = 0;
    while heard < commands.rcpts.len() {
        let is_first = heard == 0;
        let end = commands.rcpts.len().min(heard + BATCH);
        let is_last = end == commands.rcpts.len();
        written.extend(commands.rcpts[heard..end].iter().flat_map(|line| line.bytes()));
        if is_last {
            written.extend(DATA);
        }
        wire.send(if is_first { Phase::Mail } else { Phase::Rcpt }, &written).await?;
        written.clear();
        if is_first && let Some(refusal) = hear_mail(wire).await? {
            begun.refuse_the_rest(Phase::Mail, &refusal);
            return Ok(Stand::Open(Unheard { n_rcpts: end, data: is_last }));
        }
        for answer in &mut begun.recipients[heard..end] {
            *answer = hear_rcpt(wire).await?;
        }
        heard = end;
    }
    if begun.has_accepted() {
        hear_data(wire, begun).await
    } else {
        Ok(Stand::Open(Unheard { n_rcpts: 0, data: true }))
    }
}

/// Hears what is under way and ends the transaction. A server that wants a message although nobody
/// would get it is given an empty one (RFC 2920 §3.1).
async fn tidy(wire: &mut Wire, unheard: Unheard) -> Result<(), Fault> {
    for _ in 0..unheard.n_rcpts {
        wire.read(Phase::Rcpt).await?;
    }
    if unheard.data && wire.read(Phase::Data).await?.code == GO_AHEAD {
        wire.send(Phase::Data, b".\r\n").await?;
        wire.read(Phase::Data).await?;
    }
    wire.reset().await
}

/// The refusal, if it is one.
async fn hear_mail(wire: &mut Wire) -> Result<Option<Reply>, Fault> {
    let reply = wire.read(Phase::Mail).await?;
    match reply {
        _ if reply.is_positive() => Ok(None),
        _ if reply.is_refusal() => Ok(Some(reply)),
        _ => Err(Fault::reply(Phase::Mail, reply)),
    }
}

async fn hear_rcpt(wire: &mut Wire) -> Result<Answer, Fault> {
    let reply = wire.read(Phase::Rcpt).await?;
    match reply {
        _ if reply.is_positive() => Ok(Answer::Accepted(reply)),
        _ if reply.is_refusal() => Ok(Answer::Refused(Refusal { phase: Phase::Rcpt, reply })),
        _ => Err(Fault::reply(Phase::Rcpt, reply)),
    }
}

async fn hear_data(wire: &mut Wire, begun: &mut Begun) -> Result<Stand, Fault> {
    let reply = wire.read(Phase::Data).await?;
    if reply.code == GO_AHEAD {
        return Ok(Stand::Body);
    }
    if !reply.is_refusal() {
        return Err(Fault::reply(Phase::Data, reply));
    }
    begun.refuse_the_rest(Phase::Data, &reply);
    Ok(Stand::Open(Unheard::default()))
}
