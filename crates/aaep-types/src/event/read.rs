//! Reading an event: envelope, payload, and what concerns both.

use super::{Event, EventKind, ExtensionPayload, Payload, read_kind};
use crate::action;
use crate::envelope::{Envelope, EnvelopeFields, Tail, TailFields};
use crate::json::{Member, Members, Raw};
use crate::language::LanguageTag;
use crate::limits::soft;
use crate::ours::{OutcomeMember, TimingMember};
use crate::presence::PresenceMember;
use crate::redaction::{self, Redaction};
use crate::report::{Reading, Report};
use crate::rule::{self, Rule};
use crate::team::{self, Team};
use crate::type_name::{TypeName, core_name};
use crate::vocabulary::{TextDirection, Urgency};
use crate::wire::{MemberInfo, Object, Others, Seen, Slot, Wire, check_others};

/// Payloads that an event can carry.
pub(crate) trait IntoPayload<'a>: Object<'a> + Into<Payload<'a>> {}
impl<'a, P: Object<'a> + Into<Payload<'a>>> IntoPayload<'a> for P {}

/// Reads an event of any type.
pub(crate) fn read<'a>(
    text: &'a str,
    members: Members<'a>,
    report: &mut Report,
) -> Option<Event<'a>> {
    let kind = match members.find("type") {
        Some(Raw::String(name)) => {
            core_name(&name.decode()).and_then(|name| EventKind::parse(&name))
        }
        _ => None,
    };
    read_kind(kind, text, members, report)
}

/// The order of §3.6: the envelope by its own order, then the payload, then `extensions`.
const PAYLOAD_RANK: usize = 100;
const TAIL_RANK: usize = 101;

/// Reads an event whose payload has the shape of `P`.
pub(super) fn read_payload<'a, P: IntoPayload<'a>>(
    kind: Option<EventKind>,
    text: &'a str,
    members: Members<'a>,
    report: &mut Report,
) -> Option<Event<'a>> {
    let (count, depth, longest) = (members.len(), members.depth(), members.longest_string());
    let mut envelope = EnvelopeFields::default();
    let mut payload = P::Fields::default();
    let mut tail = TailFields::default();
    let mut other: Others<'a> = Vec::new();
    let mut seen: [Seen; 3] = Default::default();
    let (mut rank, mut in_order, mut has_text) = (0, true, false);
    for Member { name, value } in members {
        let place = if let Some(index) = Envelope::place(&mut envelope, &name, value, report) {
            seen[0].note(index, &name, report);
            index
        } else if let Some(index) = P::place(&mut payload, &name, value, report) {
            seen[1].note(index, &name, report);
            has_text |= P::MEMBERS.get(index).is_some_and(|member| member.human);
            PAYLOAD_RANK
        } else if let Some(index) = Tail::place(&mut tail, &name, value, report) {
            seen[2].note(index, &name, report);
            TAIL_RANK
        } else {
            judge_unknown::<P>(kind, &name, value, report);
            other.push((name, value));
            PAYLOAD_RANK
        };
        in_order &= place >= rank;
        rank = place;
    }
    if !in_order {
        report.warning(
            rule::E20,
            format_args!(
                "Put the members in the recommended order: the envelope, the payload, `extensions`."
            ),
        );
    }
    check_others(&other, report);
    P::check(&payload, report);
    check_envelope(kind, has_text, &envelope, report);
    check_declared(&envelope, &tail, report);
    check_size(text, (count, depth, longest), report);
    Envelope::check_required(&envelope, report);
    P::check_required(&payload, report);
    if !report.wants_value() {
        return None;
    }
    let (envelope, payload) = (Envelope::build(envelope)?, P::build(payload)?.into());
    let extensions = Tail::build(tail)?.extensions.unwrap_or_default();
    Some(Event { envelope, payload, extensions, other, text })
}

/// Reads a payload of the shape of `P` that has no envelope around it yet, given as its members.
/// Ours says what every envelope of ours does: a language, and that the direction of texts is found
/// out (§11.4.2).
pub(super) fn read_alone<'a, P: IntoPayload<'a>>(
    kind: EventKind,
    members: impl IntoIterator<Item = Member<'a>>,
) -> Option<Payload<'a>> {
    let mut report = Report::parsing(Reading::Source);
    let mut payload = P::Fields::default();
    let mut other: Others<'a> = Vec::new();
    let mut seen = Seen::default();
    for Member { name, value } in members {
        if let Some(index) = P::place(&mut payload, &name, value, &mut report) {
            seen.note(index, &name, &mut report);
        } else {
            judge_unknown::<P>(Some(kind), &name, value, &mut report);
            other.push((name, value));
        }
    }
    check_others(&other, &mut report);
    P::check(&payload, &mut report);
    report.check_direction(true);
    P::check_required(&payload, &mut report);
    if report.has_errors() { None } else { P::build(payload).map(Into::into) }
}

