//! What a command prints, taken in up to a limit.

use std::pin::Pin;

use bollard::{container::LogOutput, errors::Error};
use bytes::Bytes;
use futures_util::{Stream as Frames, StreamExt as _};

use super::{Chunk, EngineFault, Output, Stream};

pub(super) type Feed = Pin<Box<dyn Frames<Item = Result<LogOutput, Error>> + Send>>;

/// How the taking in ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The engine closed the stream.
    Closed,
    /// There was more than the limit; what is over it was not kept.
    TooMuch,
}

/// Both streams of a command so far.
#[derive(Default)]
pub(super) struct Printed {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    order: Vec<Chunk>,
}

impl Printed {
    /// Takes in what comes until the stream ends, or holds more than `limit` bytes.
    pub(super) async fn take_in(
        &mut self,
        feed: &mut Feed,
        limit: usize,
    ) -> Result<End, EngineFault> {
        while let Some(frame) = feed.next().await {
            let frame = frame.map_err(|error| EngineFault::of("exec output", &error))?;
            let (stream, message) = match frame {
                LogOutput::StdOut { message } => (Stream::Stdout, message),
                LogOutput::StdErr { message } => (Stream::Stderr, message),
                LogOutput::StdIn { .. } | LogOutput::Console { .. } => {
                    // No terminal was asked for, so every byte belongs to a frame.
                    let why = "bytes outside of any frame".to_owned();
                    return Err(EngineFault::Garbled { call: "exec output", why });
                }
            };
            if self.stdout.len() + self.stderr.len() + message.len() > limit {
                return Ok(End::TooMuch);
            }
            self.append(stream, &message);
        }
        Ok(End::Closed)
    }

    fn append(&mut self, stream: Stream, message: &Bytes) {
        match stream {
            Stream::Stdout => self.stdout.extend_from_slice(message),
            Stream::Stderr => self.stderr.extend_from_slice(message),
        }
        match self.order.last_mut() {
            Some(last) if last.stream == stream => last.bytes += message.len(),
            _ => self.order.push(Chunk { stream, bytes: message.len() }),
        }
    }

    pub(super) fn with_exit_code(self, exit_code: i64) -> Output {
        Output { exit_code, stdout: self.stdout, stderr: self.stderr, order: self.order }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(frames: Vec<(Stream, &'static [u8])>) -> Feed {
        let frames = frames.into_iter().map(|(stream, bytes)| {
            let message = Bytes::from_static(bytes);
            Ok(match stream {
                Stream::Stdout => LogOutput::StdOut { message },
                Stream::Stderr => LogOutput::StdErr { message },
            })
        });
        Box::pin(futures_util::stream::iter(frames.collect::<Vec<_>>()))
    }

    #[tokio::test]
    async fn a_character_split_between_frames_is_whole_again() {
        let mut printed = Printed::default();
        let mut frames = feed(vec![
            (Stream::Stdout, b"gr\xc3"),
            (Stream::Stderr, b"\xff"),
            (Stream::Stdout, b"\xbc"),
            (Stream::Stdout, b"n"),
        ]);
        assert_eq!(printed.take_in(&mut frames, 100).await.unwrap(), End::Closed);
        let output = printed.with_exit_code(0);
        assert_eq!(String::from_utf8(output.stdout.clone()).unwrap(), "grün");
        assert_eq!(output.stderr, b"\xff");
        assert_eq!(output.interleaved(), b"gr\xc3\xff\xbcn");
        assert_eq!(output.order.len(), 3, "neighbours of one stream are one chunk");
    }

    #[tokio::test]
    async fn both_streams_share_one_limit() {
        let frames = || vec![(Stream::Stdout, &b"12345"[..]), (Stream::Stderr, &b"67890"[..])];
        let mut exactly = Printed::default();
        assert_eq!(exactly.take_in(&mut feed(frames()), 10).await.unwrap(), End::Closed);
        let mut over = Printed::default();
        assert_eq!(over.take_in(&mut feed(frames()), 9).await.unwrap(), End::TooMuch);
    }
}
