//! "For this session": a question to which the person said yes is not asked again, within bounds that
//! they agreed to.
//!
//! The hub decides, not a file. The person answers an ordinary request for consent, whose arguments say
//! what is no longer asked about, how often and until when; silence is a no. Once accepted it is a call
//! that goes on until the session ends or it is taken back, so a listener finds it among what is
//! going on. What is kept here only names that request: before each use the hub is asked whether it was
//! approved with exactly these arguments, and still goes on.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aaep_agent::{Agent, Confirmation, Irreversible, OpenCall, Parked, Session, Ticket};
use aaep_types::{RiskLevel, SessionId, Timestamp};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::act::{Judgment, Kind, shown};
use crate::host::{Call, Host};
use crate::memory::{Memory, Page, digest};
use crate::tools;

/// The tool under which an allowance goes on.
pub const TOOL: &str = "aaep.for_this_session";

/// How often an allowance can be used.
pub const TIMES: u32 = 20;

/// How long an allowance lasts at most.
pub const LASTS: Duration = Duration::from_secs(3600);

/// How many allowances one session can have.
const PER_SESSION: usize = 10;

/// How long the offer waits for an answer, in seconds.
const OFFERED_SECONDS: u32 = 600;

/// The yes after which it is offered.
const OFFERED_AFTER: u32 = 2;

/// How long the hub may take to say how things stand with an offer. One that still waits takes as long.
const LOOK: Duration = Duration::from_secs(1);

/// What counts as the same question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    /// A digest of everything that has to stay the same.
    key: String,
    /// The question, for people.
    words: String,
}

impl Class {
    /// The class of a call, if it is one that can be allowed for a session: the same command in the
    /// same directory, the same file, or the same arguments.
    ///
    /// What reaches keys or what asks the person, what runs unseen programs, and what nobody
    /// understands is asked every time.
    pub(crate) fn of(call: &Call, judgment: &Judgment, directory: &str) -> Option<Self> {
        let grantable = |kind| {
            matches!(
                kind,
                Kind::Unknown
                    | Kind::Ruled
                    | Kind::Outside
                    | Kind::Network
                    | Kind::Installs
                    | Kind::Publishes
                    | Kind::Deletes
            )
        };
        let kinds: Vec<_> =
            judgment.acts().iter().map(|act| act.kind).filter(|kind| kind.is_asked()).collect();
        if call.wants_permission || kinds.is_empty() || !kinds.iter().all(|kind| grantable(*kind)) {
            return None;
        }
        let same = tools::essence(&call.tool, &call.arguments).to_string();
        let key = digest(&[&call.tool, directory, &same, &format!("{kinds:?}")]);
        let mut words = judgment.action();
        if tools::is_writer(&call.tool) {
            words.push_str(" Whatever is written to it.");
        }
        Some(Self { key, words })
    }
}

/// What is kept of one class in one session.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    session: String,
    host: Host,
    words: String,
    yeses: u32,
    offer: Offer,
}

#[derive(Clone, Debug, PartialEq)]
enum Offer {
    None,
    /// The person said no to it, or to nothing for too long. It is not offered again.
    Declined,
    Made {
        ticket: String,
        until: i64,
        call: Option<String>,
        used: u32,
    },
}

impl Record {
    fn new(session: SessionId, host: Host, class: &Class) -> Self {
        let session = session.as_str().to_owned();
        Self { session, host, words: class.words.clone(), yeses: 0, offer: Offer::None }
    }

    pub(crate) fn to_json(&self) -> String {
        let offer = match &self.offer {
            Offer::None => Value::Null,
            Offer::Declined => json!("declined"),
            Offer::Made { ticket, until, call, used } => {
                json!({ "ticket": ticket, "until": until, "call": call, "used": used })
            }
        };
        json!({ "session": self.session, "host": self.host.id(), "words": self.words,
            "yeses": self.yeses, "offer": offer })
        .to_string()
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let text = |value: &Value, name: &str| Some(value.get(name)?.as_str()?.to_owned());
        let count = |value: &Value, name: &str| u32::try_from(value.get(name)?.as_u64()?).ok();
        let offer = match value.get("offer")? {
            Value::Null => Offer::None,
            Value::String(_) => Offer::Declined,
            made => Offer::Made {
                ticket: text(made, "ticket")?,
                until: made.get("until")?.as_i64()?,
                call: text(made, "call"),
                used: count(made, "used")?,
            },
        };
        Some(Self {
            session: text(&value, "session")?,
            host: Host::parse(value.get("host")?.as_str()?)?,
            words: text(&value, "words")?,
            yeses: count(&value, "yeses")?,
            offer,
        })
    }
}

