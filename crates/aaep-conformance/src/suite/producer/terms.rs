//! Whether what was granted is more than what was asked for (§5.4.4).

use serde_json::{Value, json};

/// What is granted beyond what was asked; nothing is as it should be.
pub(super) fn beyond(asked: &Value, granted: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut say = |what: String| found.push(what);
    if let Some(rate) = asked["max_events_per_second"].as_f64() {
        match granted["max_events_per_second"].as_f64() {
            Some(granted) if granted <= rate => {}
            Some(granted) => say(format!("{granted} events a second were granted, {rate} asked.")),
            None => say(format!("{rate} events a second were asked, and no limit was granted.")),
        }
    }
    for (member, usual) in [
        ("languages", json!(["en-US"])),
        ("coalesce_boundaries", json!(["sentence", "completion"])),
        ("supported_conformance_levels", json!([1])),
        ("supported_extensions", json!([])),
    ] {
        let asked = if asked[member].is_array() { &asked[member] } else { &usual };
        for more in list(&granted[member]).filter(|one| !list(asked).any(|it| it == *one)) {
            say(format!("{member} holds {more}, which was not asked for."));
        }
    }
    for member in ["supports_confirmation_reply", "supports_clarification_reply"] {
        if granted[member] == true && asked[member] != true {
            say(format!("{member} was granted and not asked for."));
        }
    }
    wider_filters(&asked["event_filters"], &granted["event_filters"], &mut say);
    found
}

fn wider_filters(asked: &Value, granted: &Value, say: &mut impl FnMut(String)) {
    let all = json!(["aaep:agent.*"]);
    let included = |filters: &Value| match &filters["include"] {
        Value::Array(list) => Value::Array(list.clone()),
        _ => all.clone(),
    };
    let wanted = included(asked);
    for pattern in list(&included(granted)) {
        if !list(&wanted).any(|wide| covers(wide, pattern)) {
            say(format!("The filter includes {pattern}, which was not asked for."));
        }
    }
    for pattern in list(&asked["exclude"]) {
        if !list(&granted["exclude"]).any(|wide| covers(wide, pattern)) {
            say(format!("The filter does not exclude {pattern} any more."));
        }
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Whether everything that the second pattern matches is matched by the first.
fn covers(wide: &Value, narrow: &Value) -> bool {
    let (Some(wide), Some(narrow)) = (wide.as_str(), narrow.as_str()) else { return false };
    match wide.strip_suffix('*') {
        Some(beginning) => narrow.starts_with(beginning),
        None => wide == narrow,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: H14
    #[test]
    fn what_was_not_asked_for_is_found_and_less_is_fine() {
        let asked = json!({
            "max_events_per_second": 4, "languages": ["de", "en"],
            "event_filters": { "include": ["aaep:agent.tool.*"], "exclude": ["aaep:agent.tool.completed"] },
        });
        let less = json!({
            "max_events_per_second": 2, "languages": ["en"],
            "coalesce_boundaries": ["completion"], "supported_conformance_levels": [1],
            "event_filters": { "include": ["aaep:agent.tool.invoked"], "exclude": ["aaep:agent.*"] },
        });
        assert_eq!(beyond(&asked, &less), Vec::<String>::new());
        let more = json!({
            "languages": ["fr"], "coalesce_boundaries": ["none"],
            "supported_conformance_levels": [1, 2], "supports_confirmation_reply": true,
            "event_filters": { "include": ["aaep:agent.*"] },
        });
        assert_eq!(beyond(&asked, &more).len(), 7, "{:?}", beyond(&asked, &more));
        assert_eq!(beyond(&json!({}), &json!({})), Vec::<String>::new());
    }
}
