//! Takes the messages of a stream one by one and tells sessions, replies and duplicates apart.

use std::collections::BTreeMap;

use aaep_types::json::Members;
use aaep_types::profile::Profile;
use aaep_types::{EventKind, LenientEvent, Limits, Message, Problem, Severity, rule};

use super::memory::{Digest, Memory, short};
use super::report::Report;
use super::requests::ValidReply;
use super::said::{self, Observed};
use super::secrets;
use super::session::Session;
use super::{Finding, Options, Weight};

/// Follows one subscriber's view of a stream and says what breaks the rules that span events.
///
/// Feed it every message in the order of arrival, then call [`Checker::finish`]. It keeps no more
/// than its [`Options`] and the bounds of this module allow, whatever it is given.
#[derive(Debug)]
pub struct Checker {
    options: Options,
    sessions: BTreeMap<String, Session>,
    /// Session ids that are used up.
    ended: Memory<()>,
    /// Event ids, with what the event was.
    seen: Memory<Digest>,
    /// Reply tokens, with the event that brought them.
    tokens: Memory<Digest>,
    /// What has to hold besides, and what it still waits for: session, rule, line.
    profile: Option<Profile>,
    owed: Vec<(String, usize, u64)>,
    crowded: bool,
    forgetful: bool,
}

/// Things that a profile waits for; more of them are not followed.
const MAX_OWED: usize = 1024;

impl Checker {
    /// A checker that has seen nothing yet.
    pub fn new(options: Options) -> Self {
        let memory = options.max_remembered;
        Self {
            options,
            sessions: BTreeMap::new(),
            ended: Memory::new(memory),
            seen: Memory::new(memory),
            tokens: Memory::new(memory),
            profile: None,
            owed: Vec::new(),
            crowded: false,
            forgetful: false,
        }
    }

    // enforces: X6, X9
    /// The same under a profile: its rules are checked like the protocol's own.
    pub fn under(self, profile: Profile) -> Self {
        Self { profile: Some(profile), ..self }
    }

    fn judge_profile(&mut self, heard: &LenientEvent<'_>, report: &mut Report<'_>) {
        let Some(profile) = &self.profile else { return };
        for rule in profile.broken_by(heard.as_json().as_bytes()) {
            report.error(rule::X9, format!("{} ({}, {})", rule.text, rule.id, profile.name));
        }
        let (session, name) = (short(heard.session_id()), heard.type_name());
        let follows = |rule: usize| profile.rules[rule].followed_by.as_deref() == Some(name);
        self.owed.retain(|(of, rule, _)| *of != session || !follows(*rule));
        for (place, _) in profile.asks_to_follow(heard.members()) {
            let known = self.owed.iter().any(|(of, rule, _)| *of == session && *rule == place);
            if !known && self.owed.len() < MAX_OWED {
                self.owed.push((session.clone(), place, report.line));
            }
        }
        if heard.kind().is_some_and(EventKind::is_terminal) {
            for (_, place, line) in self.owed.extract_if(.., |(of, ..)| *of == session) {
                let rule = &profile.rules[place];
                let text = format!(
                    "{} It did not follow line {line} ({}, {}).",
                    rule.text, rule.id, profile.name
                );
                report.error(rule::X9, text);
            }
        }
    }

    // enforces: X9
    /// Whether a producer that shows its manifest has the level and the extensions that the profile
    /// needs (§9.6).
    fn judge_manifest(&self, bytes: &[u8], report: &mut Report<'_>) {
        let Some(profile) = &self.profile else { return };
        for lacking in profile.lacking_in(bytes) {
            report.error(rule::X9, format!("{lacking} ({})", profile.name));
        }
    }

    /// Takes the next message: an event, a reply, or a message of the handshake. `line` is its
    /// place, from 1; what is found is added to `found`.
    pub fn message(&mut self, line: u64, bytes: &[u8], found: &mut Vec<Finding>) {
        match LenientEvent::parse(bytes) {
            Ok(heard) if !is_conversation(heard.type_name()) => self.event(line, &heard, found),
            _ => self.aside(line, bytes, found),
        }
    }

