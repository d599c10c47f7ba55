//! Secrets do not pass (§4.3.1, §10 T5): every text that an agent sends is looked through before the
//! core sees it. What looks like a secret is taken out, or the call is refused; `secrets` in the
//! configuration says which.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use aaep_types::agent_api::OutputChunk;
use aaep_types::json::{Members, Raw, Writer, elements};
use aaep_types::redaction::{self, Redaction};
use aaep_types::secret::{self, Kind, Redactor};
use aaep_types::{CORE_CONTEXT, OutputId, SessionId};
use serde::{Deserialize, Serialize};

/// What becomes of a secret in what an agent sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Secrets {
    /// It is taken out; the text and the event say so.
    #[default]
    Redact,
    /// The call is refused.
    Refuse,
}

/// How deep a body may nest.
const DEPTH: usize = 64;

/// Members that name things and are no text for people. Consent and pairs of calls hang on them.
const NAMES: [&str; 4] = ["tool", "tool_call_id", "output_id", "@context"];

/// Outputs of one session that are followed; of more, the oldest are forgotten.
const OUTPUTS: usize = 64;

/// A secret was found, and is to be refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SecretFound {
    /// The member at the top level that holds it.
    pub(crate) member: String,
    pub(crate) kind: Kind,
}

impl SecretFound {
    /// What is wrong, and what to do.
    pub(crate) fn text(&self) -> String {
        format!(
            "There is what looks like a {} in `{}`. Others hear and keep these words; leave it out.",
            self.kind, self.member
        )
    }
}

/// A piece of an output, on its way.
pub(crate) struct Piece {
    session: SessionId,
    output: Option<OutputId>,
    next: Flow,
    over: bool,
}

/// The text of one output, as far as it was said.
#[derive(Clone, Debug, Default)]
struct Flow {
    redactor: Redactor,
    /// By how many characters more was said than came.
    shift: i64,
    /// How many pieces were said.
    pieces: u64,
}

/// The outputs of all sessions: a secret may lie across many pieces. Only what was said is kept, so
/// there is nothing here but of sessions that exist.
#[derive(Default)]
pub(crate) struct Outputs(Mutex<BTreeMap<SessionId, Flows>>);

type Flows = Vec<(Option<OutputId>, Flow)>;

impl Outputs {
    fn flow(&self, session: SessionId, output: Option<OutputId>) -> Flow {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut followed = all.get(&session).into_iter().flatten();
        let flow = followed.find(|(known, _)| *known == output).map(|(_, flow)| flow.clone());
        flow.unwrap_or_default()
    }

    // enforces: T14
    /// Whether this piece was looked through with all before it in mind. Two that come at once are each
    /// looked through without the other, and a secret may lie across both.
    pub(crate) fn follows(&self, piece: &Piece) -> bool {
        self.flow(piece.session, piece.output).pieces + 1 == piece.next.pieces
    }

    // enforces: I22
    /// A piece was said.
    pub(crate) fn said(&self, piece: Piece) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let followed = all.entry(piece.session).or_default();
        followed.retain(|(known, _)| *known != piece.output);
        if followed.len() >= OUTPUTS {
            followed.remove(0);
        }
        if !piece.over {
            followed.push((piece.output, piece.next));
        }
    }

    /// A session is over.
    pub(crate) fn forget(&self, session: SessionId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
    }

    // enforces: T14, T17
    /// Watches a piece of an output, known by what stood before it. Gives the payload without its
    /// secrets if it is another one then; positions are those of what is said.
    pub(crate) fn look_through(
        &self,
        session: SessionId,
        members: &Members<'_>,
        secrets: Secrets,
    ) -> Result<(Option<String>, Option<Piece>), SecretFound> {
        let Some(chunk) = OutputChunk::read(members) else { return Ok((None, None)) };
        let OutputChunk { text: came, output, complete: over } = chunk;
        let mut next = self.flow(session, output);
        let passed = next.redactor.pass(&came);
        if let (Secrets::Refuse, Some(kind)) = (secrets, passed.removed.first()) {
            return Err(SecretFound { member: "chunk".into(), kind: *kind });
        }
        let shift = next.shift;
        next.shift += passed.text.chars().count() as i64 - came.chars().count() as i64;
        next.pieces += 1;
        let piece = Some(Piece { session, output, next, over });
        if shift == 0 && passed.text == came {
            return Ok((None, piece));
        }
        let said = OutputChunk::replaced(members, &passed.text, shift);
        Ok((Some(telling(&said, passed.removed)), piece))
    }
}

