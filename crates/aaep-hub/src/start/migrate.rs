//! Giving a journal its key with the operator's word: once, for a journal from before journals had
//! keys, or when the key is lost.

use aaep_store::{CannotOpen, ChainKey, Head, Migration, Options, Reader, Sqlite, audit};

use super::DataDirectory;
use super::journal::{JOURNAL_NAME, cannot_open, heads, new_key};
use crate::Fault;
use crate::config::Config;

/// What was found, and done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// In sentences.
    pub lines: Vec<String>,
    /// Whether there is nothing left to do. If not, nothing was changed.
    pub done: bool,
}

// enforces: I33
/// Looks at the journal of a data directory, says what it finds, and gives the journal its key if the
/// operator has confirmed that it is to be believed.
pub fn migrate(config: &Config, confirmed: bool) -> Result<Migrated, Fault> {
    let Some(data) = &config.data else {
        let what = "The configuration says that nothing is kept.".into();
        return Err(Fault::System { what });
    };
    let path = data.join(JOURNAL_NAME);
    let failed = |fault: CannotOpen| cannot_open(&path, &fault);
    if !path.exists() {
        return Err(failed(CannotOpen::Missing));
    }
    let _data = DataDirectory::open(data)?;
    let reader = Reader::open(&path).map_err(failed)?;
    let store = reader.store().to_owned();
    let heads = heads(data, config.state.as_deref());
    let key = ChainKey::read(&ChainKey::path_of(&heads, &store)).map_err(failed)?;
    let mut lines = vec![format!("Journal: {}", path.display())];
    if let (false, Some(key)) = (reader.is_unkeyed(), &key) {
        // With another key it says so.
        drop(Sqlite::open(&path, Options::default(), key).map_err(failed)?);
        lines.push("It has its key. There is nothing to do.".into());
        return Ok(Migrated { lines, done: true });
    }
    if reader.is_unkeyed() && Head::is_keyed(&heads, &store) {
        return Err(Fault::file(
            &path,
            "This journal is from before journals had keys, and a hub has already worked with a newer one of the same name that has a key. It is an old copy, or somebody forged it.",
            "Put a newer backup in its place, or move it away to begin with an empty one. If you want this old copy all the same, remove the file that ends with .head from the state directory: then what waits in it is rejected.",
        ));
    }
    let noted = Head::look(&heads, &store);
    let end_agrees = describe(&reader, noted, &mut lines)?;
    drop(reader);
    if !confirmed {
        lines.push("Nothing was changed. Make a backup with `aaep hub backup FILE`; if you believe what is in the journal, run `aaep hub migrate --confirm`.".into());
        return Ok(Migrated { lines, done: false });
    }
    crate::files::create_private_directory(&heads)?;
    let key = match key {
        Some(key) => key,
        None => new_key(&heads, &store)?,
    };
    let anchor = Migration::open(&path).and_then(|one| one.apply(&key)).map_err(failed)?;
    // Who could write the journal could change it until here, but no longer.
    let journal = Sqlite::open(&path, Options::default(), &key).map_err(failed)?;
    if end_agrees && config.state.is_some() {
        let mut head = Head::open(&heads, &store).map_err(failed)?;
        let noted = head.note(journal.position());
        noted.map_err(|error| crate::files::cannot_write(head.path(), &error))?;
    }
    let begins = anchor.number + 1;
    lines.push(format!(
        "Done. The journal has its key: {}",
        ChainKey::path_of(&heads, &store).display()
    ));
    lines.push(format!("Trust begins with record {begins}; `aaep audit verify` says so, too."));
    Ok(Migrated { lines, done: true })
}

/// Says what is there; true if its end is the one that was noted outside.
fn describe(
    reader: &Reader,
    noted: Option<aaep_store::Noted>,
    lines: &mut Vec<String>,
) -> Result<bool, Fault> {
    if !reader.is_unkeyed() {
        lines.push("It was written with a key, and the key is not there. Without it nobody can tell its records from forged ones.".into());
        lines.push("With a new key, its records are believed as they are; calls with an idempotency key are forgotten, and what waits is rejected at the next start.".into());
        return Ok(false);
    }
    lines.push("It was written before journals had keys.".into());
    let whole = audit::verify(reader, None, None).map_err(|bad| Fault::System {
        what: format!("{bad} Nothing was changed. Put a backup in its place, or move it away to begin with an empty one."),
    })?;
    lines.push(format!("{} records, each following from the one before it.", whole.records));
    let end = audit::verify(reader, None, noted);
    lines.push(match (&end, noted) {
        (Ok(_), Some(_)) => "Its end agrees with what was noted outside of it.".into(),
        (Ok(_), None) => "Nothing is noted outside of it, so it may be an old copy: what waits in it is rejected at the next start.".into(),
        (Err(bad), _) => format!("{bad} What waits in it is rejected at the next start."),
    });
    lines.push("Until now, whoever could write the data directory could change these records unseen. A key cannot tell afterwards.".into());
    Ok(end.is_ok() && noted.is_some())
}
