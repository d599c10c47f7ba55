//! What a signed token costs when it is first shown, and afterwards: `cargo xtask bench issuers`.
//!
//! In one run, in turns: a token of the hub's own, a signed one that is new, and the same again. The
//! median of each, over ES256.
#![allow(clippy::disallowed_methods, missing_docs)] // a benchmark
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // it stops at the first surprise

#[path = "../../tests/issuers/support.rs"]
#[allow(dead_code)] // parts of what the tests need
mod support;

use std::time::Instant;

use aaep_engine::Role;
use aaep_hub::access::{Access, ApiSurface, Token, Via};
use aaep_hub::config::{Label, PrincipalEntry};
use support::{Key, claims, config, set, with};

const TOKENS: usize = 10_000;

fn main() {
    let (place, key, own) =
        (tempfile::tempdir().unwrap(), Key::new("key"), Token::generate().unwrap());
    let mut config = config(place.path(), &set(&[&key]));
    config.principals.push(PrincipalEntry {
        name: Label::parse("own").unwrap(),
        role: Role::Agent,
        user: Label::parse("ann").unwrap(),
        token_sha256: Some(own.hash()),
        token_file: None,
        certificate_sha256: None,
        certificate_name: None,
    });
    let access = Access::new(&config).unwrap();
    let signed: Vec<String> = (0..TOKENS)
        .map(|number| key.sign(&with(claims(3600), "sub", format!("user-{number}").into())))
        .collect();
    let measure = |token: &str| {
        let begun = Instant::now();
        let known = access.who(Some(token), Via::Network, ApiSurface::Listener);
        let took = begun.elapsed();
        assert!(known.is_ok());
        took
    };
    let (mut plain, mut first, mut again) = (Vec::new(), Vec::new(), Vec::new());
    for token in &signed {
        plain.push(measure(own.as_str()));
        first.push(measure(token));
        again.push(measure(token));
    }
    for (name, times) in [
        ("a token of the hub's own", &mut plain),
        ("a signed token, new", &mut first),
        ("the same again", &mut again),
    ] {
        times.sort();
        println!("{name}: {:.1} µs", times[TOKENS / 2].as_secs_f64() * 1e6);
    }
}
