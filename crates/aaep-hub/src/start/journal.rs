//! The journal of a data directory, and what may be relied on of it.

use std::path::{Path, PathBuf};

use aaep_engine::{ClockTrust, Now};
use aaep_store::log::UnitLog;
use aaep_store::{
    CannotOpen, ChainKey, Damage, Head, HeadCheck, JournalFile, JournalMarker, Noted, OLD_COPY,
    Options, Replayed, Sqlite, Start,
};

use super::DataDirectory;
use crate::Fault;
use crate::access::fill;
use crate::files::cannot_read;

/// The journal's name in the data directory.
pub const JOURNAL_NAME: &str = "journal.db";

/// The directory of notes, in the state directory.
pub const HEADS_NAME: &str = "heads";

/// How far the clock on the wall may move against the boot clock before it counts as a jump: more
/// than a leap second, and less than anybody waits for an answer. In microseconds.
pub(crate) const JUMP: i64 = 5_000_000;

/// How much later than the last record a hub may start on another boot for its clock to be believed,
/// in microseconds: 30 days. No request waits that long, so nothing is lost by doubting.
const ABSURDLY_LATE: i64 = 30 * 24 * 60 * 60 * 1_000_000;

/// A journal that is open, and what was noted of it outside.
#[derive(Debug)]
pub struct Kept {
    pub(crate) journal: Sqlite,
    pub(crate) head: Option<Head>,
    pub(crate) noted: Option<Noted>,
    /// The log of which this is a copy, if it is one of a cluster.
    pub(crate) log: Option<Box<dyn UnitLog>>,
    /// How that log stands to what this node has noted of it.
    log_check: Option<HeadCheck>,
    /// What says which journal this place holds, and the other one that it held before, if so.
    place: Option<(JournalMarker, Option<String>)>,
}

/// Where the key of a journal and the notes about it lie. Without a state directory the key lies
/// beside the journal, where it defends against nobody who can write there; prepare() warned.
pub(super) fn heads(data: &Path, state: Option<&Path>) -> PathBuf {
    state.map_or_else(|| data.to_owned(), |state| state.join(HEADS_NAME))
}

impl Kept {
    /// Opens the journal of a data directory, with the key that lies in the state directory.
    pub fn open(data: &DataDirectory, state: Option<&Path>) -> Result<Self, Fault> {
        let path = data.path().join(JOURNAL_NAME);
        let failed = |fault: CannotOpen| cannot_open(&path, &fault);
        let file = JournalFile::open(&path, Options::default()).map_err(failed)?;
        let heads = heads(data.path(), state);
        crate::files::create_private_directory(&heads)?;
        let key = match ChainKey::read(&ChainKey::path_of(&heads, file.store())).map_err(failed)? {
            Some(key) => key,
            None if file.is_empty().map_err(failed)? => new_key(&heads, file.store())?,
            None => {
                let path = ChainKey::path_of(&heads, file.store());
                return Err(failed(CannotOpen::NoKey { path }));
            }
        };
        let journal = file.with_key(key).map_err(failed)?;
        if state.is_none() {
            return Ok(Self {
                journal,
                head: None,
                noted: None,
                log: None,
                log_check: None,
                place: None,
            });
        }
        let noted = Head::look(&heads, journal.store());
        let head =
            Head::open(&heads, journal.store()).map_err(|fault| cannot_open(&heads, &fault))?;
        let place = JournalMarker::of(&heads, &path).map_err(|error| cannot_read(&path, &error))?;
        let before = place.look().filter(|before| before != journal.store());
        if let Some(before) = before.as_deref().filter(|_| journal.head().0 > 0) {
            return Err(another_journal(&path, journal.store(), before, &place));
        }
        let place = Some((place, before));
        Ok(Self { journal, head: Some(head), noted, log: None, log_check: None, place })
    }

    /// A copy that was just made of a log, and the log.
    #[cfg(feature = "cluster")]
    pub(crate) fn of_log(journal: Sqlite, log: Box<dyn UnitLog>, check: HeadCheck) -> Self {
        let log_check = Some(check);
        Self { journal, head: None, noted: None, log: Some(log), log_check, place: None }
    }

    // enforces: I33
    /// How a journal stands that was read with so many records. One that somebody wrote to is refused.
    pub(crate) fn head_check(&self, replayed: &Replayed) -> Result<HeadCheck, Damage> {
        if let Some(check) = self.log_check {
            return Ok(check);
        }
        match replayed.head_check {
            HeadCheck::Longer { noted } => Err(Damage {
                number: noted + 1,
                why: "it was written after the hub stopped in good order. If you put an old copy of the state directory in place, remove the file that ends with .head from it: then what waits is rejected".into(),
            }),
            // Nobody notes anything, on purpose.
            HeadCheck::Unknown if self.head.is_none() => Ok(HeadCheck::Same),
            HeadCheck::Same => {
                self.journal.check_start(self.noted)?;
                Ok(HeadCheck::Same)
            }
            other => Ok(other),
        }
    }

