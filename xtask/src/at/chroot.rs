//! `cargo xtask at --orca48`: a newer Debian in a folder, for its Orca and its browsers.
//!
//! Only root can make it, with debootstrap and Debian's own packages. What it needs of this machine is
//! mounted in a namespace of its own, so nothing stays mounted, and nothing of it keeps running.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::page;
use crate::workspace::{answers, root, run as run_program, target_dir};

/// Debian 13, which has Orca 48.
const RELEASE: &str = "trixie";
const ARCHIVE: &str = "http://deb.debian.org/debian";

/// What is heard with in there.
const PACKAGES: &[&str] = &[
    "orca",
    "at-spi2-core",
    "xvfb",
    "dbus",
    "dbus-bin",
    "speech-dispatcher",
    "openbox",
    "xdotool",
    "chromium",
    "firefox-esr",
    "libglib2.0-bin",
    "procps",
    "brltty",
    "python3-brlapi",
    "lxterminal",
    "nodejs",
    "fonts-dejavu-core",
];

/// Mounts and changes root; the folder, the workspace, the target directory, then the command.
const ENTER: &str = r#"set -e
mount -t proc proc "$0/proc"
for of in sys dev; do mount --rbind "/$of" "$0/$of"; done
mount -t tmpfs none "$0/tmp"
for of in "$1" "$2"; do mkdir -p "$0$of"; mount --bind "$of" "$0$of"; done
cd "$1/web"
folder=$0; web=$1/web; shift 2
exec chroot "$folder" sh -c 'cd "$0" && exec "$@"' "$web" "$@"
"#;

/// The folder, made if it is not there.
pub(super) fn prepare() -> Result<PathBuf> {
    if !page::can_install() {
        bail!("Orca 48 runs in a folder with a newer Debian, which only root of a Debian can make");
    }
    let folder = match std::env::var_os("AAEP_ORCA48") {
        Some(folder) => PathBuf::from(folder),
        None => target_dir().join("orca-48"),
    };
    let stamp = folder.join("aaep-packages");
    let wanted = PACKAGES.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(folder);
    }
    if !folder.join("etc/debian_version").is_file() {
        if !answers("debootstrap") {
            page::install(&["debootstrap"])?;
        }
        println!(
            "Making a folder with Debian {RELEASE}: some minutes, and 2 GB in {}.",
            folder.display()
        );
        let mut debootstrap = Command::new("debootstrap");
        debootstrap.args(["--variant=minbase", RELEASE]).arg(&folder).arg(ARCHIVE);
        run_program(&mut debootstrap)
            .context("the folder could not be made; is the network there?")?;
    }
    let install =
        "apt-get update --quiet && apt-get install --yes --quiet --no-install-recommends \"$@\"";
    let mut apt = Command::new("chroot");
    apt.arg(&folder).args(["sh", "-c", install, "sh"]).args(PACKAGES);
    run_program(apt.env("DEBIAN_FRONTEND", "noninteractive"))
        .context("the packages could not be installed; is the network there?")?;
    std::fs::write(&stamp, wanted)
        .with_context(|| format!("could not write {}", stamp.display()))?;
    Ok(folder)
}

/// Plays scenarios in there, with the command that was built here.
pub(super) fn play(folder: &Path, script: &str, args: &[&String]) -> Result<()> {
    let binary = target_dir().join("debug/aaep");
    ensure!(binary.is_file(), "{} is not built", binary.display());
    let mut command = Command::new("unshare");
    // Processes of its own, too: Orca starts only once for each user.
    command.args(["--mount", "--pid", "--fork", "--kill-child"]);
    command.args(["sh", "-c", ENTER]).arg(folder).arg(root()).arg(target_dir());
    command.args(["node", script]).args(args);
    // Nothing of this machine's desktop, and not its browser.
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("LANG", "C.UTF-8");
    command.env("HOME", "/root").env("AAEP_BIN", binary);
    for kept in ["AAEP_AT_SHOW", "HEARD_WPM"] {
        if let Some(value) = std::env::var_os(kept) {
            command.env(kept, value);
        }
    }
    run_program(&mut command)
}
