//! Which process is at the other end of a local connection, and whose descendant it is.
//!
//! Linux only: `/proc` tells. Elsewhere, and for peers on other machines, nothing is known.
//!
//! A process that forks twice loses its parents: the kernel gives it to a reaper, and its line no
//! longer leads to where it came from. [`Lineage::may_be_orphan_of`] says what is taken for such an orphan,
//! and what it cannot know.

#[cfg(target_os = "linux")]
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::{Mutex, PoisonError};

/// The longest line of ancestors that is looked at.
const MAX_DEPTH: usize = 64;

/// Shells that stand between a program and the helper that it starts, or before which a person sits.
const SHELLS: [&str; 15] = [
    "sh", "bash", "dash", "zsh", "fish", "ash", "ksh", "mksh", "csh", "tcsh", "nu", "elvish",
    "xonsh", "pwsh", "env",
];

/// The first process, to which orphans fall.
const INIT: i32 = 1;

/// One process, as `/proc` tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number, which may be given to another once it has ended.
    pub pid: i32,
    /// When it began, in ticks since the machine did: with the number it names one process for good.
    pub start: u64,
    /// Its parent now.
    parent: i32,
    /// Its session, named by the process that began it.
    session: i32,
    /// Its controlling terminal; 0 for none.
    terminal: i32,
    /// Its control groups, as the kernel lists them.
    groups: Arc<str>,
    /// The name of its program.
    name: Box<str>,
}

impl Process {
    fn is(&self, other: &Process) -> bool {
        (self.pid, self.start) == (other.pid, other.start)
    }

    fn is_shell(&self) -> bool {
        SHELLS.contains(&&*self.name)
    }

    /// Whether a terminal was made for it: a prompt, or a program in a window of its own.
    fn leads_a_terminal(&self) -> bool {
        self.session == self.pid && self.terminal != 0
    }

    /// On one line, to be kept.
    fn write(&self, to: &mut String) {
        let Self { pid, start, parent, session, terminal, groups, name } = self;
        to.push_str(&format!("{pid} {start} {parent} {session} {terminal} "));
        for (text, end) in [(&**groups, ' '), (&**name, ';')] {
            // Nothing that a process calls itself ends a field.
            text.bytes().for_each(|byte| to.push_str(&format!("{byte:02x}")));
            to.push(end);
        }
    }

    fn read(text: &str) -> Option<Self> {
        fn number<T: std::str::FromStr>(field: Option<&str>) -> Option<T> {
            field?.parse().ok()
        }
        let mut fields = text.split(' ');
        let (pid, start, parent) =
            (number(fields.next())?, number(fields.next())?, number(fields.next())?);
        let (session, terminal) = (number(fields.next())?, number(fields.next())?);
        let (groups, name) = (unhex(fields.next()?)?.into(), unhex(fields.next()?)?.into());
        let process = Self { pid, start, parent, session, terminal, groups, name };
        fields.next().is_none().then_some(process)
    }
}

fn unhex(text: &str) -> Option<String> {
    let digits = text.as_bytes();
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => {
            let digit =
                |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok());
            Some(digit(*high)? << 4 | digit(*low)?)
        }
        _ => None,
    });
    String::from_utf8(pairs.collect::<Option<Vec<u8>>>()?).ok()
}

/// A process and its ancestors, itself first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage(Vec<Process>);

impl Lineage {
    /// The line of a process; `None` if there is no such process, or nobody can tell.
    #[cfg(target_os = "linux")]
    pub fn of(pid: i32) -> Option<Self> {
        let mut line = Vec::new();
        let mut next = pid;
        while next > 0 && line.len() < MAX_DEPTH {
            // An ancestor that ends meanwhile ends the line; the process itself must be there.
            let Some(process) = read_process(next) else { break };
            next = process.parent;
            line.push(process);
        }
        (!line.is_empty()).then_some(Self(line))
    }

    /// The line of a process; `None` if there is no such process, or nobody can tell.
    #[cfg(not(target_os = "linux"))]
    pub fn of(_: i32) -> Option<Self> {
        None
    }

    /// The process itself.
    pub fn process(&self) -> &Process {
        &self.0[0]
    }

