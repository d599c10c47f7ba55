//! Events of our own with generated texts.

use aaep_types::event::*;
use aaep_types::*;
use proptest::prelude::*;

/// The texts and numbers of one event.
#[derive(Clone, Debug)]
pub struct Seed {
    pub kind: EventKind,
    pub texts: [String; 4],
    pub number: u64,
    pub bits: u128,
    pub full: bool,
    pub extension: bool,
}

/// Texts of many scripts, with whatever JSON has to escape, and nothing that is refused at our
/// source: no control characters but tab and line ends, nothing invisible, no bidi characters.
pub fn text() -> impl Strategy<Value = String> {
    let letters =
        "[ -~\\t\\n\\r\"\\\\/¡-¬®-ÿĀ-žΑ-ωА-яא-תء-يअ-हก-ฮ一-鿆가-힣ぁ-ん😀-🙏𝒜-𝓏\u{2028}\u{2029}]";
    proptest::string::string_regex(&format!("{letters}{{1,40}}")).expect("a pattern")
}

pub fn seed() -> impl Strategy<Value = Seed> {
    let texts = [text(), text(), text(), text()];
    let kind = proptest::sample::select(EventKind::ALL.to_vec());
    let rest = (0u64..=86_400, any::<u128>(), any::<bool>(), any::<bool>());
    (kind, texts, rest).prop_map(|(kind, texts, (number, bits, full, extension))| Seed {
        kind,
        texts,
        number,
        bits,
        full,
        extension,
    })
}

