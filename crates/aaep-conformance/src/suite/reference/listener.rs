//! What one listener of the reference producer hears, and when.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::ProducerFault;
use crate::suite::ear::{is, is_critical};

/// What was agreed on with a listener.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// As it is told.
    pub(super) honored: Value,
    /// Nothing was agreed: everything is heard as it comes, and may be answered.
    plain: bool,
}

impl Terms {
    /// Of a listener without a handshake.
    pub(super) fn plain() -> Self {
        Self { honored: Value::Null, plain: true }
    }

    /// Exactly what was asked for, where it is known.
    pub(super) fn of(asked: &Value, fault: Option<ProducerFault>) -> Self {
        let mut honored = json!({});
        for member in [
            "max_events_per_second",
            "preferred_verbosity",
            "languages",
            "supports_confirmation_reply",
            "supports_clarification_reply",
            "coalesce_boundaries",
            "event_filters",
            "supported_conformance_levels",
        ] {
            if !asked[member].is_null() {
                honored[member] = asked[member].clone();
            }
        }
        match fault {
            Some(ProducerFault::GrantsMoreEvents) => {
                honored["max_events_per_second"] = json!(100_000);
            }
            Some(ProducerFault::GrantsReplies) => {
                honored["supports_confirmation_reply"] = json!(true)
            }
            Some(ProducerFault::GrantsMoreLanguages) => honored["languages"] = json!(["en", "tlh"]),
            Some(ProducerFault::WidensFilters) => {
                honored["event_filters"] = json!({ "include": ["*"] })
            }
            Some(ProducerFault::DefaultsToEverything) if asked == &json!({}) => {
                honored["supported_conformance_levels"] = json!([1, 2, 3]);
                honored["supports_confirmation_reply"] = json!(true);
            }
            _ => {}
        }
        Self { honored, plain: false }
    }

    /// These terms, with what is named here in its place.
    pub(super) fn changed(&self, named: &Value, fault: Option<ProducerFault>) -> Self {
        if fault == Some(ProducerFault::IgnoresNewTerms) {
            return self.clone();
        }
        let mut asked = self.honored.clone();
        if fault == Some(ProducerFault::NewTermsForgetTheRest) {
            asked = json!({});
        }
        for (member, value) in named.as_object().into_iter().flatten() {
            asked[member] = value.clone();
        }
        Self::of(&asked, fault)
    }

    pub(super) fn may_reply(&self) -> bool {
        self.plain || self.honored["supports_confirmation_reply"] == true
    }

    fn rate(&self) -> Option<f64> {
        self.honored["max_events_per_second"].as_f64()
    }

    fn hears(&self, event: &Value, fault: Option<ProducerFault>) -> bool {
        let name = event["type"].as_str().unwrap_or_default();
        let matches = |pattern: &Value| match pattern.as_str().unwrap_or_default() {
            pattern if pattern.ends_with('*') => name.starts_with(pattern.trim_end_matches('*')),
            pattern => name == pattern,
        };
        let filters = &self.honored["event_filters"];
        let any = |list: &Value| list.as_array().is_some_and(|list| list.iter().any(matches));
        let included = !filters["include"].is_array() || any(&filters["include"]);
        let included = included || fault == Some(ProducerFault::LeaksWhatIsNotIncluded);
        let excluded =
            any(&filters["exclude"]) && fault != Some(ProducerFault::LeaksWhatIsExcluded);
        included && !excluded
    }

    /// Whether a piece of text may be told as it is.
    fn is_boundary(&self, piece: &Value) -> bool {
        let usual = json!(["sentence", "completion"]);
        let asked = &self.honored["coalesce_boundaries"];
        let asked = if asked.is_array() { asked } else { &usual };
        let has =
            |name: &str| asked.as_array().is_some_and(|list| list.iter().any(|it| it == name));
        let said = piece["chunk"].as_str().unwrap_or_default().trim_end();
        self.plain
            || has("none")
            || has("word")
            || piece["complete"] == true
            || (has("sentence") && said.ends_with(['.', '!', '?']))
    }
}