    /// The line as it is now; `None` if the process has ended since, also if its number lives on. While
    /// it has the same parent, what was known of its ancestors stays true: one that has ended since was
    /// one all the same.
    pub fn now(self: &Arc<Self>) -> Option<Arc<Self>> {
        let before = self.process();
        // Every answer is looked at like this. Its control groups are another file, which costs as much
        // again: they are read once more only if something else has changed.
        let process = parse_stat(&read_stat(before.pid)?, before.groups.clone())?;
        match process == *before {
            true => Some(Arc::clone(self)),
            false if process.is(before) => Self::of(process.pid).map(Arc::new),
            false => None,
        }
    }

    /// For a helper that a program starts to ask on its behalf: the line from that program on, past
    /// the shells between.
    pub fn of_host(&self) -> Self {
        let skipped = 1 + self.0.iter().skip(1).take_while(|process| process.is_shell()).count();
        if skipped < self.0.len() { Self(self.0[skipped..].to_vec()) } else { self.clone() }
    }

    /// Where in the line the programs are that may have this process do something for them, the nearest
    /// first: past shells, no further than its own control groups, and never past a program for which
    /// a terminal was made. A shell with a terminal of its own is a person's prompt, and ends it.
    fn employers(&self) -> Vec<usize> {
        let (own, mut found) = (self.process(), Vec::new());
        if own.leads_a_terminal() {
            return found;
        }
        for (at, process) in self.0.iter().enumerate().skip(1) {
            if process.pid == INIT || process.groups != own.groups {
                break;
            }
            if !process.is_shell() {
                found.push(at);
            }
            if process.leads_a_terminal() {
                break;
            }
        }
        found
    }

    // enforces: I30
    /// The nearest program that may have both processes do something for it, if neither descends from
    /// the other.
    pub fn common_employer(&self, other: &Lineage) -> Option<Self> {
        if self.descends_from(other) || other.descends_from(self) {
            return None;
        }
        let theirs = other.employers();
        let at = self
            .employers()
            .into_iter()
            .find(|at| theirs.iter().any(|their| other.0[*their].is(&self.0[*at])))?;
        Some(Self(self.0[at..].to_vec()))
    }

    // enforces: I30
    /// Whether this process works for that program: it descends from it, and nobody sits before it at a
    /// terminal of its own.
    pub fn works_for(&self, employer: &Lineage) -> bool {
        self.works_for_process(employer.process())
    }

    fn works_for_process(&self, employer: &Process) -> bool {
        let own = self.process();
        let its_own = own.terminal != 0 && own.terminal != employer.terminal;
        !its_own && self.0.iter().any(|ancestor| ancestor.is(employer))
    }

    // enforces: I30
    /// Whether this process began after the other and works for the same program, as one command of a
    /// coding agent does after another.
    pub fn follows(&self, other: &Lineage) -> bool {
        let nearest = other.employers().first().copied();
        nearest.is_some_and(|at| {
            self.process().start > other.process().start && self.works_for_process(&other.0[at])
        })
    }

    /// The line as text, to be kept for [`Self::read`].
    pub fn write(&self) -> String {
        let mut text = String::new();
        self.0.iter().for_each(|process| process.write(&mut text));
        text
    }

    /// A line that was [kept](Self::write); `None` if this is none.
    pub fn read(text: &str) -> Option<Self> {
        let line: Option<Vec<Process>> =
            text.strip_suffix(';')?.split(';').map(Process::read).collect();
        line.filter(|line| line.len() <= MAX_DEPTH).map(Self)
    }

    // enforces: I30
    /// Whether this process is the other, or descends from it: it has the other among its ancestors.
    pub fn descends_from(&self, other: &Lineage) -> bool {
        self.0.iter().any(|ancestor| ancestor.is(other.process()))
    }

    // enforces: I30
    /// Whether this process cannot be told from an orphan of the other's.
    ///
    /// An orphan began later than the other, is in the same control groups, and the lines of both meet
    /// in a process that did not begin it itself, by all marks: it has the other's session or terminal
    /// and the common ancestor has not; or it has no terminal, and has left the session of the common
    /// ancestor. A shell, a terminal multiplexer or a session manager above both is no such mark: what
    /// a person starts beside an agent is the person's.
    pub fn may_be_orphan_of(&self, other: &Lineage) -> bool {
        let (own, root) = (self.process(), other.process());
        let met = self.0.iter().enumerate().find_map(|(at, process)| {
            other.0.iter().find(|theirs| theirs.is(process)).map(|common| (at, common))
        });
        // The highest process of this line that the other does not share.
        let (top, common) = match met {
            Some((0, _)) | None => return false,
            Some((at, common)) => (&self.0[at - 1], common),
        };
        let shares =
            |mine: i32, theirs: i32, above: i32| mine != 0 && mine == theirs && mine != above;
        let stayed = shares(top.session, root.session, common.session)
            || shares(top.terminal, root.terminal, common.terminal);
        let left = top.session != common.session && own.terminal == 0;
        top.start >= root.start && top.groups == root.groups && (stayed || left)
    }
}