impl Seed {
    pub fn envelope(&self) -> Envelope<'_> {
        let uri = Uri::parse("https://example.org/soil/v1").unwrap();
        let started = self.kind == EventKind::SessionStarted;
        Envelope {
            context: if self.extension { Context::with(vec![uri]) } else { Context::core() },
            aaep_version: Some(Version::OURS),
            type_name: TypeName::Core(self.kind),
            event_id: EventId::from_bits(self.bits),
            session_id: SessionId::from_bits(!self.bits),
            sequence_number: Count::new(if started { 0 } else { self.number + 1 }).ok(),
            timestamp: Timestamp::from_millis(self.number as i64 * 19_000_001).unwrap(),
            producer: Producer::named(Name::new(self.texts[0].as_str()).unwrap()),
            verbosity: self.full.then_some(Verbosity::Terse),
            urgency: Some(self.kind.usual_urgency()),
            localization_hints: Some(LocalizationHints::language(
                LanguageTag::parse("en").unwrap(),
            )),
            correlation_id: self.full.then(|| Name::new(self.texts[1].as_str()).unwrap()),
            other: Vec::new(),
        }
    }

    pub fn extensions(&self) -> Extensions<'_> {
        let mut extensions = Extensions::default();
        if self.extension {
            assert!(extensions.set("soil", r#"{"bed" : 2,"exact":1.50,"text":"\u00e9\/"}"#));
        }
        extensions
    }

    fn long<const MIN: usize, const MAX: usize>(&self, which: usize) -> Text<'_, MIN, MAX> {
        Text::new(self.texts[which].as_str()).unwrap()
    }

    fn maybe<const MIN: usize, const MAX: usize>(
        &self,
        which: usize,
    ) -> Option<Text<'_, MIN, MAX>> {
        self.full.then(|| self.long(which))
    }

    pub fn payload(&self) -> Payload<'_> {
        match self.kind {
            EventKind::SessionStarted | EventKind::SessionCompleted => self.edges(),
            EventKind::SessionErrored | EventKind::SessionCancelled => self.edges(),
            EventKind::ToolInvoked | EventKind::ToolCompleted => self.tools(),
            EventKind::AwaitingConfirmation | EventKind::AwaitingClarification => self.questions(),
            _ => self.others(),
        }
    }

    fn edges(&self) -> Payload<'_> {
        let millis = Millis::new(self.number).ok();
        match self.kind {
            EventKind::SessionStarted => SessionStarted {
                summary_terse: self.maybe(1),
                summary_normal: self.long(0),
                summary_detailed: self.maybe(2),
                expected_duration_ms: millis,
                requested_by: None,
                request_text: self.maybe(3),
                tools_available: Set::new(vec![Name::new(self.texts[3].as_str()).unwrap()]).ok(),
                other: Vec::new(),
            }
            .into(),
            EventKind::SessionCompleted => SessionCompleted {
                summary_terse: self.maybe(1),
                summary_normal: self.long(0),
                summary_detailed: self.maybe(2),
                duration_ms: millis,
                tool_invocations_count: Count::new(self.number).ok(),
                output_summary: self.maybe(3),
                result_uri: None,
                other: Vec::new(),
            }
            .into(),
            EventKind::SessionErrored => SessionErrored {
                error_category: ErrorCategory::Transient,
                error_code: ErrorCode::parse("NO_ANSWER").ok(),
                summary_terse: self.maybe(1),
                summary_normal: self.long(0),
                summary_detailed: self.maybe(2),
                recoverable: Some(self.full),
                remediation_hint: self.maybe(3),
                error_uri: None,
                other: Vec::new(),
            }
            .into(),
            _ => SessionCancelled {
                cancelled_by: CancelledBy::User,
                cancellation_reason: None,
                summary_terse: self.maybe(1),
                summary_normal: self.long(0),
                summary_detailed: self.maybe(2),
                partial_result: self.maybe(3),
                other: Vec::new(),
            }
            .into(),
        }
    }

    fn tools(&self) -> Payload<'_> {
        let tool = ToolName::parse("valve.open").unwrap();
        let tool_call_id = Some(ToolCallId::from_bits(self.bits));
        match self.kind {
            EventKind::ToolInvoked => ToolInvoked {
                tool,
                tool_call_id,
                description: self.maybe(3),
                args_summary: self.maybe(2),
                summary_terse: self.maybe(1),
                summary_normal: self.long(0),
                summary_detailed: self.maybe(2),
                expected_duration_ms: None,
                risk_level: Some(RiskLevel::Low),
                irreversible: Some(false),
                other: Vec::new(),
            }
            .into(),
            _ => ToolCompleted {
                tool,
                tool_call_id,
                status: ToolStatus::Timeout,
                duration_ms: Millis::new(self.number).ok(),
                summary_terse: self.maybe(1),
                summary_normal: self.maybe(0),
                summary_detailed: self.maybe(2),
                error_message: self.maybe(3),
                other: Vec::new(),
            }
            .into(),
        }
    }

    fn questions(&self) -> Payload<'_> {
        let reply_token = ReplyToken::from_bits(self.bits);
        if self.kind == EventKind::AwaitingConfirmation {
            let mut parts = ConfirmationParts::new(self.long(0), self.long(1), reply_token);
            parts.irreversible = Some(self.full);
            parts.summary_detailed = self.maybe(2);
            parts.extra_context = Opaque::parse(r#"{ "a":[1 ,2] }"#);
            return AwaitingConfirmation::new(parts).unwrap().into();
        }
        let choice = |value: &'static str, label| Choice {
            value: Name::new(value).unwrap(),
            label: self.long(label),
            other: Vec::new(),
        };
        AwaitingClarification {
            question: self.long(0),
            reply_token,
            timeout_seconds: TimeoutSeconds::new(60).unwrap(),
            accepted_response_kinds: Set::new(vec![ResponseKind::MultipleChoice]).ok(),
            choices: List::new(vec![choice("one", 1), choice("two", 2)]).ok(),
            context: self.maybe(3),
            default_response: Name::new("two").ok(),
            summary_terse: self.maybe(1),
            summary_normal: self.maybe(0),
            summary_detailed: self.maybe(2),
            other: Vec::new(),
        }
        .into()
    }

    fn others(&self) -> Payload<'_> {
        match self.kind {
            EventKind::StateChanged => StateChanged {
                from_state: Name::new("idle").unwrap(),
                to_state: Name::new(self.texts[3].as_str()).unwrap(),
                summary_terse: self.maybe(1),
                summary_normal: self.maybe(0),
                summary_detailed: self.maybe(2),
                expected_duration_ms: None,
                other: Vec::new(),
            }
            .into(),
            EventKind::ProgressUpdated => ProgressUpdated {
                progress: Progress {
                    percent: Percent::new(self.number as f64 / 863.9).ok(),
                    step: Ordinal::new(self.number + 1).ok(),
                    total_steps: None,
                    description: self.maybe(3),
                    other: Vec::new(),
                },
                summary_terse: self.maybe(1),
                summary_normal: self.maybe(0),
                summary_detailed: self.maybe(2),
                eta_ms: Millis::new(self.number).ok(),
                other: Vec::new(),
            }
            .into(),
            EventKind::OutputStreaming => OutputStreaming {
                chunk: Chunk::new(self.texts[0].as_str()).unwrap(),
                position: Count::new(self.number).unwrap(),
                complete: self.full,
                coalesce_hint: Some(CoalesceBoundary::Sentence),
                output_id: Some(OutputId::from_bits(self.bits)),
                content_type: ContentType::parse("text/markdown").ok(),
                language: LanguageTag::parse("de-AT").ok(),
                other: Vec::new(),
            }
            .into(),
            _ => HandoffRequested {
                reason: self.long(0),
                target_kind: TargetKind::Human,
                target_uri: Uri::parse("tel:+1-201-555-0123").ok(),
                urgency_for_handoff: Some(Level::High),
                packaged_context: Opaque::parse("{}"),
                summary_terse: self.maybe(1),
                summary_normal: self.maybe(0),
                summary_detailed: self.maybe(2),
                other: Vec::new(),
            }
            .into(),
        }
    }
}
