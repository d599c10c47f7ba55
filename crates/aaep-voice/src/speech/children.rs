//! A synthesizer that is a program: one child process for each part, its text on standard input.

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Event, Reporter, single_line};
use crate::announcer::Id;
use crate::utterance::Part;

/// How a part is spoken: the program with its options. The text goes to its standard input.
pub(super) type Spoken = Box<dyn Fn(&Part) -> Command + Send>;

/// Runs a program for each part, one after the other.
pub(super) struct Children {
    jobs: Sender<(Id, Vec<Part>)>,
    /// The number of the newest job, or of none.
    wanted: Arc<Mutex<Wanted>>,
}

#[derive(Default)]
struct Wanted {
    id: Option<Id>,
    child: Option<Child>,
}

impl Children {
    pub(super) fn start(command: Spoken, reporter: Reporter) -> Self {
        let (jobs, received) = channel();
        let wanted = Arc::<Mutex<Wanted>>::default();
        let shared = wanted.clone();
        std::thread::spawn(move || run(&received, &shared, &command, &reporter));
        Self { jobs, wanted }
    }

    pub(super) fn speak(&mut self, id: Id, parts: &[Part]) -> io::Result<()> {
        self.stop();
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).id = Some(id);
        self.jobs.send((id, parts.to_vec())).map_err(|_| io::Error::other("its thread has ended"))
    }

    pub(super) fn stop(&mut self) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.id = None;
        if let Some(child) = &mut wanted.child {
            let _ = child.kill();
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(
    jobs: &Receiver<(Id, Vec<Part>)>,
    wanted: &Mutex<Wanted>,
    command: &Spoken,
    reporter: &Reporter,
) {
    while let Ok((id, parts)) = jobs.recv() {
        let count = parts.len();
        let mut said = true;
        for (index, part) in parts.iter().enumerate() {
            reporter(Event::Part { id, index, count });
            match one(id, part, wanted, command) {
                Ok(true) => {}
                Ok(false) => {
                    said = false;
                    break;
                }
                Err(_) => return reporter(Event::Lost),
            }
        }
        if said {
            reporter(Event::Spoken(id));
        }
    }
}

/// Speaks one part; false if it is no longer wanted.
fn one(id: Id, part: &Part, wanted: &Mutex<Wanted>, command: &Spoken) -> io::Result<bool> {
    let input = {
        let mut wanted = wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted.id != Some(id) {
            return Ok(false);
        }
        let mut command = command(part);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        wanted.child = Some(child);
        input
    };
    if let Some(mut input) = input {
        // A child that was killed does not read.
        let _ = input.write_all(format!("{}\n", single_line(&part.text)).as_bytes());
    }
    loop {
        let mut held = wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(child) = &mut held.child else { return Ok(false) };
        if let Some(status) = child.try_wait()? {
            held.child = None;
            return match (held.id == Some(id), status.success()) {
                (true, false) => Err(io::Error::other("it failed")),
                (wanted, _) => Ok(wanted),
            };
        }
        drop(held);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Words a minute for a rate from -100 to 100: from 80 to 450, with 175 in the middle.
pub(super) fn words_a_minute(rate: i8) -> i32 {
    let rate = i32::from(rate.clamp(-100, 100));
    if rate < 0 { 175 + rate * 95 / 100 } else { 175 + rate * 275 / 100 }
}