/// What is known of the process at the other end of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// It is on another machine, or nobody can tell.
    #[default]
    Unknown,
    /// It connected, and was gone when it was looked at.
    Gone,
    /// It is this one; for a connection that several processes hold, each of them.
    Known(Vec<Arc<Lineage>>),
}

impl Origin {
    /// The process with this number, as the kernel named it when it connected.
    pub fn of_pid(pid: Option<i32>) -> Self {
        match pid.filter(|pid| *pid > 0 && cfg!(target_os = "linux")) {
            None => Self::Unknown,
            Some(pid) => match Lineage::of(pid) {
                Some(line) => Self::Known(vec![Arc::new(line)]),
                None => Self::Gone,
            },
        }
    }

    /// The processes that hold the other end of a connection over loopback to one of these ports.
    /// May read all that this user may see, so do it apart.
    pub fn of_loopback(peer: SocketAddr, ports: &[u16], holders: &SocketHolders) -> Self {
        let held = holders.of(peer, ports);
        // Another user's process, or one that hides what it holds.
        if held.is_empty() { Self::Unknown } else { Self::Known(held) }
    }

    /// The same processes as they are now.
    pub fn now(&self) -> Self {
        match self {
            Self::Known(lines) => {
                let now: Option<Vec<_>> = lines.iter().map(Lineage::now).collect();
                now.map_or(Self::Gone, Self::Known)
            }
            other => other.clone(),
        }
    }

    /// The processes, as far as they are known.
    pub fn lines(&self) -> &[Arc<Lineage>] {
        match self {
            Self::Known(lines) => lines,
            _ => &[],
        }
    }

    /// Whether any of these is the process with this number.
    pub fn includes(&self, pid: u32) -> bool {
        self.lines().iter().any(|line| u32::try_from(line.process().pid) == Ok(pid))
    }

    /// The program on whose behalf a process asks that is called so (`aaep hook`); itself otherwise.
    #[cfg(target_os = "linux")]
    pub fn on_behalf(self, program: &str, helpers: &[&str]) -> Self {
        let Self::Known(lines) = self else { return self };
        let host = |line: Arc<Lineage>| {
            // Nearly everybody is somebody else, and what it was called with is another file.
            if *line.process().name != *program {
                return line;
            }
            let called = std::fs::read(format!("/proc/{}/cmdline", line.process().pid));
            let called = called.unwrap_or_default();
            let mut words = called.split(|byte| *byte == 0).map(String::from_utf8_lossy);
            let name = words.next().unwrap_or_default();
            let ours = name.rsplit('/').next() == Some(program);
            let helps = words.next().is_some_and(|word| helpers.contains(&&*word));
            if ours && helps { Arc::new(line.of_host()) } else { line }
        };
        Self::Known(lines.into_iter().map(host).collect())
    }

    /// Whether it is one process that is called so and runs the same program as this one, with these
    /// words: `is_it` gets all but the first. The kernel says which file a process runs; what it was
    /// called with, it says itself.
    #[cfg(target_os = "linux")]
    pub fn is_this_program(&self, name: &str, is_it: impl FnOnce(&[String]) -> bool) -> bool {
        let [line] = self.lines() else { return false };
        if *line.process().name != *name {
            return false;
        }
        let place = format!("/proc/{}", line.process().pid);
        let (Ok(own), Ok(its)) =
            (std::fs::metadata("/proc/self/exe"), std::fs::metadata(format!("{place}/exe")))
        else {
            return false;
        };
        use std::os::unix::fs::MetadataExt as _;
        if (own.dev(), own.ino()) != (its.dev(), its.ino()) {
            return false;
        }
        let called = std::fs::read(format!("{place}/cmdline")).unwrap_or_default();
        let words = called.split(|byte| *byte == 0).skip(1);
        let words: Vec<String> =
            words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        is_it(&words)
    }

    /// Whether it is one process that runs the same program as this one, called with these words.
    #[cfg(not(target_os = "linux"))]
    pub fn is_this_program(&self, _: &str, _: impl FnOnce(&[String]) -> bool) -> bool {
        false
    }

