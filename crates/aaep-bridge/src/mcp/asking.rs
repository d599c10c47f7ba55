//! Questions of a server, put to the person: a form becomes one clarification after the other.

use aaep_agent::{Error, Question, Session};
use serde_json::{Map, Value, json};

use crate::act::shown;

/// Fields that a form may have, and choices that one field may have.
const FIELDS: usize = 32;
const CHOICES: usize = 30;

/// How often a wrong answer may be given again.
const TRIES: usize = 3;

/// What a person types to leave a field out.
const NOTHING: &str = "-";

/// Why a form came to nothing.
enum Ended {
    Declined,
    Cancelled,
}

impl From<Error> for Ended {
    fn from(_: Error) -> Self {
        Self::Cancelled
    }
}

/// What a form asks for.
struct Field<'a> {
    name: &'a str,
    schema: &'a Value,
    required: bool,
}

/// Somebody who asks.
pub(super) struct Asking<'a> {
    pub(super) session: &'a Session,
    pub(super) server: &'a str,
    pub(super) seconds: u32,
}

impl Asking<'_> {
    /// The result of an `elicitation/create`. Silence cancels; nothing is ever made up.
    pub(super) async fn elicit(&self, params: &Value) -> Value {
        match self.answered(params).await {
            Ok(content) => match content {
                Some(content) => json!({ "action": "accept", "content": content }),
                None => json!({ "action": "accept" }),
            },
            Err(Ended::Declined) => json!({ "action": "decline" }),
            Err(Ended::Cancelled) => json!({ "action": "cancel" }),
        }
    }

    async fn answered(&self, params: &Value) -> Result<Option<Map<String, Value>>, Ended> {
        let text = |name: &str| params.get(name).and_then(Value::as_str).unwrap_or_default();
        let asks = format!("The server {} asks: {}", shown(self.server), shown(text("message")));
        if text("mode") == "url" {
            let words = format!("{asks} It wants you to open {}.", shown(text("url")));
            self.agrees(words, "I have opened it").await?;
            return Ok(None);
        }
        let fields = fields(params).ok_or(Ended::Cancelled)?;
        let names: Vec<_> = fields.iter().map(Field::title).collect();
        let words = match names.is_empty() {
            true => asks,
            false => format!("{asks} It wants to know: {}.", names.join(", ")),
        };
        let yes = if names.is_empty() { "Yes" } else { "Answer" };
        self.agrees(words, yes).await?;
        let mut content = Map::new();
        for field in &fields {
            if let Some(value) = self.field(field).await? {
                content.insert(field.name.to_owned(), value);
            }
        }
        Ok(Some(content))
    }

    /// Whether the person wants to answer at all.
    async fn agrees(&self, words: String, yes: &str) -> Result<(), Ended> {
        let question = Question::choice(words).or(yes, true).or("Decline", false);
        match self.session.ask(question.timeout_seconds(self.seconds)).await? {
            true => Ok(()),
            false => Err(Ended::Declined),
        }
    }

    async fn field(&self, field: &Field<'_>) -> Result<Option<Value>, Ended> {
        let mut words = self.words(field);
        for _ in 0..TRIES {
            let answer = self.ask(field, words).await?;
            match answer.map(|value| field.check(value)) {
                None => return Ok(None),
                Some(Ok(value)) => return Ok(Some(value)),
                Some(Err(why)) => words = format!("{why} {}", self.words(field)),
            }
        }
        Err(Ended::Cancelled)
    }

    fn words(&self, field: &Field<'_>) -> String {
        let about = field.schema.get("description").and_then(Value::as_str).map(shown);
        let about = about.map(|about| format!(" {about}")).unwrap_or_default();
        let skip = match (field.required, field.is_typed()) {
            (false, true) => format!(" Type {NOTHING} to leave it out."),
            _ => String::new(),
        };
        format!("For the server {}: {}?{about}{skip}", shown(self.server), field.title())
    }

    /// One answer; none if the field is left out.
    async fn ask(&self, field: &Field<'_>, words: String) -> Result<Option<Value>, Ended> {
        let kind = field.schema.get("type").and_then(Value::as_str).unwrap_or("string");
        let choices = choices(field.schema);
        if kind == "array" {
            return self.several(field, &words).await.map(Some);
        }
        if kind == "boolean" || !choices.is_empty() {
            let yes_no = || vec![("Yes".to_owned(), json!(true)), ("No".to_owned(), json!(false))];
            let choices = if choices.is_empty() { yes_no() } else { choices };
            let mut question = Question::choice(words).timeout_seconds(self.seconds);
            let leaves_out = !field.required || choices.len() < 2;
            for (label, value) in choices {
                question = question.or(label, Some(value));
            }
            if leaves_out {
                question = question.or("Leave it out", None);
            }
            return Ok(self.session.ask(question).await?);
        }
        let question = Question::text(words).timeout_seconds(self.seconds);
        let text = self.session.ask(question).await?;
        if !field.required && text.trim() == NOTHING {
            return Ok(None);
        }
        Ok(Some(match kind {
            // What is no number is told as such by the check.
            "number" | "integer" => serde_json::from_str::<serde_json::Number>(text.trim())
                .map_or(json!(text), Value::Number),
            _ => json!(text),
        }))
    }

    /// Several of a list: each is asked.
    async fn several(&self, field: &Field<'_>, words: &str) -> Result<Value, Ended> {
        let items = field.schema.get("items").unwrap_or(&Value::Null);
        let choices = choices(items);
        if choices.is_empty() {
            return Err(Ended::Cancelled);
        }
        let mut chosen = Vec::new();
        for (label, value) in choices {
            let question = Question::yes_no(format!("{words} With {label}?"));
            if self.session.ask(question.timeout_seconds(self.seconds)).await? {
                chosen.push(value);
            }
        }
        Ok(Value::Array(chosen))
    }
}

