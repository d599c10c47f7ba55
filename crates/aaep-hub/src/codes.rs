//! One-time codes: what stands behind the `#` of the page's address, and is worth a token once.
//!
//! A token in an address would stay in the browser's history and could be read over a shoulder for
//! as long as it is valid. A code is worth nothing after its first use, or after a while.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use aaep_engine::Refusal;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::Fault;
use crate::access::{Token, base64url, fill};
use crate::config::Limits;
use crate::per_address::{AddressBounds, AddressSlot, PerAddress, network_of};

/// How long a code is worth something.
const LIFETIME: Duration = Duration::from_secs(15 * 60);

/// Codes at once; the oldest gives way.
const CODES: usize = 16;

/// Wrong codes from one address that are answered at once; each further one has to wait longer.
const FREE: u32 = 5;

/// The longest wait for the answer to a wrong code.
const SLOWEST: Duration = Duration::from_secs(5);

/// How long wrong codes count against their address.
const REMEMBERED: Duration = Duration::from_secs(10 * 60);

/// Addresses that are remembered; the one that was heard of first gives way.
const ADDRESSES: usize = 1024;

/// The wait for the first that has to wait is twice this.
const UNIT: Duration = Duration::from_millis(50);

/// How many random bytes a code holds.
const RANDOM_BYTES: usize = 32;

/// The codes that are worth something.
pub(crate) struct Codes {
    open: Mutex<Open>,
    /// Answers to wrong codes that wait.
    waiting: PerAddress,
}

#[derive(Default)]
struct Open {
    codes: Vec<Code>,
    /// Who showed wrong codes: how many, and since when.
    guessers: BTreeMap<IpAddr, (u32, Instant)>,
}

/// What a code is worth.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Worth {
    Token(Token),
    /// Nothing. The answer is to be given after this long.
    Nothing(Duration),
}

struct Code {
    /// What is kept of the code itself.
    hash: [u8; 32],
    until: Instant,
    token: Token,
}

impl Codes {
    pub(crate) fn new(limits: Limits) -> Self {
        let waiting = PerAddress::new(AddressBounds {
            all: (limits.wrong_codes, "wrong_codes"),
            each: (limits.wrong_codes_per_address, "wrong_codes_per_address"),
            what: "wrong codes are answered",
            remedy: "Wait a few seconds, or paste a token.",
        });
        Self { open: Mutex::default(), waiting }
    }

    /// Makes a code for this token.
    pub(crate) fn offer(&self, token: Token) -> Result<String, Fault> {
        let mut random = [0; RANDOM_BYTES];
        fill(&mut random)?;
        let code = base64url(&random);
        let mut open = self.lock();
        if open.codes.len() == CODES {
            open.codes.remove(0);
        }
        let until = Instant::now() + LIFETIME;
        open.codes.push(Code { hash: Sha256::digest(&code).into(), until, token });
        Ok(code)
    }

    // enforces: S4, S5
    /// The token that a code is worth, and never again. Every code is compared with, each in the
    /// same time. Guesses from this address are slowed down; nobody's code suffers for it, and
    /// the right one is worth its token at once, also from where somebody else guesses.
    pub(crate) fn spend(&self, code: &str, from: IpAddr) -> Worth {
        self.spend_at(code, from, Instant::now())
    }

    fn spend_at(&self, code: &str, from: IpAddr, now: Instant) -> Worth {
        let shown: [u8; 32] = Sha256::digest(code).into();
        let mut open = self.lock();
        open.codes.retain(|code| now < code.until);
        let mut found = None;
        for (at, code) in open.codes.iter().enumerate() {
            if bool::from(code.hash.ct_eq(&shown)) {
                found = Some(at);
            }
        }
        match found {
            Some(at) => Worth::Token(open.codes.remove(at).token),
            None => Worth::Nothing(open.guessed(from, now)),
        }
    }

