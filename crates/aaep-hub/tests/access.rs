//! Who is let in, and as whom.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)] // real files

use aaep_engine::{Principal, Role};
use aaep_hub::access::{Access, ApiSurface, Denied, SharedAccess, Token, Via};
use aaep_hub::config::{Config, Label, PrincipalEntry};

const EVERY_WAY: [Via; 4] =
    [Via::Loopback, Via::Network, Via::Socket { uid: 0 }, Via::Socket { uid: 12345 }];

fn entry(name: &str, role: Role, user: &str, token: &Token) -> PrincipalEntry {
    PrincipalEntry {
        name: Label::parse(name).unwrap(),
        role,
        user: Label::parse(user).unwrap(),
        token_sha256: Some(token.hash()),
        token_file: None,
        certificate_sha256: None,
        certificate_name: None,
    }
}

fn config(principals: Vec<PrincipalEntry>) -> Config {
    Config { principals, ..Config::default() }
}

fn token() -> Token {
    Token::generate().unwrap()
}

#[cfg(unix)]
fn own_uid() -> u32 {
    use std::os::unix::fs::MetadataExt;
    tempfile::tempdir().unwrap().path().metadata().unwrap().uid()
}

// covers: S1, S6
#[test]
fn a_token_is_its_principal_whichever_way_it_comes() {
    let tokens: Vec<_> = (0..4).map(|_| token()).collect();
    let roles = [Role::Agent, Role::AccessibilityConsumer, Role::Auditor, Role::Admin];
    let entries = tokens.iter().zip(roles).enumerate();
    let entries =
        entries.map(|(at, (token, role))| entry(&format!("p{at}"), role, "ann", token)).collect();
    let access = Access::new(&config(entries)).unwrap();
    for (at, (token, role)) in tokens.iter().zip(roles).enumerate() {
        for via in EVERY_WAY {
            for surface in [ApiSurface::Listener, ApiSurface::Agent] {
                let known = access.who(Some(token.as_str()), via, surface).unwrap();
                assert_eq!(known.principal, Principal::new(&format!("p{at}"), role, "ann"));
            }
        }
    }
}

// covers: S4, S5, W5
#[test]
fn a_wrong_token_is_denied_everywhere_and_never_becomes_local() {
    let right = token();
    let access = Access::new(&config(vec![entry("a", Role::Admin, "ann", &right)])).unwrap();
    let almost = format!(
        "{}{}",
        &right.as_str()[..47],
        if right.as_str().ends_with('A') { 'E' } else { 'A' }
    );
    let (other, padded, huge) = (token(), format!("{} ", right.as_str()), "x".repeat(1 << 20));
    let hash = right.hash().to_hex();
    for wrong in [other.as_str(), &almost, &padded, &huge, &hash, "", "aaep_", "local", "\u{0}"] {
        for via in EVERY_WAY {
            for surface in [ApiSurface::Listener, ApiSurface::Agent] {
                assert_eq!(access.who(Some(wrong), via, surface), Err(Denied::UnknownToken));
            }
        }
    }
}

// covers: S5, W5
#[test]
fn off_host_without_a_token_is_denied() {
    let access = Access::new(&Config::default()).unwrap();
    for surface in [ApiSurface::Listener, ApiSurface::Agent] {
        let denied = access.who(None, Via::Network, surface).unwrap_err();
        assert_eq!((denied, denied.status().as_u16()), (Denied::NoToken, 401));
    }
}

// covers: D4
#[test]
fn loopback_without_a_token_is_local_and_its_replies_count_only_when_developing() {
    let mut config = Config::default();
    for local_replies in [false, true] {
        config.development.local_replies = local_replies;
        let access = Access::new(&config).unwrap();
        let listener = access.who(None, Via::Loopback, ApiSurface::Listener).unwrap();
        let expected = Principal::new("local", Role::AccessibilityConsumer, "local");
        assert_eq!(listener.principal, expected);
        assert_eq!(access.may_reply(&listener), local_replies);
        let agent = access.who(None, Via::Loopback, ApiSurface::Agent).unwrap();
        assert_eq!(agent.principal, Principal::new("local-agent", Role::Agent, "local"));
        assert!(!access.may_reply(&agent), "an agent never answers its own questions");
    }
}

// covers: S5
#[test]
fn loopback_can_be_closed_to_those_without_a_token() {
    let config = Config { loopback_without_credentials: false, ..Config::default() };
    let access = Access::new(&config).unwrap();
    assert_eq!(access.who(None, Via::Loopback, ApiSurface::Agent), Err(Denied::NoToken));
}

