//! Decimal numbers, compared exactly: amounts are not rounded on the way to a decision.

use std::cmp::Ordering;

/// A decimal number of any size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    negative: bool,
    /// Without zeros at either end; empty for zero.
    digits: Vec<u8>,
    /// How many of the digits stand before the point; negative if zeros follow it.
    whole: i64,
}

impl Decimal {
    /// Takes a number as JSON writes it: `-12.50`, `3e2`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let mut decimal = Self::parse_plain(number)?;
        decimal.whole += i64::from(exponent);
        Some(decimal.normal())
    }

    /// Takes digits, with a point and a minus sign at most: what people write in a string.
    pub(crate) fn parse_plain(text: &str) -> Option<Self> {
        let (negative, number) = match text.strip_prefix('-') {
            Some(number) => (true, number),
            None => (false, text),
        };
        let (whole, fraction) = match number.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (number, None),
        };
        let is_digits =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(whole) || !fraction.is_none_or(is_digits) {
            return None;
        }
        let digits = whole.bytes().chain(fraction.unwrap_or_default().bytes()).collect();
        let whole = i64::try_from(whole.len()).ok()?;
        Some(Self { negative, digits, whole }.normal())
    }

    /// Whether programs that keep numbers as doubles read another number than the one that is
    /// written, or none.
    pub(crate) fn is_rounded(text: &str) -> bool {
        const LARGEST: u64 = 1 << 53;
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return !digits.parse::<u64>().is_ok_and(|number| number <= LARGEST);
        }
        let Some(double) = text.parse::<f64>().ok().filter(|double| double.is_finite()) else {
            return true;
        };
        // The shortest decimal that is read as this double.
        Self::parse(&format!("{double:e}")) != Self::parse(text)
    }

    fn normal(mut self) -> Self {
        let zeros = self.digits.iter().take_while(|digit| **digit == b'0').count();
        self.digits.drain(..zeros);
        self.whole -= zeros as i64;
        while self.digits.pop_if(|digit| *digit == b'0').is_some() {}
        if self.digits.is_empty() {
            self = Self { negative: false, digits: Vec::new(), whole: 0 };
        }
        self
    }

    /// How far it is from zero.
    fn compare_size(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => {
                // Without zeros at the end, what is longer and begins the same is more.
                self.whole.cmp(&other.whole).then_with(|| self.digits.cmp(&other.digits))
            }
        }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.compare_size(other),
            (true, true) => other.compare_size(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::parse(text).unwrap()
    }

    #[test]
    fn a_number_that_a_double_does_not_carry_is_known() {
        for same in
            ["0", "-0", "0.1", "12.50", "1e3", "9007199254740992", "1e22", "5e-324", "-1.5E+2"]
        {
            assert!(!Decimal::is_rounded(same), "{same}");
        }
        for rounded in [
            "9007199254740993",
            "20.000000000000000001",
            "1e400",
            "1e-400",
            "100000000000000001.0",
            "99999999999999999999999999",
        ] {
            assert!(Decimal::is_rounded(rounded), "{rounded}");
        }
    }

    #[test]
    fn numbers_are_compared_exactly_however_they_are_written() {
        let ascending = [
            "-1e400",
            "-10.01",
            "-10",
            "-0.5",
            "-1e-400",
            "0",
            "1e-400",
            "0.1",
            "0.10000000000000001",
            "0.5",
            "1",
            "9.99",
            "10",
            "10.000000000000000001",
            "999",
            "1000",
            "9007199254740992",
            "9007199254740993",
            "1e400",
            "1.1e400",
        ];
        for (place, one) in ascending.iter().enumerate() {
            for (other_place, other) in ascending.iter().enumerate() {
                assert_eq!(
                    decimal(one).cmp(&decimal(other)),
                    place.cmp(&other_place),
                    "{one} {other}"
                );
            }
        }
        for (one, same) in
            [("10", "10.00"), ("0", "-0.0"), ("1e2", "100"), ("1.5E+1", "15"), ("0e9", "0")]
        {
            assert_eq!(decimal(one), decimal(same));
        }
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in [
            "",
            "-",
            ".",
            "1.",
            ".5",
            "1,5",
            "1 000",
            "+1",
            "1e",
            "ten",
            "0x10",
            "1e99999999999",
            "--1",
            "١",
        ] {
            assert_eq!(Decimal::parse(text), None, "{text}");
        }
        assert_eq!(Decimal::parse_plain("1e2"), None);
    }
}