    /// The stream is over: what is still open is said.
    pub fn finish(self, found: &mut Vec<Finding>) {
        let mut open: Vec<_> = self.sessions.into_iter().collect();
        open.sort_by_key(|(_, session)| session.first_line);
        for (id, mut session) in open {
            let line = session.last_line;
            let session_id = Some(id.as_str());
            session.finish(&mut Report { line, event_id: None, session_id, found });
        }
    }

    fn event(&mut self, line: u64, heard: &LenientEvent<'_>, found: &mut Vec<Finding>) {
        let (event_id, session_id) = (Some(heard.event_id()), Some(heard.session_id()));
        let mut report = Report { line, event_id, session_id, found };
        if self.is_duplicate(heard, &mut report) {
            return;
        }
        judge_message(heard.deviations(), &mut report);
        secrets::judge(heard, &mut report);
        self.judge_profile(heard, &mut report);
        let said = Observed::read(heard);
        self.judge_token(&said, &mut report);
        let id = short(heard.session_id());
        if !self.open_session(&id, heard, &said, &mut report) {
            return;
        }
        let ends = matches!(said, Observed::Ended(_));
        if let Some(session) = self.sessions.get_mut(&id) {
            session.event(heard, said, &mut report);
        }
        if ends {
            self.sessions.remove(&id);
            let forgot = self.ended.insert(Digest::of(&[&id]), ());
            self.admit_forgetting(forgot, &mut report);
        }
    }

    /// §8.2.4: an event may arrive more than once; the first delivery counts. The same id on
    /// another event is no duplicate but a violation.
    fn is_duplicate(&mut self, heard: &LenientEvent<'_>, report: &mut Report<'_>) -> bool {
        let (event, identity) = (Digest::of(&[heard.event_id()]), said::identity(heard));
        match self.seen.find(&event) {
            Some(known) if *known == identity => return true,
            Some(_) => report.error(
                rule::E7,
                "Another event of this stream has the same `event_id`. Every event has its own.",
            ),
            None => {
                let session = self.sessions.get(&short(heard.session_id()));
                if session.is_some_and(|session| session.redelivers(event)) {
                    return true;
                }
            }
        }
        let forgot = self.seen.insert(event, identity);
        self.admit_forgetting(forgot, report);
        false
    }

    /// §6.2.2: a token is never used again, not even after its request was resolved.
    fn judge_token(&mut self, said: &Observed<'_>, report: &mut Report<'_>) {
        let Observed::Asked(ask) = said else { return };
        let Some(token) = &ask.token else { return };
        let key = Digest::of(&[token.as_str()]);
        if self.tokens.find(&key).is_some_and(|event| *event != ask.event) {
            report.error(
                rule::C6,
                "This request has the `reply_token` of an earlier one. Every request has its own.",
            );
        }
        let forgot = self.tokens.insert(key, ask.event);
        self.admit_forgetting(forgot, report);
    }

    /// Makes sure that the event's session is followed; false if the event belongs to none that is.
    fn open_session(
        &mut self,
        id: &str,
        heard: &LenientEvent<'_>,
        said: &Observed<'_>,
        report: &mut Report<'_>,
    ) -> bool {
        if self.sessions.contains_key(id) {
            return true;
        }
        let starts = matches!(said, Observed::Started);
        let key = Digest::of(&[id]);
        if self.ended.find(&key).is_some() {
            if !starts {
                report
                    .error(rule::T1, "This session has ended. Nothing of it comes after its end.");
                return false;
            }
            // Judged on as a session of its own, so that one mistake is one finding.
            report.error(
                rule::E8,
                "This session id belongs to a session that has ended. Every session has its own.",
            );
        } else if !starts && !self.crowded {
            self.report_missing_start(heard, report);
        }
        if self.sessions.len() >= self.options.max_sessions {
            self.admit_crowding(report);
            return false;
        }
        let session = Session::new(self.options.complete, !starts, report.line);
        self.sessions.insert(id.to_owned(), session);
        true
    }

