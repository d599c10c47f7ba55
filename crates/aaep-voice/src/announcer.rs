//! The policy: what is said next, what interrupts what, what is said again.
//!
//! A deterministic state machine. It is given utterances, the numbers of the requests that wait, what
//! became of what is being said, and the time; it reads no clock. The terminal, speech and braille
//! drive the same machine: in a terminal every utterance ends at once, a synthesizer reports when it
//! has spoken, a braille line is shown until it was read.
//!
//! - A request comes before an outcome, an outcome before a result, a result before progress. A request
//!   that was heard before and is read again comes after outcomes: what became of the last one is said
//!   before the next one.
//! - A request interrupts anything but another request, an outcome or an error. What was
//!   interrupted is continued later, from the sentence at which it was cut.
//! - While a request waits, chatter waits too. Of states and progress only the latest is kept.
//! - What somebody else cut is said again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::utterance::{Class, Utterance};

/// Utterances that wait at most; beyond that the oldest chatter is left out, and counted.
pub const MAX_QUEUED: usize = 1_000;

/// The rank of a request that was heard before: behind outcomes, before everything that is not urgent.
const READ_AGAIN: u8 = 2;

/// How often an utterance that somebody else cut is tried again.
const MAX_RETRIES: u8 = 3;

/// Milliseconds before it is tried again.
const RETRY_AFTER_MS: u64 = 300;

/// If a synthesizer does not report the end, an utterance is over after this long for each word
/// (60 words a minute), and
const MAX_MS_PER_WORD: u64 = 1_000;
/// this long besides.
const MAX_MS_BESIDES: u64 = 10_000;

/// Names an utterance while it is being said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub(crate) u64);

/// What the driver of a voice has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Say this now. It may begin in the middle of what was pushed.
    Say {
        /// To be given back in [`Announcer::reached`] and [`Announcer::ended`].
        id: Id,
        /// What to say.
        utterance: Utterance,
    },
    /// Stop what is being said.
    Stop,
}

/// How something that was being said came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was said to the end.
    Spoken,
    /// Somebody else cut it.
    Cut,
}

#[derive(Clone, Debug)]
struct Entry {
    utterance: Utterance,
    /// The first part that was not said yet.
    from: usize,
    retries: u8,
    not_before_ms: u64,
}

#[derive(Debug)]
struct Playing {
    id: Id,
    entry: Entry,
    over_at_ms: u64,
}

/// Decides what is said, and when.
#[derive(Debug, Default)]
pub struct Announcer {
    queue: VecDeque<Entry>,
    playing: Option<Playing>,
    stop: bool,
    open: BTreeSet<u32>,
    /// The open requests that were said to the end.
    heard: BTreeSet<u32>,
    held: bool,
    only: Option<&'static [Class]>,
    paused: bool,
    unavailable: bool,
    last_id: u64,
    left_out: u64,
    /// The last state and progress that was taken in, for each session.
    latest: BTreeMap<(Class, Option<Arc<str>>), Vec<crate::utterance::Part>>,
}

impl Announcer {
    /// Takes in an utterance.
    pub fn push(&mut self, utterance: Utterance) {
        if utterance.parts.is_empty() && utterance.line.is_empty() {
            return;
        }
        if utterance.class.is_replaced_by_newer() {
            let key = (utterance.class, utterance.session.clone());
            if self.latest.get(&key) == Some(&utterance.parts) {
                return;
            }
            if self.latest.len() >= MAX_QUEUED {
                self.latest.clear();
            }
            self.latest.insert(key, utterance.parts.clone());
            self.drop_outdated(utterance.session.as_ref(), |class| class == utterance.class);
        }
        if matches!(utterance.class, Class::End | Class::Error) && utterance.session.is_some() {
            self.drop_outdated(utterance.session.as_ref(), Class::is_replaced_by_newer);
            let session = &utterance.session;
            self.latest.retain(|(_, of), _| of != session);
        }
        if let Some(last) = self.queue.back_mut()
            && last.utterance.is_continued_by(&utterance)
        {
            last.utterance.parts.extend(utterance.parts);
            last.utterance.line.push('\n');
            last.utterance.line.push_str(&utterance.line);
            return;
        }
        if self.queue.len() >= MAX_QUEUED {
            self.make_room();
        }
        self.queue.push_back(Entry { utterance, from: 0, retries: 0, not_before_ms: 0 });
    }

    /// A request waits for the user.
    pub fn asked(&mut self, number: u32) {
        self.open.insert(number);
    }

    /// A request no longer waits for the user: it was answered, or settled. Its question is not
    /// asked any more.
    pub fn settled(&mut self, number: u32) {
        self.open.remove(&number);
        self.heard.remove(&number);
        let asks = |entry: &Entry| {
            matches!(entry.utterance.class, Class::Request | Class::Notice)
                && entry.utterance.request == Some(number)
        };
        self.queue.retain(|entry| !asks(entry));
        if self.playing.as_ref().is_some_and(|playing| asks(&playing.entry)) {
            self.cut();
        }
    }

