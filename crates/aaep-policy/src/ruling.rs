//! What a policy says of one call.

use aaep_types::json::Writer;
use aaep_types::{Decision, Presence, Reversibility, RiskLevel, TimeoutSeconds, secret};

use crate::arguments::Arguments;
use crate::rule::{Rule, Verdict, usual_timeout};
use crate::show::{self, Show};
use crate::template::Template;
use crate::words::Words;

/// Characters of each argument in a sentence, in a few words, and in a list of all.
const ROOM: usize = 240;
const SHORT_ROOM: usize = 60;
const LIST_ROOM: usize = 600;

/// Which rule counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matched {
    /// Its number in the file, from 1.
    pub number: usize,
    /// The line in which it begins.
    pub line: usize,
    /// The pattern that the tool fits.
    pub pattern: String,
}

/// What a policy says of one call: what happens before it runs, and in which words.
///
/// Only a [`Policy`](crate::Policy) makes one. It never lets a call that is irreversible or of high
/// risk run in silence, or run because nobody answered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ruling {
    /// The rule that counts; none if no rule covers the call.
    pub rule: Option<Matched>,
    /// Whether a rule may have been meant for the call, but cannot be judged. Then none covers it.
    pub unclear: bool,
    /// What happens before it runs.
    pub verdict: Verdict,
    /// How much can go wrong.
    pub risk: RiskLevel,
    /// Whether it can be undone.
    pub reversibility: Reversibility,
    /// How long an answer is waited for.
    pub timeout: TimeoutSeconds,
    /// What counts when no answer comes.
    pub default: Decision,
    /// The presence that a yes requires, if the rule says so; otherwise the risk decides
    /// ([`Policy::presence_for`](crate::Policy::presence_for)), and then the hub.
    pub presence: Option<Presence>,
    /// Whether a template of the rule says what will be done. Its words are the user's own, filled
    /// with the arguments, so they are worth more than the agent's.
    pub has_template: bool,
    /// The language of these words: that of the policy's templates, or else English.
    pub language: String,
    /// What will be done.
    pub action: String,
    /// What comes of it.
    pub consequence: String,
    /// The same in a few words.
    pub summary: String,
    /// The arguments, without secrets.
    pub arguments: String,
    /// The tool, as it is shown.
    tool: String,
    /// The action, and whether it can be undone.
    normal: String,
    /// Everything worth knowing before it is allowed.
    detailed: String,
    /// Everything worth knowing while it runs.
    announced: String,
    /// Why these and no others: a sentence for every rule that came close.
    reasons: Vec<String>,
}

impl Ruling {
    /// A rule covers the call.
    pub(crate) fn covered(
        (number, rule): (usize, &Rule),
        pattern: &str,
        tool: &str,
        arguments: &Arguments<'_>,
        reasons: Vec<String>,
    ) -> Self {
        let words = |template: &Option<Template>, room| {
            template.as_ref().map(|template| template.render(arguments, room))
        };
        let mut wording = Wording::usual(tool, Some(arguments), undone(rule.reversibility));
        wording.action = words(&rule.action, ROOM).unwrap_or(wording.action);
        wording.consequence = words(&rule.consequence, ROOM).unwrap_or(wording.consequence);
        wording.summary = words(&rule.summary, SHORT_ROOM).unwrap_or(wording.summary);
        let stance = Stance {
            verdict: rule.verdict,
            risk: rule.risk,
            reversibility: rule.reversibility,
            timeout: rule.timeout,
            default: rule.default,
        };
        let matched = Matched { number, line: rule.line, pattern: pattern.to_owned() };
        let has_template = rule.action.is_some();
        let presence = rule.presence;
        Self { has_template, presence, ..Self::new(Some(matched), stance, wording, reasons) }
    }

    // enforces: L13
    /// The same in the words of the rule alone: ours around them are English, and theirs are not.
    pub(crate) fn in_their_language(
        mut self,
        rule: &Rule,
        language: &str,
        arguments: &Arguments<'_>,
    ) -> Self {
        if rule.summary.is_none()
            && let Some(action) = &rule.action
        {
            self.summary = action.render(arguments, SHORT_ROOM).finish();
        }
        self.normal = sentence(&self.action);
        self.announced = self.normal.clone();
        let both = format!("{} {}", self.normal, sentence(&self.consequence));
        self.detailed = secret::redact(&both).into_owned();
        self.language = language.to_owned();
        self
    }

