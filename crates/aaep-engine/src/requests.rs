//! All requests: by their numbers, by their tokens, and by when something is due for them.

use std::collections::BTreeSet;

use crate::clock::Boot;
use crate::ids::{RequestId, SessionKey, TokenNumber};
use crate::request::Request;
use crate::slab::{KeyIndex, Numbered, Slab, SlotIndex};

impl Numbered for Request {
    type Number = RequestId;

    fn number(&self) -> RequestId {
        self.number
    }
}

/// Timers of settled requests that are never looked for.
const SPARE_TIMERS: usize = 1024;

/// The requests.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    all: Slab<Request>,
    tokens: KeyIndex,
    /// When something is due: a countdown, or the end of a wait. The timer of a request that is
    /// resolved stays until its time comes or it is the first one, because looking for it among a
    /// million costs more than the whole rest of the resolution's bookkeeping.
    due: BTreeSet<(Boot, SlotIndex)>,
}

impl Requests {
    pub(crate) fn get(&self, number: &RequestId) -> Option<&Request> {
        self.all.get(number)
    }

    pub(crate) fn get_mut(&mut self, number: &RequestId) -> Option<&mut Request> {
        self.all.get_mut(number)
    }

    /// The request that a reply with this token concerns.
    pub(crate) fn by_token(&mut self, token: TokenNumber) -> Option<&Request> {
        let place = self.place_by_token(token)?;
        self.all.expect(place);
        self.all.at(place)
    }

    /// The same, to look at it only.
    pub(crate) fn peek_by_token(&self, token: TokenNumber) -> Option<&Request> {
        self.all.at(self.place_by_token(token)?)
    }

    /// The session of the request with this token.
    pub(crate) fn session_by_token(&self, token: TokenNumber) -> Option<SessionKey> {
        self.all.at(self.place_by_token(token)?).map(|request| request.session)
    }

    fn place_by_token(&self, token: TokenNumber) -> Option<SlotIndex> {
        self.tokens.find(token.bits(), |place| self.all.at(place).is_some_and(|r| r.token == token))
    }

    /// How many there are, their texts' bytes, those of their arguments, and how many timers are set.
    pub(crate) fn sizes(&self) -> (usize, usize, usize, usize) {
        let texts = self.all.iter().map(Request::text_bytes).sum();
        let arguments = self.all.iter().map(|request| request.arguments.len()).sum();
        (self.all.len(), texts, arguments, self.due.len())
    }

    /// Takes a request in, under its number and its token.
    pub(crate) fn insert(&mut self, request: Request) {
        let token = request.token;
        self.remove(&request.number);
        self.forget_token(token);
        let place = self.all.insert(request);
        self.tokens.insert(token.bits(), place);
    }

    /// Forgets a request; nothing finds it any more.
    pub(crate) fn remove(&mut self, number: &RequestId) {
        let Some(place) = self.all.place(*number) else { return };
        self.stop_timer(*number);
        if let Some(request) = self.all.remove(number) {
            self.tokens.remove(request.token.bits(), place);
        }
    }

    /// From now on a request is answered with another token; nothing finds it by the old one.
    pub(crate) fn change_token(&mut self, number: RequestId, token: TokenNumber) {
        self.forget_token(token);
        let Some(place) = self.all.place(number) else { return };
        let Some(request) = self.all.get_mut(&number) else { return };
        let old = std::mem::replace(&mut request.token, token);
        self.tokens.remove(old.bits(), place);
        self.tokens.insert(token.bits(), place);
    }

    /// No two requests have the same token; if they had, the newer one would count.
    fn forget_token(&mut self, token: TokenNumber) {
        if let Some(older) = self.place_by_token(token) {
            self.tokens.remove(token.bits(), older);
        }
    }

    /// Something will be due for a request when it says so.
    pub(crate) fn set_timer(&mut self, number: RequestId) {
        self.due.extend(self.timer(number));
        // Each request with a deadline has two timers at most; the rest were left behind.
        if self.due.len() > 4 * self.all.len() + SPARE_TIMERS {
            let all = &self.all;
            let wanted = |at: Boot, place| {
                let request: Option<&Request> = all.at(place);
                request.is_some_and(|r| r.status.has_deadline() && r.due() == at)
            };
            self.due.retain(|(at, place)| wanted(*at, *place));
        }
    }

    /// To be called before anything changes that the time depends on.
    pub(crate) fn stop_timer(&mut self, number: RequestId) {
        if let Some(timer) = self.timer(number) {
            self.due.remove(&timer);
            self.drop_idle_timers();
        }
    }

    fn timer(&self, number: RequestId) -> Option<(Boot, SlotIndex)> {
        let place = self.all.place(number)?;
        Some((self.all.at(place)?.due(), place))
    }

    /// The first timer is always that of a request with a deadline. To be called whenever one has none
    /// any more.
    pub(crate) fn drop_idle_timers(&mut self) {
        while let Some((_, place)) = self.due.first()
            && self.all.at(*place).is_none_or(|request| !request.status.has_deadline())
        {
            self.due.pop_first();
        }
    }

    /// When something is due next.
    pub(crate) fn next_due(&self) -> Option<Boot> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The request for which something is due first; its timer is gone.
    pub(crate) fn take_due(&mut self) -> Option<RequestId> {
        let (_, place) = self.due.pop_first()?;
        self.drop_idle_timers();
        self.all.expect(place);
        self.all.at(place).map(|request| request.number)
    }
}