/// The request to which the person says yes or no. Its arguments are what the yes is bound to.
fn request(key: &str, words: &str, until: i64) -> Confirmation<Irreversible> {
    let ends = Timestamp::from_millis(until.saturating_mul(1000));
    let ends = ends.map(|at| at.to_string()).unwrap_or_default();
    let arguments = json!({ "not_asked": words, "times": TIMES, "until": ends, "same": key });
    let minutes = LASTS.as_secs() / 60;
    Confirmation::irreversible(
        TOOL,
        format!("For this session, no longer ask before this: {words}"),
        format!("It is done without a question, up to {TIMES} times within {minutes} minutes; you hear each time."),
    )
    .risk(RiskLevel::High)
    .arguments(&arguments)
    .timeout_seconds(OFFERED_SECONDS)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Whether the question need not be asked. Says how often this was used, this time included.
pub(crate) async fn allowed(page: &Page, session: &Session, class: &Class) -> Option<u32> {
    let mut record = page.allowance(&class.key)?;
    let Offer::Made { ticket, until, call, used } = &mut record.offer else { return None };
    let over = record.session != session.id().as_str() || *until <= now() || *used >= TIMES;
    if over {
        let open = open_call(call.as_ref());
        page.forget_allowance(&class.key);
        // What has run out is said, if it is still this session's.
        if let Some(open) = open.filter(|_| record.session == session.id().as_str()) {
            let _ = session.take_up(open).succeed("You are asked again.").await;
        }
        return None;
    }
    let parsed: Ticket = ticket.parse().ok()?;
    let asked = request(&class.key, &record.words, *until);
    let parked = session.park_again(&parsed, (), asked).await.ok()?.rerun_if_begun();
    match decided(parked, session).await {
        Decided::Waits => None,
        Decided::Refused => {
            record.offer = Offer::Declined;
            let _ = page.keep_allowance(&class.key, &record);
            None
        }
        Decided::Approved(open) => {
            *call = Some(open.id);
            *used += 1;
            let used = *used;
            page.keep_allowance(&class.key, &record).ok()?;
            Some(used)
        }
    }
}

enum Decided {
    Waits,
    Refused,
    Approved(OpenCall),
}

async fn decided(parked: Parked<()>, session: &Session) -> Decided {
    match timeout(LOOK, parked.decision()).await {
        Err(_) => {
            parked.leave();
            Decided::Waits
        }
        // The hub could not be asked: nothing is known.
        Ok(Err(error)) if error.is_unavailable() => {
            parked.leave();
            Decided::Waits
        }
        Ok(Err(_)) => Decided::Refused,
        // The hub compares the arguments, and spends the yes once: later calls find the same call.
        Ok(Ok(approval)) => match session.invoke(parked, approval).await {
            Ok(((), call)) => Decided::Approved(call.leave()),
            Err(_) => Decided::Refused,
        },
    }
}

/// The person said yes. If they say it often, or want it so, they are offered not to be asked again;
/// nobody waits for their answer to that.
pub(crate) async fn said_yes(
    page: &Page,
    session: &Session,
    host: Host,
    class: &Class,
    wanted: bool,
) -> Option<()> {
    let known = page.allowance(&class.key).filter(|it| it.session == session.id().as_str());
    let mut record = known.unwrap_or_else(|| Record::new(session.id(), host, class));
    record.yeses = record.yeses.saturating_add(1);
    let due = record.offer == Offer::None && (wanted || record.yeses >= OFFERED_AFTER);
    if due && page.allowances().len() < PER_SESSION {
        let until = now().saturating_add(i64::try_from(LASTS.as_secs()).unwrap_or(0));
        let parked = session.park((), request(&class.key, &record.words, until)).await.ok()?;
        let ticket = parked.leave().to_string();
        record.offer = Offer::Made { ticket, until, call: None, used: 0 };
    }
    page.keep_allowance(&class.key, &record).ok()
}

/// Nothing is allowed beyond the session.
pub(crate) async fn end_all(page: &Page, session: &Session) {
    for (key, record) in page.allowances() {
        page.forget_allowance(&key);
        if record.session != session.id().as_str() {
            continue;
        }
        if let Offer::Made { call, .. } = &record.offer
            && let Some(open) = open_call(call.as_ref())
        {
            let _ = session.take_up(open).succeed("You are asked again.").await;
        }
    }
}

fn open_call(id: Option<&String>) -> Option<OpenCall> {
    id.map(|id| OpenCall { tool: TOOL.to_owned(), id: id.clone() })
}

/// Something that is not asked about at present.
#[derive(Clone, Debug)]
pub struct Allowed {
    /// The program.
    pub host: Host,
    /// The question that is not asked.
    pub words: String,
    /// How often it was used.
    pub used: u32,
    /// How long it lasts yet.
    pub left: Duration,
    page: String,
    key: String,
    ticket: Ticket,
    call: String,
}

impl Memory {
    /// Everything that is not asked about at present, as far as it is known here.
    pub fn allowed(&self) -> Vec<Allowed> {
        let known = |(page, key, record): (String, String, Record)| match record.offer {
            Offer::Made { ticket, until, call: Some(call), used } if used < TIMES => {
                let left =
                    u64::try_from(until.saturating_sub(now())).ok().filter(|left| *left > 0)?;
                Some(Allowed {
                    host: record.host,
                    words: shown_whole(&record.words),
                    used,
                    left: Duration::from_secs(left),
                    page,
                    key,
                    ticket: ticket.parse().ok()?,
                    call,
                })
            }
            _ => None,
        };
        self.all_allowances().into_iter().filter_map(known).collect()
    }

    /// Takes one back: from now on it is asked again, also if the hub cannot be told. Says whether the
    /// hub was.
    pub async fn take_back(&self, allowed: &Allowed, agent: Option<&Agent>) -> bool {
        self.forget_allowance(&allowed.page, &allowed.key);
        let Some(agent) = agent else { return false };
        let Ok(resumed) = agent.resume(&allowed.ticket).await else { return false };
        let open = OpenCall { tool: TOOL.to_owned(), id: allowed.call.clone() };
        let words = "Taken back: you are asked again.";
        let told = resumed.session.take_up(open).succeed(words).await.is_ok();
        resumed.session.leave();
        told
    }
}

/// Text from a file that others may have written.
fn shown_whole(text: &str) -> String {
    text.split(' ').map(shown).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::act::Act;

    fn class(tool: &str, arguments: Value, kinds: &[Kind]) -> Option<Class> {
        let acts = kinds.iter().map(|kind| Act::new(*kind, "Do it.")).collect();
        let call = Call { tool: tool.into(), arguments, id: None, wants_permission: false };
        Class::of(&call, &Judgment::of(acts), "/project")
    }

    #[test]
    fn what_is_grave_or_not_understood_is_asked_every_time() {
        let push = json!({ "command": "git push" });
        assert!(class("Bash", push.clone(), &[Kind::Publishes, Kind::Reads]).is_some());
        for kind in [
            Kind::Guard,
            Kind::Credentials,
            Kind::Downloads,
            Kind::System,
            Kind::Unclear,
            Kind::Reads,
        ] {
            assert_eq!(class("Bash", push.clone(), &[kind]), None, "{kind:?}");
        }
        assert_eq!(class("Bash", push.clone(), &[Kind::Publishes, Kind::Guard]), None);
    }

    #[test]
    fn the_same_is_the_same_command_file_or_arguments_and_nothing_else() {
        let of = |tool: &str, arguments: Value| class(tool, arguments, &[Kind::Outside]).unwrap();
        let push = of("Bash", json!({ "command": "git push", "description": "a" }));
        assert_eq!(push, of("Bash", json!({ "command": "git push", "description": "b" })));
        assert_ne!(push, of("Bash", json!({ "command": "git push -f", "description": "a" })));
        assert_ne!(push, of("Bash", json!({ "command": "git push", "workdir": "x" })));
        assert_ne!(
            push,
            class("Bash", json!({ "command": "git push" }), &[Kind::Deletes]).unwrap()
        );
        let write = of("Write", json!({ "file_path": "/x", "content": "a" }));
        assert_eq!(write, of("Write", json!({ "file_path": "/x", "content": "b" })));
        assert_ne!(write, of("Write", json!({ "file_path": "/y", "content": "a" })));
        let mcp = of("mcp__a__b", json!({ "x": 1 }));
        assert_ne!(mcp, of("mcp__a__b", json!({ "x": 2 })));
    }

    #[test]
    fn a_record_is_read_back_and_nothing_else_is_one() {
        let class = class("Bash", json!({ "command": "git push" }), &[Kind::Publishes]).unwrap();
        let mut record = Record::new(SessionId::parse("sess_1").unwrap(), Host::Claude, &class);
        for offer in [
            Offer::None,
            Offer::Declined,
            Offer::Made { ticket: "t".into(), until: 7, call: None, used: 3 },
        ] {
            record.offer = offer;
            assert_eq!(Record::parse(&record.to_json()), Some(record.clone()));
        }
        for text in ["", "{}", "[]", r#"{"session":1}"#] {
            assert_eq!(Record::parse(text), None);
        }
    }
}