    /// Whether a request waits.
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Lets everything but requests, outcomes, errors and feedback wait, or no longer: a user who types
    /// must not be talked to.
    pub fn hold(&mut self, hold: bool) {
        self.held = hold;
    }

    /// Lets everything but these classes wait, or nothing: they are all that may stand in front of a
    /// question on a display.
    pub fn only(&mut self, classes: Option<&'static [Class]>) {
        self.only = classes;
    }

    /// Everything that waits, in its order, to be said at once.
    pub fn drain(&mut self) -> impl Iterator<Item = Utterance> {
        std::mem::take(&mut self.queue).into_iter().map(|entry| entry.utterance)
    }

    /// What to do now; `None` until something comes in, or until [`Self::next_deadline`].
    pub fn poll(&mut self, now_ms: u64) -> Option<Action> {
        if std::mem::take(&mut self.stop) {
            return Some(Action::Stop);
        }
        // A retry that is due is no deadline any more, even where something else is said first.
        for entry in &mut self.queue {
            if entry.not_before_ms <= now_ms {
                entry.not_before_ms = 0;
            }
        }
        if self.unavailable {
            return None;
        }
        if self.playing.as_ref().is_some_and(|playing| playing.over_at_ms <= now_ms) {
            self.playing = None;
        }
        let next = self.next(now_ms)?;
        if let Some(playing) = &self.playing {
            let class = playing.entry.utterance.class;
            let is_new = self.rank(&self.queue[next].utterance) == 0;
            if !interrupts(self.queue[next].utterance.class, class, is_new) {
                return None;
            }
            let playing = self.playing.take()?;
            self.requeue(playing.entry);
            return Some(Action::Stop);
        }
        let entry = self.queue.remove(next)?;
        self.last_id += 1;
        let id = Id(self.last_id);
        let mut utterance = entry.utterance.clone();
        utterance.parts.drain(..entry.from);
        let words: usize =
            utterance.parts.iter().map(|part| 1 + part.text.split_whitespace().count()).sum();
        let words = u64::try_from(words).unwrap_or(u64::MAX);
        let over_at_ms = now_ms
            .saturating_add(MAX_MS_BESIDES)
            .saturating_add(words.saturating_mul(MAX_MS_PER_WORD));
        self.playing = Some(Playing { id, entry, over_at_ms });
        Some(Action::Say { id, utterance })
    }

    /// When [`Self::poll`] has to be called again, if nothing happens before.
    pub fn next_deadline(&self) -> Option<u64> {
        let retry = self.queue.iter().map(|entry| entry.not_before_ms).filter(|at| *at > 0).min();
        let over = self.playing.as_ref().map(|playing| playing.over_at_ms);
        retry.into_iter().chain(over).min()
    }

    /// The parts before this one were said, as counted in the utterance of [`Action::Say`].
    pub fn reached(&mut self, id: Id, part: usize, of_parts: usize) {
        if let Some(playing) = self.playing.as_mut().filter(|playing| playing.id == id) {
            let all = playing.entry.utterance.parts.len();
            playing.entry.from = (all.saturating_sub(of_parts) + part).min(all);
        }
    }

    /// What was being said has ended.
    pub fn ended(&mut self, id: Id, end: End, now_ms: u64) {
        if self.playing.as_ref().is_none_or(|playing| playing.id != id) {
            return;
        }
        let Some(mut playing) = self.playing.take() else { return };
        let Utterance { class, request, .. } = playing.entry.utterance;
        if end == End::Spoken && class == Class::Request {
            self.heard.extend(request.filter(|number| self.open.contains(number)));
        }
        if end == End::Cut && playing.entry.retries < MAX_RETRIES {
            playing.entry.retries += 1;
            playing.entry.not_before_ms = now_ms.saturating_add(RETRY_AFTER_MS);
            self.requeue(playing.entry);
        }
    }

    /// Nothing of this class that waits is said any more.
    pub fn forget(&mut self, class: Class) {
        self.queue.retain(|entry| entry.utterance.class != class);
    }

    /// It is still being said, and not over before this.
    pub fn goes_on(&mut self, id: Id, until_ms: u64) {
        if let Some(playing) = self.playing.as_mut().filter(|playing| playing.id == id) {
            playing.over_at_ms = playing.over_at_ms.max(until_ms);
        }
    }

    /// What was being said gives way to something more important, and is said again later.
    pub fn give_way(&mut self, id: Id) {
        if let Some(playing) = self.playing.take_if(|playing| playing.id == id) {
            self.requeue(playing.entry);
        }
    }

    /// The voice is gone: what was being said is kept.
    pub fn lost(&mut self) {
        self.unavailable = true;
        self.stop = false;
        if let Some(playing) = self.playing.take() {
            self.requeue(playing.entry);
        }
    }

