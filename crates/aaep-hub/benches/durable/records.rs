//! Journals to measure with: sessions that are over.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use aaep_engine::{Asked, Opened, Outcome, Record, RecordedEvents, RequestId};
use aaep_hub::start::JOURNAL_NAME;
use aaep_store::{ChainKey, Entry, JournalFile, Options, Sqlite, Unit};
use aaep_types::{Presence, SessionId};

use crate::loops::start_hub;

/// Records of a session.
pub const PER_SESSION: u64 = 20;

/// Records that are written at once.
const AT_ONCE: usize = 5000;

/// The journal of a hub that began once, so that everything a hub notes is there; and its key.
pub fn begin(place: &Path) -> (Sqlite, ChainKey) {
    let (data, heads) = (place.join("data"), place.join("state").join("heads"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { start_hub(Some(place)).await.stop().await }).expect("a good end");
    let file = JournalFile::open(&data.join(JOURNAL_NAME), Options::default()).expect("a journal");
    let key = ChainKey::read(&ChainKey::path_of(&heads, file.store())).expect("a key");
    let key = key.expect("a key");
    (file.with_key(key.clone()).expect("a journal"), key)
}

/// Keeps a session of somebody from its beginning to its end.
pub fn keep_session(journal: &mut Sqlite, session: u64, user: &str) {
    for number in 0..PER_SESSION {
        keep(journal, &record(session, number, user));
    }
}

thread_local! {
    static UNIT: RefCell<Unit> = RefCell::default();
}

/// Keeps a record, with many others at once.
pub fn keep(journal: &mut Sqlite, record: &Record) {
    let full = UNIT.with_borrow_mut(|unit| {
        let number = journal.head().0 + 1 + unit.entries.len() as u64;
        unit.entries.push(Entry { number, bytes: record.encode(number) });
        unit.entries.len() >= AT_ONCE
    });
    if full {
        write(journal);
    }
}

/// Writes what was not written yet.
pub fn write(journal: &mut Sqlite) {
    let unit = UNIT.take();
    journal.keep(&[unit]).expect("room");
    journal.tidy().expect("a disk");
}

fn record(session: u64, number: u64, user: &str) -> Record {
    let id: Arc<str> = SessionId::from_bits(u128::from(session) + 1).to_string().into();
    let request = RequestId::from_bits((u128::from(session) << 32) | (u128::from(number / 2) + 1));
    if number == 0 {
        return Record::Opened(Opened {
            session: id,
            agent: "worker".into(),
            user: user.into(),
            producer: r#"{"agent_id":"worker"}"#.into(),
            language: "en".into(),
            lease_seconds: 60,
            event: r#"{"type":"aaep:agent.session.started","summary_normal":"Working."}"#.into(),
            stamp: 1,
        });
    }
    let said = RecordedEvents::default();
    match number {
        last if last + 1 == PER_SESSION => Record::Ended { session: id, said },
        odd if odd % 2 == 1 => Record::Asked(Asked {
            request,
            session: id,
            confirmation: true,
            tool: "delete_file".into(),
            arguments: format!(r#"{{"path":"{number}.txt"}}"#).into(),
            event: r#""action":"Delete a file","consequence":"It is gone.","risk_level":"high","irreversible":true,"timeout_seconds":300,"default_decision":"reject","summary_normal":"May I delete a file?""#.into(),
            stamp: 1,
            timeout_seconds: 300,
            default_accept: false,
            irreversible: true,
            account: "".into(),
            needs: Presence::None,
            said,
        }),
        _ => Record::Resolved {
            request: RequestId::from_bits(request.bits() - 1),
            outcome: Outcome::Rejected,
            runs: false,
            by: "reader".into(),
            response: "".into(),
            reply: "".into(),
            presence: Presence::None,
            assertion: Default::default(),
            said,
        },
    }
}
