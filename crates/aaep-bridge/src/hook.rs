//! What happens when a program calls its hook: the person is told, or asked, and the program gets its
//! answer.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use aaep_agent::{
    Agent, Confirmation, Error, Kind, NotApproved, Producer, Progress, Session, ToolStatus, Words,
};
use aaep_policy::Policy;
use aaep_types::Reversibility;
use tokio::time::{Instant, timeout_at};

use crate::act::{Judgment, shown};
use crate::allowance::{self, Class, TIMES};
use crate::host::{Call, Event, HookAnswer, Host, Incoming};
use crate::memory::{Memory, Page, digest};
use crate::place::Scene;
use crate::tools;

/// How long a session lives without a sign of the program. A tool may run for that long.
const LEASE_SECONDS: u32 = 3600;

/// How long a hub that went away while somebody was asked is waited for.
const HUB_COMES_BACK: Duration = Duration::from_secs(20);

/// The largest arguments that people are asked about, in bytes: the hub takes no more.
const MAX_ASKED_BYTES: usize = 512 * 1024;

/// The largest arguments that are sent along where nobody is asked, in bytes.
const MAX_TOLD_BYTES: usize = 512 * 1024;

/// The longest last word of an agent that is passed on, in characters.
const LAST_WORDS: usize = 32 * 1024;

/// What a yes says of itself to be offered that the same is not asked again in this session.
pub const FOR_THIS_SESSION: &str = "for this session";

/// What a no says of itself to have the program ask in its own dialog.
pub const ASK_THERE: &str = "ask there";

/// What a hook works with.
#[derive(Clone, Debug)]
pub struct Desk {
    /// What one call leaves for the next.
    pub memory: Memory,
    /// The person's home directory.
    pub home: Option<PathBuf>,
    /// The person's own rules, on top of the built-in ones. An empty one changes nothing.
    pub policy: Policy,
    /// When the answer has to be there.
    pub deadline: Instant,
}

/// The producer of a program's sessions.
pub fn producer(host: Host) -> Producer {
    Producer::new(host.id()).name(host.name())
}

impl Desk {
    /// Deals with one call. Whatever goes wrong before a tool is a "no".
    pub async fn handle(&self, incoming: &Incoming, agent: &Agent) -> HookAnswer {
        match &incoming.event {
            Event::Before(call) => match self.before(incoming, call, agent).await {
                Ok(answer) => answer,
                Err(why) => HookAnswer::Deny(why.to_string()),
            },
            _ => {
                // What cannot be told is no reason to hold the program up.
                let _ = self.told(incoming, agent).await;
                HookAnswer::Pass
            }
        }
    }

    async fn before(
        &self,
        incoming: &Incoming,
        call: &Call,
        agent: &Agent,
    ) -> Result<HookAnswer, Trouble> {
        let scene = Scene::new(&incoming.directory, self.home.clone());
        let judgment = tools::judge(&call.tool, &call.arguments, &incoming.directory, &scene);
        let judgment = judgment.under(&self.policy.decide(&call.tool, &call.arguments.to_string()));
        let session = self.session(incoming, agent, None).await?;
        let class = Class::of(call, &judgment, &incoming.directory.to_string_lossy());
        let step = Step { desk: self, incoming, call, judgment, class, session: &session, agent };
        let answer = match step.judgment.is_asked() || call.wants_permission {
            true => match step.allowed().await {
                Some(answer) => Ok(answer),
                None => step.ask().await,
            },
            false => match step.tell("").await {
                // A policy of the hub wants it asked.
                Err(Trouble::Hub(Error::Refused(refused))) if refused.status == 409 => {
                    step.ask().await
                }
                told => told.map(|()| HookAnswer::Pass),
            },
        };
        session.leave();
        answer
    }