    /// No rule does: it counts as the worst. `arguments` are missing if they cannot be read.
    pub(crate) fn uncovered(
        tool: &str,
        arguments: Option<&Arguments<'_>>,
        reasons: Vec<String>,
    ) -> Self {
        let (risk, reversibility) = (RiskLevel::High, Reversibility::Irreversible);
        let timeout = usual_timeout(risk, reversibility);
        let (verdict, default) = (Verdict::Ask, Decision::Reject);
        let stance = Stance { verdict, risk, reversibility, timeout, default };
        Self::new(None, stance, Wording::usual(tool, arguments, NOBODY_KNOWS), reasons)
    }

    pub(crate) fn and_unclear(mut self, unclear: bool) -> Self {
        self.unclear = unclear;
        self
    }

    fn new(rule: Option<Matched>, stance: Stance, wording: Wording, reasons: Vec<String>) -> Self {
        let Stance { verdict, risk, reversibility, timeout, default } = stance;
        let undone = undone(reversibility);
        let stakes = format!("It counts as {risk} risk. {undone}");
        Self {
            rule,
            unclear: false,
            verdict,
            risk,
            reversibility,
            timeout,
            default,
            presence: None,
            has_template: false,
            language: ENGLISH.into(),
            normal: wording.sentences(&[&wording.action], undone).finish(),
            detailed: wording.in_full(&[&wording.action, &wording.consequence], &stakes),
            announced: wording.in_full(&[&wording.action], ""),
            action: wording.action.finish(),
            consequence: wording.consequence.finish(),
            summary: wording.summary.finish(),
            arguments: wording.arguments.finish(),
            tool: wording.tool.finish(),
            reasons,
        }
    }

    /// The action, and whether it can be undone.
    pub fn normal(&self) -> &str {
        &self.normal
    }

    /// Everything worth knowing before it is allowed.
    pub fn detailed(&self) -> &str {
        &self.detailed
    }

    /// Whether the protocol calls it irreversible.
    pub fn is_irreversible(&self) -> bool {
        self.reversibility == Reversibility::Irreversible
    }

    // enforces: T20, T35
    /// The members of a confirmation request as a JSON object: everything but the envelope and the
    /// reply token, which the hub adds.
    pub fn payload(&self) -> String {
        let mut out = Writer::new();
        out.open('{');
        text(&mut out, "action", &self.action);
        text(&mut out, "consequence", &self.consequence);
        out.name("timeout_seconds");
        out.json(&self.timeout.get().to_string());
        out.comma();
        text(&mut out, "default_decision", self.default.as_str());
        self.put_risk(&mut out);
        text(&mut out, "reversibility", self.reversibility.as_str());
        self.put_language(&mut out);
        self.put_summaries(&mut out, &self.detailed);
        out.close('}');
        out.finish()
    }

    // enforces: T11, T27, T35
    /// The members of the event that says that the tool is about to run, as a JSON object: all but
    /// the envelope, `tool` and `tool_call_id`.
    pub fn announcement(&self) -> String {
        let mut out = Writer::new();
        out.open('{');
        text(&mut out, "args_summary", &self.arguments);
        self.put_risk(&mut out);
        self.put_language(&mut out);
        self.put_summaries(&mut out, &self.announced);
        out.close('}');
        out.finish()
    }

    fn put_risk(&self, out: &mut Writer) {
        text(out, "risk_level", self.risk.as_str());
        out.name("irreversible");
        out.json(if self.is_irreversible() { "true" } else { "false" });
        out.comma();
    }

    fn put_language(&self, out: &mut Writer) {
        out.name("localization_hints");
        out.open('{');
        out.name("primary_language");
        out.string(&self.language);
        out.close('}');
        out.comma();
    }

    fn put_summaries(&self, out: &mut Writer, detailed: &str) {
        text(out, "summary_terse", &self.summary);
        text(out, "summary_normal", &self.normal);
        text(out, "summary_detailed", detailed);
    }

    fn stakes(&self) -> String {
        format!("It counts as {} risk. {}", self.risk, undone(self.reversibility))
    }

