//! Tones that differ by what they mean: a question rises, a good end falls, a failure is low, and what
//! waits too long knocks.

use std::f64::consts::TAU;

use super::talk::Sound;

/// Samples a second.
pub(super) const RATE: u32 = 22_050;

/// How loud, of what there is: never louder than speech.
const LOUDNESS: f64 = 0.3;

/// Milliseconds over which a note comes and goes, so that it does not click.
const EDGE_MS: u32 = 8;

/// A pause, among notes.
const REST: u32 = 0;

/// The notes of a sound: hertz and milliseconds.
fn notes(sound: Sound) -> &'static [(u32, u32)] {
    match sound {
        Sound::Blocked => &[(523, 120), (784, 180)],
        Sound::Done => &[(659, 110), (440, 170)],
        Sound::Error => &[(196, 180), (REST, 60), (165, 260)],
        Sound::Waiting => &[(988, 70), (REST, 70), (988, 70), (REST, 70), (988, 70)],
    }
}

/// A sound as samples: mono, 16 bits, little-endian.
pub(super) fn samples(sound: Sound) -> Vec<u8> {
    let count = |ms: u32| ms * RATE / 1000;
    let mut bytes = Vec::new();
    for &(hertz, ms) in notes(sound) {
        let (length, edge) = (count(ms), f64::from(count(EDGE_MS)));
        for at in 0..length {
            let (since, left) = (f64::from(at), f64::from(length - 1 - at));
            let shape = (since.min(left) / edge).min(1.0);
            let wave = (TAU * f64::from(hertz) * since / f64::from(RATE)).sin();
            let value = wave * shape * LOUDNESS * f64::from(i16::MAX);
            bytes.extend((value as i16).to_le_bytes());
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sounds_differ_by_meaning_are_short_and_do_not_click() {
        let all = [Sound::Blocked, Sound::Done, Sound::Error, Sound::Waiting].map(samples);
        for (at, bytes) in all.iter().enumerate() {
            let waves: Vec<i16> =
                bytes.chunks(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
            let seconds = waves.len() as f64 / f64::from(RATE);
            assert!((0.2..0.6).contains(&seconds), "{seconds}");
            assert_eq!((waves[0], waves[waves.len() - 1]), (0, 0));
            let loudest = waves.iter().map(|wave| wave.unsigned_abs()).max().unwrap();
            assert!((5_000..11_000).contains(&loudest), "{loudest}");
            assert!(all[at + 1..].iter().all(|other| other != bytes));
        }
    }
}
