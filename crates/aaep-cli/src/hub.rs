//! `aaep hub`: runs the hub, or makes a configuration for it.

mod node;

use std::io::{self, Write};
use std::path::PathBuf;

use aaep_hub::config::{Flags, Loaded, LogFormat, Surroundings, System, load, log_format};
use aaep_hub::{Fault, Hub, Running, start};

use crate::arguments::{
    BackupOptions, HubCommand, HubOptions, InitOptions, MigrateOptions, RunOptions,
};
use crate::exit::{self, Exit, Weight};
use crate::log::Log;
use crate::signals::{Signal, Signals};
use crate::systemd;

pub(crate) fn run(options: &HubOptions, out: &mut impl Write) -> io::Result<Exit> {
    let done = match &options.command {
        Some(HubCommand::Init(options)) => return init(options, out),
        Some(HubCommand::Backup(options)) => return backup(options, out),
        Some(HubCommand::Migrate(options)) => return migrate(options, out),
        None if options.print_config => print_config(&options.run),
        None => return serve(&options.run, out),
    };
    match done {
        Ok(text) => {
            out.write_all(text.as_bytes())?;
            Ok(Exit::Good)
        }
        Err(fault) => Ok(unable(&fault)),
    }
}

fn unable(fault: &Fault) -> Exit {
    exit::say_as(Weight::Error, &fault.to_string());
    Exit::Unable
}

fn init(options: &InitOptions, out: &mut impl Write) -> io::Result<Exit> {
    let usual = || {
        let variables = Surroundings::of_process()?.variables;
        System::HERE.configuration(&variables).ok_or_else(|| Fault::System {
            what: "Your configuration directory cannot be found: HOME is not set. Name a directory with --dir.".into(),
        })
    };
    let directory = options.dir.clone().map_or_else(usual, Ok);
    match directory.and_then(|directory| aaep_hub::init(&directory, &options.host)) {
        Ok(lines) => {
            for line in lines {
                writeln!(out, "{line}")?;
            }
            Ok(Exit::Good)
        }
        Err(fault) => Ok(unable(&fault)),
    }
}

fn migrate(options: &MigrateOptions, out: &mut impl Write) -> io::Result<Exit> {
    let flags = Flags {
        data: options.place.data.clone(),
        config: options.place.config.clone(),
        ..Flags::default()
    };
    match read(&flags).and_then(|loaded| start::migrate(&loaded.config, options.confirm)) {
        Ok(migrated) => {
            for line in migrated.lines {
                writeln!(out, "{line}")?;
            }
            Ok(if migrated.done { Exit::Good } else { Exit::Wrong })
        }
        Err(fault) => Ok(unable(&fault)),
    }
}

fn backup(options: &BackupOptions, out: &mut impl Write) -> io::Result<Exit> {
    let copied = crate::audit::open(&options.place).and_then(|opened| {
        let copied = opened.reader.backup(&options.file).map_err(|fault| fault.to_string());
        copied.map(|()| opened)
    });
    match copied {
        Ok(opened) => {
            let (from, store) = (opened.path.display(), opened.reader.store());
            writeln!(out, "Copied {from} to {}.", options.file.display())?;
            writeln!(out, "It is the journal {store}; its key is not in the copy.")?;
            writeln!(out, "To verify it: aaep audit verify --file {}", options.file.display())?;
            Ok(Exit::Good)
        }
        Err(text) => {
            exit::say(&text);
            Ok(Exit::Unable)
        }
    }
}

fn flags(options: &RunOptions) -> Flags {
    Flags {
        config: options.config.clone(),
        listen: options.listen.clone(),
        grpc: options.grpc.clone(),
        data: options.data.clone(),
        ephemeral: options.ephemeral,
        policy: options.policy.clone(),
        published_suite: options.compat,
        ..Flags::default()
    }
}

fn read(flags: &Flags) -> Result<Loaded, Fault> {
    load(flags, &Surroundings::of_process()?)
}

fn print_config(options: &RunOptions) -> Result<String, Fault> {
    read(&flags(options))?.config.to_toml()
}

