//! Standing between two programs that talk over standard input and output.

use std::io::{self, Read, Write};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::runtime::{Builder, Handle};

use crate::exit::{Exit, say};

/// What may be on its way in one direction, in bytes.
const ROOM: usize = 64 * 1024;

/// How long a program may take to end when nobody is left.
const ENDS: Duration = Duration::from_secs(5);

/// Does the work elsewhere: this thread has standard output, so it writes.
pub(crate) fn serve<F>(
    out: &mut impl Write,
    work: impl FnOnce(DuplexStream) -> F + Send,
) -> io::Result<Exit>
where
    F: Future<Output = Exit>,
{
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (to, mut written) = duplex(ROOM);
    let pump = Builder::new_current_thread().build()?;
    thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let exit = runtime.block_on(work(to));
            // A thread may still wait for standard input.
            runtime.shutdown_background();
            exit
        });
        let mut buffer = vec![0; ROOM];
        loop {
            match pump.block_on(written.read(&mut buffer))? {
                0 => break,
                read => out.write_all(&buffer[..read]).and_then(|()| out.flush())?,
            }
        }
        Ok(worker.join().unwrap_or(Exit::Unable))
    })
}

/// Standard input, for a task: a thread reads it, because that may take forever.
pub(crate) fn input() -> DuplexStream {
    let (mut to, from) = duplex(ROOM);
    let runtime = Handle::current();
    thread::spawn(move || {
        let mut buffer = vec![0; ROOM];
        let mut stdin = io::stdin().lock();
        while let Ok(read @ 1..) = stdin.read(&mut buffer) {
            if runtime.block_on(to.write_all(&buffer[..read])).is_err() {
                return;
            }
        }
    });
    from
}

/// Starts a program with pipes; if that fails, says so.
pub(crate) fn start(
    command: &[String],
    environment: &[(&str, String)],
) -> Option<(Child, ChildStdin, ChildStdout)> {
    let (program, arguments) = command.split_first()?;
    let mut command = Command::new(program);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    match command.spawn() {
        Ok(mut child) => {
            let (to, from) = (child.stdin.take()?, child.stdout.take()?);
            Some((child, to, from))
        }
        Err(error) => {
            say(&format!("cannot start {program}: {error}. Check the command behind --."));
            None
        }
    }
}

/// The name of a program, as people know it.
pub(crate) fn name(command: &[String]) -> &str {
    command.first().and_then(|program| program.rsplit('/').next()).unwrap_or("a program")
}

/// The program's end is ours.
pub(crate) async fn ended(mut child: Child) -> Exit {
    match tokio::time::timeout(ENDS, child.wait()).await {
        Ok(Ok(status)) if status.success() => Exit::Good,
        Ok(Ok(_)) => Exit::Wrong,
        _ => {
            let _ = child.kill().await;
            Exit::Wrong
        }
    }
}
