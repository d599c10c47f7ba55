//! Files of one message to a line, judged a block of lines at a time on every core, in order.
//!
//! A block is judged as long as each line is one sound value. At the first that is not, what is left
//! goes to the [`Reader`](crate::reader::Reader), which knows how to frame anything; that happens once,
//! so a file with broken lines is read on one core from there on.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use memchr::{memchr_iter, memrchr};

use super::Tally;
use super::print::{Judged, Printer};
use crate::judge::Judge;
use crate::reader::{Text, trim};

/// How much is judged at a time: long enough that handing it over costs nothing, and short enough to
/// lie in a core's cache while it is read, cut into lines, and judged.
const BLOCK: usize = 256 * 1024;

/// Lines of a file, whole ones.
#[derive(Debug, Default)]
struct Block {
    bytes: Vec<u8>,
    /// The line on which it begins, from 1.
    line: u64,
    /// Messages before it.
    index: u64,
}

/// What came of a block.
#[derive(Debug, Default)]
struct BlockResult {
    printed: Vec<u8>,
    tally: Tally,
    /// Bytes that were judged; fewer than there are if a line is not one sound value.
    judged: usize,
}

/// What the reader goes on with.
#[derive(Debug)]
pub(super) struct Rest {
    pub(super) bytes: Vec<u8>,
    pub(super) line: u64,
    pub(super) index: u64,
}

/// Who judges, and how it is told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Judging<'a> {
    pub(super) judge: Judge,
    pub(super) printer: &'a Printer<'a>,
    pub(super) max_bytes: usize,
}

/// Judges a file from its beginning. Gives what is left, if anything is: from there on it is not one
/// sound value to a line. The outer error is one of writing, the inner one of reading.
pub(super) fn judge(
    input: &mut impl Read,
    judging: Judging<'_>,
    tally: &mut Tally,
    out: &mut impl Write,
) -> io::Result<io::Result<Option<Rest>>> {
    let mut blocks = Blocks::new(input);
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let (jobs, waiting) = mpsc::channel::<Job>();
    let waiting = Mutex::new(waiting);
    thread::scope(|scope| {
        let jobs = jobs; // dropped at the end of this, which ends the workers
        let mut workers = 0;
        let mut pending: VecDeque<(Arc<Block>, Option<mpsc::Receiver<BlockResult>>)> =
            VecDeque::new();
        let mut failed = None;
        loop {
            while pending.len() < 2 * cores && failed.is_none() {
                let block = match blocks.next(judging.max_bytes) {
                    Ok(Some(block)) => Arc::new(block),
                    Ok(None) => break,
                    Err(error) => {
                        // What was read before is told first.
                        failed = Some(error);
                        break;
                    }
                };
                // A short file is not worth a thread.
                let alone = cores == 1 || (pending.is_empty() && blocks.ended);
                let done = (!alone).then(|| {
                    if workers < cores {
                        workers += 1;
                        scope.spawn(|| work(&waiting, judging));
                    }
                    let (done, receiver) = mpsc::channel();
                    jobs.send((block.clone(), done)).ok().map(|()| receiver)
                });
                pending.push_back((block, done.flatten()));
            }
            let Some((block, done)) = pending.pop_front() else { break };
            let outcome = done.and_then(|done| done.recv().ok());
            let outcome = outcome.unwrap_or_else(|| judge_block(&block, judging));
            out.write_all(&outcome.printed)?;
            let judged = &block.bytes[..outcome.judged];
            if judged.len() < block.bytes.len() {
                let line = block.line + memchr_iter(b'\n', judged).count() as u64;
                let index = block.index + outcome.tally.messages;
                *tally += outcome.tally;
                let mut bytes = block.bytes[judged.len()..].to_vec();
                pending.iter().for_each(|(block, _)| bytes.extend_from_slice(&block.bytes));
                bytes.append(&mut blocks.left);
                return Ok(Ok(Some(Rest { bytes, line, index })));
            }
            *tally += outcome.tally;
            blocks.spare.extend(Arc::into_inner(block).map(|block| block.bytes));
        }
        let Blocks { left: bytes, line, index, .. } = blocks;
        match failed {
            Some(error) => Ok(Err(error)),
            None if bytes.is_empty() => Ok(Ok(None)),
            // A line that is longer than a message may be.
            None => Ok(Ok(Some(Rest { bytes, line, index }))),
        }
    })
}

type Job = (Arc<Block>, mpsc::Sender<BlockResult>);

fn work(jobs: &Mutex<mpsc::Receiver<Job>>, judging: Judging<'_>) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((block, done)) = job else { return };
        let outcome = judge_block(&block, judging);
        drop(block);
        // Nobody waits for it if a block before it was not what it seemed.
        let _ = done.send(outcome);
    }
}

fn judge_block(block: &Block, judging: Judging<'_>) -> BlockResult {
    let mut outcome = BlockResult::default();
    let mut line = block.line;
    while outcome.judged < block.bytes.len() {
        let rest = &block.bytes[outcome.judged..];
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let text = trim(&rest[..end]);
        if !text.is_empty() && judge_line(text, line, block.index, judging, &mut outcome).is_none()
        {
            break;
        }
        line += 1;
        outcome.judged += (end + 1).min(rest.len());
    }
    outcome
}