    /// The name of another journal that this place held when a hub worked here last.
    pub(crate) fn held_before(&self) -> Option<&str> {
        self.place.as_ref().and_then(|(_, before)| before.as_deref())
    }

    /// Notes outside that a hub works with the journal from here on.
    pub(crate) fn note_head(&mut self) -> Result<(), Fault> {
        let position = self.journal.position();
        let Some(head) = &mut self.head else { return Ok(()) };
        let noted = head.note(position);
        noted.map_err(|error| crate::files::cannot_write(head.path(), &error))
    }

    /// Notes outside which journal this place holds.
    pub(crate) fn note_place(&self) -> Result<(), Fault> {
        let Some((place, _)) = &self.place else { return Ok(()) };
        let noted = place.note(self.journal.store());
        noted.map_err(|error| crate::files::cannot_write(self.journal.path(), &error))
    }

    // enforces: I8
    /// What a restart may rely on, and why, in words.
    pub(crate) fn trust(
        &self,
        replayed: &Replayed,
        start: &Start,
        key_is_new: bool,
        now: Now,
    ) -> Result<Trust, Damage> {
        let last = self.journal.last_start()?;
        let written = last.as_ref().map_or(0, |last| last.at).max(replayed.last_at);
        let is_empty = replayed.records == 0;
        let head_check = self.head_check(replayed)?;
        Ok(judge(head_check, is_empty, key_is_new, last.as_ref(), written, start, now))
    }
}

/// Somebody put another journal in the place of the one that was there.
fn another_journal(path: &Path, store: &str, before: &str, place: &JournalMarker) -> Fault {
    Fault::file(
        path,
        format!(
            "When a hub worked here last, this directory held another journal: {before}. This one is {store}."
        ),
        format!(
            "If you put it there, remove {}, and start the hub again. If you did not, somebody else did.",
            place.path().display()
        ),
    )
}

/// A new key for a store in which nothing was ever kept.
pub(super) fn new_key(heads: &Path, store: &str) -> Result<ChainKey, Fault> {
    let mut bytes = [0; ChainKey::BYTES];
    fill(&mut bytes)?;
    ChainKey::create(heads, store, &bytes).map_err(|fault| cannot_open(heads, &fault))
}

/// What a restart may rely on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trust {
    pub(crate) clock: ClockTrust,
    /// Why it is not more.
    pub(crate) why: Option<&'static str>,
}

impl Trust {
    fn in_doubt(why: &'static str) -> Self {
        Self { clock: ClockTrust::Doubtful, why: Some(why) }
    }

    fn old_copy(why: &'static str) -> Self {
        Self { clock: ClockTrust::OldCopy, why: Some(why) }
    }

    /// In a few words, for the journal. How much of it an old copy lacks is said for good: afterwards
    /// nobody can tell.
    pub(crate) fn words(&self, replayed: &Replayed) -> String {
        match (self.clock, replayed.head_check) {
            (ClockTrust::Trusted, _) => "trusted".into(),
            (ClockTrust::Doubtful, _) => "doubtful".into(),
            (ClockTrust::OldCopy, HeadCheck::Behind { noted }) => {
                format!("{OLD_COPY}, {} of {noted} records", replayed.records)
            }
            (ClockTrust::OldCopy, _) => OLD_COPY.into(),
        }
    }
}

fn judge(
    head_check: HeadCheck,
    is_empty: bool,
    key_is_new: bool,
    last: Option<&Start>,
    written: i64,
    start: &Start,
    now: Now,
) -> Trust {
    match head_check {
        HeadCheck::Behind { .. } => {
            return Trust::old_copy(
                "The journal ends before what was noted outside of it: it is an old copy, or its end was lost.",
            );
        }
        HeadCheck::Different { .. } => {
            return Trust::old_copy(
                "The journal tells another history than was noted outside of it: it is a copy that went its own way.",
            );
        }
        HeadCheck::Unknown => {
            return Trust::old_copy(
                "Nothing is noted outside of the journal, so it may be an old copy.",
            );
        }
        // `Kept::head_check` has refused a longer one.
        HeadCheck::New | HeadCheck::Same | HeadCheck::Longer { .. } => {}
    }
    if is_empty {
        return Trust { clock: ClockTrust::Trusted, why: None };
    }
    if key_is_new {
        return Trust::in_doubt(
            "The key of reply tokens is new, so tokens that were given out are worth nothing.",
        );
    }
    let Some(last) = last else {
        return Trust::in_doubt("Nobody noted how the clocks stood when the hub ran last.");
    };
    if last.jumped {
        return Trust::in_doubt("The clock jumped while the hub ran last.");
    }
    let wall = now.wall.as_micros();
    if !start.boot.is_empty() && start.boot == last.boot {
        if (start.clock - last.clock).abs() > JUMP {
            return Trust::in_doubt("The clock jumped while the hub did not run.");
        }
    } else if wall < written - JUMP {
        return Trust::in_doubt("The clock is behind what was written last.");
    } else if wall > written.saturating_add(ABSURDLY_LATE) {
        return Trust::in_doubt("The clock is more than 30 days after what was written last.");
    }
    Trust { clock: ClockTrust::Trusted, why: None }
}