fn serve(options: &RunOptions, out: &mut impl Write) -> io::Result<Exit> {
    let flags = flags(options);
    let Loaded { config, file, mut warnings } = match read(&flags) {
        Ok(loaded) => loaded,
        Err(fault) => {
            let surroundings = Surroundings::of_process().unwrap_or_default();
            if log_format(&flags, &surroundings) == Some(LogFormat::Json) {
                exit::speak_json();
            }
            return Ok(unable(&fault));
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // Not dropped: a connection that is being served while the runtime's timers end would panic,
    // and the end of the process frees everything.
    let runtime = std::mem::ManuallyDrop::new(runtime);
    let log = Log::begin(&config, Some(runtime.handle()));
    if options.cluster.is_some() {
        warnings.iter().for_each(|warning| exit::say(warning));
        let ended = runtime.block_on(node::serve(options, config, out));
        log.end();
        return ended;
    }
    let mut builder = Hub::builder().config(config.clone());
    if let Some(file) = &file {
        builder = builder.config_file(file);
    }
    #[cfg(feature = "otlp")]
    let builder = builder.trace_parent(crate::log::trace_parent);
    let prepared = match builder.prepare() {
        Ok(prepared) => prepared,
        Err(fault) => return Ok(unable(&fault)),
    };
    warnings.extend(prepared.warnings().iter().cloned());
    warnings.extend(start::allow_connections(&config));
    warnings.extend(crate::presence::missing_for(&config));
    warnings.iter().for_each(|warning| exit::say(warning));
    let ended = runtime.block_on(async {
        let running = match prepared.start().await {
            Ok(running) => running,
            Err(fault) => return Ok(unable(&fault)),
        };
        // Before anybody is told that it is there: a signal that comes then must not find it deaf.
        let signals = match Signals::new() {
            Ok(signals) => signals,
            Err(fault) => return Ok(unable(&fault)),
        };
        greet(&running, file, out)?;
        systemd::tell(systemd::READY);
        Ok(match until_stopped(running, signals, &flags, &log).await {
            Ok(()) => Exit::Good,
            Err(fault) => unable(&fault),
        })
    });
    log.end();
    ended
}

/// Where it listens, in plain lines, as soon as it does.
fn greet(running: &Running, file: Option<PathBuf>, out: &mut impl Write) -> io::Result<()> {
    if let Some(file) = file {
        writeln!(out, "Configuration: {}", file.display())?;
    }
    for address in running.addresses() {
        writeln!(out, "Listening: {}", running.url(*address))?;
    }
    for url in running.grpc_urls() {
        writeln!(out, "gRPC: {url}")?;
    }
    if let Some(address) = running.addresses().first() {
        writeln!(out, "Page: {}", running.page(*address))?;
        writeln!(out, "Paste a token on the page, so that your answers count.")?;
    }
    if let Some(socket) = running.socket() {
        writeln!(out, "Socket: {}", socket.display())?;
    }
    for line in running.news() {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "Ready. Stop with Ctrl-C.")?;
    out.flush()
}

/// Works until somebody wants it to stop, or it cannot go on.
async fn until_stopped(
    mut running: Running,
    mut signals: Signals,
    flags: &Flags,
    log: &Log,
) -> Result<(), Fault> {
    loop {
        let asked = running.asked_to_reload();
        let signal = tokio::select! {
            failed = running.failed() => return failed,
            () = asked => Signal::Reload,
            signal = signals.next() => signal,
        };
        match signal {
            Signal::Reload => {
                let reloaded = read(flags).and_then(|loaded| {
                    let said = running.reload(&loaded.config)?;
                    Ok((said, loaded.config.log.level))
                });
                match reloaded {
                    Ok((said, level)) => {
                        log.set_level(level);
                        said.iter().for_each(|sentence| exit::say(sentence));
                        let done = "Principals, policy and certificates were read again.";
                        exit::say_as(Weight::Info, done);
                    }
                    Err(fault) => exit::say(&format!("Everything stays as it was. {fault}")),
                }
            }
            Signal::Continue => {}
            Signal::Stop => {
                exit::say_as(Weight::Info, "Stopping. What runs comes to its end.");
                systemd::tell(systemd::STOPPING);
                return running.stop().await;
            }
        }
    }
}