/// Judges one line, if it is one sound value and nothing else.
fn judge_line(
    text: &[u8],
    line: u64,
    before: u64,
    judging: Judging<'_>,
    outcome: &mut BlockResult,
) -> Option<()> {
    let framed = text.starts_with(b"{") && text.ends_with(b"}") && text.len() <= judging.max_bytes;
    let verdict = framed.then(|| judging.judge.judge(text)).filter(|verdict| verdict.is_sound)?;
    let complaints = verdict.complaints.as_slice();
    let index = before + outcome.tally.messages;
    let judged = Judged { line, index, text: Text::Message(text), complaints };
    // Writing to memory does not fail.
    judging.printer.print(&judged, &mut outcome.printed).ok()?;
    outcome.tally.add(complaints);
    Some(())
}

/// Cuts a file into blocks.
struct Blocks<'a, R> {
    input: &'a mut R,
    line: u64,
    index: u64,
    /// The beginning of a line whose end was not read yet.
    left: Vec<u8>,
    /// Room of blocks that are done with, to be filled again: the kernel clears every fresh page.
    spare: Vec<Vec<u8>>,
    ended: bool,
}

impl<'a, R: Read> Blocks<'a, R> {
    fn new(input: &'a mut R) -> Self {
        Self { input, line: 1, index: 0, left: Vec::new(), spare: Vec::new(), ended: false }
    }

    /// The next block; none at the end, and none if a line is longer than a message may be.
    fn next(&mut self, max_bytes: usize) -> io::Result<Option<Block>> {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes.append(&mut self.left);
        let mut end = None;
        while !self.ended && end.is_none() {
            let before = bytes.len();
            if before > max_bytes.saturating_add(BLOCK) {
                self.left = bytes;
                return Ok(None);
            }
            // More than is read, so that its end is seen without making room for more.
            bytes.reserve(BLOCK + BLOCK / 16);
            let read = self.input.by_ref().take(BLOCK as u64).read_to_end(&mut bytes)?;
            self.ended = read < BLOCK;
            end = memrchr(b'\n', &bytes[before..]).map(|at| before + at + 1);
        }
        if !self.ended {
            let end = end.unwrap_or(bytes.len());
            self.left.extend_from_slice(&bytes[end..]);
            bytes.truncate(end);
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        let block = Block { line: self.line, index: self.index, bytes };
        let mut start = 0;
        for end in memchr_iter(b'\n', &block.bytes) {
            self.line += 1;
            self.index += u64::from(!trim(&block.bytes[start..end]).is_empty());
            start = end + 1;
        }
        self.index += u64::from(!trim(&block.bytes[start..]).is_empty());
        Ok(Some(block))
    }
}

#[cfg(test)]
mod tests {
    use super::super::print::Manner;
    use super::*;
    use crate::input::Source;
    use aaep_types::Limits;

    const GOOD: &str = r#"{"type":"confirmation.reply","reply_token":"rpl_1","subscription_id":"sub_1","decision":"accept","timestamp":"2026-05-24T14:22:11.342Z"}"#;

    fn judged(text: &str) -> (String, Tally, Option<Rest>) {
        let source = Source::StandardInput;
        let printer = Printer::new(&source, Manner::Json).unwrap();
        let limits = Limits::default();
        let judge_by = Judge::Rules(limits);
        let judging = Judging { judge: judge_by, printer: &printer, max_bytes: limits.max_bytes };
        let (mut tally, mut out) = (Tally::default(), Vec::new());
        let rest = judge(&mut text.as_bytes(), judging, &mut tally, &mut out).unwrap().unwrap();
        (String::from_utf8(out).unwrap(), tally, rest)
    }

    #[test]
    fn messages_come_out_in_the_order_of_the_file_however_many_cores_judge_them() {
        // Several blocks, with blank lines, and a last line without its end.
        let count = 4 * BLOCK / GOOD.len();
        let text = format!("{GOOD}\n\n").repeat(count) + GOOD;
        let (out, tally, rest) = judged(&text);
        assert!(rest.is_none());
        assert_eq!((tally.messages, tally.invalid), (count as u64 + 1, 0));
        for (number, line) in out.lines().enumerate() {
            let place = format!("{{\"file\":\"-\",\"line\":{},\"index\":{number},", 2 * number + 1);
            assert!(line.starts_with(&place), "{line}");
        }
        assert_eq!(out.lines().count(), count + 1);
    }

    #[test]
    fn what_is_not_one_value_to_a_line_is_left_from_its_line_on() {
        let count = 2 * BLOCK / GOOD.len();
        let broken = format!("{GOOD}\n").repeat(count) + "{\"a\":\n1}\n" + GOOD + "\n";
        let (out, tally, rest) = judged(&broken);
        let rest = rest.unwrap();
        assert_eq!(out.lines().count(), count);
        assert_eq!((tally.messages, rest.index), (count as u64, count as u64));
        assert_eq!(rest.line, count as u64 + 1);
        assert_eq!(rest.bytes, format!("{{\"a\":\n1}}\n{GOOD}\n").as_bytes());
        for whole in ["[1,2]", "\u{feff}{}", "12"] {
            assert_eq!(judged(whole).2.unwrap().bytes, whole.as_bytes());
        }
    }
}
