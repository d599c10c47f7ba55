//! The two formats the schemas name: `date-time` and `uri`.

/// Whether the text is a URI with a scheme (RFC 3986). A relative reference is not, and neither is
/// anything beyond ASCII.
pub(super) fn is_uri(text: &str) -> bool {
    fluent_uri::Uri::parse(text).is_ok()
}

/// Whether the text is a `date-time` of RFC 3339 §5.6: `T` and `Z` in either case, any number of
/// fraction digits, a day that exists, and an offset.
pub(super) fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else {
        return false;
    };
    is_date(date) && is_time(time)
}

/// `YYYY-MM-DD`, and the month has that day.
fn is_date(text: &str) -> bool {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text.as_bytes() else {
        return false;
    };
    let (Some(century), Some(year_of_century)) = (two_digits(y1, y2), two_digits(y3, y4)) else {
        return false;
    };
    let (Some(month), Some(day)) = (two_digits(m1, m2), two_digits(d1, d2)) else {
        return false;
    };
    let year = century * 100 + year_of_century;
    let is_leap_year = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap_year => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// `HH:MM:SS`, a fraction if any, and an offset.
fn is_time(text: &str) -> bool {
    let Some((&[h1, h2, b':', m1, m2, b':', s1, s2], rest)) =
        text.as_bytes().split_first_chunk::<8>()
    else {
        return false;
    };
    let (Some(hour), Some(minute), Some(second)) =
        (two_digits(h1, h2), two_digits(m1, m2), two_digits(s1, s2))
    else {
        return false;
    };
    if hour > 23 || minute > 59 || second > 60 {
        return false;
    }
    let Some(offset) = after_fraction(rest).and_then(offset_minutes) else {
        return false;
    };
    // RFC 3339 §5.7: a leap second ends a UTC day, whatever the day is by the local clock.
    let minute_of_day = i32::from(hour) * 60 + i32::from(minute);
    second < 60 || (minute_of_day - offset).rem_euclid(24 * 60) == 24 * 60 - 1
}

/// What follows the fraction of a second; `None` for a point without digits.
fn after_fraction(bytes: &[u8]) -> Option<&[u8]> {
    let Some((b'.', rest)) = bytes.split_first() else {
        return Some(bytes);
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits > 0).then(|| &rest[digits..])
}

/// `Z` or `±HH:MM`, to the end, as minutes east of UTC.
fn offset_minutes(bytes: &[u8]) -> Option<i32> {
    let (sign, h1, h2, m1, m2) = match *bytes {
        [b'Z' | b'z'] => return Some(0),
        [b'+', h1, h2, b':', m1, m2] => (1, h1, h2, m1, m2),
        [b'-', h1, h2, b':', m1, m2] => (-1, h1, h2, m1, m2),
        _ => return None,
    };
    let (hours, minutes) = (two_digits(h1, h2)?, two_digits(m1, m2)?);
    (hours <= 23 && minutes <= 59).then(|| sign * (i32::from(hours) * 60 + i32::from(minutes)))
}

fn two_digits(tens: u8, units: u8) -> Option<u16> {
    let both = tens.is_ascii_digit() && units.is_ascii_digit();
    both.then(|| u16::from(tens - b'0') * 10 + u16::from(units - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: E9
    #[test]
    fn date_times_follow_rfc_3339() {
        for good in [
            "2026-02-03T09:30:00Z",
            "2026-02-03t09:30:00.1234567890z",
            "2026-02-03T09:30:00-00:00",
            "0000-01-01T00:00:00+23:59",
            "2024-02-29T00:00:00Z",
            "2000-02-29T00:00:00Z",
        ] {
            assert!(is_date_time(good), "{good}");
        }
        for bad in [
            "2026-02-03",
            "2026-02-03T09:30:00",
            "2026-02-03 09:30:00Z",
            "2026-02-03T09:30:00.Z",
            "2026-02-03T09:30:00,5Z",
            "2026-02-03T09:30:00Z\n",
            "2026-02-03T09:30:00+0100",
            "2026-02-03T09:30:00+24:00",
            "2026-02-03T09:30:00+01:60",
            "2026-02-03T24:00:00Z",
            "2026-02-03T09:60:00Z",
            "2026-02-03T09:30:61Z",
            "2026-02-03T9:30:00Z",
            "2026-00-03T09:30:00Z",
            "2026-13-03T09:30:00Z",
            "2026-04-31T09:30:00Z",
            "2026-02-00T09:30:00Z",
            "2023-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "２026-02-03T09:30:00Z",
        ] {
            assert!(!is_date_time(bad), "{bad:?}");
        }
    }

    // covers: E9
    #[test]
    fn a_leap_second_is_allowed_only_at_the_end_of_a_utc_day() {
        for good in
            ["2016-12-31T23:59:60Z", "2016-12-31T15:59:60.5-08:00", "2017-01-01T05:29:60+05:30"]
        {
            assert!(is_date_time(good), "{good}");
        }
        for bad in ["2016-12-31T22:59:60Z", "2016-12-31T23:59:60+01:00", "2016-12-31T23:58:60Z"] {
            assert!(!is_date_time(bad), "{bad}");
        }
    }

    // covers: E11
    #[test]
    fn a_uri_has_a_scheme_and_stays_within_ascii() {
        for good in
            ["https://fern.example/a?b#c", "urn:x:y", "a:", "https://[2001:db8::1]/", "https://"]
        {
            assert!(is_uri(good), "{good}");
        }
        for bad in
            ["", "/a", "fern.example", "https://fern.example/é", "https://a/%zz", "urn:a b", "a:\n"]
        {
            assert!(!is_uri(bad), "{bad:?}");
        }
    }
}
