//! How long something takes, in words.

use super::{Argument, SpokenLine, Words};

impl Words {
    /// A length of time: "90 seconds", "5 minutes", "2 hours 30 minutes".
    pub fn duration(&self, seconds: u64) -> SpokenLine {
        let of = |key, count| self.phrase(key, &[("count", Argument::Count(count))]);
        let two = |first: SpokenLine, second: SpokenLine| {
            let both = [("first", Argument::Phrase(&first)), ("second", Argument::Phrase(&second))];
            self.phrase("time.and", &both)
        };
        // Up to here seconds are easier to grasp than minutes and a rest.
        const PLAIN_SECONDS: u64 = 90;
        let (minutes, rest) = (seconds / 60, seconds % 60);
        let (hours, rest_minutes) = (minutes / 60, minutes % 60);
        match (hours, minutes, rest) {
            (_, 1, 0) => of("time.minutes", 1),
            _ if seconds <= PLAIN_SECONDS => of("time.seconds", seconds),
            (0, _, 0) => of("time.minutes", minutes),
            (0, _, _) => two(of("time.minutes", minutes), of("time.seconds", rest)),
            _ if rest_minutes == 0 => of("time.hours", hours),
            _ => two(of("time.hours", hours), of("time.minutes", rest_minutes)),
        }
    }
}