// enforces: T14
/// What is left of an agent's object without its secrets, if there were any; it says what was taken
/// out.
pub(crate) fn look_through(
    members: &Members<'_>,
    secrets: Secrets,
) -> Result<Option<String>, SecretFound> {
    let is_text = |name: &str| !NAMES.contains(&name) && name != "chunk";
    let found = members.iter().find_map(|member| {
        let kind = is_text(&member.name).then(|| first_secret(member.value, None)).flatten()?;
        Some((member, kind))
    });
    match (found, secrets) {
        (None, _) => return Ok(None),
        (Some((member, kind)), Secrets::Refuse) => {
            return Err(SecretFound { member: member.name.clone().into_owned(), kind });
        }
        (Some(_), Secrets::Redact) => {}
    }
    let mut sieve = Sieve::default();
    let mut out = Writer::new();
    out.open('{');
    for member in members.iter() {
        out.name(&member.name);
        if is_text(&member.name) {
            sieve.value(member.value, None, &mut out);
        } else {
            out.raw(member.value);
        }
        out.comma();
    }
    out.close('}');
    Ok(Some(telling(&out.finish(), sieve.removed)))
}

/// The first secret in a value. `named` is what the name of the value, or of something around it,
/// says that it is.
fn first_secret(value: Raw<'_>, named: Option<Kind>) -> Option<Kind> {
    match (value, named) {
        (Raw::Object(object), _) => {
            let members = Members::whole(object, DEPTH).ok().flatten().unwrap_or_default();
            members.iter().find_map(|member| {
                first_secret(member.value, named.or_else(|| secret::names_secret(&member.name)))
            })
        }
        (Raw::Array(list), _) => {
            elements(list).into_iter().find_map(|element| first_secret(element, named))
        }
        (Raw::String(_) | Raw::Number(_), Some(kind)) => Some(kind),
        (Raw::String(text), None) => {
            secret::find(&text.decode()).into_iter().next().map(|found| found.kind)
        }
        _ => None,
    }
}

/// A text of an agent that stands alone, and what was taken out of it.
pub(crate) fn look_through_text(
    name: &str,
    text: String,
    secrets: Secrets,
) -> Result<(String, Vec<Kind>), SecretFound> {
    let removed: Vec<Kind> = secret::find(&text).into_iter().map(|found| found.kind).collect();
    match (removed.first(), secrets) {
        (None, _) => Ok((text, removed)),
        (Some(kind), Secrets::Refuse) => Err(SecretFound { member: name.to_owned(), kind: *kind }),
        (Some(_), Secrets::Redact) => Ok((secret::redact(&text).into_owned(), removed)),
    }
}

/// Takes secrets out of values.
#[derive(Default)]
struct Sieve {
    removed: Vec<Kind>,
}

impl Sieve {
    /// Writes a value without its secrets. `named` is what the name of the value, or of something
    /// around it, says that it is.
    fn value(&mut self, value: Raw<'_>, named: Option<Kind>, out: &mut Writer) {
        match (value, named) {
            (Raw::Object(object), _) => {
                let members = Members::whole(object, DEPTH).ok().flatten().unwrap_or_default();
                out.open('{');
                for member in members.iter() {
                    out.name(&member.name);
                    let named = named.or_else(|| secret::names_secret(&member.name));
                    self.value(member.value, named, out);
                    out.comma();
                }
                out.close('}');
            }
            (Raw::Array(list), _) => {
                out.open('[');
                for element in elements(list) {
                    self.value(element, named, out);
                    out.comma();
                }
                out.close(']');
            }
            (Raw::String(_) | Raw::Number(_), Some(kind)) => {
                self.removed.push(kind);
                out.string(kind.replacement());
            }
            (Raw::String(text), None) => {
                let text = text.decode();
                let found = secret::find(&text);
                if found.is_empty() {
                    return out.raw(value);
                }
                self.removed.extend(found.into_iter().map(|found| found.kind));
                out.string(&secret::redact(&text));
            }
            (other, _) => out.raw(other),
        }
    }
}

/// The object with the extension that says what was taken out, and its address. What the agent itself
/// says there stays, since it knows more.
pub(crate) fn telling(payload: &str, removed: Vec<Kind>) -> String {
    match Redaction::of(removed) {
        Some(redaction) => {
            with_extension(payload, (redaction::URI, redaction::PREFIX), &redaction.to_json())
        }
        None => payload.to_owned(),
    }
}

/// An agent's object with one more extension, unless it is there, and its address.
pub(crate) fn with_extension(payload: &str, (uri, prefix): (&str, &str), json: &str) -> String {
    let members = Members::whole(payload, DEPTH).ok().flatten().unwrap_or_default();
    let mut out = Writer::with_capacity(payload.len() + 128);
    out.open('{');
    for member in members.iter().filter(|m| !matches!(&*m.name, "@context" | "extensions")) {
        out.name(&member.name);
        out.raw(member.value);
        out.comma();
    }
    out.name("@context");
    write_context(members.find("@context"), uri, &mut out);
    out.comma();
    out.name("extensions");
    out.open('{');
    let mut told = false;
    if let Some(Raw::Object(theirs)) = members.find("extensions") {
        let theirs = Members::whole(theirs, DEPTH).ok().flatten().unwrap_or_default();
        for member in theirs.iter() {
            told |= member.name == prefix;
            out.name(&member.name);
            out.raw(member.value);
            out.comma();
        }
    }
    if !told {
        out.name(prefix);
        out.json(json);
    }
    out.close('}');
    out.close('}');
    out.finish()
}

