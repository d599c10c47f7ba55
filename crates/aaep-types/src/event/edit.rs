//! The same event, said a little differently: in another language, with less detail, joined with
//! what came before it. What is not touched stays byte for byte as it was.

use super::{Event, EventKind, Payload};
use crate::envelope::{Envelope, LocalizationHints};
use crate::json::{Members, Raw, Writer};
use crate::language::LanguageTag;
use crate::vocabulary::{CoalesceBoundary, TextDirection, Urgency};
use crate::wire::{MemberInfo, Object, Wire};

use super::read::variant_of as spelled_variant_of;

/// The text member of which this name is a language variant, and the language.
fn variant_of(
    known: &'static [MemberInfo],
    name: &str,
) -> Option<(&'static str, LanguageTag<'static>)> {
    let (base, language) = spelled_variant_of(known, name)?;
    Some((base, LanguageTag::parse(language.replace('_', "-")).ok()?))
}

impl<'a> Event<'a> {
    /// The languages in which the whole event can be had: its primary one, then those that every
    /// one of its texts has a variant in (§11.5.1, `summary_normal_yo`). Empty if the event names
    /// no primary language, or if leaving out variants would lose text.
    pub fn languages(&self) -> Vec<LanguageTag<'static>> {
        let hints = self.envelope.localization_hints.as_ref();
        let Some(primary) = hints.and_then(|hints| hints.primary_language.clone()) else {
            return Vec::new();
        };
        let mut offered = vec![primary.into_owned()];
        let known = known_members(self.kind());
        let members = Members::again(self.text);
        let bases: Vec<&str> = (known.iter().filter(|member| member.human))
            .map(|member| member.name)
            .filter(|name| members.find(name).is_some())
            .collect();
        let variants: Vec<_> = members.iter().filter_map(|m| variant_of(known, &m.name)).collect();
        if variants.iter().any(|(base, _)| !bases.contains(base)) {
            return Vec::new();
        }
        if has_nested_text(&self.payload) {
            return offered;
        }
        for (_, language) in &variants {
            let whole =
                bases.iter().all(|&base| variants.iter().any(|v| *v == (base, language.clone())));
            if whole && !offered.contains(language) {
                offered.push(language.clone());
            }
        }
        offered
    }

    /// Whether any of its texts has a variant in another language.
    pub fn has_variants(&self) -> bool {
        let known = known_members(self.kind());
        self.other.iter().any(|(name, _)| variant_of(known, name).is_some())
            || matches!(&self.payload, Payload::Extension(_))
                && Members::again(self.text).iter().any(|m| variant_of(known, &m.name).is_some())
    }

    /// Begins a changed copy.
    pub fn edit(&self) -> Edit<'_, 'a> {
        Edit {
            event: self,
            envelope: self.envelope.clone(),
            language: None,
            detail: true,
            output: None,
            from_state: None,
            before_summaries: None,
        }
    }
}

fn no_hints<'a>() -> LocalizationHints<'a> {
    LocalizationHints {
        primary_language: None,
        text_direction: None,
        available_languages: None,
        fallback_chain: None,
        script: None,
        calendar: None,
        other: Vec::new(),
    }
}

/// Texts inside other members have no variants, so such an event has one language only.
fn has_nested_text(payload: &Payload<'_>) -> bool {
    match payload {
        Payload::AwaitingClarification(asked) => asked.choices.is_some(),
        Payload::ProgressUpdated(progress) => progress.progress.description.is_some(),
        _ => false,
    }
}

/// Whether any of these members of a payload of this kind is a variant of a text in another language;
/// see [`Event::has_variants`].
pub fn any_variant(kind: EventKind, members: &Members<'_>) -> bool {
    let known = kind.members();
    let mut others = members.iter().filter(|member| known.iter().all(|it| it.name != member.name));
    others.any(|member| variant_of(known, &member.name).is_some())
}

fn known_members(kind: Option<EventKind>) -> &'static [MemberInfo] {
    match kind {
        Some(kind) => kind.members(),
        None => <super::ExtensionPayload<'static> as Object>::MEMBERS,
    }
}

/// A piece of streamed text that takes the place of an event's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'p> {
    /// The text.
    pub chunk: &'p str,
    /// Where it begins, in Unicode scalar values (decision D19).
    pub position: u64,
    /// Which boundary its end is.
    pub ends_at: CoalesceBoundary,
}

