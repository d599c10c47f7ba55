//! Configuration from real files, variables and flags.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)] // real files

use std::fs;
use std::path::Path;

use aaep_hub::Fault;
use aaep_hub::config::{Config, Flags, Loaded, LogLevel, Surroundings, load};
use tempfile::TempDir;

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn flags(&self, text: &str) -> Flags {
        let file = self.path().join("aaep.toml");
        fs::write(&file, text).unwrap();
        Flags { config: Some(file), ..Flags::default() }
    }

    fn with(&self, pairs: &[(&str, &str)]) -> Surroundings {
        let home = self.path().to_str().unwrap();
        let pairs = pairs.iter().copied().chain([("HOME", home)]);
        let variables = pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Surroundings { variables, directory: self.path().to_owned() }
    }
}

fn load_file(text: &str) -> Result<Loaded, Fault> {
    let place = Place::new();
    load(&place.flags(text), &place.with(&[]))
}

fn load_variables(pairs: &[(&str, &str)]) -> Result<Loaded, Fault> {
    let place = Place::new();
    load(&Flags::default(), &place.with(pairs))
}

#[test]
fn without_anything_the_defaults_are_in_force() {
    let place = Place::new();
    let loaded = load(&Flags::default(), &place.with(&[])).unwrap();
    assert_eq!(loaded.file, None);
    let data = loaded.config.data.clone().unwrap();
    assert!(data.starts_with(place.path()), "{data:?}");
    let state = loaded.config.state.clone().unwrap();
    assert!(state.starts_with(place.path()) && !state.starts_with(&data), "{state:?}");
    assert_eq!(Config { data: None, state: None, ..loaded.config }, Config::default());
    assert!(loaded.warnings.is_empty());
}

#[test]
fn flags_count_more_than_the_environment_and_that_more_than_the_file() {
    let place = Place::new();
    let mut flags = place.flags("listen = ['127.0.0.1:1']\n[limits]\nbody_bytes = 1\nmessages = 1");
    let environment = [("AAEP_LISTEN", "127.0.0.1:2, [::1]:2"), ("AAEP_LIMITS__MESSAGES", "2")];
    let config = load(&flags, &place.with(&environment)).unwrap().config;
    assert_eq!(config.listen, ["127.0.0.1:2".parse().unwrap(), "[::1]:2".parse().unwrap()]);
    assert_eq!((config.limits.body_bytes, config.limits.messages), (1, 2));
    flags.listen = vec!["127.0.0.1:3".parse().unwrap()];
    let config = load(&flags, &place.with(&environment)).unwrap().config;
    assert_eq!(config.listen, ["127.0.0.1:3".parse().unwrap()]);
}

#[test]
fn the_file_is_found_by_flag_then_variable_then_usual_place_and_never_where_one_happens_to_be() {
    let place = Place::new();
    let write = |path: &str, level: &str| {
        let path = place.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("[log]\nlevel = '{level}'")).unwrap();
    };
    let level = |flags: &Flags, pairs: &[(&str, &str)]| {
        load(flags, &place.with(pairs)).unwrap().config.log.level
    };
    let none = Flags::default();
    write("aaep.toml", "off");
    assert_eq!(level(&none, &[]), LogLevel::Info, "the current directory must not be searched");
    write("configuration/aaep/aaep.toml", "warn");
    let xdg = place.path().join("configuration");
    let usual = ("XDG_CONFIG_HOME", xdg.to_str().unwrap());
    if cfg!(all(unix, not(target_os = "macos"))) {
        assert_eq!(level(&none, &[usual]), LogLevel::Warn);
    }
    write("other.toml", "debug");
    assert_eq!(level(&none, &[usual, ("AAEP_CONFIG", "other.toml")]), LogLevel::Debug);
    let flag = Flags { config: Some("aaep.toml".into()), ..Flags::default() };
    assert_eq!(level(&flag, &[usual, ("AAEP_CONFIG", "other.toml")]), LogLevel::Off);
    assert_eq!(level(&none, &[("AAEP_LOG", "trace")]), LogLevel::Trace);
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let place = Place::new();
    let text = load(&Flags::default(), &place.with(&[("AAEP_CONFIG", "gone.toml")]))
        .unwrap_err()
        .to_string();
    assert!(text.contains("gone.toml") && text.contains("Check the path."), "{text}");
}

