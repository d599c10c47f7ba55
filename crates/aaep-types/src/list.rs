//! Arrays with bounds.

use serde_json::{Value, json};
use std::ops::Deref;

use crate::Malformed;
use crate::json::{Raw, Writer, elements};
use crate::report::Report;
use crate::rule::Rule;
use crate::text::UNBOUNDED;
use crate::wire::Wire;

/// An array of `MIN` to `MAX` elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T, const MIN: usize, const MAX: usize>(Vec<T>);

/// An array of `MIN` to `MAX` elements, no two of them equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set<T, const MIN: usize, const MAX: usize>(Vec<T>);

impl<T, const MIN: usize, const MAX: usize> List<T, MIN, MAX> {
    /// Takes elements whose number is within the bounds.
    pub fn new(elements: Vec<T>) -> Result<Self, Malformed> {
        if (MIN..=MAX).contains(&elements.len()) {
            Ok(Self(elements))
        } else {
            Err(Malformed("The list has too few or too many elements."))
        }
    }
}

impl<T: Ord, const MIN: usize, const MAX: usize> Set<T, MIN, MAX> {
    /// Takes different elements whose number is within the bounds.
    pub fn new(elements: Vec<T>) -> Result<Self, Malformed> {
        if !(MIN..=MAX).contains(&elements.len()) {
            return Err(Malformed("The list has too few or too many elements."));
        }
        match repeated(&elements) {
            Some(_) => Err(Malformed("An element stands twice in the list.")),
            None => Ok(Self(elements)),
        }
    }
}

impl<T, const MIN: usize, const MAX: usize> Deref for List<T, MIN, MAX> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T, const MIN: usize, const MAX: usize> Deref for Set<T, MIN, MAX> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

/// The position of an element that equals an earlier one.
pub(crate) fn repeated<T: Ord>(elements: &[T]) -> Option<usize> {
    let mut order: Vec<usize> = (0..elements.len()).collect();
    order.sort_by(|&a, &b| elements[a].cmp(&elements[b]));
    order.windows(2).find_map(|pair| match pair {
        [a, b] if elements[*a] == elements[*b] => Some(*b),
        _ => None,
    })
}

fn read_elements<'a, T: Wire<'a>>(
    raw: Raw<'a>,
    (min, max): (usize, usize),
    rule: Rule,
    report: &mut Report,
) -> Option<Vec<T>> {
    let Raw::Array(text) = raw else {
        report.wrong_type(rule, "an array", raw);
        return None;
    };
    let raw = elements(text);
    let count = raw.len();
    let fits = (min..=max).contains(&count);
    if !fits && max == UNBOUNDED {
        report.error(rule, format_args!("Write at least {min} elements; there are {count}."));
    } else if !fits {
        report.error(rule, format_args!("Write {min} to {max} elements; there are {count}."));
    }
    let mut values = Vec::with_capacity(count);
    for (index, element) in raw.into_iter().enumerate() {
        // Beyond the bound one complaint is enough.
        if index >= max {
            break;
        }
        values.extend(read_element::<T>(index, element, rule, report));
    }
    (fits && values.len() == count).then_some(values)
}

pub(crate) fn read_element<'a, T: Wire<'a>>(
    index: usize,
    raw: Raw<'a>,
    rule: Rule,
    report: &mut Report,
) -> Option<T> {
    // Numbers as path steps are only spelled out when problems are reported.
    let name = if report.explains() { index.to_string() } else { String::new() };
    report.within(&name, |report| T::read(raw, rule, report))
}

fn array_schema(items: Value, min: usize, max: usize, unique: bool) -> Value {
    let mut schema = json!({ "type": "array", "items": items });
    if min > 0 {
        schema["minItems"] = json!(min);
    }
    if max < UNBOUNDED {
        schema["maxItems"] = json!(max);
    }
    if unique {
        schema["uniqueItems"] = json!(true);
    }
    schema
}

pub(crate) fn write_elements<'a, T: Wire<'a>>(elements: &[T], out: &mut Writer) {
    out.open('[');
    for element in elements {
        element.write(out);
        out.comma();
    }
    out.close(']');
}

impl<'a, T: Wire<'a>, const MIN: usize, const MAX: usize> Wire<'a> for List<T, MIN, MAX> {
    fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
        read_elements(raw, (MIN, MAX), rule, report).map(Self)
    }

    fn write(&self, out: &mut Writer) {
        write_elements(&self.0, out);
    }

    fn schema() -> Value {
        array_schema(T::schema(), MIN, MAX, false)
    }
}

impl<'a, T: Wire<'a> + Ord, const MIN: usize, const MAX: usize> Wire<'a> for Set<T, MIN, MAX> {
    fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
        let values = read_elements(raw, (MIN, MAX), rule, report)?;
        if let Some(index) = repeated(&values) {
            report.within(&index.to_string(), |report| {
                report.error(
                    T::rule_for(rule),
                    format_args!("Remove this element; it stands in the list already."),
                );
            });
            return None;
        }
        Some(Self(values))
    }

    fn write(&self, out: &mut Writer) {
        write_elements(&self.0, out);
    }

    fn schema() -> Value {
        array_schema(T::schema(), MIN, MAX, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Name;

    type Words = Set<Name<'static, 1, 8>, 1, 3>;

    fn words(list: &[&'static str]) -> Result<Words, Malformed> {
        Words::new(list.iter().map(|word| Name::new(*word).unwrap()).collect())
    }

    #[test]
    fn a_set_has_no_element_twice_and_keeps_its_order() {
        assert_eq!(words(&["b", "a"]).unwrap().first().map(|word| word.as_str()), Some("b"));
        assert!(words(&["b", "a", "b"]).is_err());
    }

    #[test]
    fn a_list_has_as_many_elements_as_it_may() {
        assert!(words(&[]).is_err());
        assert!(words(&["a", "b", "c", "d"]).is_err());
    }

    #[test]
    fn a_repetition_is_found_at_its_second_place() {
        assert_eq!(repeated(&[3, 1, 2, 1]), Some(3));
        assert_eq!(repeated(&[3, 1, 2]), None);
    }
}