    // enforces: I22, I29
    /// An answer to a wrong code is about to wait, if not too many do already: each holds a connection.
    pub(crate) fn begin_wait(&self, from: IpAddr) -> Result<AddressSlot<'_>, Refusal> {
        self.waiting.take(from)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        // Nothing panics while it is held; whatever is in it is whole.
        self.open.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Open {
    /// Counts a wrong code; how long its answer has to wait.
    fn guessed(&mut self, from: IpAddr, now: Instant) -> Duration {
        let from = network_of(from);
        let old = |since: Instant| now.saturating_duration_since(since) >= REMEMBERED;
        if !self.guessers.contains_key(&from) && self.guessers.len() >= ADDRESSES {
            self.guessers.retain(|_, (_, since)| !old(*since));
            let first = self.guessers.iter().min_by_key(|(_, (_, since))| *since);
            let first = first.map(|(address, _)| *address);
            if let Some(first) = first.filter(|_| self.guessers.len() >= ADDRESSES) {
                self.guessers.remove(&first);
            }
        }
        let (wrong, since) = self.guessers.entry(from).or_insert((0, now));
        if old(*since) {
            (*wrong, *since) = (0, now);
        }
        *wrong = wrong.saturating_add(1);
        let doublings = wrong.saturating_sub(FREE).min(16);
        if doublings == 0 { Duration::ZERO } else { (UNIT * (1 << doublings)).min(SLOWEST) }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    impl Default for Codes {
        fn default() -> Self {
            Self::new(Limits::default())
        }
    }

    impl Codes {
        fn token(&self, code: &str) -> Option<Token> {
            match self.spend(code, HERE) {
                Worth::Token(token) => Some(token),
                Worth::Nothing(_) => None,
            }
        }
    }

    // covers: S4, S5
    #[test]
    fn a_code_is_worth_its_token_once() {
        let (codes, token) = (Codes::default(), Token::generate().unwrap());
        let code = codes.offer(token.clone()).unwrap();
        assert!(codes.token("").is_none() && codes.token(&code[1..]).is_none());
        assert_eq!(codes.token(&code), Some(token));
        assert_eq!(codes.token(&code), None);
    }

    // covers: S5
    #[test]
    fn a_code_is_worth_nothing_after_a_while() {
        let codes = Codes::default();
        let code = codes.offer(Token::generate().unwrap()).unwrap();
        let worth = codes.spend_at(&code, HERE, Instant::now() + LIFETIME);
        assert_eq!(worth, Worth::Nothing(Duration::ZERO));
        assert!(codes.token(&code).is_none(), "it is gone");
    }

    // covers: S5
    #[test]
    fn whoever_guesses_waits_longer_and_longer_and_the_right_code_still_works() {
        let codes = Codes::default();
        let (token, now) = (Token::generate().unwrap(), Instant::now());
        let code = codes.offer(token.clone()).unwrap();
        let mut waits = Vec::new();
        for _ in 0..1000 {
            match codes.spend_at("guess", HERE, now) {
                Worth::Nothing(wait) => waits.push(wait),
                Worth::Token(_) => unreachable!(),
            }
        }
        assert!(waits.is_sorted() && waits[FREE as usize - 1] == Duration::ZERO, "{waits:?}");
        assert!(waits[FREE as usize] > Duration::ZERO && waits[999] == SLOWEST, "{waits:?}");
        // Others do not wait for it, and after a while it is forgotten.
        let other = "192.0.2.7".parse().unwrap();
        assert_eq!(codes.spend_at("typo", other, now), Worth::Nothing(Duration::ZERO));
        let later = codes.spend_at("guess", HERE, now + REMEMBERED);
        assert_eq!(later, Worth::Nothing(Duration::ZERO));
        assert_eq!(codes.spend_at(&code, HERE, now), Worth::Token(token), "from the same address");
    }

    // covers: I22, I29
    #[test]
    fn who_guesses_on_many_connections_keeps_few_of_them_waiting() {
        let limits = Limits { wrong_codes_per_address: 3, wrong_codes: 4, ..Limits::default() };
        let codes = Codes::new(limits);
        let full = |from, name: &str| match codes.begin_wait(from) {
            Ok(_) => panic!("there was room"),
            Err(refused) => assert!(refused.text.contains(name), "{refused:?}"),
        };
        let waits: Vec<_> = (0..3).map(|_| codes.begin_wait(HERE).unwrap()).collect();
        full(HERE, "(limits.wrong_codes_per_address)");
        let (other, third) = ("192.0.2.7".parse().unwrap(), "192.0.2.8".parse().unwrap());
        let others = codes.begin_wait(other).unwrap();
        full(third, "(limits.wrong_codes)");
        drop((waits, others));
        assert!(codes.waiting.are_empty() && codes.begin_wait(HERE).is_ok());
    }

    // covers: I22
    #[test]
    fn guessers_are_remembered_within_a_bound() {
        let (codes, now) = (Codes::default(), Instant::now());
        for number in 0..10 * ADDRESSES as u128 {
            let address = Ipv6Addr::from_bits(number << 64).into();
            let _ = codes.spend_at("guess", address, now);
        }
        assert!(codes.lock().guessers.len() <= ADDRESSES);
    }

    #[test]
    fn there_are_never_more_codes_than_the_limit_and_the_newest_stay() {
        let codes = Codes::default();
        let made: Vec<String> =
            (0..=CODES).map(|_| codes.offer(Token::generate().unwrap()).unwrap()).collect();
        assert!(codes.token(&made[0]).is_none());
        assert!(made[1..].iter().all(|code| codes.token(code).is_some()));
    }
}
