//! Points in time on the wire (§3.2.5): read strictly, written with three fraction digits and `Z`.

use serde_json::{Value, json};
use std::fmt;

use crate::Malformed;
use crate::json::{Raw, Writer};
use crate::report::Report;
use crate::rule::Rule;
use crate::wire::{Wire, read_string};

const EXPECTED: &str = "Write an RFC 3339 time such as 2026-05-24T14:22:11.342Z: `T`, three, six or no fraction digits, and `Z` or an offset.";
const EXPECTED_LOOSE: &str = "Write an RFC 3339 time such as 2026-05-24T14:22:11.342Z.";

/// An instant, to the microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    micros: i64,
}

impl Timestamp {
    /// Reads a time in the form that events use (rule E9).
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        let parts = Parts::read(text).ok_or(Malformed(EXPECTED))?;
        if !parts.upper_case || !matches!(parts.fraction.len(), 0 | 3 | 6) {
            return Err(Malformed(EXPECTED));
        }
        Ok(parts.instant())
    }

    /// Reads any RFC 3339 time, as replies may carry it (decision D22). Digits beyond the
    /// microsecond are dropped.
    pub fn parse_loose(text: &str) -> Result<Self, Malformed> {
        Parts::read(text).map(|parts| parts.instant()).ok_or(Malformed(EXPECTED_LOOSE))
    }

    /// From milliseconds since 1970-01-01T00:00:00Z; `None` outside the years 0000 to 9999.
    pub fn from_millis(millis: i64) -> Option<Self> {
        let micros = millis.checked_mul(1000)?;
        (YEAR_0..YEAR_10000).contains(&micros).then_some(Self { micros })
    }

    /// Milliseconds since 1970-01-01T00:00:00Z, rounded down.
    pub fn as_millis(&self) -> i64 {
        self.micros.div_euclid(1000)
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    pub fn as_micros(&self) -> i64 {
        self.micros
    }
}

/// The first microsecond of the year 0000, and the first after 9999.
const YEAR_0: i64 = -62_167_219_200_000_000;
const YEAR_10000: i64 = 253_402_300_800_000_000;

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An offset may carry a time at the edge outside the years that can be written.
        let millis = self.micros.clamp(YEAR_0, YEAR_10000 - 1).div_euclid(1000);
        let (year, month, day) = civil(millis.div_euclid(86_400_000));
        let of_day = millis.rem_euclid(86_400_000);
        let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
        let (second, fraction) = (of_day / 1000 % 60, of_day % 1000);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        for (place, value) in [
            (3, year),
            (6, month),
            (9, day),
            (12, hour),
            (15, minute),
            (18, second),
            (22, fraction),
        ] {
            put_digits(&mut text, place, value);
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// Writes a number that ends at `place`, over zeros.
fn put_digits(text: &mut [u8; 24], mut place: usize, mut value: i64) {
    while value > 0 {
        text[place] = b'0' + (value % 10) as u8;
        value /= 10;
        place = place.wrapping_sub(1);
    }
}

/// A time as written, checked.
struct Parts<'t> {
    days: i64,
    second_of_day: i64,
    fraction: &'t [u8],
    offset_seconds: i64,
    upper_case: bool,
}

impl<'t> Parts<'t> {
    fn read(text: &'t str) -> Option<Self> {
        let (head, tail) = text.as_bytes().split_first_chunk::<19>()?;
        let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1, t, h0, h1, b':', i0, i1, b':', s0, s1] =
            *head
        else {
            return None;
        };
        let (year, month) = (pair(y0, y1)? * 100 + pair(y2, y3)?, pair(m0, m1)?);
        let (day, hour) = (pair(d0, d1)?, pair(h0, h1)?);
        let (minute, second) = (pair(i0, i1)?, pair(s0, s1)?);
        let in_range = (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day)
            && hour < 24
            && minute < 60
            && second <= 60
            && matches!(t, b'T' | b't');
        if !in_range {
            return None;
        }
        let (fraction, zone) = split_fraction(tail)?;
        let (offset_seconds, upper_zone) = offset(zone)?;
        let minute_of_day = hour * 60 + minute;
        // A leap second only ever ends a day in UTC.
        if second == 60 && (minute_of_day - offset_seconds / 60).rem_euclid(1440) != 1439 {
            return None;
        }
        Some(Self {
            days: days_from_civil(year, month, day),
            second_of_day: minute_of_day * 60 + second,
            fraction,
            offset_seconds,
            upper_case: t == b'T' && upper_zone,
        })
    }

    fn instant(&self) -> Timestamp {
        let mut micros = 0;
        for place in 0..6 {
            let digit = self.fraction.get(place).map_or(0, |digit| i64::from(digit - b'0'));
            micros = micros * 10 + digit;
        }
        let seconds = self.days * 86_400 + self.second_of_day - self.offset_seconds;
        Timestamp { micros: seconds * 1_000_000 + micros }
    }
}

