//! Strings for a pattern: some that match it, at the edges of what it allows, and near misses.
//!
//! Understands as much of regular expressions as the schemas use: literals, classes, groups, and
//! `?`, `*`, `+`, `{m}`, `{m,n}`.

use super::random::Random;

/// A string for the pattern; each choice goes wrong with a chance of `slip` percent.
pub(super) fn sample(pattern: &str, slip: usize, random: &mut Random) -> String {
    let mut text = String::new();
    let mut source = pattern.trim_start_matches('^').trim_end_matches('$').chars().peekable();
    let sequence = parse(&mut source);
    write(&sequence, slip, random, &mut text);
    if random.percent(slip) {
        match random.below(5) {
            0 => text.insert(0, '\n'),
            1 => text.insert(0, ' '),
            2 => text.push(' '),
            _ => text.push('\n'),
        }
    }
    text
}

struct Piece {
    atom: Atom,
    min: usize,
    max: usize,
}

enum Atom {
    Class(Vec<(char, char)>),
    Group(Vec<Piece>),
}

type Source<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn parse(source: &mut Source<'_>) -> Vec<Piece> {
    let mut sequence = Vec::new();
    while let Some(c) = source.next() {
        let atom = match c {
            ')' => break,
            '(' => Atom::Group(parse(source)),
            '[' => Atom::Class(parse_class(source)),
            '\\' => source.next().map_or(Atom::Class(Vec::new()), |c| Atom::Class(vec![(c, c)])),
            c => Atom::Class(vec![(c, c)]),
        };
        let (min, max) = parse_count(source);
        sequence.push(Piece { atom, min, max });
    }
    sequence
}

fn parse_class(source: &mut Source<'_>) -> Vec<(char, char)> {
    let mut ranges: Vec<(char, char)> = Vec::new();
    while let Some(c) = source.next() {
        match (c, source.peek(), ranges.last_mut()) {
            (']', _, _) => break,
            ('-', Some(&end), Some(range)) if end != ']' => {
                range.1 = end;
                source.next();
            }
            _ => ranges.push((c, c)),
        }
    }
    ranges
}

fn parse_count(source: &mut Source<'_>) -> (usize, usize) {
    let count = match source.peek() {
        Some('?') => (0, 1),
        Some('*') => (0, 12),
        Some('+') => (1, 12),
        Some('{') => {
            let inside: String = source.by_ref().skip(1).take_while(|&c| c != '}').collect();
            let (min, max) = inside.split_once(',').unwrap_or((&inside, &inside));
            return (min.parse().unwrap_or(1), max.parse().unwrap_or(1));
        }
        _ => return (1, 1),
    };
    source.next();
    count
}

fn write(sequence: &[Piece], slip: usize, random: &mut Random, text: &mut String) {
    for Piece { atom, min, max } in sequence {
        let count = match random.below(3) {
            _ if random.percent(slip) => *random.pick(&[min.saturating_sub(1), max + 1]),
            0 => *min,
            1 => *max,
            _ => min + random.below(max - min + 1),
        };
        for _ in 0..count {
            match atom {
                Atom::Group(sequence) => write(sequence, slip, random, text),
                Atom::Class(ranges) => text.push(character(ranges, slip, random)),
            }
        }
    }
}

/// A character of the class; by a slip, one beside it or one that only looks as if it belonged.
fn character(ranges: &[(char, char)], slip: usize, random: &mut Random) -> char {
    // Long runs would hardly ever stay whole if each character slipped as often as a count does.
    let slips = random.percent(slip) && random.percent(10);
    if slips && random.percent(50) {
        return *random.pick(&['\n', 'é', '٣', 'K', '_', '-', '.', '/', '+', ' ', '\0', '😀']);
    }
    if ranges.is_empty() {
        return '?';
    }
    let &(first, last) = random.pick(ranges);
    let (first, last) = (first as u32, last as u32);
    let code = match random.below(4) {
        0 => first - u32::from(slips),
        1 => last + u32::from(slips),
        _ => first + random.below((last - first + 1) as usize) as u32,
    };
    char::from_u32(code).unwrap_or('?')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_slips_every_sample_matches_its_pattern() {
        let patterns = [
            r"^ab_[A-Za-z0-9]{1,64}$",
            r"^[0-9]+\.[0-9]+(-[A-Za-z0-9.-]+)?$",
            r"^[A-Z][a-z]{3}$",
            r"^[a-z][a-z0-9.+_-]*/x(-[a-z]{1,8})*$",
        ];
        let mut random = Random::new(7);
        for pattern in patterns {
            let schema = serde_json::json!({"pattern": pattern});
            for _ in 0..500 {
                let text = sample(pattern, 0, &mut random);
                assert!(jsonschema::is_valid(&schema, &text.as_str().into()), "{pattern} {text:?}");
            }
        }
    }

    #[test]
    fn slips_break_a_fair_share_of_the_samples() {
        let schema = serde_json::json!({"pattern": "^ab_[A-Za-z0-9]{1,64}$"});
        let mut random = Random::new(7);
        let matching = (0..1_000)
            .map(|_| sample("^ab_[A-Za-z0-9]{1,64}$", 15, &mut random))
            .filter(|text| jsonschema::is_valid(&schema, &text.as_str().into()))
            .count();
        assert!((100..900).contains(&matching), "{matching}");
    }
}
