//! The processes of the agents of a session, and whether a reply comes from one of them.

use std::sync::Arc;

use aaep_engine::{Blame, Refusal};
use aaep_transport::process::{Lineage, Origin};
use aaep_types::rule;

/// Whether a process is one of an agent's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kinship {
    None,
    /// It cannot be told from one of the agent's.
    Suspected,
    Certain,
}

/// Processes of one session that are remembered, and programs for which several of them work.
const PROCESSES: usize = 16;

/// The processes that opened a session, or asked in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processes {
    /// Those that opened it come first.
    lines: Vec<Arc<Lineage>>,
    /// How many of these opened it: they are never forgotten.
    openers: usize,
    /// Programs that have several of them do something.
    employers: Vec<Arc<Lineage>>,
    /// Nobody knows which there were before the hub started again.
    are_lost: bool,
}

impl Processes {
    pub(crate) fn opened_by(origin: &Origin) -> Self {
        let lines: Vec<_> = origin.lines().iter().take(PROCESSES).cloned().collect();
        Self { openers: lines.len(), lines, ..Self::default() }
    }

    /// Those of a session of which nothing was kept.
    pub(crate) fn lost() -> Self {
        Self { are_lost: true, ..Self::default() }
    }

    /// Those that opened it, as they were kept, and those that asked in it later.
    pub(crate) fn recalled(opened: Vec<Lineage>, asked: Vec<Lineage>) -> Self {
        let shared = |lines: Vec<Lineage>| lines.into_iter().map(Arc::new).collect();
        let mut recalled = Self::opened_by(&Origin::Known(shared(opened)));
        // What was kept had room.
        if recalled.note(&Origin::Known(shared(asked))).is_err() {
            recalled.are_lost = true;
        }
        recalled
    }

    // enforces: I30
    /// Notes who asks, and says who of them is new. One that is forgotten descends from another that is
    /// not, so that a program cannot have itself forgotten by asking from ever new processes.
    pub(crate) fn note(&mut self, origin: &Origin) -> Result<Vec<Arc<Lineage>>, Refusal> {
        let is_known = |line: &&Arc<Lineage>| self.lines.iter().any(|other| same(other, line));
        let new: Vec<_> = origin.lines().iter().filter(|line| !is_known(line)).cloned().collect();
        if new.is_empty() {
            return Ok(new);
        }
        let mut all = self.clone();
        for line in &new {
            for other in &self.lines {
                if let Some(employer) = line.common_employer(other).map(Arc::new)
                    && !all.employers.iter().any(|known| same(known, &employer))
                {
                    make_room(&mut all.employers, 0)?;
                    all.employers.push(employer);
                }
            }
            make_room(&mut all.lines, all.openers)?;
            all.lines.push(line.clone());
        }
        *self = all;
        Ok(new)
    }

    // enforces: I30
    /// Whether somebody is one of these, or comes from one, as far as that can be told. One that has gone
    /// since it connected, of which nobody can tell any more, counts as if it did. `is_talk` says that
    /// it is a terminal of `aaep` in which a person talks with an agent: that asks for the agent that it
    /// started, and its person answers there.
    pub(crate) fn kinship(&self, origin: &Origin, is_talk: bool) -> Kinship {
        if self.lines.is_empty() && !self.are_lost {
            return Kinship::None;
        }
        let any = |is: &dyn Fn(&Lineage, &Lineage) -> bool| {
            origin.lines().iter().any(|line| self.lines.iter().any(|agent| is(line, agent)))
        };
        // A terminal in which somebody talks with an agent is not suspected for what it asked itself.
        let is_itself = |line: &Lineage, agent: &Lineage| is_talk && same(line, agent);
        let descends =
            |line: &Lineage, agent: &Lineage| line.descends_from(agent) && !is_itself(line, agent);
        let has_it_ask = |line: &Lineage, agent: &Lineage| !is_talk && agent.descends_from(line);
        let follows =
            |line: &Lineage, agent: &Lineage| line.follows(agent) && !is_itself(line, agent);
        let works_for_one = || {
            let works = |line: &Arc<Lineage>| self.employers.iter().any(|one| line.works_for(one));
            origin.lines().iter().any(works)
        };
        let is_here = matches!(origin, Origin::Known(_));
        match () {
            () if *origin == Origin::Gone || any(&descends) => Kinship::Certain,
            () if self.are_lost && is_here => Kinship::Suspected,
            () if any(&Lineage::may_be_orphan_of) || any(&has_it_ask) => Kinship::Suspected,
            () if any(&follows) || works_for_one() => Kinship::Suspected,
            () => Kinship::None,
        }
    }
}