fn pair(tens: u8, ones: u8) -> Option<i64> {
    (tens.is_ascii_digit() && ones.is_ascii_digit())
        .then(|| i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
}

fn split_fraction(tail: &[u8]) -> Option<(&[u8], &[u8])> {
    let Some(digits) = tail.strip_prefix(b".") else { return Some((&[], tail)) };
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (count > 0).then(|| digits.split_at(count))
}

/// Seconds east of UTC, and whether `Z` was written large.
fn offset(zone: &[u8]) -> Option<(i64, bool)> {
    match *zone {
        [b'Z'] => Some((0, true)),
        [b'z'] => Some((0, false)),
        [sign @ (b'+' | b'-'), h0, h1, b':', m0, m1] => {
            let (hours, minutes) = (pair(h0, h1)?, pair(m0, m1)?);
            let seconds = hours * 3600 + minutes * 60;
            let signed = if sign == b'-' { -seconds } else { seconds };
            (hours < 24 && minutes < 60).then_some((signed, true))
        }
        _ => None,
    }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar. Years are counted from March, so that
/// the leap day ends one; 400 of them always have 146,097 days.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The inverse of [`days_from_civil`].
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

fn read_with(
    raw: Raw<'_>,
    rule: Rule,
    report: &mut Report,
    parse: fn(&str) -> Result<Timestamp, Malformed>,
) -> Option<Timestamp> {
    read_string(raw, rule, report, |text| parse(&text))
}

impl<'a> Wire<'a> for Timestamp {
    fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
        // enforces: E9, D22
        read_with(raw, rule, report, Timestamp::parse)
    }

    fn write(&self, out: &mut Writer) {
        out.string(&self.to_string());
    }

    fn schema() -> Value {
        json!({
            "type": "string",
            "format": "date-time",
            "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3}|\.[0-9]{6})?(Z|[+-][0-9]{2}:[0-9]{2})$",
        })
    }
}

/// The time a reply claims: any RFC 3339 form counts (decision D22).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplyTimestamp(pub Timestamp);

impl<'a> Wire<'a> for ReplyTimestamp {
    fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
        // enforces: D22
        read_with(raw, rule, report, Timestamp::parse_loose).map(Self)
    }

    fn write(&self, out: &mut Writer) {
        self.0.write(out);
    }

    fn schema() -> Value {
        // Format checkers are more lenient than RFC 3339 in places, so the outline is spelled out.
        json!({
            "type": "string",
            "format": "date-time",
            "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(text: &str) -> i64 {
        Timestamp::parse(text).expect(text).as_millis()
    }

    // covers: E9
    #[test]
    fn times_are_the_instants_they_say() {
        assert_eq!(millis("1970-01-01T00:00:00Z"), 0);
        assert_eq!(millis("2026-05-24T14:22:11.342Z"), 1_779_632_531_342);
        assert_eq!(millis("2026-05-24T15:22:11.342+01:00"), 1_779_632_531_342);
        assert_eq!(millis("2026-05-24T08:52:11.342567-05:30"), 1_779_632_531_342);
        assert_eq!(millis("2000-02-29T00:00:00Z"), 951_782_400_000);
        assert_eq!(millis("2016-12-31T23:59:60Z"), 1_483_228_800_000);
        assert_eq!(millis("2017-01-01T00:59:60+01:00"), 1_483_228_800_000);
    }

    // covers: E9, D22
    #[test]
    fn what_is_no_time_or_not_written_as_one_is_refused() {
        for wrong in [
            "",
            "2026-05-24",
            "2026-05-24 14:22:11Z",
            "2026-05-24t14:22:11Z",
            "2026-05-24T14:22:11z",
            "2026-05-24T14:22:11",
            "2026-05-24T14:22Z",
            "2026-05-24T14:22:11.1Z",
            "2026-05-24T14:22:11.12Z",
            "2026-05-24T14:22:11.1234Z",
            "2026-05-24T14:22:11.Z",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2026-04-31T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T12:00:60Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:00+24:00",
            "2026-01-01T00:00:00+1:00",
            "2026-01-01T00:00:00Z ",
            "+2026-01-01T00:00:00Z",
            "２026-01-01T00:00:00Z",
        ] {
            assert!(Timestamp::parse(wrong).is_err(), "{wrong}");
        }
    }

    // covers: D22
    #[test]
    fn a_reply_may_write_any_fraction() {
        for text in
            ["2026-05-24T14:22:11.3Z", "2026-05-24T14:22:11.300000000Z", "2026-05-24t14:22:11.30z"]
        {
            assert_eq!(Timestamp::parse_loose(text).expect(text).as_millis(), 1_779_632_531_300);
        }
    }

    // covers: D22
    #[test]
    fn times_are_written_with_three_digits_and_z() {
        for (text, written) in [
            ("2026-05-24T15:22:11+01:00", "2026-05-24T14:22:11.000Z"),
            ("2026-05-24T14:22:11.342999Z", "2026-05-24T14:22:11.342Z"),
            ("0000-01-01T00:00:00+01:00", "0000-01-01T00:00:00.000Z"),
            ("9999-12-31T23:59:59-01:00", "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp::parse(text).unwrap().to_string(), written);
        }
    }

    #[test]
    fn every_day_of_a_calendar_cycle_is_written_as_it_is_read() {
        for day in 0..146_097 {
            let time = Timestamp::from_millis(day * 86_400_000 + 86_399_999).unwrap();
            assert_eq!(Timestamp::parse(&time.to_string()), Ok(time));
        }
    }
}
