//! One turn of an agent: what it says, and the calls of tools that it makes.

use std::collections::BTreeMap;
use std::sync::Arc;

use aaep_agent::{Call, Output, Progress, Session};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::judged;
use crate::act::shown;

/// Calls of tools that are followed at the same time.
const CALLS: usize = 256;

/// Characters of one thought that are told.
pub(super) const THOUGHT: usize = 400;

/// One turn of one session.
pub(super) struct Turn {
    pub(super) session: Arc<Session>,
    pub(super) output: Option<Output>,
    pub(super) thought: String,
    pub(super) calls: BTreeMap<String, KnownCall>,
    pub(super) plan: String,
    /// Stops the agent when the person stops the session.
    pub(super) watch: JoinHandle<()>,
}

/// What is known of a call of a tool.
#[derive(Default)]
pub(super) struct KnownCall {
    pub(super) call: Value,
    pub(super) running: Option<Call>,
    pub(super) asked: bool,
    pub(super) over: bool,
}

impl Turn {
    /// What is known of the call that this tells of.
    pub(super) fn known(&mut self, update: &Value) -> Option<&mut KnownCall> {
        let id = update.get("toolCallId").and_then(Value::as_str)?;
        if !self.calls.contains_key(id) && self.calls.len() >= CALLS {
            // Those that are over make room.
            self.calls.retain(|_, known| !known.over);
            if self.calls.len() >= CALLS {
                return None;
            }
        }
        let known = self.calls.entry(id.to_owned()).or_default();
        if !known.call.is_object() {
            known.call = serde_json::json!({});
        }
        for name in [
            "toolCallId",
            "title",
            "kind",
            "status",
            "rawInput",
            "content",
            "locations",
            "name",
            "_meta",
        ] {
            match update.get(name) {
                None | Some(Value::Null) => {}
                Some(value) => known.call[name] = value.clone(),
            }
        }
        if let Some((name, arguments)) = judged::in_content(update) {
            known.call["name"] = name;
            known.call["rawInput"] = arguments;
        }
        Some(known)
    }

    pub(super) async fn thinks(&mut self) -> Result<(), aaep_agent::Error> {
        let thought = std::mem::take(&mut self.thought);
        if thought.trim().is_empty() {
            return Ok(());
        }
        // enforces: L6
        self.session.thinking(aaep_types::cut(thought.trim(), THOUGHT)).await
    }

    pub(super) async fn finish(&mut self) {
        if let Some(output) = self.output.take() {
            let _ = output.finish().await;
        }
    }

    /// Everything that was begun is said before something else is.
    pub(super) async fn flush(&mut self) {
        let _ = self.thinks().await;
        self.finish().await;
    }

    pub(super) async fn plan(&mut self, update: &Value) -> Result<(), aaep_agent::Error> {
        let entries = update.get("entries").and_then(Value::as_array);
        let entries: Vec<_> = entries.into_iter().flatten().take(1000).collect();
        let is = |entry: &Value, status: &str| entry.get("status").is_some_and(|it| it == status);
        let done = entries.iter().filter(|entry| is(entry, "completed")).count();
        let current = entries.iter().find(|entry| is(entry, "in_progress"));
        let what = current.and_then(|entry| entry.get("content")).and_then(Value::as_str);
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let step = count(done.saturating_add(1).min(entries.len()));
        let words = format!("{step} of {}: {}", entries.len(), what.unwrap_or_default());
        if entries.is_empty() || self.plan == words {
            return Ok(());
        }
        self.plan = words;
        let mut progress = Progress::step(step, count(entries.len()));
        if let Some(what) = what {
            progress = progress.description(shown(what));
        }
        self.session.progress(progress).await
    }

    /// Says something that has to be heard. Progress would not do: later progress replaces it for
    /// a slow listener.
    pub(super) async fn state(&mut self, words: &str) -> Result<(), aaep_agent::Error> {
        self.flush().await;
        let mut output = self.session.output()?;
        output.write(words).await?;
        output.finish().await.map(drop)
    }
}