/// A changed copy of an event in the making.
#[derive(Clone, Debug)]
pub struct Edit<'e, 'a> {
    event: &'e Event<'a>,
    envelope: Envelope<'a>,
    language: Option<LanguageTag<'static>>,
    detail: bool,
    output: Option<Piece<'e>>,
    from_state: Option<&'e str>,
    before_summaries: Option<&'e str>,
}

impl<'e, 'a> Edit<'e, 'a> {
    /// With another urgency.
    pub fn urgency(mut self, urgency: Urgency) -> Self {
        self.envelope.urgency = Some(urgency);
        self
    }

    /// In one of [`Event::languages`]: the variants take the place of the plain texts, and
    /// `primary_language` says so (decision D25).
    pub fn language(mut self, language: &LanguageTag<'_>) -> Self {
        let primary = self.envelope.localization_hints.as_ref();
        if primary.and_then(|hints| hints.primary_language.as_ref()) != Some(language) {
            let tag = language.clone().into_owned();
            match &mut self.envelope.localization_hints {
                Some(hints) => {
                    // Direction and script were those of the other language.
                    hints.primary_language = Some(tag);
                    hints.text_direction = Some(TextDirection::Auto);
                    hints.script = None;
                }
                hints => *hints = Some(LocalizationHints::language(tag)),
            }
        }
        self.language = Some(language.clone().into_owned());
        self
    }

    /// Without `summary_detailed` and its variants.
    pub fn without_detail(mut self) -> Self {
        self.detail = false;
        self
    }

    /// With another piece of the output's text; only for `output.streaming`.
    pub fn output(mut self, piece: Piece<'e>) -> Self {
        // enforces: L10
        // Pieces that each ran one way may run both ways together.
        if crate::deception::runs_both_ways(piece.chunk) {
            let hints = self.envelope.localization_hints.get_or_insert_with(no_hints);
            hints.text_direction = Some(TextDirection::Auto);
        }
        self.output = Some(piece);
        self
    }

    /// Leaving another state; only for `state.changed`.
    pub fn from_state(mut self, state: &'e str) -> Self {
        self.from_state = Some(state);
        self
    }

    /// With this before each of its summaries, in whatever language; if there is none, it is one.
    pub fn before_summaries(mut self, text: &'e str) -> Self {
        let hints = self.envelope.localization_hints.get_or_insert_with(no_hints);
        hints.text_direction = Some(TextDirection::Auto);
        self.before_summaries = Some(text);
        self
    }

    /// The changed event, in the recommended order (§3.6).
    pub fn finish(self) -> String {
        let mut out = Writer::new();
        out.open('{');
        self.envelope.write_members(&mut out);
        let members = Members::again(self.event.text);
        let known = known_members(self.event.kind());
        for member in members.iter() {
            let name = member.name.as_ref();
            let envelope = Envelope::MEMBERS.iter().any(|info| info.name == name);
            if !envelope && name != "extensions" {
                self.write_member(name, member.value, (&members, known), &mut out);
            }
        }
        if self.output.is_some() && members.find("coalesce_hint").is_none() {
            self.write_piece("coalesce_hint", &mut out);
        }
        if let Some(text) =
            self.before_summaries.filter(|_| members.find("summary_normal").is_none())
        {
            out.name("summary_normal");
            out.string(text.trim_end());
            out.comma();
        }
        if self.event.extensions.iter().next().is_some() {
            out.name("extensions");
            self.event.extensions.write(&mut out);
        }
        out.close('}');
        out.finish()
    }

    fn write_member(
        &self,
        name: &str,
        value: Raw<'a>,
        (members, known): (&Members<'a>, &'static [MemberInfo]),
        out: &mut Writer,
    ) {
        let variant = variant_of(known, name);
        let base = variant.as_ref().map_or(name, |(base, _)| base);
        if (!self.detail && base == "summary_detailed")
            || (variant.is_some() && self.language.is_some())
        {
            return;
        }
        if self.output.is_some() && self.write_piece(name, out) {
            return;
        }
        out.name(name);
        let value = self.translated(name, (members, known)).unwrap_or(value);
        let before = self.before_summaries.filter(|_| base.starts_with("summary_"));
        match (self.from_state.filter(|_| name == "from_state"), before) {
            (Some(state), _) => out.string(state),
            (None, Some(before)) => out.json(&joined(before, value)),
            (None, None) => out.raw(value),
        }
        out.comma();
    }