fn write_context(said: Option<Raw<'_>>, uri: &str, out: &mut Writer) {
    let list = match said {
        Some(Raw::Array(list)) => elements(list),
        // Something that is none is left for the engine to refuse.
        Some(Raw::String(text)) if text.decode() != CORE_CONTEXT => {
            return out.raw(Raw::String(text));
        }
        Some(Raw::String(_)) | None => Vec::new(),
        Some(other) => return out.raw(other),
    };
    let ours = |value: &Raw<'_>| match value {
        Raw::String(text) => [CORE_CONTEXT, uri].contains(&&*text.decode()),
        _ => false,
    };
    out.open('[');
    out.string(CORE_CONTEXT);
    out.comma();
    out.string(uri);
    for uri in list.into_iter().filter(|value| !ours(value)) {
        out.comma();
        out.raw(uri);
    }
    out.close(']');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn members(text: &str) -> Members<'_> {
        Members::whole(text, DEPTH).unwrap().unwrap()
    }

    fn passed(payload: Value) -> Value {
        let text = look_through(&members(&payload.to_string()), Secrets::Redact).unwrap();
        serde_json::from_str(&text.unwrap()).unwrap()
    }

    // covers: T14
    #[test]
    fn a_secret_is_taken_out_wherever_it_stands_and_the_event_says_so() {
        let said = passed(json!({
            "summary_normal": "Signing in with password=hunter2.",
            "extra_context": { "api_key": "abc", "list": ["4111 1111 1111 1111", 7] },
            "@context": [CORE_CONTEXT, "https://example.org/m"],
            "extensions": { "m": { "note": "fine" } },
            "tool": "pay",
        }));
        assert_eq!(said["summary_normal"], "Signing in with password=[password removed].");
        assert_eq!(said["extra_context"]["api_key"], "[key removed]");
        assert_eq!(said["extra_context"]["list"], json!(["[card number removed]", 7]));
        assert_eq!(
            said["@context"],
            json!([CORE_CONTEXT, redaction::URI, "https://example.org/m"])
        );
        let removed = json!({ "removed": ["card_number", "key", "password"] });
        assert_eq!(said["extensions"], json!({ "m": { "note": "fine" }, "redaction": removed }));
    }

    // covers: T14
    #[test]
    fn what_holds_no_secret_stays_byte_for_byte() {
        let text = r#"{ "summary_normal" : "Caf\u00e9, order 4111 1111 1111 1112.", "x":[1.0] }"#;
        assert_eq!(look_through(&members(text), Secrets::Redact), Ok(None));
        assert_eq!(look_through(&members(text), Secrets::Refuse), Ok(None));
    }

    // covers: T14
    #[test]
    fn a_refusal_names_the_member_and_not_the_secret() {
        let text = r#"{"summary_normal":"x","action":"Use 4111 1111 1111 1111"}"#;
        let refused = look_through(&members(text), Secrets::Refuse).unwrap_err();
        assert!(refused.text().contains("card number in `action`"), "{}", refused.text());
        assert!(!refused.text().contains("4111"));
    }

    // covers: T14, T17
    #[test]
    fn a_secret_across_two_pieces_is_taken_out_and_positions_follow() {
        let outputs = Outputs::default();
        let session = SessionId::from_bits(1);
        let mut at = 0;
        let mut heard = String::new();
        for chunk in ["The password=", "hunter2", " is old.", " Bye."] {
            let complete = chunk == " Bye.";
            let payload =
                json!({ "chunk": chunk, "position": at, "complete": complete }).to_string();
            let (text, piece) =
                outputs.look_through(session, &members(&payload), Secrets::Redact).unwrap();
            let said: Value = serde_json::from_str(&text.unwrap_or(payload)).unwrap();
            assert_eq!(said["position"], heard.chars().count(), "{said}");
            heard += said["chunk"].as_str().unwrap();
            at += chunk.chars().count();
            outputs.said(piece.unwrap());
        }
        assert_eq!(heard, "The password=[password removed] is old. Bye.");
    }

    // covers: T14
    #[test]
    fn a_piece_that_was_not_said_changes_nothing() {
        let outputs = Outputs::default();
        let session = SessionId::from_bits(1);
        let piece = |chunk: &str| json!({ "chunk": chunk, "position": 0 }).to_string();
        let look = |text: &str| outputs.look_through(session, &members(text), Secrets::Redact);
        look(&piece("password=")).unwrap();
        let (changed, _) = look(&piece("hunter2")).unwrap();
        assert_eq!(changed, None);
        outputs.forget(session);
    }
}