/// What waits for one listener.
pub(super) struct Shaper {
    pub(super) terms: Terms,
    fault: Option<ProducerFault>,
    tokens: f64,
    filled: Instant,
    critical: VecDeque<Value>,
    others: VecDeque<Value>,
    /// Text that waits for its boundary, by output.
    open: HashMap<String, Value>,
    /// An event that comes after the next one, for a fault.
    swapped: Option<Value>,
}

impl Shaper {
    pub(super) fn new(terms: Terms, fault: Option<ProducerFault>) -> Self {
        let tokens = terms.rate().unwrap_or_default();
        Self {
            terms,
            fault,
            tokens,
            filled: Instant::now(),
            critical: VecDeque::new(),
            others: VecDeque::new(),
            open: HashMap::new(),
            swapped: None,
        }
    }

    fn is(&self, fault: ProducerFault) -> bool {
        self.fault == Some(fault)
    }

    pub(super) fn offer(&mut self, event: Value) {
        if self.terms.plain {
            return self.others.push_back(event);
        }
        let critical = is_critical(&event);
        let heard = self.terms.hears(&event, self.fault);
        if !heard && (!critical || self.is(ProducerFault::FiltersCritical)) {
            return;
        }
        if critical && !self.is(ProducerFault::CriticalWaits) {
            return self.critical.push_back(event);
        }
        if self.is(ProducerFault::Disorders)
            && is(&event, "state.changed")
            && self.swapped.is_none()
        {
            self.swapped = Some(event);
            return;
        }
        match is(&event, "output.streaming") {
            true => self.text(event),
            false => self.others.push_back(event),
        }
        self.others.extend(self.swapped.take());
    }

    /// Text waits for a boundary, and is merged with what waits already.
    fn text(&mut self, event: Value) {
        let output = event["output_id"].as_str().unwrap_or_default().to_owned();
        let merged = match self.open.remove(&output) {
            Some(before) => self.merge(before, event),
            None => event,
        };
        if !self.terms.is_boundary(&merged) && !self.is(ProducerFault::IgnoresBoundaries) {
            self.open.insert(output, merged);
            return;
        }
        let limited = self.terms.rate().is_some();
        let same = |it: &Value| {
            is(it, "output.streaming")
                && it["output_id"] == merged["output_id"]
                && it["session_id"] == merged["session_id"]
        };
        match self.others.iter().rposition(same).filter(|_| limited) {
            Some(place) => {
                let before = std::mem::take(&mut self.others[place]);
                self.others[place] = self.merge(before, merged);
            }
            None => self.others.push_back(merged),
        }
    }

    fn merge(&self, before: Value, mut after: Value) -> Value {
        let part = |event: &Value| event["chunk"].as_str().unwrap_or_default().to_owned();
        let lost = self.is(ProducerFault::LosesTextWhenMerging);
        let text = if lost { part(&after) } else { part(&before) + &part(&after) };
        after["chunk"] = json!(text);
        after["position"] = before["position"].clone();
        after
    }

    /// What may be told now.
    pub(super) fn next(&mut self, now: Instant) -> Option<Value> {
        if let Some(event) = self.critical.pop_front() {
            return Some(event);
        }
        let Some(rate) = self.terms.rate().filter(|_| !self.is(ProducerFault::IgnoresRate)) else {
            return self.others.pop_front();
        };
        self.tokens += rate * now.duration_since(self.filled).as_secs_f64();
        self.tokens = self.tokens.min(rate);
        self.filled = now;
        if self.tokens < 1.0 {
            return None;
        }
        let event = self.others.pop_front()?;
        self.tokens -= 1.0;
        Some(event)
    }

    /// How long what waits has to wait, if anything does.
    pub(super) fn pause(&self) -> Option<Duration> {
        let rate = self.terms.rate()?;
        let missing = (1.0 - self.tokens).max(0.0) / rate;
        (!self.others.is_empty()).then(|| Duration::from_secs_f64(missing + 0.002))
    }
}
