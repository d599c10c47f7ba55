//! A device that listens: what it asked for, how it reads, and what it makes of what it reads.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use aaep_shaping::Prepared;
use aaep_types::{EventId, EventKind, SessionId};

use crate::oracle::Oracle;
use crate::picture::{Picture, Way};
use crate::prose::Piece;
use crate::wants::Wants;
use crate::witness::Witness;

/// How fast somebody takes what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    Briskly,
    /// A few messages in each step.
    Slowly,
    /// Never: the connection is there, and nobody takes anything out.
    Never,
}

/// Something that was sent and not read yet.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) event: Arc<Prepared>,
    pub(crate) bytes: Arc<str>,
}

pub(crate) struct Client {
    pub(crate) principal: usize,
    pub(crate) wants: Wants,
    pub(crate) reads: Reads,
    /// Its subscription, by its place among the oracle's listeners.
    pub(crate) listener: Option<usize>,
    /// What its connection holds.
    pub(crate) outbox: VecDeque<Parcel>,
    /// Since when its connection takes nothing more.
    pub(crate) full_since: Option<u64>,
    /// The last event that it read.
    pub(crate) last: Option<EventId>,
    /// The requests that it read.
    pub(crate) asked: BTreeSet<EventId>,
    pub(crate) ear: Ear,
    /// What a person's program makes of it.
    pub(crate) picture: Option<Box<Picture>>,
}

impl Client {
    pub(crate) fn new(principal: usize) -> Self {
        Self {
            principal,
            wants: Wants::PLAIN,
            reads: Reads::Briskly,
            listener: None,
            outbox: VecDeque::new(),
            full_since: None,
            last: None,
            asked: BTreeSet::new(),
            ear: Ear::default(),
            picture: None,
        }
    }

    /// Each of its connections is a subscription of its own.
    pub(crate) fn is_link(&self) -> bool {
        self.picture.as_ref().is_some_and(|picture| picture.way == Way::Link)
    }

    /// Takes at most so many messages from the connection.
    pub(crate) fn read(&mut self, at_most: usize, oracle: &mut Oracle) {
        for _ in 0..at_most {
            let Some(parcel) = self.outbox.pop_front() else { return };
            let event = parcel.event.event_id();
            self.last = Some(event);
            if parcel.event.kind().is_some_and(asks) {
                self.asked.insert(event);
            }
            if let Some(picture) = &mut self.picture {
                picture.hear(&parcel.bytes, oracle.now);
            }
            self.ear.hear(&parcel, &self.wants, oracle);
        }
    }
}

fn asks(kind: EventKind) -> bool {
    matches!(kind, EventKind::AwaitingConfirmation | EventKind::AwaitingClarification)
}

/// What somebody has heard, as far as more can be expected because of it (I19).
#[derive(Default)]
pub(crate) struct Ear {
    /// Judges everything that is read.
    pub(crate) witness: Option<Witness>,
    /// Sessions that began before this output promise nothing.
    from: usize,
    /// The same for numbers: while a connection takes nothing, even a plain stream is merged (I22).
    numbers_from: usize,
    /// Sessions that were heard from their start without a gap.
    whole: BTreeSet<SessionId>,
    /// On a plain stream, the number that has to come next (D15).
    numbers: BTreeMap<SessionId, u64>,
    /// Where each output has to go on.
    texts: BTreeMap<(SessionId, u32), u64>,
    /// The text that was heard, for when it comes again.
    pieces: BTreeMap<EventId, Arc<str>>,
}

impl Ear {
    /// Something may be missing: what comes from now on is measured anew.
    pub(crate) fn begin_anew(&mut self, from: usize) {
        (self.from, self.numbers_from) = (from, from);
        self.whole.clear();
        self.numbers.clear();
        self.texts.clear();
        self.pieces.clear();
    }

    /// Another subscription is another stream (I19). There an id stands for its place in what was said,
    /// whatever was merged into that event where it was heard.
    pub(crate) fn listen_elsewhere(&mut self) {
        self.witness = self.witness.take().map(Witness::of_another_stream);
    }

    /// Numbers may be missing in sessions that began before this output.
    pub(crate) fn number_anew(&mut self, from: usize) {
        self.numbers_from = from;
        self.numbers.clear();
    }

    fn hear(&mut self, parcel: &Parcel, wants: &Wants, oracle: &mut Oracle) {
        if let Some(witness) = &mut self.witness {
            witness.judge(&parcel.bytes, oracle);
        }
        let event = &parcel.event;
        let session = event.session_id();
        if event.kind() == Some(EventKind::SessionStarted)
            && let Some(began) = oracle.began(session).filter(|began| *began >= self.from)
        {
            self.whole.insert(session);
            if wants.is_plain() && began >= self.numbers_from {
                self.numbers.entry(session).or_insert(0);
            }
        }
        let number = event.sequence_number().unwrap_or(0);
        if let Some(next) = self.numbers.get_mut(&session) {
            // What comes again has been heard; it need not be in its turn.
            oracle.demand(number <= *next, "I19", || format!("{next} was lost before {number}"));
            *next = (*next).max(number + 1);
        }
        if self.whole.contains(&session) && event.kind() == Some(EventKind::OutputStreaming) {
            let before = self.pieces.insert(event.event_id(), parcel.bytes.clone());
            // What comes again has the same id and says the same (H24).
            if before.is_none_or(|before| before != parcel.bytes) {
                self.hear_text(session, &parcel.bytes, oracle);
            }
        }
        if event.kind().is_some_and(EventKind::is_terminal) && self.whole.remove(&session) {
            self.numbers.remove(&session);
            self.check_texts(session, wants, oracle);
        }
    }

    fn hear_text(&mut self, session: SessionId, bytes: &str, oracle: &mut Oracle) {
        let Some(piece) = Piece::read(bytes) else {
            return oracle.violated("I19", "text that cannot be read".into());
        };
        let next = self.texts.entry((session, piece.output)).or_insert(0);
        oracle.demand(piece.position == *next, "I19", || {
            format!("text goes on at {}, not at {next}", piece.position)
        });
        oracle.demand(piece.is_what_was_written(), "I19", || "other text than was written".into());
        *next = piece.position + piece.length();
    }

    /// At the end of a session everything that was written has been heard.
    fn check_texts(&mut self, session: SessionId, wants: &Wants, oracle: &mut Oracle) {
        let Some(written) = oracle.sessions.get(&session).map(|s| s.written.clone()) else {
            return;
        };
        for (output, end) in written.into_iter().filter(|_| wants.hears_text()) {
            let heard = self.texts.remove(&(session, output)).unwrap_or(0);
            oracle.demand(heard == end, "I19", || {
                format!("of {end} characters only {heard} were heard")
            });
        }
    }
}