    /// The voice is back.
    pub fn available(&mut self) {
        self.unavailable = false;
    }

    /// Whether one of these classes waits.
    pub fn has(&self, classes: &[Class]) -> bool {
        self.queue.iter().any(|entry| classes.contains(&entry.utterance.class))
    }

    /// Whether nothing is being said and nothing waits that could be said now.
    pub fn is_idle(&self, now_ms: u64) -> bool {
        self.playing.is_none() && !self.stop && self.next(now_ms).is_none()
    }

    /// The user wants silence: what is being said stops, and chatter that waits is forgotten.
    pub fn silence(&mut self) {
        self.cut();
        self.queue.retain(|entry| entry.utterance.class.is_urgent());
    }

    /// The user pressed a key that asks for something else: what is being said stops.
    pub fn interrupt(&mut self) {
        self.cut();
    }

    /// Goes on with the next sentence.
    pub fn skip(&mut self) {
        let Some(mut playing) = self.playing.take() else { return };
        self.stop = true;
        playing.entry.from += 1;
        if playing.entry.from < playing.entry.utterance.parts.len() {
            self.queue.push_front(playing.entry);
        }
    }

    /// Pauses, or goes on. A pause holds everything but requests, outcomes and errors. Returns
    /// whether it is paused now.
    pub fn pause(&mut self) -> bool {
        self.paused = !self.paused;
        if self.paused
            && let Some(playing) = self.playing.take()
        {
            self.stop = true;
            self.queue.push_front(playing.entry);
        }
        self.paused
    }

    /// How many utterances were left out since this was last asked, because too many waited.
    pub fn take_left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }

    /// What waits, in its order.
    pub fn waiting(&self) -> impl Iterator<Item = &Utterance> {
        self.queue.iter().map(|entry| &entry.utterance)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether no utterance waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Stops what is being said, for good.
    fn cut(&mut self) {
        if self.playing.take().is_some() {
            self.stop = true;
        }
    }

    /// Puts back what was cut. A request is asked again from its beginning: half a question is none.
    fn requeue(&mut self, mut entry: Entry) {
        let utterance = &entry.utterance;
        if utterance.class.is_replaced_by_newer()
            && self.queue.iter().any(|other| {
                other.utterance.class == utterance.class
                    && other.utterance.session == utterance.session
            })
        {
            return;
        }
        if utterance.class == Class::Request {
            entry.from = 0;
        }
        self.queue.push_front(entry);
    }

    /// What is of a lower rank is said first.
    fn rank(&self, utterance: &Utterance) -> u8 {
        let is_again = utterance.request.is_some_and(|number| self.heard.contains(&number));
        match utterance.class {
            Class::Request if is_again => READ_AGAIN,
            class => class.rank(),
        }
    }

    /// The place of what is said next.
    fn next(&self, now_ms: u64) -> Option<usize> {
        let mut blocked: BTreeSet<&Option<Arc<str>>> = BTreeSet::new();
        let mut best: Option<(u8, usize)> = None;
        for (at, entry) in self.queue.iter().enumerate() {
            let Utterance { class, session, .. } = &entry.utterance;
            let chatter = !class.is_urgent();
            // What belongs to one session keeps its order, even where some of it has to wait.
            let waits = class.is_chatter() && self.is_open()
                || chatter && (self.held || self.paused)
                || self.only.is_some_and(|only| !only.contains(class))
                || entry.not_before_ms > now_ms
                || chatter && session.is_some() && blocked.contains(session);
            if waits {
                blocked.insert(session);
                continue;
            }
            let rank = self.rank(&entry.utterance);
            if best.is_none_or(|(best, _)| rank < best) {
                best = Some((rank, at));
            }
        }
        best.map(|(_, at)| at)
    }

    fn drop_outdated(&mut self, session: Option<&Arc<str>>, outdated: impl Fn(Class) -> bool) {
        self.queue.retain(|entry| {
            entry.utterance.session.as_ref() != session || !outdated(entry.utterance.class)
        });
    }

    /// Leaves out the oldest of what matters least.
    fn make_room(&mut self) {
        let least = self.queue.iter().map(|entry| entry.utterance.class).max();
        let at = self.queue.iter().position(|entry| Some(entry.utterance.class) == least);
        if let Some(at) = at {
            self.queue.remove(at);
            self.left_out += 1;
        }
    }
}

/// Whether an utterance of one class cuts one of the other; a request also if it is new.
fn interrupts(new: Class, playing: Class, is_new: bool) -> bool {
    // A question, an outcome and an error are heard to the end. The end of a session, a result and
    // the agent's text wait for their turn.
    new.is_urgent() && !playing.is_urgent()
        || new == Class::Request && is_new && playing == Class::Feedback
}

#[cfg(test)]
mod tests;