// covers: D4, S1
#[cfg(unix)]
#[test]
fn the_socket_knows_its_own_user_and_nobody_else() {
    let access = Access::new(&Config::default()).unwrap();
    let uid = own_uid();
    let listener = access.who(None, Via::Socket { uid }, ApiSurface::Listener).unwrap();
    assert_eq!(listener.principal, Principal::new("socket", Role::AccessibilityConsumer, "local"));
    assert!(access.may_reply(&listener), "the socket proves who it is, so its replies count");
    let agent = access.who(None, Via::Socket { uid }, ApiSurface::Agent).unwrap();
    assert_eq!(agent.principal, Principal::new("socket-agent", Role::Agent, "local"));
    assert!(listener.principal.may_answer(&agent.principal.user));
    let other = Via::Socket { uid: uid + 1 };
    assert_eq!(access.who(None, other, ApiSurface::Listener), Err(Denied::OtherUser));
}

// covers: S6
#[test]
fn only_agents_act_as_agents_and_only_listeners_reply() {
    let roles = [
        (Role::Agent, true, false),
        (Role::AccessibilityConsumer, false, true),
        (Role::Auditor, false, false),
        (Role::Admin, false, true),
    ];
    for (role, acts, replies) in roles {
        let token = token();
        let access = Access::new(&config(vec![entry("p", role, "ann", &token)])).unwrap();
        let known = access.who(Some(token.as_str()), Via::Network, ApiSurface::Agent).unwrap();
        assert_eq!(access.may_use(&known, ApiSurface::Agent).is_ok(), acts, "{role:?}");
        assert_eq!(access.may_use(&known, ApiSurface::Listener), Ok(()), "{role:?}");
        assert_eq!(access.may_reply(&known), replies, "{role:?}");
        assert_eq!(Denied::Role.status().as_u16(), 403);
    }
}

// covers: S4
#[test]
fn who_was_taken_out_or_changed_is_no_longer_valid() {
    let (old, new) = (token(), token());
    let ann = |token| entry("reader", Role::AccessibilityConsumer, "ann", token);
    let shared = SharedAccess::new(Access::new(&config(vec![ann(&old)])).unwrap());
    let before = shared.current();
    let known = before.who(Some(old.as_str()), Via::Network, ApiSurface::Listener).unwrap();
    let valid_under = |principals| {
        shared.replace(Access::new(&config(principals)).unwrap());
        shared.current().still_valid(&known)
    };
    assert!(valid_under(vec![ann(&old)]));
    assert!(valid_under(vec![ann(&new), ann(&old)]), "a second token changes nothing");
    assert!(!valid_under(vec![ann(&new)]), "a token that was replaced is not valid");
    assert!(!valid_under(vec![entry("reader", Role::AccessibilityConsumer, "bob", &old)]));
    assert!(!valid_under(vec![entry("reader", Role::Auditor, "ann", &old)]));
    assert!(!valid_under(vec![]));
    assert!(before.still_valid(&known), "who began with the old one keeps it");
}

// covers: D4
#[test]
fn local_is_valid_only_with_the_rights_it_began_with() {
    let mut config = Config::default();
    config.development.local_replies = true;
    let access = Access::new(&config).unwrap();
    let known = access.who(None, Via::Loopback, ApiSurface::Listener).unwrap();
    assert!(access.still_valid(&known));
    config.development.local_replies = false;
    assert!(!Access::new(&config).unwrap().still_valid(&known));
    config.loopback_without_credentials = false;
    assert!(!Access::new(&config).unwrap().still_valid(&known));
}

// covers: S8
#[cfg(unix)]
#[test]
fn a_token_file_is_read_only_if_nobody_else_can() {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    let token = token();
    let config = config(vec![PrincipalEntry {
        token_sha256: None,
        token_file: Some(path.clone()),
        certificate_sha256: None,
        certificate_name: None,
        ..entry("reader", Role::Agent, "ann", &token)
    }]);
    let write = |text: &str, mode| {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        Access::new(&config)
    };
    let access = write(&format!("{}\n", token.as_str()), 0o600).unwrap();
    assert!(access.who(Some(token.as_str()), Via::Network, ApiSurface::Agent).is_ok());
    assert!(access.has_tokens());
    for mode in [0o640, 0o604, 0o620, 0o644] {
        let fault = write(token.as_str(), mode).unwrap_err().to_string();
        assert!(fault.contains("chmod 600") && !fault.contains(token.as_str()), "{fault}");
    }
    for text in ["", "hunter2", &format!("{0}\n{0}", token.as_str()), &"x".repeat(1000)] {
        assert!(write(text, 0o600).is_err(), "{text}");
    }
    fs::remove_file(&path).unwrap();
    assert!(Access::new(&config).unwrap_err().to_string().contains("Check the path"));
}

// covers: S8
#[test]
fn nothing_that_is_shown_holds_a_hash() {
    let token = token();
    let config = config(vec![entry("reader", Role::Agent, "ann", &token)]);
    let access = Access::new(&config).unwrap();
    let known = access.who(Some(token.as_str()), Via::Network, ApiSurface::Agent).unwrap();
    let shown = format!("{config:?} {access:?} {known:?} {}", config.to_toml().unwrap());
    assert!(!shown.contains(&token.hash().to_hex()) && !shown.contains(token.as_str()));
}