    /// Everything that is only told.
    async fn told(&self, incoming: &Incoming, agent: &Agent) -> Result<(), Trouble> {
        let name = incoming.host.name();
        match &incoming.event {
            Event::Prompt(prompt) => {
                let about = format!("{name}: {}", shown(prompt));
                self.session(incoming, agent, Some(about)).await?.leave();
            }
            Event::After { call, well } => {
                if let Some(id) = &call.id {
                    self.memory.forget_yes(id, &call.arguments);
                }
                let Some(open) = self.page(incoming)?.take_call(&name_of(call)) else {
                    return Ok(());
                };
                let session = self.session(incoming, agent, None).await?;
                let (status, end) = match well {
                    true => (ToolStatus::Success, "is done"),
                    false => (ToolStatus::Error, "failed"),
                };
                let words = format!("{} {end}.", shown(&call.tool));
                let said = session.take_up(open).complete(status, words).await;
                session.leave();
                said?;
            }
            Event::Note(text) if !text.is_empty() => match self.current(incoming, agent).await? {
                Some(session) => {
                    let said = session.progress(Progress::described(shown(text))).await;
                    session.leave();
                    said?;
                }
                None => self.in_passing(incoming, agent, shown(text)).await?,
            },
            Event::Stopped(text) => {
                let session = self.session(incoming, agent, None).await?;
                // enforces: L6
                let text = aaep_types::cut(text, LAST_WORDS);
                if !text.trim().is_empty() {
                    let mut output = session.output()?;
                    output.write(text).await?;
                    output.finish().await?;
                }
                let page = self.page(incoming)?;
                page.forget_ticket();
                allowance::end_all(&page, &session).await;
                session.complete(format!("{name} is done.")).await?;
            }
            Event::Started => {
                self.in_passing(incoming, agent, format!("{name} has started.")).await?;
            }
            Event::Ended => {
                let words = format!("{name} has ended.");
                let Some(session) = self.current(incoming, agent).await? else {
                    return self.in_passing(incoming, agent, words).await;
                };
                let page = self.page(incoming)?;
                page.forget_ticket();
                allowance::end_all(&page, &session).await;
                session.complete(words).await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The session of what the person asked for last, if it goes on.
    async fn current(
        &self,
        incoming: &Incoming,
        agent: &Agent,
    ) -> Result<Option<Session>, Trouble> {
        resumed(&self.page(incoming)?, agent).await
    }

    /// Says something while the agent works on nothing: a session that is over at once.
    async fn in_passing(
        &self,
        incoming: &Incoming,
        agent: &Agent,
        words: String,
    ) -> Result<(), Trouble> {
        let about = format!("{} in {}.", incoming.host.name(), place(incoming));
        let session = agent.session(about).open().await?;
        Ok(session.complete(words).await?)
    }

    /// The session of what the person asked for last, or a new one. A new wish begins a new session.
    async fn session(
        &self,
        incoming: &Incoming,
        agent: &Agent,
        wish: Option<String>,
    ) -> Result<Session, Trouble> {
        let page = self.page(incoming)?;
        if let Some(session) = resumed(&page, agent).await? {
            if wish.is_none() {
                return Ok(session);
            }
            let words = format!("{} begins something else.", incoming.host.name());
            allowance::end_all(&page, &session).await;
            session.complete(words).await?;
        }
        self.memory.tidy(SystemTime::now());
        let about = wish
            .unwrap_or_else(|| format!("{} works in {}.", incoming.host.name(), place(incoming)));
        let session = agent.session(about).lease_seconds(LEASE_SECONDS).open().await?;
        page.keep_ticket(&session.ticket())?;
        Ok(session)
    }

    fn page(&self, incoming: &Incoming) -> Result<Page, Trouble> {
        Ok(self.memory.page(incoming.host.id(), &incoming.session)?)
    }
}

/// The session that an earlier call left, if it goes on.
async fn resumed(page: &Page, agent: &Agent) -> Result<Option<Session>, Trouble> {
    let Some(ticket) = page.ticket() else { return Ok(None) };
    match agent.resume(ticket).await {
        Ok(resumed) => Ok(Some(resumed.session)),
        // It ended, or another hub had it.
        Err(Error::SessionOver | Error::Refused(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The directory in which the program works, by its last name.
fn place(incoming: &Incoming) -> String {
    let name = incoming.directory.file_name().map(|name| name.to_string_lossy());
    shown(&name.unwrap_or_else(|| "/".into()))
}

/// One tool that is about to run.
struct Step<'a> {
    desk: &'a Desk,
    incoming: &'a Incoming,
    call: &'a Call,
    judgment: Judgment,
    class: Option<Class>,
    session: &'a Session,
    agent: &'a Agent,
}

impl Step<'_> {
    /// Says that it runs.
    async fn tell(&self, why: &str) -> Result<(), Trouble> {
        let action = self.judgment.action();
        let mut words = Words::new(format!("{action}{why}"));
        if let Some(lines) = tools::lines(&self.call.tool, &self.call.arguments) {
            words = words.detailed(format!("{action}{why} {lines}"));
        }
        let mut tool = self.session.tool(&self.call.tool).summary(words).risk(self.judgment.risk());
        let arguments = self.call.arguments.to_string();
        if arguments.len() <= MAX_TOLD_BYTES {
            tool = tool.arguments_json(arguments);
        }
        let running = tool.begin().await?;
        self.runs(running).await
    }

    /// Says that it runs, if the person allowed that for this session.
    async fn allowed(&self) -> Option<HookAnswer> {
        let class = self.class.as_ref()?;
        let page = self.desk.page(self.incoming).ok()?;
        let used = allowance::allowed(&page, self.session, class).await?;
        drop(page);
        let why = format!(" You allowed it for this session: {used} of {TIMES}.");
        // A policy of the hub may want it asked all the same.
        self.tell(&why).await.ok()?;
        Some(HookAnswer::Allow("The person allowed it for this session.".into()))
    }

    /// The hook that reports its end finds it again.
    async fn runs(&self, running: aaep_agent::Call) -> Result<(), Trouble> {
        if !self.incoming.host.tells_ends() {
            let words = format!("{} goes on by itself.", self.incoming.host.name());
            return Ok(running.succeed(words).await?);
        }
        let page = self.desk.page(self.incoming)?;
        Ok(page.keep_call(&name_of(self.call), &running.leave())?)
    }

    /// Asks, and waits for the answer.
    async fn ask(&self) -> Result<HookAnswer, Trouble> {
        let (tool, action) = (self.call.tool.as_str(), self.judgment.action());
        let consequence = self.judgment.consequence();
        match self.judgment.reversibility() {
            Reversibility::Irreversible => {
                self.ask_for(Confirmation::irreversible(tool, action, consequence)).await
            }
            _ => self.ask_for(Confirmation::with_effort(tool, action, consequence)).await,
        }
    }

    async fn ask_for<K: Kind>(&self, request: Confirmation<K>) -> Result<HookAnswer, Trouble> {
        let arguments = self.call.arguments.to_string();
        if arguments.len() > MAX_ASKED_BYTES {
            return Err(Trouble::TooLarge(arguments.len()));
        }
        let deadline = self.desk.deadline;
        let left = deadline.saturating_duration_since(Instant::now()).as_secs();
        let seconds = u32::try_from(left).unwrap_or(u32::MAX).clamp(1, 86_400);
        let mut request = request.risk(self.judgment.risk()).arguments_json(arguments);
        if let Some(lines) = tools::lines(&self.call.tool, &self.call.arguments) {
            let (action, consequence) = (self.judgment.action(), self.judgment.consequence());
            let detailed = format!("{action} {consequence} {lines}");
            request = request.words(Words::new(action).detailed(detailed));
        }
        let parked = self.session.park((), request.timeout_seconds(seconds)).await?;
        // The hub may be restarting; all clones share this.
        drop(self.agent.clone().patience(HUB_COMES_BACK));
        let decided = timeout_at(deadline, parked.decision()).await;
        let approval = match decided.map_err(|_| Trouble::TooLate)? {
            Ok(approval) => approval,
            Err(Error::NotApproved(refusal)) if says(&refusal) == Some(ASK_THERE) => {
                return Ok(HookAnswer::AskThere("The person wants to be asked here.".into()));
            }
            Err(Error::NotApproved(refusal)) => return Ok(HookAnswer::Deny(refused(&refusal))),
            Err(Error::SessionOver) => {
                return Ok(HookAnswer::Deny("The person stopped this.".into()));
            }
            Err(error) => return Err(error.into()),
        };
        let by = shown(approval.by());
        let wanted = approval.reply().rationale.as_deref() == Some(FOR_THIS_SESSION);
        let ticket = parked.ticket();
        let ((), running) = self.session.invoke(parked, approval).await?;
        self.runs(running).await?;
        // A proxy before the same call need not ask again.
        if let Some(id) = &self.call.id {
            let Call { tool, arguments, .. } = self.call;
            self.desk.memory.keep_yes(id, tool, arguments, &ticket);
        }
        if let Some(class) = &self.class {
            let page = self.desk.page(self.incoming)?;
            let host = self.incoming.host;
            // What cannot be offered is asked again; that is all.
            let _ = allowance::said_yes(&page, self.session, host, class, wanted).await;
        }
        Ok(HookAnswer::Allow(format!("Approved by {by}.")))
    }
}

/// By which the end of a call is matched with its beginning.
fn name_of(call: &Call) -> String {
    match &call.id {
        Some(id) => id.clone(),
        None => digest(&[&call.tool, &call.arguments.to_string()]),
    }
}

/// What a no says of itself.
fn says(refusal: &NotApproved) -> Option<&str> {
    match refusal {
        NotApproved::Rejected { reply, .. } => reply.rationale.as_deref(),
        _ => None,
    }
}

fn refused(refusal: &NotApproved) -> String {
    match refusal {
        NotApproved::Rejected { .. } => {
            let why = says(refusal).map(|why| format!(" They say: {}.", shown(why)));
            format!(
                "The person said no.{} Do not try it in another way; ask what they want instead.",
                why.unwrap_or_default()
            )
        }
        NotApproved::TimedOut => "Nobody answered in time, so it is not done.".into(),
        other => format!("It is not done: {other}"),
    }
}

/// Why a call could not be told or asked.
#[derive(Debug)]
enum Trouble {
    Hub(Error),
    Memory(io::Error),
    TooLarge(usize),
    TooLate,
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Hub(Error::Unavailable(why)) => {
                write!(
                    f,
                    "Nobody could be asked, so it is not done: {}. Start a hub with `aaep hub`.",
                    shown(&why.to_string())
                )
            }
            Self::Hub(error) => {
                write!(f, "Nobody could be asked, so it is not done: {}", shown(&error.report()))
            }
            Self::Memory(error) => write!(
                f,
                "It is not done: the state directory of aaep cannot be used ({error}). Make room, or check its rights."
            ),
            Self::TooLarge(bytes) => write!(
                f,
                "It is not done: its arguments have {bytes} bytes, too many to be asked about. Make smaller steps."
            ),
            Self::TooLate => f.write_str("Nobody answered in time, so it is not done."),
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Hub(error)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Memory(error)
    }
}
