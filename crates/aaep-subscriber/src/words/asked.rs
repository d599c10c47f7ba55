//! Requests in words, and what becomes of them. Nothing that a request says is left out or
//! shortened, at any verbosity and under any load (S10).

use aaep_types::{DescribedBy, LenientEvent, ResponseKind, Reversibility, RiskLevel};

use super::Argument;
use super::confusables::{LookAlike, look_alikes};
use super::safe::safe;
use super::speech::Speech;
use super::speech::{MAX_NAME, cut};
use crate::request::{Account, Asks, Choice, Request, RequestOutcome};

/// How many words are warned of one by one.
const MAX_WARNINGS: usize = 3;

impl Speech<'_> {
    pub(super) fn asked(&mut self, request: &Request) {
        if let Some(old) = request.continues {
            let both = [("old", old), ("number", request.number)];
            self.say("ask.more_time", &both.map(|(name, n)| (name, Argument::Count(n.into()))));
            self.new_line();
        }
        // A name that is said is trusted, too.
        let name = if self.manner.name_agents { &*request.agent.name } else { "" };
        self.asks(&request.asks, name);
        if let Some(account) = request.account.as_ref().filter(|_| request.says_account()) {
            self.new_line();
            self.account(account);
        }
        let time = self.words.duration(request.timeout_seconds);
        self.new_line();
        self.say(
            "ask.waits",
            &[
                ("number", Argument::Count(request.number.into())),
                ("time", Argument::Phrase(&time)),
            ],
        );
    }

    // enforces: I31
    /// What the hub itself says would run, in a sentence that is the hub's.
    pub(super) fn account(&mut self, account: &Account) {
        let tool = ("tool", Argument::Theirs(&account.tool));
        let lines: Vec<&str> =
            account.arguments.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let all = lines.join(", ");
        match all.is_empty() {
            true => self.say("account.bare", &[tool]),
            false => self.bounded(&all, |speech, all| {
                speech.say("account", &[tool, ("arguments", Argument::Theirs(all))]);
            }),
        }
        if account.shortened {
            self.say("account.shortened", &[]);
        }
        if account.redacted {
            self.say("account.redacted", &[]);
        }
        self.careful(&[&account.tool, &all]);
    }

    /// What can be told of a request beyond the question.
    pub(super) fn details(&mut self, request: &Request) {
        if let Some(account) = &request.account {
            self.account(account);
            if account.described_by == DescribedBy::Policy {
                self.new_line();
                self.say("account.policy", &[]);
            }
        }
        if let Some(text) = &request.agent_says {
            self.new_line();
            self.about("account.agent", "text", Some(text), "");
        }
    }

    /// The action first, then whether it can be undone, then what follows; or the question and how
    /// to answer it. What to beware of comes before anybody can say yes.
    fn asks(&mut self, asks: &Asks, name: &str) {
        // enforces: S10
        match asks {
            Asks::Consent { action, consequence, risk, reversibility, silence_accepts } => {
                self.whole("ask.consent", "action", action, "ask.consent.bare");
                if !self.says_itself(undo(*reversibility), &[action, consequence]) {
                    self.say(undo(*reversibility), &[]);
                }
                self.new_line();
                self.whole("ask.consequence", "consequence", consequence, "ask.consequence.bare");
                self.say(danger(*risk), &[]);
                self.careful(&[action, consequence, name]);
                self.new_line();
                if *silence_accepts {
                    self.say("ask.silence_accepts", &[]);
                } else if self.is_detailed() {
                    self.say("ask.silence_rejects", &[]);
                }
            }
            Asks::Answer { question, context, kinds, choices, default } => {
                self.whole("ask.question", "question", question, "ask.question.bare");
                self.whole("ask.context", "context", context.as_deref().unwrap_or(""), "");
                let mut texts: Vec<&str> = vec![question, context.as_deref().unwrap_or(""), name];
                texts.extend(choices.iter().map(|choice| choice.label.as_str()));
                self.how_to_answer(kinds, choices);
                self.careful(&texts);
                self.new_line();
                if let Some(default) = default {
                    self.default("ask.default", default, kinds, choices);
                }
            }
        }
    }

    /// Whether one of these texts has this sentence of ours as a sentence of its own: then it is not
    /// said twice. Nothing less than the whole sentence counts, since the rest could turn it around.
    fn says_itself(&self, key: &str, texts: &[&str]) -> bool {
        let ours = self.words.phrase(key, &[]).to_string();
        let ours = bare(&ours);
        let same = |sentence: &str| {
            let sentence = bare(sentence);
            let this = sentence.strip_prefix("this ").map(|rest| format!("it {rest}"));
            sentence == ours || this.as_deref() == Some(&ours)
        };
        texts.iter().any(|text| text.split_inclusive(SENTENCE_ENDS).any(same))
    }

    /// A text of a request: never cut.
    fn whole(&mut self, key: &str, argument: &str, text: &str, bare: &str) {
        match (text.trim().is_empty(), bare) {
            (false, _) => self.say(key, &[(argument, Argument::Theirs(text))]),
            (true, "") => {}
            (true, bare) => self.say(bare, &[]),
        }
    }

    fn how_to_answer(&mut self, kinds: &[ResponseKind], choices: &[Choice]) {
        self.new_line();
        let mut chosen = kinds.to_vec();
        // Choices without a kind that takes them are still what the agent wants to hear.
        if chosen.is_empty() {
            chosen.push(ResponseKind::Freetext);
        }
        // The choices come first: they are what can be answered with one key.
        chosen.sort_by_key(|kind| *kind != ResponseKind::MultipleChoice);
        for (place, kind) in chosen.iter().enumerate() {
            let or = if place == 0 { "ask." } else { "ask.or." };
            let key = format!("{or}{}", kind.as_str());
            if *kind != ResponseKind::MultipleChoice {
                self.say(&key, &[]);
                continue;
            }
            self.say(&key, &[("count", Argument::Count(choices.len() as u64))]);
            for (place, choice) in choices.iter().enumerate() {
                self.new_line();
                let label =
                    if choice.label.trim().is_empty() { &choice.value } else { &choice.label };
                let number = Argument::Count(place as u64 + 1);
                self.say("ask.choice", &[("number", number), ("label", Argument::Theirs(label))]);
            }
            self.new_line();
        }
    }

    /// The answer that counts when none comes, as the user would give it (D17).
    fn default(&mut self, key: &str, default: &str, kinds: &[ResponseKind], choices: &[Choice]) {
        let choice = choices.iter().find(|choice| choice.value == default);
        let yes_no = kinds.contains(&ResponseKind::YesNo);
        let phrase = match (choice, default) {
            (None, "true") if yes_no => Some(self.words.phrase("yes", &[])),
            (None, "false") if yes_no => Some(self.words.phrase("no", &[])),
            _ => None,
        };
        let text = choice.map_or(default, |choice| &choice.label);
        let argument = phrase.as_ref().map_or(Argument::Theirs(text), Argument::Phrase);
        self.say(key, &[("default", argument)]);
    }

    /// What to beware of in these texts: hidden characters, and words that look like others.
    fn careful(&mut self, texts: &[&str]) {
        // enforces: D34
        self.new_line();
        let hidden: usize = texts.iter().map(|text| safe(text).hidden).sum();
        if hidden > 0 {
            self.say("careful.hidden", &[("count", Argument::Count(hidden as u64))]);
        }
        let found = look_alikes(texts);
        for one in found.iter().take(MAX_WARNINGS) {
            self.beware(one);
        }
        if let Some(more) = found.len().checked_sub(MAX_WARNINGS).filter(|more| *more > 0) {
            self.say("careful.more", &[("count", Argument::Count(more as u64))]);
        }
    }

    fn beware(&mut self, found: &LookAlike) {
        // The text itself is said in full before.
        fn word(word: &str) -> (&'static str, Argument<'_>) {
            ("word", Argument::Theirs(cut(word, MAX_NAME).0))
        }
        match found {
            LookAlike::Mixed { word: it, first, second } => {
                let (first, second) = (self.words.script(first), self.words.script(second));
                let both =
                    [("first", Argument::Phrase(&first)), ("second", Argument::Phrase(&second))];
                self.say("careful.mixed", &[word(it), both[0].clone(), both[1].clone()]);
            }
            LookAlike::Alike { word: it, script } => {
                let script = self.words.script(script);
                self.say("careful.alike", &[word(it), ("script", Argument::Phrase(&script))]);
            }
            LookAlike::Styled { word: it } => self.say("careful.styled", &[word(it)]),
            LookAlike::Digits { word: it } => self.say("careful.digits", &[word(it)]),
        }
    }

    pub(super) fn settled(&mut self, request: &Request, outcome: RequestOutcome) {
        // enforces: C25
        let number = ("number", Argument::Count(request.number.into()));
        self.say(&format!("outcome.{}", outcome.as_str()), &[number]);
        if outcome == RequestOutcome::TimedOut {
            self.after_silence(&request.asks);
        }
        // Who did not decide it may have forgotten what it was.
        let own = matches!(
            outcome,
            RequestOutcome::Accepted
                | RequestOutcome::Rejected
                | RequestOutcome::Answered
                | RequestOutcome::Superseded
        );
        if !own && !self.is_terse() {
            self.new_line();
            let (Asks::Consent { action: what, .. } | Asks::Answer { question: what, .. }) =
                &request.asks;
            let what = Some(what.as_str()).filter(|what| !what.trim().is_empty());
            self.about("outcome.it_was", "what", what, "");
        }
    }

    /// What silence meant.
    fn after_silence(&mut self, asks: &Asks) {
        match asks {
            Asks::Consent { silence_accepts: true, .. } => self.say("outcome.counts_as_yes", &[]),
            Asks::Consent { silence_accepts: false, .. } => self.say("outcome.counts_as_no", &[]),
            Asks::Answer { default: Some(default), kinds, choices, .. } => {
                self.default("outcome.goes_on_with", default, kinds, choices);
            }
            Asks::Answer { default: None, .. } => self.say("outcome.agent_decides", &[]),
        }
    }

    /// A request that came without what an answer needs: it is said all the same (T21, S10).
    pub(super) fn unanswerable_consent(&mut self, heard: &LenientEvent<'_>) {
        // enforces: E26, V2
        let text = |name| heard.text(name).unwrap_or_default().into_owned();
        let irreversible = heard.flag("irreversible") == Some(true);
        let reversibility = match Reversibility::parse(&text("reversibility")) {
            Ok(reversibility) if !irreversible => reversibility,
            Err(_) if heard.flag("irreversible") == Some(false) => Reversibility::Reversible,
            _ => Reversibility::Irreversible,
        };
        let asks = Asks::Consent {
            action: text("action"),
            consequence: text("consequence"),
            risk: RiskLevel::parse(&text("risk_level")).unwrap_or(RiskLevel::High),
            reversibility,
            silence_accepts: text("default_decision") == "accept",
        };
        self.asks(&asks, "");
        self.new_line();
        self.say("ask.unanswerable", &[]);
    }

    pub(super) fn unanswerable_question(&mut self, heard: &LenientEvent<'_>) {
        self.whole(
            "ask.question",
            "question",
            &heard.text("question").unwrap_or_default(),
            "ask.question.bare",
        );
        self.whole("ask.context", "context", &heard.text("context").unwrap_or_default(), "");
        self.new_line();
        self.say("ask.unanswerable", &[]);
    }
}

/// What ends a sentence.
const SENTENCE_ENDS: [char; 8] = ['.', '!', '?', '。', '！', '؟', '۔', '।'];

/// A sentence without its end, in small letters.
fn bare(sentence: &str) -> String {
    sentence.trim().trim_end_matches(SENTENCE_ENDS).trim().to_lowercase()
}

fn undo(reversibility: Reversibility) -> &'static str {
    match reversibility {
        Reversibility::Reversible => "undo.reversible",
        Reversibility::ReversibleWithEffort => "undo.reversible_with_effort",
        Reversibility::Irreversible => "undo.irreversible",
    }
}

fn danger(risk: RiskLevel) -> &'static str {
    match risk {
        RiskLevel::Low => "risk.low",
        RiskLevel::Medium => "risk.medium",
        RiskLevel::High => "risk.high",
    }
}
