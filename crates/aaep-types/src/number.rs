//! Numbers with bounds.

use serde_json::{Value, json};

use crate::Malformed;
use crate::json::{Raw, Writer};
use crate::report::Report;
use crate::rule::Rule;
use crate::wire::Wire;

/// The largest whole number that every JSON reader keeps (§3.8).
pub const MAX_SAFE: u64 = 1 << 53;

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Whole<const MIN: u64, const MAX: u64>(u64);

/// A count without a bound of its own.
pub type Count = Whole<0, MAX_SAFE>;
/// A number that starts at 1.
pub type Ordinal = Whole<1, MAX_SAFE>;
/// A duration of at most a day.
pub type Millis = Whole<0, 86_400_000>;
/// How long a request waits: a second to a day (§4.4).
pub type TimeoutSeconds = Whole<1, 86_400>;

impl<const MIN: u64, const MAX: u64> Whole<MIN, MAX> {
    /// Takes a number within the bounds.
    pub fn new(value: u64) -> Result<Self, Malformed> {
        if (MIN..=MAX).contains(&value) {
            Ok(Self(value))
        } else {
            Err(Malformed("The number is outside the range that the protocol allows."))
        }
    }

    /// The number.
    pub fn get(self) -> u64 {
        self.0
    }
}

/// A JSON number that is whole, however it is written (`300`, `300.0`, `3e2`).
fn whole(text: &str) -> Option<i64> {
    if let Ok(value) = text.parse::<i64>() {
        return Some(value);
    }
    let value = text.parse::<f64>().ok()?;
    let fits = value.fract() == 0.0 && value.abs() <= MAX_SAFE as f64;
    fits.then_some(value as i64)
}

impl<'a, const MIN: u64, const MAX: u64> Wire<'a> for Whole<MIN, MAX> {
    fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
        let Raw::Number(text) = raw else {
            report.wrong_type(rule, "a whole number", raw);
            return None;
        };
        let value = whole(text).and_then(|value| u64::try_from(value).ok());
        match value.and_then(|value| Self::new(value).ok()) {
            Some(value) => Some(value),
            None if MAX == MAX_SAFE => {
                report.error(rule, format_args!("Write a whole number of {MIN} or more."));
                None
            }
            None => {
                report.error(rule, format_args!("Write a whole number from {MIN} to {MAX}."));
                None
            }
        }
    }

    fn write(&self, out: &mut Writer) {
        out.json(&self.0.to_string());
    }

    fn schema() -> Value {
        json!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

/// A number from 0 to `MAX`, not necessarily whole.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct UpTo<const MAX: u32>(f64);

/// How much is done.
pub type Percent = UpTo<100>;
/// How sure a subscriber is of what it heard.
pub type Confidence = UpTo<1>;

impl<const MAX: u32> UpTo<MAX> {
    /// Takes a number from 0 to `MAX`.
    pub fn new(value: f64) -> Result<Self, Malformed> {
        if (0.0..=f64::from(MAX)).contains(&value) {
            Ok(Self(value))
        } else {
            Err(Malformed("The number is outside the range that the protocol allows."))
        }
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl<'a, const MAX: u32> Wire<'a> for UpTo<MAX> {
    fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
        let Raw::Number(text) = raw else {
            report.wrong_type(rule, "a number", raw);
            return None;
        };
        let value = text.parse().ok().and_then(|value| Self::new(value).ok());
        if value.is_none() {
            report.error(rule, format_args!("Write a number from 0 to {MAX}."));
        }
        value
    }

    fn write(&self, out: &mut Writer) {
        // Minus zero is zero.
        out.json(&(self.0 + 0.0).to_string());
    }

    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0, "maximum": MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Reading;
    use crate::rule;

    fn read<'a, T: Wire<'a>>(text: &'a str) -> Option<T> {
        let mut report = Report::deciding(Reading::Wire);
        let value = T::read(Raw::Number(text), rule::T20, &mut report);
        assert_eq!(value.is_none(), report.has_errors());
        value
    }

    // covers: T20
    #[test]
    fn a_whole_number_may_be_written_in_any_way_that_json_allows() {
        for text in ["300", "300.0", "3e2", "3.00E+2", "30000e-2"] {
            assert_eq!(read::<TimeoutSeconds>(text).map(|value| value.get()), Some(300), "{text}");
        }
    }

    // covers: T20
    #[test]
    fn what_is_not_whole_or_out_of_range_is_refused() {
        for text in ["0", "-1", "86401", "1.5", "1e300", "99999999999999999999"] {
            assert_eq!(read::<TimeoutSeconds>(text), None, "{text}");
        }
    }

    // covers: T9, C19
    #[test]
    fn a_percentage_may_have_a_fraction_and_stays_within_its_bounds() {
        assert_eq!(read::<Percent>("47.5").map(|value| value.get()), Some(47.5));
        assert_eq!(read::<Percent>("100.01"), None);
        assert_eq!(read::<Confidence>("-0.1"), None);
        assert_eq!(read::<Confidence>("1").map(|value| value.get()), Some(1.0));
    }
}
