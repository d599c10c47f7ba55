//! From the text of a policy file to rules. Every problem is told with its line, not only the first.

use aaep_types::{
    Decision, LanguageTag, Malformed, Presence, Reversibility, RiskLevel, TimeoutSeconds, deception,
};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::arguments::ArgumentPath;
use crate::condition::{Comparison, Condition, Scalar, Test};
use crate::decimal::Decimal;
use crate::glob::Glob;
use crate::problem::{Problem, Problems};
use crate::rule::{Located, Rule, Stance, Verdict, usual_timeout};
use crate::template::Template;
use crate::{
    MAX_CONDITIONS, MAX_FILE_BYTES, MAX_LISTED, MAX_PATTERN_BYTES, MAX_PATTERNS, MAX_RULES,
    MAX_VALUE_BYTES, Policy, PresenceByRisk,
};

type Value<'t> = Spanned<DeValue<'t>>;

/// Reads a whole file, or says everything that is wrong.
pub(crate) fn read(text: &str) -> Result<Policy, Vec<Problem>> {
    let mut problems = Problems::new(text);
    if text.len() > MAX_FILE_BYTES {
        let what = format!("The file has more than {MAX_FILE_BYTES} bytes.");
        problems.add(0, "", what, "Make it smaller; one pattern can stand for many tools.");
        return Err(problems.finish());
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let at = error.span().map_or(0, |span| span.start);
        problems.add(at, "", sentence(error.message()), "Correct it; the file is TOML.");
    }
    // What is guessed of a broken file would only mislead.
    if problems.count() > 0 {
        return Err(problems.finish());
    }
    let language = read_language(table.get_ref(), &mut problems);
    let (rules, presence) = read_file(table.get_ref(), &mut problems);
    check_order(&rules, &mut problems);
    if language.is_some() {
        check_words(&rules, &mut problems);
    }
    if problems.count() > 0 {
        Err(problems.finish())
    } else {
        let rules = rules.into_iter().map(|(rule, _)| rule).collect();
        Ok(Policy { rules, language, presence })
    }
}

/// What the parser says, as a sentence on one line.
fn sentence(message: &str) -> String {
    let text = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let text: String = text.chars().filter(|sign| !sign.is_control()).collect();
    let mut signs = text.chars();
    match signs.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), signs.as_str()),
        None => "This cannot be read.".into(),
    }
}

/// A rule, and where its pattern stands.
type Placed = (Rule, usize);

/// The language of the templates, where that is not English.
fn read_language(table: &DeTable<'_>, problems: &mut Problems) -> Option<String> {
    let (name, value) = table.iter().find(|(name, _)| name.get_ref() == LANGUAGE)?;
    let tag = match value.get_ref() {
        DeValue::String(text) => LanguageTag::parse(text.as_ref()).ok(),
        _ => None,
    };
    let Some(tag) = tag else {
        let remedy = "Write a language tag, such as `language = \"de\"` or `language = \"yo-NG\"`.";
        problems.add(name.span().start, LANGUAGE, "This is no language.", remedy);
        return None;
    };
    (!tag.language().eq_ignore_ascii_case("en")).then(|| tag.as_str().to_owned())
}

const LANGUAGE: &str = "language";

/// Where templates are not English, a rule has all of its words or none: what it leaves out would be
/// said in English.
fn check_words(rules: &[Placed], problems: &mut Problems) {
    for (rule, at) in rules {
        let has_some =
            rule.action.is_some() || rule.consequence.is_some() || rule.summary.is_some();
        if has_some && (rule.action.is_none() || rule.consequence.is_none()) {
            let what = "What this rule does not say would be said in English.";
            problems.add(*at, "action", what, "Write `action` and `consequence` both.");
        }
    }
}

