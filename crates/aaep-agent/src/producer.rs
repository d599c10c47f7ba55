//! Who the agent says it is.

use aaep_types::json::Writer;

/// Who the agent says it is, in every event. A name alone is enough: `"bank-assistant"`.
#[derive(Clone, Debug)]
pub struct Producer {
    members: Vec<(&'static str, String)>,
}

impl Producer {
    /// The agent with this id, which is the same in every version of it (E11).
    pub fn new(agent_id: impl Into<String>) -> Self {
        Self { members: vec![("agent_id", agent_id.into())] }
    }

    /// Its name for people.
    pub fn name(self, name: impl Into<String>) -> Self {
        self.with("agent_name", name.into())
    }

    /// Its version.
    pub fn version(self, version: impl Into<String>) -> Self {
        self.with("agent_version", version.into())
    }

    /// The model behind it.
    pub fn model(self, model: impl Into<String>) -> Self {
        self.with("model", model.into())
    }

    fn with(mut self, name: &'static str, value: String) -> Self {
        self.members.retain(|(known, _)| *known != name);
        self.members.push((name, value));
        self
    }

    #[cfg(feature = "embedded")]
    pub(crate) fn agent_id(&self) -> &str {
        self.members.first().map_or("", |(_, id)| id)
    }

    pub(crate) fn json(&self) -> String {
        let mut out = Writer::new();
        out.open('{');
        for (name, value) in &self.members {
            out.name(name);
            out.string(value);
            out.comma();
        }
        out.close('}');
        out.finish()
    }
}

impl From<&str> for Producer {
    fn from(agent_id: &str) -> Self {
        Self::new(agent_id)
    }
}

impl From<String> for Producer {
    fn from(agent_id: String) -> Self {
        Self::new(agent_id)
    }
}