#[test]
fn paths_in_the_file_start_at_the_file_and_others_at_the_current_directory() {
    let place = Place::new();
    fs::create_dir(place.path().join("etc")).unwrap();
    let file = place.path().join("etc/aaep.toml");
    let principal = "[[principals]]\nname='a'\nrole='agent'\nuser='u'\ntoken_file='tokens/a'\n";
    fs::write(&file, format!("data='d'\n[tls]\ncertificate='c.pem'\nkey='/k.pem'\n{principal}"))
        .unwrap();
    let mut flags = Flags { config: Some(file), ..Flags::default() };
    let environment = place.with(&[("AAEP_TLS__CERTIFICATE", "here.pem")]);
    let config = load(&flags, &environment).unwrap().config;
    assert_eq!(config.data.as_deref(), Some(&*place.path().join("etc/d")));
    let files = config.tls.files().unwrap();
    assert_eq!(files, (&*place.path().join("here.pem"), Path::new("/k.pem")));
    let token_file = config.principals[0].token_file.as_deref();
    assert_eq!(token_file, Some(&*place.path().join("etc/tokens/a")));
    flags.data = Some("mine".into());
    let config = load(&flags, &environment).unwrap().config;
    assert_eq!(config.data.as_deref(), Some(&*place.path().join("mine")));
}

#[test]
fn what_is_wrong_in_the_file_is_named_by_line_and_key() {
    let hash = "0".repeat(64);
    let principal = |name: &str, rest: &str| {
        format!("[[principals]]\nname = '{name}'\nrole = 'agent'\nuser = 'ann'\n{rest}\n")
    };
    let one = principal("a", &format!("token_sha256 = '{hash}'"));
    let cases: &[(&str, usize, &str, &str)] = &[
        ("\nlisen = []", 2, "lisen", "there is no key `lisen`"),
        ("[limits]\n\nbody_byte = 1", 3, "limits.body_byte", "there is no key"),
        ("[limit]\n", 1, "limit", "there is no key"),
        ("listen = ['127.0.0.1']", 1, "listen", "is no address"),
        ("listen = '127.0.0.1:1'", 1, "listen", "a list in brackets"),
        ("[limits]\nmessages = -1", 2, "limits.messages", "a whole number"),
        ("[limits]\nmessages = 'many'", 2, "limits.messages", "many"),
        ("[limits]\nmessages = 0", 2, "limits.messages", "lets nothing through"),
        ("[limits]\nwrong_codes = 0", 2, "limits.wrong_codes", "lets nothing through"),
        (
            "[limits]\nprocessor_percent_per_user = 101",
            2,
            "limits.processor_percent_per_user",
            "no more than 100",
        ),
        ("base = 'x/'", 1, "base", "begins with a slash"),
        ("[log]\nlevel = 'loud'", 2, "log.level", "loud"),
        ("allowed_hosts = ['*.example.org']", 1, "allowed_hosts", "exact name"),
        ("allowed_origins = ['https://x/y']", 1, "allowed_origins", "as browsers send it"),
        ("behind_proxy = ['0.0.0.0/0']", 1, "behind_proxy", "everybody"),
        ("listen = ['[::1]:1', '[::1]:1']", 1, "listen", "twice"),
        ("listen = []\n[unix_socket]\nenabled = false", 1, "listen", "nobody could connect"),
        ("\n[tls]\ncertificate = 'c.pem'", 2, "tls.key", "no `key`"),
        ("\n[tls]\nkey = 'k.pem'", 2, "tls.certificate", "no `certificate`"),
        (&principal("a", ""), 1, "principals.token_sha256", "needs one of"),
        (&(one.clone() + "token_file = 'f'"), 5, "principals.token_sha256", "needs one of"),
        (&principal("a", "token_sha256 = 'xyz'"), 5, "principals.token_sha256", "64 hexadecimal"),
        (&principal("local", "token_file = 'f'"), 2, "principals.name", "without a token"),
        (&(one.clone() + &one), 10, "principals.token_sha256", "share a token"),
        (
            &(one.clone() + &principal("a", "token_file = 'f'").replace("ann", "bob")),
            7,
            "principals.name",
            "differ",
        ),
        (&one.replace("agent", "boss"), 3, "principals.role", "boss"),
        (&one.replace("role = 'agent'\n", ""), 1, "principals", "must also be a key `role`"),
    ];
    for (text, line, key, what) in cases {
        let fault = load_file(text).expect_err(text);
        let Fault::Config { place, key: found, what: said, remedy } = &fault else {
            panic!("{text}: {fault}");
        };
        assert!(place.ends_with(&format!("aaep.toml, line {line}")), "{text}: {place}");
        assert_eq!(found, key, "{text}: {fault}");
        assert!(said.to_lowercase().contains(&what.to_lowercase()), "{text}: {said}");
        assert!(!remedy.is_empty() && said.ends_with('.') && !fault.to_string().contains('\n'));
    }
}