fn read_file(table: &DeTable<'_>, problems: &mut Problems) -> (Vec<Placed>, PresenceByRisk) {
    let mut rules = Vec::new();
    let mut presence = PresenceByRisk::default();
    for (name, value) in table {
        if name.get_ref() == LANGUAGE {
            continue;
        }
        if name.get_ref() == "presence" {
            presence = read_presence(name.span().start, value, problems);
            continue;
        }
        if name.get_ref() != "rule" {
            let remedy = "Take it out; a policy is a list of `[[rule]]`, with `language` before it and perhaps a table `[presence]`.";
            problems.add(
                name.span().start,
                &plain(name.get_ref()),
                "There is no such key.",
                remedy,
            );
            continue;
        }
        let DeValue::Array(items) = value.get_ref() else {
            let what = "`rule` is a list.";
            problems.add(name.span().start, "rule", what, "Write `[[rule]]`, with two brackets.");
            continue;
        };
        if items.len() > MAX_RULES {
            let what = format!("There are {} rules; at most {MAX_RULES} are read.", items.len());
            problems.add(name.span().start, "rule", what, "One pattern can stand for many tools.");
            continue;
        }
        for item in items.iter() {
            match item.get_ref() {
                DeValue::Table(rule) => {
                    rules.extend(
                        RuleReader { problems: &mut *problems, at: item.span().start }.read(rule),
                    );
                }
                _ => problems.add(
                    item.span().start,
                    "rule",
                    "A rule is a table.",
                    "Write `[[rule]]`, and its keys below.",
                ),
            }
        }
    }
    (rules, presence)
}

/// `[presence]`: the presence that a yes requires, by risk.
fn read_presence(at: usize, value: &Value<'_>, problems: &mut Problems) -> PresenceByRisk {
    let mut presence = PresenceByRisk::default();
    let DeValue::Table(table) = value.get_ref() else {
        let remedy = "Write `[presence]`, and below it `high = \"pin\"`.";
        problems.add(at, "presence", "This is a table.", remedy);
        return presence;
    };
    for (name, value) in table {
        let at = name.span().start;
        let key = format!("presence.{}", plain(name.get_ref()));
        let mut reader = RuleReader { problems: &mut *problems, at };
        match RiskLevel::parse(name.get_ref()) {
            Ok(risk) => presence.set(risk, reader.word(at, &key, value, Presence::parse).value),
            Err(_) => {
                let remedy = "Write `low`, `medium` or `high`.";
                problems.add(at, &key, "There is no such risk.", remedy);
            }
        }
    }
    presence
}

/// The first rule that matches counts: one behind a rule that covers all its tools never does.
fn check_order(rules: &[Placed], problems: &mut Problems) {
    for (place, (rule, at)) in rules.iter().enumerate() {
        let hides = |(other, _): &&Placed| other.hides(rule);
        if let Some((hiding, _)) = rules[..place].iter().find(hides) {
            let what = format!(
                "This rule never counts: the one in line {} covers its tools already.",
                hiding.line
            );
            problems.add(*at, "tool", what, "Move it further up, or take it out.");
        }
    }
}

/// A key of the file, safe to print.
fn plain(key: &str) -> String {
    key.chars().take(64).flat_map(char::escape_debug).collect()
}

const KEYS: &str = "`tool`, `where`, `risk_level`, `reversibility`, `verdict`, `timeout_seconds`, \
                    `default_decision`, `presence`, `action`, `consequence`, `summary`";

/// Keys that are not known, and those that are meant.
const MEANT: [(&str, &str); 12] = [
    ("tools", "tool"),
    ("name", "tool"),
    ("pattern", "tool"),
    ("when", "where"),
    ("if", "where"),
    ("arguments", "where"),
    ("risk", "risk_level"),
    ("irreversible", "reversibility"),
    ("reversible", "reversibility"),
    ("timeout", "timeout_seconds"),
    ("default", "default_decision"),
    ("summary_normal", "summary"),
];

struct RuleReader<'p> {
    problems: &'p mut Problems,
    at: usize,
}