fn same(one: &Lineage, other: &Lineage) -> bool {
    let name = |line: &Lineage| (line.process().pid, line.process().start);
    name(one) == name(other)
}

/// Makes room for one more after the first `kept`: one that descends from another goes.
fn make_room(lines: &mut Vec<Arc<Lineage>>, kept: usize) -> Result<(), Refusal> {
    if lines.len() < PROCESSES {
        return Ok(());
    }
    let is_covered = |at: &usize| {
        let (line, mut others) = (&lines[*at], lines.iter());
        others.any(|other| !same(other, line) && line.descends_from(other))
    };
    let at = (kept..lines.len()).find(is_covered).ok_or_else(|| Refusal {
        blame: Blame::Limit,
        rule: rule::C4,
        text: format!(
            "{PROCESSES} processes that do not descend from each other have asked in this session. Ask from one of them, or open another session."
        ),
    })?;
    lines.remove(at);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &[(i32, i32, i32)]) -> Lineage {
        // Process, parent, terminal; each leads a session of its own, in one group.
        let text: String = text
            .iter()
            .map(|(pid, parent, terminal)| format!("{pid} {pid} {parent} {pid} {terminal} 67 6e;"))
            .collect();
        Lineage::read(&text).unwrap()
    }

    fn known(line: &Lineage) -> Origin {
        Origin::Known(vec![Arc::new(line.clone())])
    }

    // covers: I30
    #[test]
    fn the_opener_is_never_forgotten_and_strangers_are_refused_in_the_end() {
        let main = line(&[(100, 50, 0), (50, 1, 0)]);
        let mut processes = Processes::opened_by(&known(&main));
        let child = |pid| line(&[(pid, 100, 0), (100, 50, 0), (50, 1, 0)]);
        for pid in 200..300 {
            processes.note(&known(&child(pid))).unwrap();
        }
        assert_eq!(processes.kinship(&known(&main), false), Kinship::Certain);
        assert_eq!(processes.lines.len(), PROCESSES);
        // Others that have nothing to do with each other take the places of children, then none.
        let stranger = |pid| line(&[(pid, 1, 7)]);
        let refused = (400..500).find_map(|pid| processes.note(&known(&stranger(pid))).err());
        assert!(refused.unwrap().text.starts_with("16 processes"));
        assert_eq!(processes.kinship(&known(&main), false), Kinship::Certain);
        // Those that are known may still ask.
        assert!(processes.note(&known(&main)).unwrap().is_empty());
    }

    // covers: I30
    #[test]
    fn what_has_it_ask_and_what_works_for_the_same_is_suspected() {
        let agent = (100, 50, 0);
        let (first, second) =
            (line(&[(200, 100, 0), agent, (50, 1, 0)]), line(&[(300, 100, 0), agent, (50, 1, 0)]));
        let sibling = line(&[(250, 100, 0), agent, (50, 1, 0)]);
        let (above, stranger) = (line(&[agent, (50, 1, 0)]), line(&[(260, 51, 9), (51, 1, 0)]));
        let mut processes = Processes::opened_by(&known(&first));
        let of = |processes: &Processes, line| processes.kinship(&known(line), false);
        assert_eq!(of(&processes, &above), Kinship::Suspected);
        assert_eq!(
            processes.kinship(&known(&above), true),
            Kinship::None,
            "it talks with its agent"
        );
        assert_eq!(processes.kinship(&known(&first), true), Kinship::None);
        assert_eq!(of(&processes, &sibling), Kinship::Suspected, "it began later");
        let early = line(&[(150, 100, 0), agent, (50, 1, 0)]);
        assert_eq!(of(&processes, &early), Kinship::None);
        processes.note(&known(&second)).unwrap();
        assert_eq!(of(&processes, &early), Kinship::Suspected, "both work for the same");
        assert_eq!(of(&processes, &stranger), Kinship::None);
        // What nobody knows any more.
        assert_eq!(of(&Processes::lost(), &stranger), Kinship::Suspected);
        assert_eq!(Processes::lost().kinship(&Origin::Unknown, false), Kinship::None);
    }
}
