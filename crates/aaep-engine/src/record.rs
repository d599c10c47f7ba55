//! What must survive a restart, as bytes: encoded and checksummed here, so that every store keeps
//! the same bytes and the simulator's disk can damage the real ones.
//!
//! A record is `length (4) · checksum (4) · number (8) · kind (1) · fields`, little-endian, texts
//! with their length before them. Nothing in it is a reply token: those follow from the key.

use std::fmt;
use std::sync::Arc;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The user said yes, or answered.
    Accepted,
    /// The user said no.
    Rejected,
    /// Nobody answered in time, and the default applies.
    TimedOut,
    /// The agent or the user withdrew it, or the session ended.
    Cancelled,
    /// Another request took its place, with more time.
    Superseded,
}

impl Outcome {
    /// The word that stands in the outcome extension.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Accepted => "accepted",
            Outcome::Rejected => "rejected",
            Outcome::TimedOut => "timed_out",
            Outcome::Cancelled => "cancelled",
            Outcome::Superseded => "superseded",
        }
    }

    const ALL: [Outcome; 5] = [
        Outcome::Accepted,
        Outcome::Rejected,
        Outcome::TimedOut,
        Outcome::Cancelled,
        Outcome::Superseded,
    ];
}

/// One step that must survive a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record {
    /// A session began.
    Opened(Opened),
    /// It ended.
    Ended {
        /// Which.
        session: Arc<str>,
    },
    /// Something was asked.
    Asked(Asked),
    /// A request was resolved; its token is spent.
    Resolved {
        /// The request, by the number of its event.
        request: u128,
        /// What became of it.
        outcome: Outcome,
        /// Whether the action may run.
        runs: bool,
        /// Who decided.
        by: Arc<str>,
        /// The answer to a question, as JSON; empty for none.
        response: Arc<str>,
        /// The next number of the session's events.
        next_number: u64,
        /// The last stamp of the session, in microseconds.
        stamp: i64,
    },
    /// The approval was spent and the tool called.
    Invoked {
        /// The request.
        request: u128,
        /// The call.
        call: Arc<str>,
        /// The next number of the session's events.
        next_number: u64,
        /// The last stamp of the session, in microseconds.
        stamp: i64,
    },
    /// The tool came back.
    Completed {
        /// The session.
        session: Arc<str>,
        /// The call.
        call: Arc<str>,
    },
    /// A request was asked again, with more time and another token.
    Extended {
        /// The request.
        request: u128,
        /// The number of the event that asks now.
        event: u128,
        /// When, in microseconds.
        stamp: i64,
        /// How long it waits from then on.
        timeout_seconds: u64,
        /// The next number of the session's events.
        next_number: u64,
    },
    /// The engine was started again from the records before: the numbers of every open session
    /// skipped ahead.
    Restarted {
        /// The clock on the wall then, in microseconds; 0 if it could not be trusted.
        stamp: i64,
    },
    /// A reply that changed nothing; the reason is for the audit alone.
    Ignored {
        /// Who sent it.
        by: Arc<str>,
        /// Why it did not count.
        reason: u8,
    },
}

/// A session that began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its id.
    pub session: Arc<str>,
    /// Name of the agent.
    pub agent: Arc<str>,
    /// Whose session it is.
    pub user: Arc<str>,
    /// The producer object as JSON.
    pub producer: Arc<str>,
    /// The language of its texts.
    pub language: Arc<str>,
    /// How long the agent may stay silent.
    pub lease_seconds: u64,
    /// `session.started` as JSON.
    pub event: Arc<str>,
    /// When, in microseconds.
    pub stamp: i64,
}

/// A request that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its number: that of its event.
    pub request: u128,
    /// The session.
    pub session: Arc<str>,
    /// Whether it asks for consent; otherwise for an answer.
    pub confirmation: bool,
    /// The tool; empty for a question.
    pub tool: Arc<str>,
    /// Its exact arguments.
    pub arguments: Arc<str>,
    /// The event as JSON, without the reply token.
    pub event: Arc<str>,
    /// When it was made, in microseconds.
    pub stamp: i64,
    /// How long it waits.
    pub timeout_seconds: u64,
    /// Whether silence means yes.
    pub default_accept: bool,
    /// Whether the action cannot be taken back.
    pub irreversible: bool,
    /// The next number of the session's events.
    pub next_number: u64,
}

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corrupt {
    /// They end too early.
    Short,
    /// They were changed.
    Checksum,
    /// Nobody knows this kind or shape.
    Unknown,
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Corrupt::Short => "the record is cut short",
            Corrupt::Checksum => "the record was changed after it was written",
            Corrupt::Unknown => "the record is of a kind that this version does not know",
        })
    }
}

