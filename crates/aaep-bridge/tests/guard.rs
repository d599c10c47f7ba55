//! Settings of the machine, in a directory that stands for `/etc`.
#![allow(missing_docs, clippy::unwrap_used)] // tests
#![allow(clippy::disallowed_methods)] // they read files

use std::path::Path;

use aaep_bridge::guard::checks::{self, Weight};
use aaep_bridge::guard::{Guard, GuardPaths, Removed, Scope};
use aaep_bridge::host::Host;

fn guard(host: Host, scope: Scope, place: &Path) -> Guard {
    let at = |name: &str| place.join(name);
    let paths = GuardPaths {
        home: at("home"),
        project: at("project"),
        etc: at("etc"),
        elsewhere: Default::default(),
        state: at("state"),
    };
    Guard { host, scope, paths, program: "/usr/local/bin/aaep".into() }
}

/// What is noticed, with hooks switched off in the environment.
fn off(guard: &Guard) -> Vec<String> {
    let variable = |name: &str| (name == "CLAUDE_CODE_SIMPLE").then(|| "1".to_owned());
    let found = checks::look(guard, None, &variable);
    found.into_iter().filter(|it| it.weight == Weight::Off).map(|it| it.text).collect()
}

#[test]
fn managed_settings_are_made_hold_against_switches_and_go_without_a_trace() {
    for (host, file) in [
        (Host::Claude, "etc/claude-code/managed-settings.json"),
        (Host::Codex, "etc/codex/requirements.toml"),
    ] {
        let place = tempfile::tempdir().unwrap();
        let place = place.path();
        let guard = guard(host, Scope::Managed, place);
        let plan = guard.plan().unwrap();
        assert_eq!(plan.path, place.join(file));
        guard.make(&plan).unwrap();
        assert!(guard.plan().unwrap().is_done(), "{host:?}: it is made once");
        let text = std::fs::read_to_string(place.join(file)).unwrap();
        assert!(text.contains("aaep hook --host"), "{text}");
        // What would switch off hooks of the user.
        std::fs::create_dir_all(place.join("home/.claude")).unwrap();
        std::fs::create_dir_all(place.join("home/.codex")).unwrap();
        std::fs::write(place.join("home/.claude/settings.json"), "{\"disableAllHooks\":true}")
            .unwrap();
        std::fs::write(place.join("home/.codex/config.toml"), "[features]\nhooks = false\n")
            .unwrap();
        let rest: Vec<_> =
            off(&guard).into_iter().filter(|it| !it.contains("is not there")).collect();
        assert_eq!(rest, Vec::<String>::new(), "{host:?}");
        let user = self::guard(host, Scope::User, place);
        user.make(&user.plan().unwrap()).unwrap();
        assert!(!off(&user).is_empty(), "{host:?}: the user's own are switched off");
        assert!(matches!(guard.remove().unwrap(), Removed::AsBefore));
        assert!(!place.join(file).exists(), "{host:?}");
    }
}

#[test]
fn what_a_program_has_not_is_said() {
    let place = tempfile::tempdir().unwrap();
    for (host, scope, option) in [
        (Host::Gemini, Scope::Managed, "--managed"),
        (Host::Codex, Scope::Project, "--project"),
        (Host::Kimi, Scope::Project, "--project"),
    ] {
        let why = guard(host, scope, place.path()).plan().unwrap_err().to_string();
        assert!(why.contains(option) && why.contains("--user"), "{why}");
    }
}