    /// The program on whose behalf a process asks that is called so (`aaep hook`); itself otherwise.
    #[cfg(not(target_os = "linux"))]
    pub fn on_behalf(self, _: &str, _: &[&str]) -> Self {
        self
    }
}

#[cfg(target_os = "linux")]
fn read_process(pid: i32) -> Option<Process> {
    let groups = std::fs::read(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    parse_stat(&read_stat(pid)?, String::from_utf8_lossy(&groups))
}

#[cfg(not(target_os = "linux"))]
fn read_stat(_: i32) -> Option<String> {
    None
}

// enforces: I30
/// What the kernel says of a process. A process names itself, with any bytes: none of them may hide it.
#[cfg(target_os = "linux")]
fn read_stat(pid: i32) -> Option<String> {
    use std::io::Read as _;
    // The kernel gives all of it at one read: 52 numbers and a name, on one line.
    let mut bytes = [0; 2048];
    let mut file = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?;
    let length = file.read(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// `pid (name) state ppid pgrp session tty_nr … starttime …`; the name may hold anything.
fn parse_stat(stat: &str, groups: impl Into<Arc<str>>) -> Option<Process> {
    let (pid, rest) = stat.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let field = |at: usize| fields.get(at)?.parse().ok();
    Some(Process {
        pid: pid.parse().ok()?,
        parent: field(1)?,
        session: field(3)?,
        terminal: field(4)?,
        start: fields.get(19)?.parse().ok()?,
        groups: groups.into(),
        name: name.into(),
    })
}

/// Which processes hold which sockets, as of the last look. A look goes through every process that
/// this user may look into; those who ask at the same time share one.
#[derive(Debug, Default)]
pub struct SocketHolders(#[cfg(target_os = "linux")] Mutex<BTreeMap<u64, Vec<i32>>>);

impl SocketHolders {
    #[cfg(target_os = "linux")]
    fn of(&self, peer: SocketAddr, ports: &[u16]) -> Vec<Arc<Lineage>> {
        let Some(inode) = crate::owner::socket_at(peer, ports) else { return Vec::new() };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The number of a socket is not given again within the life of a machine.
        if !known.contains_key(&inode) {
            *known = all_holders();
        }
        let pids = known.get(&inode).cloned().unwrap_or_default();
        drop(known);
        pids.into_iter().filter_map(Lineage::of).map(Arc::new).collect()
    }

    #[cfg(not(target_os = "linux"))]
    fn of(&self, _: SocketAddr, _: &[u16]) -> Vec<Arc<Lineage>> {
        Vec::new()
    }
}

#[cfg(target_os = "linux")]
fn all_holders() -> BTreeMap<u64, Vec<i32>> {
    let mut holders: BTreeMap<u64, Vec<i32>> = BTreeMap::new();
    let Ok(all) = std::fs::read_dir("/proc") else { return holders };
    for pid in all.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { continue };
        let targets = open.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
        for inode in targets.filter_map(|target| socket_number(target.to_str()?)) {
            let held = holders.entry(inode).or_default();
            if held.last() != Some(&pid) {
                held.push(pid);
            }
        }
    }
    holders
}

/// `socket:[12345]`.
#[cfg(target_os = "linux")]
fn socket_number(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: i32, parent: i32, start: u64, session: i32, terminal: i32) -> Process {
        let stat = format!(
            "{pid} (a) b) S {parent} {pid} {session} {terminal} -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {start} 0"
        );
        parse_stat(&stat, "0::/user\n").unwrap()
    }

    fn in_group(mut process: Process, groups: &str) -> Process {
        process.groups = groups.into();
        process
    }

    impl Lineage {
        fn is_of(&self, other: &Lineage) -> bool {
            self.descends_from(other) || self.may_be_orphan_of(other)
        }
    }

    fn line(processes: &[Process]) -> Lineage {
        Lineage(processes.to_vec())
    }

    // covers: I30
    #[test]
    fn what_descends_from_an_agent_is_the_agents_and_what_stands_beside_it_is_not() {
        let init = in_group(process(1, 0, 0, 1, 0), "0::/init\n");
        let tmux = process(10, 1, 5, 10, 0);
        let (shell, other_shell) = (process(20, 10, 10, 20, 34816), process(30, 10, 11, 30, 34817));
        let agent = process(40, 20, 50, 20, 34816);
        let of_agent = line(&[agent.clone(), shell.clone(), tmux.clone(), init.clone()]);
        let beside = |first: Process, shell: &Process| {
            line(&[first, shell.clone(), tmux.clone(), init.clone()]).is_of(&of_agent)
        };
        assert!(of_agent.is_of(&of_agent), "itself");
        let child = process(41, 40, 60, 41, 0);
        let grandchild = process(42, 41, 61, 41, 0);
        let deep = line(&[grandchild, child, agent.clone(), shell.clone(), tmux.clone()]);
        assert!(deep.is_of(&of_agent), "whatever session it made");
        // The person: in the same shell, in another pane, before or after the agent.
        assert!(!beside(process(43, 20, 70, 20, 34816), &shell));
        assert!(!beside(process(44, 30, 70, 30, 34817), &other_shell));
        assert!(!line(&[other_shell.clone(), tmux.clone(), init.clone()]).is_of(&of_agent));
        let new_pane = process(45, 10, 99, 45, 34818);
        assert!(!line(&[new_pane, tmux.clone(), init.clone()]).is_of(&of_agent));
        // A number that was given again is another process.
        assert!(!beside(process(40, 20, 80, 20, 34816), &shell));
        // Another machine's, or nothing known in common.
        assert!(!line(&[process(7, 0, 90, 7, 0)]).is_of(&of_agent));
    }

    // covers: I30
    #[test]
    fn an_orphan_that_cannot_be_told_from_the_agents_own_is_taken_for_it() {
        let init = in_group(process(1, 0, 0, 1, 0), "0::/init\n");
        let shell = process(20, 1, 10, 20, 34816);
        let agent = process(40, 20, 50, 20, 34816);
        let of_agent = line(&[agent, shell.clone(), init.clone()]);
        let orphan = |process: Process| line(&[process, init.clone()]).is_of(&of_agent);
        assert!(orphan(process(50, 1, 60, 49, 0)), "forked twice, a session of its own");
        assert!(!orphan(process(50, 1, 60, 50, 34820)), "somebody sits before it");
        assert!(orphan(process(50, 1, 60, 20, 34816)), "forked twice, the agent's session");
        assert!(!orphan(process(50, 1, 49, 49, 0)), "it was there before the agent");
        let elsewhere = in_group(process(50, 1, 60, 49, 0), "0::/user/other.service\n");
        assert!(!orphan(elsewhere), "a service of the session manager");
        // A reaper below the first process, as session managers are.
        let reaper = process(5, 1, 1, 5, 0);
        let of_agent = line(&[
            process(40, 20, 50, 20, 34816),
            process(20, 5, 10, 20, 34816),
            reaper.clone(),
            init.clone(),
        ]);
        let orphan = |process| line(&[process, reaper.clone(), init.clone()]).is_of(&of_agent);
        assert!(orphan(process(50, 5, 60, 49, 0)));
        assert!(orphan(process(50, 5, 60, 20, 0)));
        assert!(!orphan(process(50, 5, 60, 5, 0)), "begun by the reaper itself");
    }

    fn named(name: &str, process: Process) -> Process {
        Process { name: name.into(), ..process }
    }

    /// A terminal multiplexer, a prompt in it, a coding agent there, and two commands that it runs in
    /// shells of their own without a terminal.
    fn coding_agent() -> (Lineage, Lineage, Lineage) {
        let init = process(1, 0, 0, 1, 0);
        let tmux = named("tmux: server", process(10, 1, 5, 10, 0));
        let prompt = named("bash", process(20, 10, 10, 20, 34816));
        let agent = named("claude", process(40, 20, 50, 20, 34816));
        let above = [agent, prompt, tmux, init];
        let command = |pid: i32| {
            let shell = named("bash", process(pid, 40, 51, pid, 0));
            line(
                &[&[process(pid + 1, pid, pid.unsigned_abs().into(), pid, 0), shell][..], &above]
                    .concat(),
            )
        };
        (line(&above), command(60), command(70))
    }

    // covers: I30
    #[test]
    fn what_two_commands_have_in_common_is_the_program_that_ran_them_and_never_a_prompt() {
        let (agent, first, second) = coding_agent();
        assert_eq!(first.common_employer(&second), Some(agent.clone()));
        assert!(second.works_for(&agent) && agent.works_for(&agent));
        assert!(second.follows(&first) && !first.follows(&second) && !first.follows(&first));
        // A person who types two commands at a prompt: nothing is above them but the prompt.
        let at_prompt =
            |pid: i32| line(&[&[process(pid, 20, 70, 20, 34816)], &agent.0[1..]].concat());
        let (typed, other) = (at_prompt(71), at_prompt(72));
        assert_eq!(typed.common_employer(&other), None);
        assert!(!other.follows(&typed));
        // Nor is what runs in a terminal or a window of its own anybody's.
        let in_window = line(&[&[process(80, 10, 70, 80, 34818)], &agent.0[2..]].concat());
        assert!(!typed.follows(&in_window));
        assert!(!in_window.works_for(&agent) && !typed.works_for(&agent));
        let at_own_terminal = line(&[&[process(90, 40, 70, 90, 34819)], &agent.0[..]].concat());
        assert!(!at_own_terminal.works_for(&agent), "somebody sits before it");
        // Nothing above the control groups counts, and never the first process.
        let service = |pid: i32| line(&[process(pid, 1, 70, pid, 0), process(1, 0, 0, 1, 0)]);
        assert_eq!(service(91).common_employer(&service(92)), None);
        let outside = in_group(process(7, 1, 2, 7, 0), "0::/init.scope\n");
        let scoped = |pid: i32| line(&[process(pid, 7, 70, pid, 0), outside.clone()]);
        assert!(!scoped(94).follows(&scoped(93)));
        // One that was there before the command may be anybody's.
        let before = line(&[&[process(49, 40, 55, 49, 0)], &agent.0[..]].concat());
        assert!(!before.follows(&first) && first.follows(&before));
    }

    // covers: I30
    #[test]
    fn a_line_that_is_kept_comes_back_as_it_was() {
        let (_, first, _) = coding_agent();
        let odd = named("a b;\u{0}\n", in_group(process(5, 1, 9, 5, 0), "0::/x y;\n1::/z\n"));
        let line = line(&[&[odd], &first.0[..]].concat());
        assert_eq!(Lineage::read(&line.write()), Some(line.clone()));
        let text = line.write();
        for broken in ["", ";", "1 2 3", &text[..text.len() - 1], &text[1..], &format!("{text} ;")]
        {
            assert_ne!(Lineage::read(broken), Some(line.clone()), "{broken}");
        }
        assert_eq!(Lineage::read("1 2 3 4 5 6z 61;"), None);
    }

    #[test]
    fn a_helper_asks_for_the_program_that_started_it() {
        let agent = Process { name: "claude".into(), ..process(40, 20, 50, 20, 1) };
        let shell = Process { name: "sh".into(), ..process(41, 40, 60, 20, 1) };
        let helper =
            line(&[process(42, 41, 61, 20, 1), shell, agent.clone(), process(20, 1, 1, 20, 1)]);
        assert_eq!(*helper.of_host().process(), agent);
        let alone = line(&[process(42, 1, 61, 20, 1)]);
        assert_eq!(alone.of_host(), alone);
    }

    // covers: I30
    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_tells_who_holds_a_socket_and_whose_child_it_is() {
        let own = std::process::id();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let ports = [listener.local_addr().unwrap().port()];
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let holders = SocketHolders::default();
        let origin = Origin::of_loopback(stream.local_addr().unwrap(), &ports, &holders);
        assert!(origin.includes(own), "{origin:?}");
        assert_eq!(origin.now().lines().len(), origin.lines().len());
        let here = Lineage::of(i32::try_from(own).unwrap()).unwrap();
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let its = Lineage::of(i32::try_from(child.id()).unwrap()).unwrap();
        assert_eq!(Arc::new(its.clone()).now().as_deref(), Some(&its));
        assert!(its.is_of(&here) && !here.is_of(&its));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(Arc::new(its).now(), None);
        assert_eq!(Origin::of_pid(Some(process(i32::MAX, 1, 0, 0, 0).pid)), Origin::Gone);
    }

    // covers: I30
    /// A process that hid behind its name could answer its own request.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_name_that_is_no_text_hides_no_process() {
        use std::os::unix::ffi::OsStrExt as _;
        let here = tempfile::tempdir().unwrap();
        let program = here.path().join(std::ffi::OsStr::from_bytes(b"\xff) \xfe"));
        std::fs::copy("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(&program).arg("600").spawn().unwrap();
        let its = Lineage::of(i32::try_from(child.id()).unwrap());
        let own = Lineage::of(i32::try_from(std::process::id()).unwrap()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(its.unwrap().descends_from(&own));
    }
}