impl std::error::Error for Corrupt {}

const HEAD: usize = 8;

impl Record {
    /// The record as bytes, under its number.
    pub fn encode(&self, number: u64) -> Vec<u8> {
        let mut out = Out(vec![0; HEAD]);
        out.u64(number);
        match self {
            Record::Opened(opened) => encode_opened(opened, &mut out),
            Record::Ended { session } => {
                out.u8(2);
                out.text(session);
            }
            Record::Asked(asked) => encode_asked(asked, &mut out),
            Record::Resolved { request, outcome, runs, by, response, next_number, stamp } => {
                out.u8(4);
                out.u128(*request);
                out.u8(*outcome as u8);
                out.u8(u8::from(*runs));
                out.text(by);
                out.text(response);
                out.u64(*next_number);
                out.u64(*stamp as u64);
            }
            Record::Invoked { request, call, next_number, stamp } => {
                out.u8(5);
                out.u128(*request);
                out.text(call);
                out.u64(*next_number);
                out.u64(*stamp as u64);
            }
            Record::Completed { session, call } => {
                out.u8(6);
                out.text(session);
                out.text(call);
            }
            Record::Extended { request, event, stamp, timeout_seconds, next_number } => {
                out.u8(8);
                out.u128(*request);
                out.u128(*event);
                out.u64(*stamp as u64);
                out.u64(*timeout_seconds);
                out.u64(*next_number);
            }
            Record::Restarted { stamp } => {
                out.u8(9);
                out.u64(*stamp as u64);
            }
            Record::Ignored { by, reason } => {
                out.u8(7);
                out.text(by);
                out.u8(*reason);
            }
        }
        out.seal()
    }

    /// Reads one record from the start of `bytes`: its number, itself, and how long it is.
    pub fn decode(bytes: &[u8]) -> Result<(u64, Self, usize), Corrupt> {
        let head = bytes.first_chunk::<HEAD>().ok_or(Corrupt::Short)?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let checksum = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        let body = bytes.get(HEAD..).and_then(|rest| rest.get(..length)).ok_or(Corrupt::Short)?;
        if checksum_of(length as u32, body) != checksum {
            return Err(Corrupt::Checksum);
        }
        let mut input = In(body);
        let number = input.u64()?;
        let record = decode_body(&mut input)?;
        if !input.0.is_empty() {
            return Err(Corrupt::Unknown);
        }
        Ok((number, record, HEAD + length))
    }
}

/// The length is covered too: a changed length is a changed record.
fn checksum_of(length: u32, body: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&length.to_le_bytes());
    hasher.update(body);
    hasher.finalize()
}

fn encode_opened(opened: &Opened, out: &mut Out) {
    out.u8(1);
    for text in [&opened.session, &opened.agent, &opened.user, &opened.producer, &opened.language] {
        out.text(text);
    }
    out.u64(opened.lease_seconds);
    out.text(&opened.event);
    out.u64(opened.stamp as u64);
}

fn encode_asked(asked: &Asked, out: &mut Out) {
    out.u8(3);
    out.u128(asked.request);
    out.text(&asked.session);
    out.u8(u8::from(asked.confirmation));
    for text in [&asked.tool, &asked.arguments, &asked.event] {
        out.text(text);
    }
    out.u64(asked.stamp as u64);
    out.u64(asked.timeout_seconds);
    out.u8(u8::from(asked.default_accept));
    out.u8(u8::from(asked.irreversible));
    out.u64(asked.next_number);
}

fn decode_body(input: &mut In<'_>) -> Result<Record, Corrupt> {
    Ok(match input.u8()? {
        1 => Record::Opened(Opened {
            session: input.text()?,
            agent: input.text()?,
            user: input.text()?,
            producer: input.text()?,
            language: input.text()?,
            lease_seconds: input.u64()?,
            event: input.text()?,
            stamp: input.u64()? as i64,
        }),
        2 => Record::Ended { session: input.text()? },
        3 => Record::Asked(Asked {
            request: input.u128()?,
            session: input.text()?,
            confirmation: input.flag()?,
            tool: input.text()?,
            arguments: input.text()?,
            event: input.text()?,
            stamp: input.u64()? as i64,
            timeout_seconds: input.u64()?,
            default_accept: input.flag()?,
            irreversible: input.flag()?,
            next_number: input.u64()?,
        }),
        4 => Record::Resolved {
            request: input.u128()?,
            outcome: *Outcome::ALL.get(usize::from(input.u8()?)).ok_or(Corrupt::Unknown)?,
            runs: input.flag()?,
            by: input.text()?,
            response: input.text()?,
            next_number: input.u64()?,
            stamp: input.u64()? as i64,
        },
        5 => Record::Invoked {
            request: input.u128()?,
            call: input.text()?,
            next_number: input.u64()?,
            stamp: input.u64()? as i64,
        },
        6 => Record::Completed { session: input.text()?, call: input.text()? },
        9 => Record::Restarted { stamp: input.u64()? as i64 },
        7 => Record::Ignored { by: input.text()?, reason: input.u8()? },
        8 => Record::Extended {
            request: input.u128()?,
            event: input.u128()?,
            stamp: input.u64()? as i64,
            timeout_seconds: input.u64()?,
            next_number: input.u64()?,
        },
        _ => return Err(Corrupt::Unknown),
    })
}