/// A member at the top level that neither envelope nor payload knows.
fn judge_unknown<'a, P: Object<'a>>(
    kind: Option<EventKind>,
    name: &str,
    raw: Raw<'a>,
    report: &mut Report,
) {
    if name.starts_with("aaep_") || name.starts_with('@') {
        report.within(name, |report| {
            report.error(
                rule::E19,
                format_args!("Rename this member; names beginning `aaep_` or `@` are reserved."),
            )
        });
    } else if let Some((base, language)) = variant_of(P::MEMBERS, name) {
        // §11.5.1: the text in another language has the same bounds.
        let mut scratch = P::Fields::default();
        report.within(name, |report| {
            P::place(&mut scratch, base, raw, report);
            if LanguageTag::parse(language.replace('_', "-")).is_err() {
                report.error(rule::L1, format_args!("End this name with a BCP 47 language tag."));
            }
        });
    } else if kind.is_some() {
        report.unknown(name, rule::E19, format_args!("Move this member into `extensions`, under a prefix of yours; it does not belong at the top level."));
    }
}

/// The text member of which this name is a language variant, and the language: `summary_normal_yo`.
pub(super) fn variant_of<'n>(
    known: &'static [MemberInfo],
    name: &'n str,
) -> Option<(&'static str, &'n str)> {
    // enforces: L8
    known.iter().filter(|member| member.human).find_map(|member| {
        let suffix = name.strip_prefix(member.name)?.strip_prefix('_')?;
        has_outline_of_language(suffix).then_some((member.name, suffix))
    })
}

/// A language of two or three letters, then further subtags; `_` may stand for `-`.
fn has_outline_of_language(text: &str) -> bool {
    let mut subtags = text.split(['_', '-']);
    let language = subtags.next().unwrap_or_default();
    matches!(language.len(), 2 | 3)
        && language.bytes().all(|byte| byte.is_ascii_alphabetic())
        && subtags.all(|subtag| {
            (1..=8).contains(&subtag.len()) && subtag.bytes().all(|b| b.is_ascii_alphanumeric())
        })
}

fn check_envelope(
    kind: Option<EventKind>,
    has_text: bool,
    envelope: &EnvelopeFields<'_>,
    report: &mut Report,
) {
    if envelope.aaep_version.is_absent() {
        report.warning(
            rule::E18,
            format_args!("Add `aaep_version`, so that receivers know what to expect."),
        );
    }
    if let Some(kind) = kind.filter(|kind| kind.is_critical()) {
        check_critical(kind, &envelope.urgency, report);
    }
    let first = kind.map(|kind| kind == EventKind::SessionStarted);
    let zero = envelope.sequence_number.good().map(|number| number.get() == 0);
    if first.is_some() && zero.is_some() && first != zero {
        report.within("sequence_number", |report| {
            report.error(
                rule::E15,
                format_args!(
                    "Number a session's events from 0 on `session.started`, then one more each."
                ),
            )
        });
    }
    let hints = envelope.localization_hints.good();
    let language = hints.is_some_and(|hints| hints.primary_language.is_some());
    if has_text && !language && !matches!(envelope.localization_hints, Slot::Bad) {
        // enforces: E14
        report.within("localization_hints", |report| report.warning(rule::D33, format_args!("Add `localization_hints.primary_language`, so that the text is spoken in the right language.")));
    }
    let direction = hints.and_then(|hints| hints.text_direction);
    report.check_direction(direction == Some(TextDirection::Auto));
}

// enforces: D13
/// The four types that are always critical say so.
fn check_critical(kind: EventKind, urgency: &Slot<Urgency>, report: &mut Report) {
    let rule: Rule = match (kind, urgency) {
        (_, Slot::Absent) => rule::D13,
        (EventKind::SessionErrored, _) => rule::T4,
        (EventKind::AwaitingConfirmation, _) => rule::T20,
        (EventKind::AwaitingClarification, _) => rule::T22,
        _ => rule::T23,
    };
    if matches!(urgency, Slot::Absent | Slot::Good(Urgency::Background | Urgency::Normal)) {
        report.within("urgency", |report| {
            report.error(
                rule,
                format_args!("Set `urgency` to `critical`; events of this type always are."),
            )
        });
    }
}

