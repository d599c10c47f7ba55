//! `aaep hub --cluster`: one node of several.

use std::io::{self, Write};
use std::path::Path;

use aaep_hub::Fault;
use aaep_hub::cluster::{ClusterOptions, Node};
use aaep_hub::config::Config;

use super::unable;
use crate::arguments::RunOptions;
use crate::exit::{self, Exit};
use crate::signals::{Signal, Signals};
use crate::systemd;

/// The longest address of a store, in bytes.
const MAX_ADDRESS_BYTES: u64 = 8192;

pub(super) async fn serve(
    options: &RunOptions,
    config: Config,
    out: &mut impl Write,
) -> io::Result<Exit> {
    let options = match cluster(options) {
        Ok(options) => options,
        Err(fault) => return Ok(unable(&fault)),
    };
    let node = match Node::open(config, options).await {
        Ok(node) => node,
        Err(fault) => return Ok(unable(&fault)),
    };
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(fault) => return Ok(unable(&fault)),
    };
    node.warnings().iter().for_each(|warning| exit::say(warning));
    for address in node.addresses() {
        writeln!(out, "Listening: {}", node.url(*address))?;
    }
    writeln!(out, "Ready. Stop with Ctrl-C.")?;
    out.flush()?;
    systemd::tell(systemd::READY);
    let stop = async {
        loop {
            match signals.next().await {
                Signal::Reload => exit::say(
                    "A node takes over a changed configuration when it is started again; the others go on meanwhile.",
                ),
                Signal::Continue => {}
                Signal::Stop => {
                    exit::say("Stopping. What runs comes to its end; another node goes on.");
                    systemd::tell(systemd::STOPPING);
                    return;
                }
            }
        }
    };
    Ok(match node.run(stop, |news| exit::say(&news)).await {
        Ok(()) => Exit::Good,
        Err(fault) => unable(&fault),
    })
}

fn cluster(options: &RunOptions) -> Result<ClusterOptions, Fault> {
    let missing = || Fault::System {
        what: "A node needs --cluster, --cluster-key and --cluster-address.".into(),
    };
    let store = options.cluster.as_deref().ok_or_else(missing)?;
    let store = match store.strip_prefix('@') {
        Some(path) => read(Path::new(path))?,
        None => store.to_owned(),
    };
    let key = options.cluster_key.clone().ok_or_else(missing)?;
    let address = options.cluster_address.ok_or_else(missing)?;
    Ok(ClusterOptions { store, key, address })
}

/// Reads the store's address, which holds a password.
fn read(path: &Path) -> Result<String, Fault> {
    use std::io::Read as _;
    let cannot = |what: String, remedy: String| Fault::File { path: path.to_owned(), what, remedy };
    let unread = |error: io::Error| {
        cannot(
            format!("It cannot be read: {error}."),
            "Name the file with the store's address.".into(),
        )
    };
    let file = std::fs::File::open(path).map_err(unread)?;
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::mode(&file.metadata().map_err(unread)?) & 0o077 != 0 {
        let remedy = format!("Run: chmod 600 {}", path.display());
        return Err(cannot("Others on this machine may read or write it.".into(), remedy));
    }
    let mut text = String::new();
    file.take(MAX_ADDRESS_BYTES).read_to_string(&mut text).map_err(unread)?;
    Ok(text.trim().to_owned())
}