impl RuleReader<'_> {
    fn read(mut self, table: &DeTable<'_>) -> Option<Placed> {
        let before = self.problems.count();
        let (mut tools, mut tools_at) = (None, self.at);
        let mut conditions = Vec::new();
        let mut texts: [Option<Template>; 3] = [None, None, None];
        let mut stance = Stance {
            risk: self.unsaid(),
            reversibility: self.unsaid(),
            verdict: self.unsaid(),
            timeout: self.unsaid(),
            default: self.unsaid(),
            presence: self.unsaid(),
        };
        for (name, value) in table {
            let at = name.span().start;
            match name.get_ref().as_ref() {
                "tool" => (tools, tools_at) = (Some(self.tools(at, value)), at),
                "where" => conditions = self.conditions(at, value),
                "risk_level" => stance.risk = self.word(at, "risk_level", value, RiskLevel::parse),
                "reversibility" => {
                    stance.reversibility =
                        self.word(at, "reversibility", value, Reversibility::parse);
                }
                "verdict" => stance.verdict = self.verdict(at, value),
                "timeout_seconds" => stance.timeout = self.timeout(at, value),
                "default_decision" => {
                    stance.default = self.word(at, "default_decision", value, Decision::parse);
                }
                "presence" => {
                    stance.presence = self.word(at, "presence", value, Presence::parse);
                }
                "action" => texts[0] = self.template(at, "action", value),
                "consequence" => texts[1] = self.template(at, "consequence", value),
                "summary" => texts[2] = self.template(at, "summary", value),
                other => self.unknown(at, other),
            }
        }
        if tools.is_none() {
            self.problems.add(self.at, "tool", "The rule names no tool.", "Add `tool = \"…\"`.");
        }
        let tools = tools.unwrap_or_default();
        // A value that could not be read would only be blamed a second time.
        if self.problems.count() > before {
            return None;
        }
        stance.check(tools.iter().any(Glob::fits_anything), self.problems);
        let [action, consequence, summary] = texts;
        let (risk, reversibility) = (stance.risk(), stance.reversibility());
        let rule = Rule {
            line: self.problems.line(self.at),
            tools,
            conditions,
            risk,
            reversibility,
            verdict: stance.verdict(),
            timeout: stance.timeout.or(usual_timeout(risk, reversibility)),
            default: stance.default.or(Decision::Reject),
            presence: stance.presence.value,
            action,
            consequence,
            summary,
        };
        Some((rule, tools_at))
    }

    fn unsaid<T>(&self) -> Located<T> {
        Located { value: None, at: self.at }
    }

    fn unknown(&mut self, at: usize, name: &str) {
        let meant = MEANT.iter().find(|(other, _)| *other == name);
        let remedy = match meant {
            Some((_, meant)) => format!("Write `{meant}`."),
            None => format!("A rule has {KEYS}."),
        };
        self.problems.add(at, &plain(name), "There is no such key.", remedy);
    }

    /// A string; anything else is a problem.
    fn text<'v>(&mut self, at: usize, key: &str, value: &'v Value<'_>) -> Option<&'v str> {
        match value.get_ref() {
            DeValue::String(text) if text.len() <= MAX_VALUE_BYTES => Some(text),
            DeValue::String(_) => {
                let what = format!("The text has more than {MAX_VALUE_BYTES} bytes.");
                self.problems.add(at, key, what, "Shorten it.");
                None
            }
            _ => {
                self.problems.add(at, key, "This is a text.", "Put it in quotes.");
                None
            }
        }
    }

    fn word<T>(
        &mut self,
        at: usize,
        key: &str,
        value: &Value<'_>,
        parse: impl Fn(&str) -> Result<T, Malformed>,
    ) -> Located<T> {
        let word = self.text(at, key, value).map(&parse);
        if let Some(Err(malformed)) = &word {
            self.problems.add(at, key, "There is no such choice.", malformed.to_string());
        }
        Located { value: word.and_then(Result::ok), at }
    }

    fn verdict(&mut self, at: usize, value: &Value<'_>) -> Located<Verdict> {
        let word = self.text(at, "verdict", value);
        let verdict = word.and_then(|word| Verdict::ALL.into_iter().find(|v| v.as_str() == word));
        if word.is_some() && verdict.is_none() {
            let remedy = "Write one of: `ask` `announce` `silent`.";
            self.problems.add(at, "verdict", "There is no such choice.", remedy);
        }
        Located { value: verdict, at }
    }

    fn timeout(&mut self, at: usize, value: &Value<'_>) -> Located<TimeoutSeconds> {
        let seconds = match value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
            _ => None,
        };
        let value = seconds.and_then(|seconds| TimeoutSeconds::new(seconds).ok());
        if value.is_none() {
            let remedy = "Write a whole number from 1 to 86400.";
            self.problems.add(
                at,
                "timeout_seconds",
                "This is no number of seconds up to a day.",
                remedy,
            );
        }
        Located { value, at }
    }

    fn template(&mut self, at: usize, key: &str, value: &Value<'_>) -> Option<Template> {
        let template = Template::parse(self.text(at, key, value)?);
        template
            .map_err(|what| {
                let remedy =
                    "Write words, with arguments in braces: `Transfer {amount} to {recipient}`.";
                self.problems.add(at, key, what, remedy);
            })
            .ok()
    }

    fn tools(&mut self, at: usize, value: &Value<'_>) -> Vec<Glob> {
        let list = match value.get_ref() {
            DeValue::Array(list) => list.iter().collect(),
            _ => vec![value],
        };
        if list.is_empty() || list.len() > MAX_PATTERNS {
            let what = format!("There are {} patterns here.", list.len());
            self.problems.add(at, "tool", what, format!("Write 1 to {MAX_PATTERNS}."));
            return Vec::new();
        }
        let texts =
            list.into_iter().filter_map(|value| self.pattern(value.span().start, "tool", value));
        texts.collect()
    }

    fn pattern(&mut self, at: usize, key: &str, value: &Value<'_>) -> Option<Glob> {
        let text = self.text(at, key, value)?;
        let what = if text.is_empty() {
            "The pattern is empty.".into()
        } else if text.len() > MAX_PATTERN_BYTES {
            format!("The pattern has more than {MAX_PATTERN_BYTES} bytes.")
        } else if text.trim() != text {
            "The pattern begins or ends with a space.".into()
        } else if deception::first(text).is_some() || text.contains(['\n', '\r', '\t']) {
            "There are characters in the pattern that nobody sees.".into()
        } else {
            return Some(Glob::new(text));
        };
        self.problems.add(
            at,
            key,
            what,
            "Write a name, with `*` for any characters and `?` for one.",
        );
        None
    }

    fn conditions(&mut self, at: usize, value: &Value<'_>) -> Vec<Condition> {
        let DeValue::Table(table) = value.get_ref() else {
            let remedy = "Write `where = { amount = { at_most = 10 } }`.";
            self.problems.add(at, "where", "This is a table of arguments.", remedy);
            return Vec::new();
        };
        if table.len() > MAX_CONDITIONS {
            let what = format!("There are {} arguments here.", table.len());
            self.problems.add(at, "where", what, format!("Write at most {MAX_CONDITIONS}."));
            return Vec::new();
        }
        table.iter().filter_map(|(name, value)| self.condition(name, value)).collect()
    }

    fn condition(
        &mut self,
        name: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Value<'_>,
    ) -> Option<Condition> {
        let at = name.span().start;
        let key = format!("where.{}", plain(name.get_ref()));
        let place = ArgumentPath::parse(name.get_ref())
            .map_err(|what| {
                self.problems.add(
                    at,
                    &key,
                    what,
                    "Write a name, or a pointer such as `/to/0/name`.",
                )
            })
            .ok()?;
        let tests = match value.get_ref() {
            DeValue::Table(table) => {
                if table.is_empty() {
                    let remedy = "Write what it has to be: `{ present = true }`.";
                    self.problems.add(at, &key, "Nothing is said of this argument.", remedy);
                }
                table
                    .iter()
                    .filter_map(|(test, value)| {
                        self.test(&key, test.span().start, test.get_ref(), value)
                    })
                    .collect()
            }
            _ => vec![Test::Equals(self.scalar(at, &key, value)?)],
        };
        Some(Condition { place, tests })
    }

    fn test(&mut self, key: &str, at: usize, name: &str, value: &Value<'_>) -> Option<Test> {
        let key = format!("{key}.{}", plain(name));
        let comparison = match name {
            "equals" => return self.scalar(at, &key, value).map(Test::Equals),
            "one_of" => return self.one_of(at, &key, value),
            "matches" => return self.pattern(at, &key, value).map(Test::Matches),
            "present" => return self.flag(at, &key, value).map(Test::Present),
            "greater_than" => Comparison::GreaterThan,
            "less_than" => Comparison::LessThan,
            "at_least" => Comparison::AtLeast,
            "at_most" => Comparison::AtMost,
            _ => {
                let remedy = "Write `equals`, `one_of`, `matches`, `greater_than`, `less_than`, \
                              `at_least`, `at_most` or `present`.";
                self.problems.add(at, &key, "There is no such condition.", remedy);
                return None;
            }
        };
        let number = match value.get_ref() {
            DeValue::String(text) => {
                Decimal::parse_plain(text).map(|number| (number, text.to_string()))
            }
            other => number(other),
        };
        if number.is_none() {
            let remedy = "Write a decimal number, such as 10 or \"10.50\".";
            self.problems.add(at, &key, "This is no number.", remedy);
        }
        number.map(|(number, text)| Test::Compare(comparison, number, text))
    }

    fn one_of(&mut self, at: usize, key: &str, value: &Value<'_>) -> Option<Test> {
        let list = match value.get_ref() {
            DeValue::Array(list) if (1..=MAX_LISTED).contains(&list.len()) => list,
            _ => {
                let remedy = format!("Write a list of 1 to {MAX_LISTED} values in brackets.");
                self.problems.add(at, key, "This is no list, or too long a one.", remedy);
                return None;
            }
        };
        Some(Test::OneOf(list.iter().filter_map(|value| self.scalar(at, key, value)).collect()))
    }

    fn flag(&mut self, at: usize, key: &str, value: &Value<'_>) -> Option<bool> {
        let DeValue::Boolean(flag) = value.get_ref() else {
            self.problems.add(
                at,
                key,
                "This is neither true nor false.",
                "Write `true` or `false`.",
            );
            return None;
        };
        Some(*flag)
    }

    fn scalar(&mut self, at: usize, key: &str, value: &Value<'_>) -> Option<Scalar> {
        match value.get_ref() {
            DeValue::String(_) => {
                self.text(at, key, value).map(|text| Scalar::Text(text.to_owned()))
            }
            DeValue::Boolean(flag) => Some(Scalar::Flag(*flag)),
            other => match number(other) {
                Some((number, text)) => Some(Scalar::Number(number, text)),
                None => {
                    let remedy = "Write a text in quotes, a decimal number, true or false.";
                    self.problems.add(at, key, "An argument cannot be compared with this.", remedy);
                    None
                }
            },
        }
    }
}

/// A number with every digit that was written.
fn number(value: &DeValue<'_>) -> Option<(Decimal, String)> {
    let text = match value {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
        DeValue::Float(number) => number.as_str(),
        _ => return None,
    };
    let text = text.strip_prefix('+').unwrap_or(text);
    Decimal::parse(text).map(|number| (number, text.to_owned()))
}
