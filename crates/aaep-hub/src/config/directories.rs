//! Where data and configuration live when nobody says otherwise.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Kinds of operating system, as far as directories differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux and its relatives: the XDG base directories.
    Unix,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

impl System {
    /// The one this was built for.
    pub const HERE: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_os = "macos") {
        Self::MacOs
    } else {
        Self::Unix
    };

    /// The hub's data: `$XDG_DATA_HOME/aaep` or `~/.local/share/aaep`;
    /// `~/Library/Application Support/AAEP`; `%LOCALAPPDATA%\AAEP`.
    pub fn data(self, variables: &BTreeMap<String, String>) -> Option<PathBuf> {
        self.directory(variables, "XDG_DATA_HOME", ".local/share", "LOCALAPPDATA")
    }

    /// The configuration: `$XDG_CONFIG_HOME/aaep` or `~/.config/aaep`;
    /// `~/Library/Application Support/AAEP`; `%APPDATA%\AAEP`.
    pub fn configuration(self, variables: &BTreeMap<String, String>) -> Option<PathBuf> {
        self.directory(variables, "XDG_CONFIG_HOME", ".config", "APPDATA")
    }

    /// What the hub notes about its data, outside of it: `$XDG_STATE_HOME/aaep` or
    /// `~/.local/state/aaep`; `~/Library/Application Support/AAEP State`; `%LOCALAPPDATA%\AAEP State`.
    pub fn state(self, variables: &BTreeMap<String, String>) -> Option<PathBuf> {
        let path = self.directory(variables, "XDG_STATE_HOME", ".local/state", "LOCALAPPDATA")?;
        Some(if self == Self::Unix { path } else { path.with_file_name("AAEP State") })
    }

    fn directory(
        self,
        variables: &BTreeMap<String, String>,
        xdg: &str,
        below_home: &str,
        windows: &str,
    ) -> Option<PathBuf> {
        let set =
            |name: &str| variables.get(name).filter(|text| !text.is_empty()).map(PathBuf::from);
        // A relative directory would depend on where the hub was started; the XDG rules ignore it.
        let absolute = |name: &str| set(name).filter(|path| path.is_absolute());
        match self {
            Self::Unix => absolute(xdg)
                .or_else(|| absolute("HOME").map(|home| home.join(below_home)))
                .map(|directory| directory.join("aaep")),
            Self::MacOs => {
                absolute("HOME").map(|home| home.join("Library/Application Support/AAEP"))
            }
            Self::Windows => set(windows).map(|directory| directory.join("AAEP")),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn each_system_has_its_own_places() {
        let home = variables(&[("HOME", "/home/ann"), ("LOCALAPPDATA", "L:"), ("APPDATA", "R:")]);
        let data = |system: System| system.data(&home).unwrap();
        assert_eq!(data(System::Unix), PathBuf::from("/home/ann/.local/share/aaep"));
        assert_eq!(
            data(System::MacOs),
            PathBuf::from("/home/ann/Library/Application Support/AAEP")
        );
        assert_eq!(data(System::Windows), PathBuf::from("L:").join("AAEP"));
        let state = |system: System| system.state(&home).unwrap();
        assert_eq!(state(System::Unix), PathBuf::from("/home/ann/.local/state/aaep"));
        assert_eq!(
            state(System::MacOs),
            PathBuf::from("/home/ann/Library/Application Support/AAEP State")
        );
        assert_eq!(state(System::Windows), PathBuf::from("L:").join("AAEP State"));
        let configuration = System::Unix.configuration(&home).unwrap();
        assert_eq!(configuration, PathBuf::from("/home/ann/.config/aaep"));
        assert_eq!(System::Windows.configuration(&home), Some(PathBuf::from("R:").join("AAEP")));
    }

    #[test]
    fn xdg_comes_first_but_only_if_absolute() {
        let with = |xdg| variables(&[("HOME", "/home/ann"), ("XDG_DATA_HOME", xdg)]);
        assert_eq!(System::Unix.data(&with("/d")), Some("/d/aaep".into()));
        for ignored in ["", "d", "./d"] {
            let data = System::Unix.data(&with(ignored));
            assert_eq!(data, Some("/home/ann/.local/share/aaep".into()), "{ignored}");
        }
        assert_eq!(System::Unix.data(&variables(&[])), None);
        assert_eq!(System::Unix.data(&variables(&[("HOME", "ann")])), None);
    }
}
