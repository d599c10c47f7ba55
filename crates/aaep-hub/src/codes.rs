//! One-time codes: what stands behind the `#` of the page's address, and is worth a token once.
//!
//! A token in an address would stay in the browser's history and could be read over a shoulder for
//! as long as it is valid. A code is worth nothing after its first use, or after a while.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::Fault;
use crate::access::{Token, base64url, fill};

/// How long a code is worth something.
const LIFETIME: Duration = Duration::from_secs(15 * 60);

/// Codes at once; the oldest gives way.
const CODES: usize = 16;

/// Wrong codes that may be shown before all are void: somebody is guessing.
const WRONG: u32 = 100;

/// How many random bytes a code holds.
const RANDOM_BYTES: usize = 32;

/// The codes that are worth something.
#[derive(Default)]
pub(crate) struct Codes(Mutex<Open>);

#[derive(Default)]
struct Open {
    codes: Vec<Code>,
    wrong: u32,
}

struct Code {
    /// What is kept of the code itself.
    hash: [u8; 32],
    until: Instant,
    token: Token,
}

impl Codes {
    /// Makes a code for this token.
    pub(crate) fn offer(&self, token: Token) -> Result<String, Fault> {
        let mut random = [0; RANDOM_BYTES];
        fill(&mut random)?;
        let code = base64url(&random);
        let mut open = self.lock();
        if open.codes.len() == CODES {
            open.codes.remove(0);
        }
        open.wrong = 0;
        let until = Instant::now() + LIFETIME;
        open.codes.push(Code { hash: Sha256::digest(&code).into(), until, token });
        Ok(code)
    }

    // enforces: S4, S5
    /// The token that a code is worth, and never again. Every code is compared with, each in the
    /// same time.
    pub(crate) fn spend(&self, code: &str) -> Option<Token> {
        self.spend_at(code, Instant::now())
    }

    fn spend_at(&self, code: &str, now: Instant) -> Option<Token> {
        let shown: [u8; 32] = Sha256::digest(code).into();
        let mut open = self.lock();
        open.codes.retain(|code| now < code.until);
        let mut found = None;
        for (at, code) in open.codes.iter().enumerate() {
            if bool::from(code.hash.ct_eq(&shown)) {
                found = Some(at);
            }
        }
        let Some(at) = found else {
            open.wrong = open.wrong.saturating_add(1);
            if open.wrong >= WRONG {
                open.codes.clear();
            }
            return None;
        };
        Some(open.codes.remove(at).token)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        // Nothing panics while it is held; whatever is in it is whole.
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: S4, S5
    #[test]
    fn a_code_is_worth_its_token_once() {
        let (codes, token) = (Codes::default(), Token::generate().unwrap());
        let code = codes.offer(token.clone()).unwrap();
        assert!(codes.spend("").is_none() && codes.spend(&code[1..]).is_none());
        assert_eq!(codes.spend(&code), Some(token));
        assert_eq!(codes.spend(&code), None);
    }

    // covers: S5
    #[test]
    fn a_code_is_worth_nothing_after_a_while() {
        let codes = Codes::default();
        let code = codes.offer(Token::generate().unwrap()).unwrap();
        assert!(codes.spend_at(&code, Instant::now() + LIFETIME).is_none());
        assert!(codes.spend(&code).is_none(), "it is gone");
    }

    // covers: S5
    #[test]
    fn whoever_guesses_makes_all_codes_void() {
        let codes = Codes::default();
        let code = codes.offer(Token::generate().unwrap()).unwrap();
        for _ in 0..WRONG {
            assert!(codes.spend("guess").is_none());
        }
        assert!(codes.spend(&code).is_none());
    }

    #[test]
    fn there_are_never_more_codes_than_the_limit_and_the_newest_stay() {
        let codes = Codes::default();
        let made: Vec<String> =
            (0..=CODES).map(|_| codes.offer(Token::generate().unwrap()).unwrap()).collect();
        assert!(codes.spend(&made[0]).is_none());
        assert!(made[1..].iter().all(|code| codes.spend(code).is_some()));
    }
}