struct Out(Vec<u8>);

impl Out {
    fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn u128(&mut self, value: u128) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        // Everything that gets here is bounded far below 4 GiB.
        self.0.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }

    fn seal(mut self) -> Vec<u8> {
        let length = (self.0.len() - HEAD) as u32;
        let checksum = checksum_of(length, &self.0[HEAD..]);
        self.0[..4].copy_from_slice(&length.to_le_bytes());
        self.0[4..HEAD].copy_from_slice(&checksum.to_le_bytes());
        self.0
    }
}

struct In<'a>(&'a [u8]);

impl In<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Corrupt> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(Corrupt::Unknown)?;
        self.0 = rest;
        Ok(*head)
    }

    fn u8(&mut self) -> Result<u8, Corrupt> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Result<bool, Corrupt> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Corrupt::Unknown),
        }
    }

    fn u64(&mut self) -> Result<u64, Corrupt> {
        self.take().map(u64::from_le_bytes)
    }

    fn u128(&mut self) -> Result<u128, Corrupt> {
        self.take().map(u128::from_le_bytes)
    }

    fn text(&mut self) -> Result<Arc<str>, Corrupt> {
        let length = self.take().map(u32::from_le_bytes)? as usize;
        let (text, rest) = self.0.split_at_checked(length).ok_or(Corrupt::Unknown)?;
        self.0 = rest;
        std::str::from_utf8(text).map(Arc::from).map_err(|_| Corrupt::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Record> {
        let text = |text: &str| Arc::<str>::from(text);
        vec![
            Record::Opened(Opened {
                session: text("sess_1"),
                agent: text("cook"),
                user: text("ann"),
                producer: text("{\"agent_id\":\"cook\"}"),
                language: text("en"),
                lease_seconds: 120,
                event: text("{}"),
                stamp: -5,
            }),
            Record::Ended { session: text("sess_1") },
            Record::Asked(Asked {
                request: 7,
                session: text("sess_1"),
                confirmation: true,
                tool: text("pay"),
                arguments: text("{\"amount\":\"5\"}"),
                event: text("{}"),
                stamp: 9,
                timeout_seconds: 300,
                default_accept: false,
                irreversible: true,
                next_number: 4,
            }),
            Record::Resolved {
                request: 7,
                outcome: Outcome::TimedOut,
                runs: false,
                by: text(""),
                response: text("67"),
                next_number: 6,
                stamp: 10,
            },
            Record::Invoked { request: 7, call: text("call_1"), next_number: 8, stamp: 11 },
            Record::Completed { session: text("sess_1"), call: text("call_1") },
            Record::Ignored { by: text("ann's phone"), reason: 3 },
            Record::Restarted { stamp: 13 },
            Record::Extended {
                request: 7,
                event: 8,
                stamp: 12,
                timeout_seconds: 600,
                next_number: 9,
            },
        ]
    }

    #[test]
    fn every_record_is_read_as_it_was_written() {
        for (number, record) in samples().into_iter().enumerate() {
            let bytes = record.encode(number as u64);
            assert_eq!(Record::decode(&bytes), Ok((number as u64, record, bytes.len())));
        }
    }

    // covers: I3
    #[test]
    fn a_flipped_bit_anywhere_is_noticed() {
        for record in samples() {
            let bytes = record.encode(1);
            for bit in 0..bytes.len() * 8 {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(Record::decode(&damaged).is_err(), "bit {bit} of {record:?}");
            }
        }
    }

    // covers: I3
    #[test]
    fn every_prefix_is_noticed() {
        for record in samples() {
            let bytes = record.encode(1);
            for length in 0..bytes.len() {
                assert_eq!(Record::decode(&bytes[..length]), Err(Corrupt::Short));
            }
        }
    }
}