/// §3.2.2, §3.4.3: whatever is not the protocol's own is declared through `@context`.
fn check_declared(envelope: &EnvelopeFields<'_>, tail: &TailFields<'_>, report: &mut Report) {
    let Some(context) = envelope.context.good() else { return };
    let own = match envelope.type_name.good() {
        Some(TypeName::Prefixed { prefix, .. }) => Some(&**prefix),
        _ => None,
    };
    let extensions = tail.extensions.good();
    let added = extensions.into_iter().flat_map(|extensions| extensions.iter());
    let added: Vec<(&str, &str)> = added.collect();
    let missing =
        context.undeclared(own.into_iter().chain(added.iter().map(|(prefix, _)| *prefix)));
    let declared = match envelope.type_name.good() {
        Some(TypeName::Prefixed { prefix, .. }) => !missing.contains(&&**prefix),
        Some(TypeName::Address(_)) => !context.extensions().is_empty(),
        Some(TypeName::Core(_)) | None => true,
    };
    if !declared {
        report.within("type", |report| {
            report.error(
                rule::E24,
                format_args!("Declare this type's vocabulary: add its address to `@context`."),
            )
        });
    }
    report.within("extensions", |report| {
        for (prefix, json) in added {
            if missing.contains(&prefix) {
                report.within(prefix, |report| {
                    report.error(
                        rule::E17,
                        format_args!(
                            "Declare this prefix: add the extension's address to `@context`; each address there declares one prefix."
                        ),
                    )
                });
            } else if context.is_ours(prefix) {
                report.within(prefix, |report| check_ours(prefix, Raw::Object(json), report));
            }
        }
    });
}

/// What one of our own extensions adds: judged by its own members alone, whatever else the event says.
fn check_ours(prefix: &str, value: Raw<'_>, report: &mut Report) {
    // enforces: X5, X7
    match prefix {
        action::PREFIX => drop(action::Account::read(value, rule::X7, report)),
        redaction::PREFIX => drop(Redaction::read(value, rule::X7, report)),
        team::PREFIX => drop(Team::read(value, rule::X7, report)),
        "outcome" => drop(OutcomeMember::read(value, rule::X7, report)),
        "timing" => drop(TimingMember::read(value, rule::X7, report)),
        "presence" => drop(PresenceMember::read(value, rule::X7, report)),
        _ => {}
    }
}

/// §3.7: what is larger than recommended is served all the same, but said.
fn check_size(text: &str, (count, depth, longest): (usize, usize, usize), report: &mut Report) {
    if text.len() > soft::BYTES {
        report.warning(
            rule::E21,
            format_args!(
                "Keep a message within {} bytes; this one has {}.",
                soft::BYTES,
                text.len()
            ),
        );
    }
    if count > soft::MEMBERS {
        report.warning(
            rule::E21,
            format_args!(
                "Keep a message within {} members at the top level; this one has {count}.",
                soft::MEMBERS
            ),
        );
    }
    if depth > soft::DEPTH {
        report.warning(
            rule::E21,
            format_args!("Nest at most {} levels deep; this message has {}.", soft::DEPTH, depth),
        );
    }
    if longest > soft::STRING_BYTES {
        report.warning(
            rule::E21,
            format_args!(
                "Keep each string within {} bytes; the longest here has {}.",
                soft::STRING_BYTES,
                longest
            ),
        );
    }
}

/// T29, T35: texts that should be present because they will be announced.
pub(super) fn check_summaries<T1, T2, T3>(
    (terse, normal, detailed): (&Slot<T1>, &Slot<T2>, &Slot<T3>),
    report: &mut Report,
) {
    if normal.is_absent() {
        report.warning(
            rule::T29,
            format_args!("Add `summary_normal`; this event is likely to be announced."),
        );
    }
    if terse.is_absent() || detailed.is_absent() {
        report.warning(
            rule::T35,
            format_args!("Give all three summaries, so that every verbosity is served."),
        );
    }
}

impl<'a> From<ExtensionPayload<'a>> for Payload<'a> {
    fn from(payload: ExtensionPayload<'a>) -> Self {
        Payload::Extension(payload)
    }
}