fn fields(params: &Value) -> Option<Vec<Field<'_>>> {
    let schema = params.get("requestedSchema");
    let properties = schema.and_then(|schema| schema.get("properties"));
    let Some(properties) = properties.and_then(Value::as_object) else { return Some(Vec::new()) };
    let required = schema.and_then(|schema| schema.get("required")).and_then(Value::as_array);
    let required: Vec<_> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    let field = |(name, schema)| {
        let name: &String = name;
        Field { name, schema, required: required.contains(&name.as_str()) }
    };
    (properties.len() <= FIELDS).then(|| properties.iter().map(field).collect())
}

/// What a field lets choose: labels and values; nothing if anything may be answered.
fn choices(schema: &Value) -> Vec<(String, Value)> {
    let list = |name: &str| schema.get(name).and_then(Value::as_array).into_iter().flatten();
    let titled = list("oneOf").chain(list("anyOf")).filter_map(|option| {
        let value = option.get("const")?;
        let title = option.get("title").and_then(Value::as_str).or(value.as_str())?;
        Some((shown(title), value.clone()))
    });
    let mut choices: Vec<_> = titled.collect();
    if choices.is_empty() {
        let names: Vec<_> = list("enumNames").map(Value::as_str).collect();
        choices.extend(list("enum").enumerate().filter_map(|(at, value)| {
            let name = names.get(at).copied().flatten().or(value.as_str())?;
            Some((shown(name), value.clone()))
        }));
    }
    // More than that are typed, and checked.
    if choices.len() > CHOICES { Vec::new() } else { choices }
}

impl Field<'_> {
    fn title(&self) -> String {
        let title = self.schema.get("title").and_then(Value::as_str).unwrap_or(self.name);
        shown(title)
    }

    /// Whether the answer is typed, not chosen.
    fn is_typed(&self) -> bool {
        let kind = self.schema.get("type").and_then(Value::as_str).unwrap_or("string");
        !matches!(kind, "boolean" | "array") && choices(self.schema).is_empty()
    }

    /// The answer, if it is one that the server takes; otherwise what is wrong.
    fn check(&self, value: Value) -> Result<Value, String> {
        let limit = |name: &str| self.schema.get(name).and_then(Value::as_f64);
        match self.schema.get("type").and_then(Value::as_str) {
            Some(kind @ ("number" | "integer")) => {
                let Some(number) = value.as_f64() else { return Err("This is no number.".into()) };
                if kind == "integer" && number.fract() != 0.0 {
                    return Err("This is no whole number.".into());
                }
                if limit("minimum").is_some_and(|least| number < least) {
                    return Err(format!("{} is the least.", limit("minimum").unwrap_or_default()));
                }
                if limit("maximum").is_some_and(|most| number > most) {
                    return Err(format!("{} is the most.", limit("maximum").unwrap_or_default()));
                }
                Ok(match kind {
                    "integer" if value.as_i64().is_none() => json!(number as i64),
                    _ => value,
                })
            }
            Some("string") | None => {
                let Some(text) = value.as_str() else { return Ok(value) };
                #[allow(clippy::cast_precision_loss)] // nobody types that much
                let length = text.chars().count() as f64;
                if limit("minLength").is_some_and(|least| length < least) {
                    return Err("This is too short.".into());
                }
                if limit("maxLength").is_some_and(|most| length > most) {
                    return Err("This is too long.".into());
                }
                let allowed = self.schema.get("enum").and_then(Value::as_array);
                if allowed.is_some_and(|allowed| !allowed.contains(&value)) {
                    return Err("This is none of the answers that the server takes.".into());
                }
                Ok(value)
            }
            _ => Ok(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_and_answers_are_checked() {
        let params = json!({ "requestedSchema": { "type": "object", "required": ["n"], "properties": {
            "n": { "type": "integer", "minimum": 1, "maximum": 9, "title": "How many" },
            "colour": { "type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"] },
            "shape": { "type": "string", "oneOf": [{ "const": "c", "title": "Circle" }] },
            "mail": { "type": "string", "minLength": 3 } } } });
        let fields = fields(&params).unwrap();
        let names: Vec<_> = fields.iter().map(|field| (field.title(), field.required)).collect();
        assert_eq!(names[0], ("How many".to_owned(), true));
        assert_eq!(choices(fields[1].schema)[1], ("Green".to_owned(), json!("g")));
        assert_eq!(choices(fields[2].schema), [("Circle".to_owned(), json!("c"))]);
        assert_eq!(fields[0].check(json!(4)).unwrap(), json!(4));
        for bad in [json!("x"), json!(1.5), json!(0), json!(10)] {
            assert!(fields[0].check(bad.clone()).is_err(), "{bad}");
        }
        assert!(fields[3].check(json!("ab")).is_err() && fields[3].check(json!("abc")).is_ok());
        let many: Map<_, _> =
            (0..99).map(|i| (i.to_string(), json!({ "type": "string" }))).collect();
        assert!(super::fields(&json!({ "requestedSchema": { "properties": many } })).is_none());
    }
}