    /// The variant of a text in the chosen language.
    fn translated(
        &self,
        name: &str,
        (members, known): (&Members<'a>, &'static [MemberInfo]),
    ) -> Option<Raw<'a>> {
        let language = self.language.as_ref()?;
        let primary = self.event.envelope.localization_hints.as_ref()?.primary_language.as_ref();
        if primary == Some(language) {
            return None;
        }
        let found = members.iter().find(|member| {
            variant_of(known, &member.name)
                .is_some_and(|(base, tag)| base == name && tag == *language)
        });
        found.map(|member| member.value)
    }

    /// Writes a member that belongs to a piece of output; false if this is none.
    fn write_piece(&self, name: &str, out: &mut Writer) -> bool {
        let Some(piece) = self.output else { return false };
        match name {
            "chunk" => {
                out.name(name);
                out.string(piece.chunk);
            }
            "position" => {
                out.name(name);
                out.json(&piece.position.to_string());
            }
            "complete" => {
                out.name(name);
                let complete = piece.ends_at == CoalesceBoundary::Completion;
                out.json(if complete { "true" } else { "false" });
            }
            "coalesce_hint" => {
                out.name(name);
                out.string(piece.ends_at.as_str());
            }
            _ => return false,
        }
        out.comma();
        true
    }
}

/// A JSON string with some text before what it says.
fn joined(before: &str, value: Raw<'_>) -> String {
    let mut text = String::new();
    let said = if let Raw::String(said) = value { said.raw } else { "" };
    crate::json::write_string(&mut text, before);
    text.pop();
    text.push_str(said);
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: &str = r#"{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.state.changed","event_id":"evt_1","session_id":"sess_1","sequence_number":3,"timestamp":"2026-05-24T14:22:11.342Z","producer":{"agent_id":"tidy"},"localization_hints":{"primary_language":"en","text_direction":"ltr"},"from_state":"idle","to_state":"thinking","summary_normal":"Thinking.","summary_detailed":"Thinking hard.","summary_normal_yo":"Mo ń ronú.","summary_detailed_yo":"Mo ń ronú gan-an."}"#;

    // covers: L8, D25
    #[test]
    fn a_variant_takes_the_place_of_the_plain_text_and_the_language_is_told() {
        let event = Event::parse(STATE.as_bytes()).unwrap();
        let languages = event.languages();
        assert_eq!(languages.iter().map(LanguageTag::as_str).collect::<Vec<_>>(), ["en", "yo"]);
        let text = event.edit().language(&languages[1]).without_detail().finish();
        assert!(text.contains(r#""primary_language":"yo","text_direction":"auto""#), "{text}");
        assert!(text.contains(r#""summary_normal":"Mo ń ronú.""#), "{text}");
        assert!(!text.contains("_yo") && !text.contains("detailed"), "{text}");
        assert!(Event::parse(text.as_bytes()).is_ok());
    }

    // covers: L8
    #[test]
    fn a_language_that_lacks_one_of_the_texts_is_not_offered() {
        let text = STATE.replace(",\"summary_detailed_yo\":\"Mo ń ronú gan-an.\"", "");
        let event = Event::parse(text.as_bytes()).unwrap();
        assert!(event.has_variants());
        assert_eq!(event.languages().len(), 1);
    }

    #[test]
    fn an_edit_that_changes_nothing_says_the_same() {
        let event = Event::parse(STATE.as_bytes()).unwrap();
        assert_eq!(event.edit().finish(), STATE);
    }

    #[test]
    fn every_summary_can_have_something_before_it() {
        let event = Event::parse(STATE.as_bytes()).unwrap();
        let text = event.edit().before_summaries("3 × \"a\". ").finish();
        assert!(Event::parse(text.as_bytes()).is_ok(), "{text}");
        for said in ["Thinking.", "Thinking hard.", "Mo ń ronú.", "Mo ń ronú gan-an."] {
            assert!(text.contains(&format!(r#":"3 × \"a\". {said}""#)), "{text}");
        }
        let silent = STATE.replace(r#""summary_normal":"Thinking.","#, "");
        let silent = silent.replace(r#","summary_normal_yo":"Mo ń ronú.""#, "");
        let event = Event::parse(silent.as_bytes()).unwrap();
        let text = event.edit().before_summaries("3 × a. ").finish();
        assert!(text.contains(r#""summary_normal":"3 × a.""#), "{text}");
    }

    #[test]
    fn state_and_urgency_can_be_changed() {
        let event = Event::parse(STATE.as_bytes()).unwrap();
        let text = event.edit().from_state("deciding").urgency(Urgency::Critical).finish();
        let edited = Event::parse(text.as_bytes()).unwrap();
        assert_eq!(edited.urgency(), Urgency::Critical);
        assert!(text.contains(r#""from_state":"deciding","to_state":"thinking""#), "{text}");
    }
}