    fn report_missing_start(&self, heard: &LenientEvent<'_>, report: &mut Report<'_>) {
        let surely = self.options.complete || heard.sequence_number() == Some(0);
        report.add(
            if surely { Weight::Error } else { Weight::Note },
            rule::T1,
            "The first event of this session here is not `session.started`. \
             A session begins with it.",
        );
    }

    /// A message that is no event.
    fn aside(&mut self, line: u64, bytes: &[u8], found: &mut Vec<Finding>) {
        let mut report = Report { line, event_id: None, session_id: None, found };
        let answer = match Message::parse(bytes) {
            Ok(Message::ConfirmationReply(reply)) => ValidReply {
                token: reply.reply_token,
                decision: Some(reply.decision),
                modified: reply.modified_action.is_some(),
                time: reply.timestamp.0,
            },
            Ok(Message::ClarificationReply(reply)) => ValidReply {
                token: reply.reply_token,
                decision: None,
                modified: false,
                time: reply.timestamp.0,
            },
            Ok(Message::Manifest(_)) => return self.judge_manifest(bytes, &mut report),
            Ok(_) => return,
            Err(_) if is_handshake(bytes) => return,
            Err(invalid) => return judge_message(&invalid.problems, &mut report),
        };
        self.answer(answer, report);
    }

    fn answer(&mut self, answer: ValidReply, mut report: Report<'_>) {
        let mut sessions = self.sessions.iter_mut();
        let known = sessions.find(|(_, session)| session.requests.knows(&answer.token));
        if let Some((id, session)) = known {
            let Report { line, found, .. } = report;
            let session_id = Some(id.as_str());
            return session.answer(answer, &mut Report { line, event_id: None, session_id, found });
        }
        let over = self.tokens.find(&Digest::of(&[answer.token.as_str()])).is_some();
        if over {
            report.note(
                rule::C13,
                "This reply answers a request that is over. It counts for nothing, and the \
                 producer has to ignore it.",
            );
        } else {
            report.note(
                rule::C11,
                "This reply answers a request that is not in this stream. It counts for nothing.",
            );
        }
    }

    fn admit_crowding(&mut self, report: &mut Report<'_>) {
        if !self.crowded {
            self.crowded = true;
            report.bound(format!(
                "More than {} sessions are open at a time. Further ones are not judged.",
                self.options.max_sessions
            ));
        }
    }

    fn admit_forgetting(&mut self, forgot: bool, report: &mut Report<'_>) {
        if forgot && !self.forgetful {
            self.forgetful = true;
            report.bound(format!(
                "Only the last {} ids of each kind are remembered. What repeats one from further \
                 back is not recognised.",
                self.options.max_remembered
            ));
        }
    }

    #[cfg(test)]
    pub(super) fn is_bounded(&self) -> bool {
        let memory = self.options.max_remembered;
        self.sessions.len() <= self.options.max_sessions
            && self.sessions.values().all(Session::is_bounded)
            && self.ended.len() <= memory
            && self.seen.len() <= memory
            && self.tokens.len() <= memory
    }
}

/// E27: a message that breaks a rule on its own is said once, with the first thing to change.
fn judge_message(problems: &[Problem], report: &mut Report<'_>) {
    // enforces: E27
    let first = problems.iter().find(|problem| problem.severity == Severity::Error);
    if let Some(problem) = first {
        report.error(problem.rule, format!("This message is invalid. {}", problem.text));
    }
}

/// Replies and the handshake, which carry no session.
fn is_conversation(type_name: &str) -> bool {
    is_handshake_name(type_name)
        || matches!(type_name, "confirmation.reply" | "clarification.reply")
}

/// Single messages of the handshake are `validate`'s business.
fn is_handshake_name(type_name: &str) -> bool {
    type_name.starts_with("subscription.") || type_name == "aaep:producer.manifest"
}

fn is_handshake(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Ok(Some(members)) = Members::whole(text, Limits::default().max_depth) else { return false };
    members.text("type").is_some_and(|name| is_handshake_name(&name))
}
