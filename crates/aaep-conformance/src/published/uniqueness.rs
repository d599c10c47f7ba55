//! Repeated items, by the equality of JSON Schema: `1` and `1.0` are equal, and the order of an
//! object's members does not matter.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::{Number, Value};

/// The places of the items that equal an earlier one.
///
/// Items are compared by a canonical text rather than pair by pair: some of the schemas' lists
/// have no upper bound, and the work must not grow with the square of their length.
pub(super) fn repeated(items: &[Value]) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let mut repeated = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let mut text = String::new();
        write_canonical(&mut text, item);
        if !seen.insert(text) {
            repeated.push(at);
        }
    }
    repeated
}

/// Writes a text that two values share exactly when they are equal.
fn write_canonical(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_canonical(out, item);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| name.as_str());
            out.push('{');
            for (name, member) in members {
                write_string(out, name);
                write_canonical(out, member);
                out.push(',');
            }
            out.push('}');
        }
    }
}

fn write_string(out: &mut String, text: &str) {
    // The length in front makes escaping unnecessary. Writing to a string cannot fail.
    let _ = write!(out, "\"{}:{text}", text.len());
}

fn write_number(out: &mut String, number: &Number) {
    // A float without a fraction is written as the integer it is. Beyond the range of i128 it
    // meets no integer of serde_json, and its shortest decimal form tells it from other floats.
    let whole = number.as_i128().or_else(|| whole_float(number));
    let _ = match whole {
        Some(whole) => write!(out, "{whole}"),
        None => write!(out, "{number}"),
    };
}

fn whole_float(number: &Number) -> Option<i128> {
    let float = number.as_f64()?;
    // Below 2^100 the conversion is exact.
    (float.fract() == 0.0 && float.abs() < 2_f64.powi(100)).then_some(float as i128)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equality_is_that_of_json_schema() {
        let repeats = |items: Value| {
            let Value::Array(items) = items else { panic!("an array") };
            !repeated(&items).is_empty()
        };
        assert!(repeats(json!([9_007_199_254_740_992_u64, 9_007_199_254_740_992.0])));
        assert!(repeats(json!([{"a": [1], "b": null}, {"b": null, "a": [1.0]}])));
        assert!(repeats(json!([0, -0.0])) && repeats(json!([1e300, 1e300])));
        assert!(!repeats(json!([9_007_199_254_740_993_u64, 9_007_199_254_740_992.0])));
        assert!(!repeats(json!([1, true, "1", [1], {"1": 1}, null, "null", 1.5, 1e300])));
        assert!(!repeats(json!([["a", "b"], ["a\",\"b"], ["ab"], [["a"], "b"], []])));
    }
}
