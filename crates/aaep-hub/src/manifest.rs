//! What the hub says of itself (§5.10), at `/.well-known/aaep-manifest.json`.

use aaep_types::{AAEP_VERSION, CORE_CONTEXT, EventKind, KNOWN_EXTENSIONS};
use serde_json::json;

use crate::config::Config;

/// Where it is.
pub(crate) const PATH: &str = "/.well-known/aaep-manifest.json";

// enforces: H22, H27
/// The manifest; `agents` are those behind the hub, whose events bear their own names.
pub(crate) fn of(config: &Config, agents: &[String]) -> String {
    let base = config.base.as_str();
    let mut transports = vec![
        json!({ "name": "sse", "path_prefix": base, "framing": "one event per message, id is the event_id" }),
        json!({ "name": "websocket", "path": format!("{base}/ws"), "subprotocol": "aaep.v1", "framing": "one message per text frame" }),
    ];
    if cfg!(unix) && config.unix_socket.enabled {
        transports.push(json!({ "name": "unix", "framing": "4-byte big-endian length" }));
    }
    json!({
        "@context": CORE_CONTEXT,
        "type": "aaep:producer.manifest",
        "agent_id": config.hub.agent_id.as_str(),
        "agent_name": config.hub.agent_name.as_str(),
        "agent_version": env!("CARGO_PKG_VERSION"),
        "aaep_versions_supported": [AAEP_VERSION],
        "conformance_levels_supported": [1, 2, 3],
        "transports_supported": transports,
        "event_types_emitted": EventKind::ALL.map(EventKind::as_str),
        "extensions_supported": KNOWN_EXTENSIONS.iter().map(|known| known.uri).collect::<Vec<_>>(),
        "max_concurrent_subscriptions": config.limits.subscriptions,
        "agents": agents,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aaep_types::Message;

    // covers: H22, H27
    #[test]
    fn the_manifest_is_one_and_names_the_agents_behind_the_hub() {
        let text = of(&Config::default(), &["cook".to_owned()]);
        let parsed = Message::parse(text.as_bytes());
        assert!(matches!(parsed, Ok(Message::Manifest(_))), "{parsed:?}");
        assert!(text.contains(r#""agents":["cook"]"#) && text.contains("/aaep/v1"));
    }
}