/// This start: which boot of the machine it is, and how its clocks stand.
pub(crate) fn this_start(now: Now) -> Start {
    Start {
        at: 0,
        version: env!("CARGO_PKG_VERSION").into(),
        boot: boot_identity(),
        clock: clock_difference(now),
        jumped: false,
        trust: String::new(),
    }
}

/// The clock on the wall minus the boot clock, in microseconds; it changes only by a jump.
pub(crate) fn clock_difference(now: Now) -> i64 {
    now.wall.as_micros().saturating_sub(i64::try_from(now.boot.0).unwrap_or(i64::MAX))
}

/// Names this boot of the machine; empty where nobody tells, or where the boot clock is not the
/// machine's own.
pub(crate) fn boot_identity() -> String {
    if cfg!(any(target_os = "linux", target_os = "android")) {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        return id.trim().chars().take(64).collect();
    }
    String::new()
}

pub(crate) fn cannot_open(path: &Path, fault: &CannotOpen) -> Fault {
    Fault::file(path, fault.what(), fault.remedy())
}

/// Fails closed: nothing is started from records that cannot be believed.
pub(crate) fn damaged(path: &Path, damage: &Damage) -> Fault {
    Fault::file(
        path,
        damage.to_string(),
        "`aaep audit verify` says more. Put a backup in its place (`aaep hub backup` makes them), or move it away to start with an empty one: then agents have to ask again.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use aaep_engine::Boot;
    use aaep_types::Timestamp;

    const WALL: i64 = 1_779_632_531_342;
    const SECOND: i64 = 1_000_000;

    fn start(boot: &str, clock: i64) -> Start {
        let (version, trust) = (String::new(), String::new());
        Start { at: 0, version, boot: boot.into(), clock, jumped: false, trust }
    }

    fn now() -> Now {
        Now { boot: Boot(1_000), wall: Timestamp::from_millis(WALL).unwrap() }
    }

    fn trust(last: &Start, written: i64, this: &Start) -> ClockTrust {
        judge(HeadCheck::Same, false, false, Some(last), written, this, now()).clock
    }

    // covers: I8
    #[test]
    fn on_the_same_boot_the_clock_counts_unless_it_jumped() {
        let (last, written) = (start("a", 500), WALL * 1000 - 60 * SECOND);
        assert_eq!(trust(&last, written, &start("a", 500)), ClockTrust::Trusted);
        assert_eq!(trust(&last, written, &start("a", 500 + SECOND)), ClockTrust::Trusted);
        for jump in [6 * SECOND, -6 * SECOND, 3600 * SECOND] {
            assert_eq!(trust(&last, written, &start("a", 500 + jump)), ClockTrust::Doubtful);
        }
        let jumped = Start { jumped: true, ..last };
        assert_eq!(trust(&jumped, written, &start("a", 500)), ClockTrust::Doubtful);
    }

    // covers: I8
    #[test]
    fn on_another_boot_the_clock_counts_if_it_went_on_and_not_absurdly_far() {
        let last = start("a", 500);
        for this in [start("b", 9), start("", 9)] {
            let written = WALL * 1000;
            assert_eq!(trust(&last, written - 60 * SECOND, &this), ClockTrust::Trusted);
            assert_eq!(trust(&last, written + 60 * SECOND, &this), ClockTrust::Doubtful);
            let late = written - 31 * 24 * 3600 * SECOND;
            assert_eq!(trust(&last, late, &this), ClockTrust::Doubtful);
        }
        // Where boots have no names, no two are the same.
        let nameless = start("", 500);
        assert_eq!(trust(&nameless, WALL * 1000 + 60 * SECOND, &nameless), ClockTrust::Doubtful);
    }

    // covers: I2, I8
    #[test]
    fn an_old_copy_and_a_new_key_are_recognised_before_any_clock() {
        let last = start("a", 500);
        let judge = |head_check, key_is_new, last| {
            judge(head_check, false, key_is_new, last, WALL * 1000, &start("a", 500), now()).clock
        };
        for head_check in
            [HeadCheck::Unknown, HeadCheck::Behind { noted: 9 }, HeadCheck::Different { noted: 9 }]
        {
            assert_eq!(judge(head_check, false, Some(&last)), ClockTrust::OldCopy);
        }
        assert_eq!(judge(HeadCheck::Same, true, Some(&last)), ClockTrust::Doubtful);
        assert_eq!(judge(HeadCheck::Same, false, None), ClockTrust::Doubtful);
        assert_eq!(judge(HeadCheck::Same, false, Some(&last)), ClockTrust::Trusted);
    }
}