#[test]
fn a_broken_file_is_named_by_its_line() {
    for (text, line) in
        [("a = 1\nb = = 2", 2), ("[tls\nkey = 1", 1), ("base = '/a'\nbase = '/b'", 2)]
    {
        let fault = load_file(text).expect_err(text).to_string();
        assert!(fault.contains(&format!("aaep.toml, line {line}")), "{text}: {fault}");
    }
    let place = Place::new();
    let flags = place.flags("");
    fs::write(flags.config.as_ref().unwrap(), b"a = 1\nb = '\xff'").unwrap();
    let fault = load(&flags, &place.with(&[])).unwrap_err().to_string();
    assert!(fault.contains("Line 2 is not UTF-8."), "{fault}");
    fs::write(flags.config.as_ref().unwrap(), "#".repeat(2 << 20)).unwrap();
    let fault = load(&flags, &place.with(&[])).unwrap_err().to_string();
    assert!(fault.contains("larger than"), "{fault}");
}

// covers: S8
#[test]
fn a_token_in_place_of_its_hash_is_not_repeated() {
    let token = aaep_hub::access::Token::generate().unwrap();
    let text = format!(
        "[[principals]]\nname='a'\nrole='agent'\nuser='u'\ntoken_sha256='{}'",
        token.as_str()
    );
    let fault = load_file(&text).unwrap_err();
    assert!(fault.to_string().contains("a token in clear"), "{fault}");
    assert!(!format!("{fault} {fault:?}").contains(token.as_str()));
}

#[test]
fn what_is_wrong_in_the_environment_is_named_by_variable() {
    let cases = [
        ("AAEP_LISTEN", "127.0.0.1", "listen"),
        ("AAEP_LIMITS__MESSAGES", "many", "limits.messages"),
        ("AAEP_LIMITS__MESSAGES", "0", "limits.messages"),
        ("AAEP_EPHEMERAL", "yes", "ephemeral"),
        ("AAEP_LOG", "loud", "log.level"),
        ("AAEP_BASE", "", "base"),
        ("AAEP_PRINCIPALS", "[]", "principals"),
        ("AAEP_TLS_KEY", "k.pem", ""),
        ("AAEP_LIMITS__MESSAGE", "5", ""),
        ("AAEP_TLS__NONE", "5", ""),
    ];
    for (name, value, key) in cases {
        let fault = load_variables(&[(name, value)]).expect_err(name);
        let Fault::Config { place, key: found, remedy, .. } = &fault else { panic!("{fault}") };
        assert_eq!(place, &format!("The environment variable {name}"));
        assert_eq!(found, key);
        assert!(!remedy.is_empty());
    }
}

#[test]
fn a_variable_that_nobody_knows_is_mentioned_and_one_of_another_command_is_not() {
    let variables = [("AAEP_TONE", "secret"), ("AAEP_TOKEN", "secret"), ("OTHER__X", "1")];
    let loaded = load_variables(&variables).unwrap();
    assert_eq!(loaded.warnings.len(), 1, "{:?}", loaded.warnings);
    assert!(loaded.warnings[0].contains("AAEP_TONE") && !loaded.warnings[0].contains("secret"));
}

#[test]
fn an_ephemeral_hub_needs_no_directory_and_another_says_what_it_misses() {
    let nowhere = Surroundings::default();
    let flags = Flags { ephemeral: true, data: Some("d".into()), ..Flags::default() };
    assert_eq!(load(&flags, &nowhere).unwrap().config.data, None);
    let fault = load(&Flags::default(), &nowhere).unwrap_err().to_string();
    assert!(fault.contains("--data") && fault.contains("--ephemeral"), "{fault}");
}

#[cfg(unix)]
#[test]
fn a_file_that_everybody_may_write_decides_nothing() {
    use std::os::unix::fs::PermissionsExt;

    let place = Place::new();
    let flags = place.flags("");
    fs::set_permissions(flags.config.as_ref().unwrap(), fs::Permissions::from_mode(0o666)).unwrap();
    let fault = load(&flags, &place.with(&[])).unwrap_err().to_string();
    assert!(fault.contains("chmod o-w"), "{fault}");
}
