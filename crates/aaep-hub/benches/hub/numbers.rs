//! Numbers for people.

use std::time::Duration;

/// How many rounds each contender has.
pub fn rounds() -> usize {
    std::env::var("AAEP_BENCH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(7)
}

/// The value below which this share of the values lies.
pub fn percentile(values: &mut [Duration], share: f64) -> Duration {
    values.sort_unstable();
    let at = (values.len() as f64 * share) as usize;
    values.get(at.min(values.len().saturating_sub(1))).copied().unwrap_or_default()
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// What one side is to the other, round by round, in the middle: both rounds of a pair ran under the
/// same neighbours, and one lucky round of either counts no more than any other.
pub fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    let pairs: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    median(&pairs)
}

/// 1234567 as `1.23 M/s`.
pub fn rate(value: f64) -> String {
    if value >= 1e6 {
        format!("{:.2} M/s", value / 1e6)
    } else if value >= 1e4 {
        format!("{:.0} k/s", value / 1e3)
    } else {
        format!("{value:.0}/s")
    }
}

pub fn time(value: Duration) -> String {
    let micros = value.as_secs_f64() * 1e6;
    if micros >= 10_000.0 { format!("{:.1} ms", micros / 1e3) } else { format!("{micros:.0} µs") }
}