    /// Which rule counts, and why not one that came close: a plain sentence for each.
    pub fn why(&self) -> Vec<String> {
        let mut lines = self.reasons.clone();
        lines.push(match &self.rule {
            Some(Matched { number, line, pattern }) => {
                format!("Rule {number}, in line {line}, counts: its pattern is {pattern}.")
            }
            None => "No rule covers this call, so it counts as the worst.".into(),
        });
        lines
    }

    /// What happens and why, one plain sentence after the other.
    pub fn explain(&self) -> Vec<String> {
        let tool = &self.tool;
        let mut lines = vec![match self.verdict {
            Verdict::Ask => format!("Before {tool} runs, the user is asked."),
            Verdict::Announce => format!("{tool} runs without a question, and the user is told."),
            Verdict::Silent => format!("{tool} runs without a question and without a word."),
        }];
        lines.extend(self.why());
        lines.push(self.stakes());
        match self.verdict {
            Verdict::Ask => {
                lines.push(format!("The question: {}", sentence(&self.action)));
                if self.has_template {
                    lines.push("These words are asked, whatever words the agent has.".into());
                }
                lines.push(format!("The consequence: {}", sentence(&self.consequence)));
                let then = match self.default {
                    Decision::Accept => "it is done",
                    Decision::Reject => "it is not done",
                };
                lines.push(format!("Without an answer in {} seconds, {then}.", self.timeout.get()));
            }
            Verdict::Announce => lines.push(format!("What is said: {}", sentence(&self.action))),
            Verdict::Silent => {}
        }
        lines
    }
}

fn text(out: &mut Writer, name: &str, value: &str) {
    out.name(name);
    out.string(value);
    out.comma();
}

/// What a ruling is made of, apart from its words.
struct Stance {
    verdict: Verdict,
    risk: RiskLevel,
    reversibility: Reversibility,
    timeout: TimeoutSeconds,
    default: Decision,
}

/// The language of our own words.
const ENGLISH: &str = "en";

const NOBODY_KNOWS: &str = "Nobody has said what this does. It counts as high risk, and as \
                            something that cannot be undone.";

/// The words of a ruling, in which ours and the arguments' are still apart.
struct Wording {
    tool: Words,
    arguments: Words,
    action: Words,
    consequence: Words,
    summary: Words,
}

impl Wording {
    /// What is said where a rule gives no words.
    fn usual(tool: &str, arguments: Option<&Arguments<'_>>, consequence: &str) -> Self {
        let mut named = Words::default();
        named.theirs(&show::name(tool));
        let list = match arguments {
            Some(arguments) => {
                let mut show = Show::new(LIST_ROOM);
                show.arguments(arguments);
                show.finish()
            }
            None => words("arguments that cannot be read"),
        };
        let mut action = words("Run the tool ");
        action.add(&named);
        action.ours(" with ");
        action.add(&list);
        let mut summary = words("Run ");
        summary.add(&named);
        Self { tool: named, arguments: list, action, consequence: words(consequence), summary }
    }

    /// Sentences one after the other, the last one ours.
    fn sentences(&self, parts: &[&Words], last: &str) -> Words {
        let mut all = Words::default();
        for part in parts {
            all.add(part);
            all.end_sentence();
            all.ours(" ");
        }
        all.ours(last);
        all
    }

    fn in_full(&self, parts: &[&Words], last: &str) -> String {
        let mut all = self.sentences(parts, last);
        all.ours(if last.is_empty() { "The tool is " } else { " The tool is " });
        all.add(&self.tool);
        all.ours(", with ");
        all.add(&self.arguments);
        all.ours(".");
        all.finish()
    }
}

fn words(text: &str) -> Words {
    let mut words = Words::default();
    words.ours(text);
    words
}

/// Whether it can be undone, in a sentence.
fn undone(reversibility: Reversibility) -> &'static str {
    match reversibility {
        Reversibility::Reversible => "This can be undone.",
        Reversibility::ReversibleWithEffort => "This can be undone with some effort.",
        Reversibility::Irreversible => "This cannot be undone.",
    }
}

/// Words with an end.
fn sentence(words: &str) -> String {
    let ends = words.ends_with(['.', '!', '?', '…', '。', '！', '？', '।', '؟']);
    if ends { words.to_owned() } else { format!("{words}.") }
}
