//! Card numbers: 13 to 19 digits that begin as cards do and whose check digit is right (Luhn).
//!
//! One number in ten passes the check by chance. So the digits also have to begin with an issuer's
//! range and to be grouped as people group card numbers, and whatever is plainly something else is
//! left alone: account numbers (IBAN), telephone numbers, decimal fractions, parts of longer names.

use std::ops::Range;

use super::{Kind, SecretMatch, is_word};

/// Digits of a card number.
const LENGTHS: std::ops::RangeInclusive<usize> = 13..=19;

/// Spaces and dashes between two groups, at most.
const MAX_BETWEEN: usize = 3;

/// How people group the digits of a card, where other numbers stand beside it.
const GROUPINGS: [&[usize]; 5] =
    [&[4, 4, 4, 4], &[4, 4, 4, 4, 3], &[4, 6, 5], &[4, 6, 4], &[4, 3, 3, 3]];

/// Digits without anything between them.
#[derive(Clone, Debug)]
struct Group {
    range: Range<usize>,
    digits: Range<usize>,
}

/// Groups with nothing but spaces and dashes between them.
#[derive(Debug, Default)]
struct Run {
    groups: Vec<Group>,
    digits: Vec<u8>,
}

pub(super) fn find(text: &str, found: &mut Vec<SecretMatch>) {
    let first = found.len();
    let mut run = Run::default();
    let mut between = 0;
    for (at, character) in text.char_indices() {
        if let Some(digit) = digit(character) {
            run.add(at..at + character.len_utf8(), digit, between == 0);
            between = 0;
        } else if is_between(character) && !run.groups.is_empty() && between < MAX_BETWEEN {
            between += 1;
        } else if !run.groups.is_empty() {
            std::mem::take(&mut run).judge(text, found);
            between = 0;
        }
    }
    run.judge(text, found);
    if found.len() > first {
        let accounts = accounts(text);
        let mut index = 0;
        found.retain(|card| {
            index += 1;
            index <= first || !accounts.iter().any(|account| overlap(account, &card.range))
        });
    }
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// The value of a decimal digit, in the scripts that people use most.
fn digit(character: char) -> Option<u8> {
    let zeros = ['0', '\u{660}', '\u{6f0}', '\u{966}', '\u{9e6}', '\u{e50}', '\u{ff10}'];
    zeros.iter().find_map(|zero| {
        let value = u32::from(character).checked_sub(u32::from(*zero))?;
        u8::try_from(value).ok().filter(|value| *value < 10)
    })
}

fn is_between(character: char) -> bool {
    matches!(
        character,
        ' ' | '-' | '\u{a0}' | '\u{2009}' | '\u{202f}' | '\u{2010}' | '\u{2011}' | '\u{2013}'
    )
}

impl Run {
    fn add(&mut self, range: Range<usize>, digit: u8, joins: bool) {
        let next = self.digits.len();
        self.digits.push(digit);
        match self.groups.last_mut().filter(|_| joins) {
            Some(group) => {
                group.range.end = range.end;
                group.digits.end = next + 1;
            }
            None => self.groups.push(Group { range, digits: next..next + 1 }),
        }
    }

    fn judge(self, text: &str, found: &mut Vec<SecretMatch>) {
        let begins = self.groups.first().is_some_and(|group| stands_alone_before(text, group));
        let ends = self.groups.last().is_some_and(|group| stands_alone_after(text, group));
        let mut at = usize::from(!begins);
        let last = self.groups.len() - usize::from(!ends && !self.groups.is_empty());
        while at < last {
            let taken = self.length_at(at, last);
            if taken > 0 {
                let range = self.groups[at].range.start..self.groups[at + taken - 1].range.end;
                found.push(SecretMatch { range, kind: Kind::CardNumber, certain: true });
            }
            at += taken.max(1);
        }
    }

    /// How many groups, from this one on, make up a card number; 0 if they do not.
    fn length_at(&self, at: usize, last: usize) -> usize {
        let sizes: Vec<usize> =
            self.groups[at..last].iter().take(6).map(|group| group.digits.len()).collect();
        let alone = at == 0 && last == self.groups.len() && last <= 6 && are_groups(&sizes);
        let grouped = |count: usize| {
            count == 1 || alone && count == sizes.len() || GROUPINGS.contains(&&sizes[..count])
        };
        (1..=sizes.len())
            .rev()
            .find(|&count| grouped(count) && self.is_card(at, count))
            .unwrap_or(0)
    }

    fn is_card(&self, at: usize, count: usize) -> bool {
        let digits = self.groups[at].digits.start..self.groups[at + count - 1].digits.end;
        let digits = &self.digits[digits];
        LENGTHS.contains(&digits.len()) && has_issuer(digits) && has_check_digit(digits)
    }
}

/// Whether digits that stand by themselves are grouped like a card number.
fn are_groups(sizes: &[usize]) -> bool {
    let Some((last, others)) = sizes.split_last() else { return false };
    *last <= 6 && others.iter().all(|size| (3..=6).contains(size))
}

/// Not part of a name, a telephone number or a decimal fraction.
fn stands_alone_before(text: &str, group: &Group) -> bool {
    let before = &text.as_bytes()[..group.range.start];
    match before {
        [.., digit, b'.'] => !digit.is_ascii_digit(),
        [.., b'+'] => false,
        [.., byte] => !is_word(*byte),
        [] => true,
    }
}

fn stands_alone_after(text: &str, group: &Group) -> bool {
    match &text.as_bytes()[group.range.end..] {
        [b'.', digit, ..] => !digit.is_ascii_digit(),
        [byte, ..] => !is_word(*byte),
        [] => true,
    }
}

/// The ranges that payment cards begin with.
fn has_issuer(digits: &[u8]) -> bool {
    let begin =
        |count: usize| digits.iter().take(count).fold(0, |sum, &digit| sum * 10 + u32::from(digit));
    matches!(begin(1), 4 | 6)
        || matches!(begin(2), 30 | 34..=39 | 50..=58)
        || matches!(begin(4), 2221..=2720)
}

/// The check digit of Luhn: every second digit from the right counts twice.
fn has_check_digit(digits: &[u8]) -> bool {
    let sum: u32 = (digits.iter().rev().enumerate())
        .map(|(place, &digit)| match (place % 2, u32::from(digit)) {
            (0, digit) => digit,
            (_, digit) if digit > 4 => digit * 2 - 9,
            (_, digit) => digit * 2,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Letters and digits of an account number.
const ACCOUNT_LENGTHS: std::ops::RangeInclusive<usize> = 15..=34;

/// International account numbers (IBAN) whose check is right: they are told to others on purpose.
fn accounts(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut all = Vec::new();
    let mut at = 0;
    while at + 4 < bytes.len() {
        let form = |at: usize| {
            let head = &bytes[at..at + 4];
            head[..2].iter().all(u8::is_ascii_uppercase) && head[2..].iter().all(u8::is_ascii_digit)
        };
        let begins = at == 0 || !is_word(bytes[at - 1]);
        match (begins && form(at)).then(|| account_end(bytes, at)).flatten() {
            Some(end) => {
                all.push(at..end);
                at = end;
            }
            None => at += 1,
        }
    }
    all
}

/// Where the account number that begins here ends.
fn account_end(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut signs, mut end) = (start, Vec::new(), None);
    while let Some(&byte) = bytes.get(at) {
        if byte == b' ' && bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric) {
            at += 1;
            continue;
        }
        if !(byte.is_ascii_uppercase() || byte.is_ascii_digit()) || !signs_left(&signs) {
            break;
        }
        signs.push(byte);
        at += 1;
        let ends = bytes.get(at).is_none_or(|next| !is_word(*next));
        if ends && ACCOUNT_LENGTHS.contains(&signs.len()) && is_account(&signs) {
            end = Some(at);
        }
    }
    end
}

fn signs_left(signs: &[u8]) -> bool {
    signs.len() < *ACCOUNT_LENGTHS.end()
}

/// ISO 7064: the number with its first four signs at the end leaves 1 when divided by 97.
fn is_account(signs: &[u8]) -> bool {
    let turned = signs[4..].iter().chain(&signs[..4]);
    let rest = turned.fold(0, |rest: u32, &sign| {
        let value = char::from(sign).to_digit(36).unwrap_or(0);
        (if value > 9 { rest * 100 } else { rest * 10 } + value) % 97
    });
    rest == 1
}
