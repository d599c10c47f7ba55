//! Records as bytes: `length (4) · checksum (4) · number (8) · kind (1) · fields`, little-endian,
//! texts with their length before them.

use aaep_types::Presence;
use std::sync::Arc;

use crate::ids::{EventNumber, RequestId};
use crate::record::{Asked, Corrupt, Erasure, Opened, Outcome, Record, RecordedEvents};

const HEAD: usize = 8;
/// A question, and one with the account of its action, which older journals do not have.
const ASKED: u8 = 3;
const ASKED_WITH_ACCOUNT: u8 = 13;
/// A resolution, and one with what its reply says of itself.
const RESOLVED: u8 = 4;
const RESOLVED_WITH_REPLY: u8 = 14;
/// The same two with presence: what is needed, and what was shown.
const ASKED_WITH_PRESENCE: u8 = 17;
const RESOLVED_WITH_PRESENCE: u8 = 18;
const ERASED: u8 = 32;
/// What a record usually has beside its longer texts.
const USUAL: usize = 192;

impl Record {
    /// The record as bytes, under its number.
    pub fn encode(&self, number: u64) -> Vec<u8> {
        let mut out = Out(Vec::with_capacity(self.room()));
        out.0.extend([0; HEAD]);
        out.u64(number);
        match self {
            Record::Opened(opened) => encode_opened(opened, &mut out),
            Record::Ended { session, said } => {
                out.u8(2);
                out.text(session);
                out.said(said);
            }
            Record::Asked(asked) => encode_asked(asked, &mut out),
            Record::Resolved {
                request,
                outcome,
                runs,
                by,
                response,
                reply,
                presence,
                assertion,
                said,
            } => {
                let present = *presence != Presence::None;
                out.u8(match (present, reply.is_empty()) {
                    (true, _) => RESOLVED_WITH_PRESENCE,
                    (false, true) => RESOLVED,
                    (false, false) => RESOLVED_WITH_REPLY,
                });
                out.u128(request.bits());
                out.u8(*outcome as u8);
                out.u8(u8::from(*runs));
                out.text(by);
                out.text(response);
                if present || !reply.is_empty() {
                    out.text(reply);
                }
                if present {
                    out.u8(*presence as u8);
                    out.bytes(assertion);
                }
                out.said(said);
            }
            Record::Invoked { request, call, said } => {
                out.u8(5);
                out.u128(request.bits());
                out.text(call);
                out.said(said);
            }
            Record::Expired { request, said } => {
                out.u8(12);
                out.u128(request.bits());
                out.said(said);
            }
            Record::Called { session, call, tool, said } => {
                out.u8(10);
                out.text(session);
                out.text(call);
                out.text(tool);
                out.said(said);
            }
            Record::Completed { session, call, known, said } => {
                out.u8(6);
                out.text(session);
                out.text(call);
                out.u8(u8::from(*known));
                out.said(said);
            }
            Record::Extended { request, event, timeout_seconds, said } => {
                out.u8(8);
                out.u128(request.bits());
                out.u128(event.bits());
                out.u64(*timeout_seconds);
                out.said(said);
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
            Record::Claimed { agent, user, id } => {
                out.u8(15);
                [agent, user, id].into_iter().for_each(|text| out.text(text));
            }
            Record::Administered { by, act, what, to } => {
                out.u8(40);
                [by, act, what, to].into_iter().for_each(|text| out.text(text));
            }
            Record::Owed { session, rules } => {
                out.u8(16);
                out.text(session);
                out.texts(rules);
            }
            Record::Erased { why, note, runs } => {
                out.u8(ERASED);
                out.u8(*why as u8);
                out.text(note);
                out.runs(runs);
            }
            Record::Flooded { by, replies, ignored } => {
                out.u8(11);
                out.text(by);
                out.u64(*replies);
                out.u64(*ignored);
            }
        }
        out.seal()
    }

    /// About how long it will be, so that it is written in one piece.
    fn room(&self) -> usize {
        let (said, texts) = match self {
            Record::Opened(opened) => (None, opened.producer.len() + opened.event.len()),
            Record::Asked(asked) => {
                let texts = asked.arguments.len() + asked.event.len() + asked.account.len();
                (Some(&asked.said), texts)
            }
            Record::Resolved { response, reply, assertion, said, .. } => {
                (Some(said), response.len() + reply.len() + assertion.len())
            }
            Record::Ended { said, .. }
            | Record::Invoked { said, .. }
            | Record::Expired { said, .. }
            | Record::Called { said, .. }
            | Record::Completed { said, .. }
            | Record::Extended { said, .. } => (Some(said), 0),
            Record::Restarted { .. }
            | Record::Ignored { .. }
            | Record::Flooded { .. }
            | Record::Claimed { .. }
            | Record::Administered { .. }
            | Record::Owed { .. } => (None, 0),
            Record::Erased { note, runs, .. } => (None, note.len() + 4 * runs.len()),
        };
        let events = said.iter().flat_map(|said| &said.events).map(|event| event.len() + 4);
        USUAL + texts + events.sum::<usize>()
    }

    /// Whether these bytes are those of a [`Record::Erased`], if they are a record.
    pub fn is_erasure(bytes: &[u8]) -> bool {
        bytes.get(HEAD + 8) == Some(&ERASED)
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
    let needs = asked.needs != Presence::None;
    out.u8(match (needs, asked.account.is_empty()) {
        (true, _) => ASKED_WITH_PRESENCE,
        (false, true) => ASKED,
        (false, false) => ASKED_WITH_ACCOUNT,
    });
    out.u128(asked.request.bits());
    out.text(&asked.session);
    out.u8(u8::from(asked.confirmation));
    for text in [&asked.tool, &asked.arguments, &asked.event] {
        out.text(text);
    }
    out.u64(asked.stamp as u64);
    out.u64(asked.timeout_seconds);
    out.u8(u8::from(asked.default_accept));
    out.u8(u8::from(asked.irreversible));
    if needs || !asked.account.is_empty() {
        out.text(&asked.account);
    }
    if needs {
        out.u8(asked.needs as u8);
    }
    out.said(&asked.said);
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
        2 => Record::Ended { session: input.text()?, said: input.said()? },
        kind @ (ASKED | ASKED_WITH_ACCOUNT | ASKED_WITH_PRESENCE) => Record::Asked(Asked {
            request: RequestId::from_bits(input.u128()?),
            session: input.text()?,
            confirmation: input.flag()?,
            tool: input.text()?,
            arguments: input.text()?,
            event: input.text()?,
            stamp: input.u64()? as i64,
            timeout_seconds: input.u64()?,
            default_accept: input.flag()?,
            irreversible: input.flag()?,
            account: if kind == ASKED { "".into() } else { input.text()? },
            needs: if kind == ASKED_WITH_PRESENCE { input.presence()? } else { Presence::None },
            said: input.said()?,
        }),
        kind @ (RESOLVED | RESOLVED_WITH_REPLY | RESOLVED_WITH_PRESENCE) => Record::Resolved {
            request: RequestId::from_bits(input.u128()?),
            outcome: *Outcome::ALL.get(usize::from(input.u8()?)).ok_or(Corrupt::Unknown)?,
            runs: input.flag()?,
            by: input.text()?,
            response: input.text()?,
            reply: if kind == RESOLVED { "".into() } else { input.text()? },
            presence: match kind {
                RESOLVED_WITH_PRESENCE => input.presence()?,
                _ => Presence::None,
            },
            assertion: match kind {
                RESOLVED_WITH_PRESENCE => input.bytes()?.into(),
                _ => Arc::default(),
            },
            said: input.said()?,
        },
        5 => Record::Invoked {
            request: RequestId::from_bits(input.u128()?),
            call: input.text()?,
            said: input.said()?,
        },
        6 => Record::Completed {
            session: input.text()?,
            call: input.text()?,
            known: input.flag()?,
            said: input.said()?,
        },
        9 => Record::Restarted { stamp: input.u64()? as i64 },
        7 => Record::Ignored { by: input.text()?, reason: input.u8()? },
        12 => Record::Expired { request: RequestId::from_bits(input.u128()?), said: input.said()? },
        11 => Record::Flooded { by: input.text()?, replies: input.u64()?, ignored: input.u64()? },
        15 => Record::Claimed { agent: input.text()?, user: input.text()?, id: input.text()? },
        40 => Record::Administered {
            by: input.text()?,
            act: input.text()?,
            what: input.text()?,
            to: input.text()?,
        },
        16 => Record::Owed { session: input.text()?, rules: input.texts()? },
        ERASED => {
            let why = *Erasure::ALL.get(usize::from(input.u8()?)).ok_or(Corrupt::Unknown)?;
            Record::Erased { why, note: input.text()?, runs: input.runs()? }
        }
        8 => Record::Extended {
            request: RequestId::from_bits(input.u128()?),
            event: EventNumber::from_bits(input.u128()?),
            timeout_seconds: input.u64()?,
            said: input.said()?,
        },
        10 => Record::Called {
            session: input.text()?,
            call: input.text()?,
            tool: input.text()?,
            said: input.said()?,
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
        self.bytes(text.as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        // Everything that gets here is bounded far below 4 GiB.
        self.0.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    fn texts(&mut self, texts: &[Arc<str>]) {
        self.0.extend_from_slice(&(texts.len() as u32).to_le_bytes());
        texts.iter().for_each(|text| self.text(text));
    }

    /// Seven bits in a byte, the least first; the highest bit says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8);
    }

    /// How far each run begins after the one before, and how much longer than one it is.
    fn runs(&mut self, runs: &[(u64, u64)]) {
        self.varint(runs.len() as u64);
        let mut end = 0;
        for (first, last) in runs {
            self.varint(first - end);
            self.varint(last - first);
            end = *last;
        }
    }

    fn said(&mut self, said: &RecordedEvents) {
        self.u64(said.told);
        self.u64(said.next_number);
        self.u64(said.stamp as u64);
        // A record makes a handful of events; the end of a session a few hundred.
        self.texts(&said.events);
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

impl<'a> In<'a> {
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

    fn bytes(&mut self) -> Result<&'a [u8], Corrupt> {
        let length = self.take().map(u32::from_le_bytes)? as usize;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Corrupt::Unknown)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn text(&mut self) -> Result<Arc<str>, Corrupt> {
        std::str::from_utf8(self.bytes()?).map(Arc::from).map_err(|_| Corrupt::Unknown)
    }

    fn presence(&mut self) -> Result<Presence, Corrupt> {
        Presence::ALL.get(usize::from(self.u8()?)).copied().ok_or(Corrupt::Unknown)
    }

    fn texts(&mut self) -> Result<Vec<Arc<str>>, Corrupt> {
        let count = self.take().map(u32::from_le_bytes)?;
        // The count is believed only as far as there are texts.
        (0..count).map(|_| self.text()).collect()
    }

    fn varint(&mut self) -> Result<u64, Corrupt> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return Err(Corrupt::Unknown);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Corrupt::Unknown)
    }

    fn runs(&mut self) -> Result<Vec<(u64, u64)>, Corrupt> {
        let count = self.varint()?;
        let mut end = 0_u64;
        let mut run = || {
            let (apart, longer) = (self.varint()?, self.varint()?);
            let first = end.checked_add(apart).filter(|_| apart > 0).ok_or(Corrupt::Unknown)?;
            end = first.checked_add(longer).ok_or(Corrupt::Unknown)?;
            Ok((first, end))
        };
        (0..count).map(|_| run()).collect()
    }

    fn said(&mut self) -> Result<RecordedEvents, Corrupt> {
        let (told, next_number, stamp) = (self.u64()?, self.u64()?, self.u64()? as i64);
        Ok(RecordedEvents { told, next_number, stamp, events: self.texts()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Record> {
        let text = |text: &str| Arc::<str>::from(text);
        let said = || RecordedEvents {
            told: 3,
            next_number: 6,
            stamp: -10,
            events: vec![text("{}"), text("{\"a\":1}")],
        };
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
            Record::Ended { session: text("sess_1"), said: RecordedEvents::default() },
            Record::Asked(Asked {
                request: RequestId::from_bits(7),
                session: text("sess_1"),
                confirmation: true,
                tool: text("pay"),
                arguments: text("{\"amount\":\"5\"}"),
                event: text("{}"),
                stamp: 9,
                timeout_seconds: 300,
                default_accept: false,
                irreversible: true,
                account: text(""),
                needs: Presence::None,
                said: said(),
            }),
            Record::Asked(Asked {
                request: RequestId::from_bits(7),
                session: text("sess_1"),
                confirmation: true,
                tool: text("pay"),
                arguments: text("{\"amount\":\"5\"}"),
                event: text("{}"),
                stamp: 9,
                timeout_seconds: 300,
                default_accept: false,
                irreversible: true,
                account: text("{\"tool\":\"pay\"}"),
                needs: Presence::None,
                said: said(),
            }),
            Record::Asked(Asked {
                request: RequestId::from_bits(7),
                session: text("sess_1"),
                confirmation: true,
                tool: text("pay"),
                arguments: text("{}"),
                event: text("{}"),
                stamp: 9,
                timeout_seconds: 300,
                default_accept: false,
                irreversible: true,
                account: text(""),
                needs: Presence::Pin,
                said: said(),
            }),
            Record::Resolved {
                request: RequestId::from_bits(7),
                outcome: Outcome::TimedOut,
                runs: false,
                by: text(""),
                response: text("67"),
                reply: text(""),
                presence: Presence::None,
                assertion: Arc::default(),
                said: said(),
            },
            Record::Resolved {
                request: RequestId::from_bits(7),
                outcome: Outcome::Accepted,
                runs: true,
                by: text("ann"),
                response: text(""),
                reply: text(""),
                presence: Presence::Passkey,
                assertion: Arc::from([0, 255, 7]),
                said: said(),
            },
            Record::Resolved {
                request: RequestId::from_bits(7),
                outcome: Outcome::TimedOut,
                runs: false,
                by: text(""),
                response: text("67"),
                reply: text("{\"decided_by\":\"Ann\"}"),
                presence: Presence::None,
                assertion: Arc::default(),
                said: said(),
            },
            Record::Invoked {
                request: RequestId::from_bits(7),
                call: text("call_1"),
                said: said(),
            },
            Record::Called {
                session: text("sess_1"),
                call: text("call_2"),
                tool: text("look"),
                said: said(),
            },
            Record::Completed {
                session: text("sess_1"),
                call: text("call_1"),
                known: true,
                said: said(),
            },
            Record::Ignored { by: text("ann's phone"), reason: 3 },
            Record::Expired { request: RequestId::from_bits(7), said: said() },
            Record::Flooded { by: text("ann's phone"), replies: 400, ignored: 399 },
            Record::Restarted { stamp: 13 },
            Record::Claimed { agent: text("helper"), user: text("ann"), id: text("cook-2") },
            Record::Erased {
                why: Erasure::Person,
                note: text("request 7"),
                runs: vec![(1, 1), (3, 300), (70_000, u64::MAX)],
            },
            Record::Administered {
                by: text("boss"),
                act: text("handed_over"),
                what: text("cook"),
                to: text("kitchen of ann"),
            },
            Record::Owed { session: text("sess_1"), rules: vec![text("MED3"), text("MED4")] },
            Record::Extended {
                request: RequestId::from_bits(7),
                event: EventNumber::from_bits(8),
                timeout_seconds: 600,
                said: said(),
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
    fn what_has_no_presence_is_written_as_it_was_before_there_was_any() {
        let kinds: Vec<u8> = samples().iter().map(|record| record.encode(1)[HEAD + 8]).collect();
        for kind in [ASKED, ASKED_WITH_ACCOUNT, RESOLVED, RESOLVED_WITH_REPLY] {
            assert!(kinds.contains(&kind), "{kind}");
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
