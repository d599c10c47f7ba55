//! Documents that readers of JSON might read in two ways, made from a seed.

/// A small generator of numbers, the same on every machine (xorshift64*).
pub struct Seed(u64);

impl Seed {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }

    fn one_of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}

const NAMES: [&str; 14] = [
    "amount",
    "\\u0061mount",
    "to",
    "a",
    "b",
    "",
    "a/b",
    "~1",
    "0",
    "é",
    "e\u{301}",
    "__proto__",
    "\\ud83d\\ude00",
    "constructor",
];

const NUMBERS: [&str; 24] = [
    "0",
    "-0",
    "5",
    "9001",
    "20.0",
    "20.000000000000000001",
    "1e2",
    "1E+2",
    "0.1",
    "12.50",
    "1e-7",
    "1e21",
    "1e22",
    "123456789.123456789",
    "9007199254740992",
    "9007199254740993",
    "-9007199254740993",
    "18446744073709551616",
    "1e308",
    "1e400",
    "-1e400",
    "5e-324",
    "1e-400",
    "0.30000000000000004",
];

const TEXTS: [&str; 14] = [
    "bob",
    "\\u0062ob",
    "",
    " ",
    "a\\nb",
    "\\\"",
    "\\\\",
    "\\/",
    "\\ud83d\\ude00",
    "😀",
    "\\ud800",
    "e\u{301}",
    "\\u0000",
    "20",
];

/// One document.
pub fn document(seed: &mut Seed) -> String {
    let mut out = String::new();
    if seed.below(4) == 0 {
        // Faults that change nothing, in front of those that might.
        out.push_str("{\"odd\":[");
        out.push_str(&"9007199254740993,".repeat(90 + seed.below(40)));
        out.push_str("0],\"x\":");
        value(seed, 4, &mut out);
        out.push('}');
    } else {
        value(seed, 4, &mut out);
    }
    out
}

fn value(seed: &mut Seed, room: usize, out: &mut String) {
    match seed.below(if room == 0 { 4 } else { 9 }) {
        0 => out.push_str(seed.one_of(&["true", "false", "null"])),
        1 | 2 => out.push_str(seed.one_of(&NUMBERS)),
        3 => quoted(seed.one_of(&TEXTS), out),
        4 => {
            out.push('[');
            for index in 0..seed.below(4) {
                comma(index, out);
                value(seed, room - 1, out);
            }
            out.push(']');
        }
        _ => {
            out.push('{');
            for index in 0..seed.below(5) {
                comma(index, out);
                quoted(seed.one_of(&NAMES), out);
                out.push_str(seed.one_of(&[":", " : ", ":\n"]));
                value(seed, room - 1, out);
            }
            out.push('}');
        }
    }
}

fn comma(index: usize, out: &mut String) {
    if index > 0 {
        out.push(',');
    }
}

fn quoted(escaped: &str, out: &mut String) {
    out.push('"');
    out.push_str(escaped);
    out.push('"');
}
