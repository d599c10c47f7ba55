//! Erasing what is kept about a person through a hub that works.

use aaep_hub::config::{Flags, Surroundings, load};
use aaep_hub::start::copy_of;
use serde_json::{Value, json};

use crate::admin;
use crate::arguments::EraseOptions;

// enforces: S13
/// Has the hub erase it, or say what it would erase: what happened, and whether nothing is left to do.
pub(super) fn erase(options: &EraseOptions, flags: &Flags) -> Result<(Vec<String>, bool), String> {
    let client = admin::client(&options.hub, &options.token_file, &options.ca)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let ask = |confirm: bool| -> Result<Value, String> {
        let wanted = json!({ "user": options.user, "note": options.note, "confirm": confirm });
        let answer = runtime.block_on(client.post("admin/erase", wanted.to_string()));
        let answer = admin::good(answer)?;
        serde_json::from_slice(&answer.body).map_err(|_| "The hub's answer cannot be read.".into())
    };
    let mut found = ask(false)?;
    let none = |found: &Value| found["records"] == 0;
    let mut lines = Vec::new();
    if !none(&found) && options.confirm {
        if let Some(file) = &options.export {
            let loaded = Surroundings::of_process().and_then(|around| load(flags, &around));
            let copied = loaded.and_then(|loaded| copy_of(&loaded.config, &options.user, file));
            copied.map_err(|fault| format!("{fault} Nothing was erased."))?;
            lines.push(format!("A copy of everything about this person is in {}.", file.display()));
        }
        found = ask(true)?;
    }
    let (records, sessions) = (&found["records"], &found["sessions"]);
    let erased = found["erased"] == true;
    lines.push(match (none(&found), erased) {
        (true, _) => "Nothing is kept about this person that can be erased now.".into(),
        (_, true) => format!("{records} records were erased, of {sessions} sessions. The hub takes their bytes out of its file. Backups that were made before still hold them."),
        (_, false) => format!("{records} records can be erased, of {sessions} sessions."),
    });
    let still_needed = found["still_needed"].as_u64().unwrap_or(0);
    if still_needed > 0 {
        lines.push(format!("{still_needed} sessions are open, or ended less than a day ago, and stay. Erase again when they are over."));
    }
    if !none(&found) && !erased {
        lines.push("Nothing was changed. To erase them, say --confirm, and --export FILE for a copy or --without-export for none.".into());
    }
    Ok((lines, erased || (none(&found) && still_needed == 0)))
}
