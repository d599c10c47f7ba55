//! Every byte of a reference journal flipped once, every prefix, every torn write, on the simulated
//! disk and with the engine's own records: noticed or repaired, and never a wrong accept.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

use aaep_engine::RequestId;
use aaep_engine::*;
use aaep_sim::disk::{Disk, Fate};
use aaep_store::{Entry, Journal, JournalFault};
use aaep_types::{DescribedBy, EventKind, LanguageTag, ReplyToken, SubscriptionId, Timestamp};

fn phone() -> SubscriptionId {
    SubscriptionId::from_bits(1)
}

fn secrets() -> Secrets {
    Secrets { seed: [3; 32], token_key: [5; 32] }
}

fn now() -> Now {
    Now { boot: Boot(1_000_000), wall: Timestamp::from_millis(1_779_632_531_342).unwrap() }
}

/// A day's work as records: three requests, of which one is accepted and run, one rejected, and one
/// waits.
struct Day {
    engine: Engine,
    entries: Vec<Entry>,
    tokens: Vec<ReplyToken>,
    requests: Vec<RequestId>,
}

impl Day {
    fn handle(&mut self, input: Input<'_>) -> Handled {
        let answer = self.engine.handle(input, now()).unwrap();
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Append { number, bytes } => {
                    self.entries.push(Entry { number, bytes });
                    self.engine.handle(Input::Persisted { number }, now()).unwrap();
                }
                Output::Event(event) => {
                    let at = event.json.find("\"rpl_");
                    let token =
                        |at: usize| ReplyToken::parse(&event.json[at + 1..at + 37]).unwrap();
                    self.tokens.extend(at.map(token));
                }
                _ => {}
            }
        }
        answer
    }

    fn reply(&mut self, request: usize, decision: &str) {
        let ann = Principal::new("ann's phone", Role::AccessibilityConsumer, "ann");
        let (token, phone, stamp) = (self.tokens[request], phone(), now().wall);
        let reply = format!(
            r#"{{"type":"confirmation.reply","reply_token":"{}","decision":"{decision}","subscription_id":"{phone}","timestamp":"{stamp}"}}"#,
            token.as_str()
        );
        let message = SubscriberMessage::parse(reply.as_bytes()).unwrap();
        self.handle(Input::Message { peer: &ann, message: &message, call: 1 });
    }

    fn new() -> Self {
        let engine = Engine::new(secrets(), Limits::default());
        let (entries, tokens, requests) = (Vec::new(), Vec::new(), Vec::new());
        let mut day = Self { engine, entries, tokens, requests };
        let agent = Principal::new("bank-agent", Role::Agent, "ann");
        let ann = Principal::new("ann's phone", Role::AccessibilityConsumer, "ann");
        let (peer, subscription) = (&ann, phone());
        day.handle(Input::Joined { peer, subscription, confirms: true, clarifies: true });
        let opened = day.handle(Input::Open(Open {
            agent: &agent,
            producer: r#"{"agent_id":"bank-agent"}"#,
            summary: "Moving money.",
            language: LanguageTag::parse("en").unwrap(),
            lease_seconds: 100_000,
            payload: "",
        }));
        let Handled::Session(session) = opened else { panic!("a session") };
        for amount in ["800", "20", "1"] {
            let asked = day.handle(Input::Ask(Ask {
                agent: &agent,
                session,
                question: &AgentQuestion::read(
                    EventKind::AwaitingConfirmation,
                    "transfer",
                    &format!(r#"{{"euros":"{amount}"}}"#),
                    r#"{"action":"Send them.","consequence":"They are gone.","timeout_seconds":300,
                    "default_decision":"reject","risk_level":"high","irreversible":true}"#,
                ),
                described_by: DescribedBy::Agent,
            }));
            let Handled::Waiting { request, .. } = asked else { panic!("a request") };
            day.requests.push(request);
        }
        day.reply(0, "accept");
        let request = day.requests[0];
        day.handle(Input::Invoke { agent: &agent, request, arguments: None });
        day.reply(1, "reject");
        day
    }

    /// Its records, each written on its own, the first few of them synced.
    fn on_disk(&self, synced: usize) -> Disk {
        let mut disk = Disk::default();
        for (index, entry) in self.entries.iter().enumerate() {
            if index == synced {
                disk.sync().unwrap();
            }
            disk.write(&entry.bytes).unwrap();
        }
        if synced >= self.entries.len() {
            disk.sync().unwrap();
        }
        disk
    }

    /// Starts from a disk that is believed: it holds a beginning of the day, and every request stands
    /// as that beginning says.
    fn is_believed(&self, disk: &mut Disk) -> usize {
        let records = disk.read().unwrap();
        let count = records.len();
        for (record, entry) in records.iter().zip(&self.entries) {
            assert_eq!(*record, entry.bytes, "a record that nobody wrote");
        }
        let stand = |records: &mut dyn Iterator<Item = &[u8]>| -> Vec<Option<Status>> {
            let trust = ClockTrust::Trusted;
            let engine =
                Engine::<Sound>::recover(secrets(), Limits::default(), records, trust, now());
            let engine = engine.unwrap_or_else(|_| panic!("whole records are taken"));
            self.requests.iter().map(|request| engine.status(*request)).collect()
        };
        let found = stand(&mut records.iter().map(Vec::as_slice));
        assert_eq!(found, stand(&mut self.entries.iter().map(|entry| &*entry.bytes).take(count)));
        // The second was never accepted, the third never answered, the first accepted once.
        let accepted = |status: &Option<Status>| match status {
            Some(Status::Resolved { runs, .. }) => *runs,
            Some(Status::Invoked | Status::Completed | Status::Unknown) => true,
            _ => false,
        };
        assert!(!found[1..].iter().any(accepted), "{found:?}");
        count
    }
}

// covers: I1, I2, I3
#[test]
fn a_flipped_byte_of_what_was_synced_is_a_fault_wherever_it_is() {
    let day = Day::new();
    let whole = day.on_disk(usize::MAX);
    for byte in 0..whole.synced() {
        let mut disk = whole.clone();
        disk.rot(byte * 8 + byte % 8);
        assert!(matches!(disk.open(), Err(JournalFault::Damaged { .. })), "byte {byte}");
    }
    assert_eq!(day.is_believed(&mut whole.clone()), day.entries.len());
}

// covers: I1, I2, I3
#[test]
fn after_a_power_loss_every_torn_or_damaged_write_is_cut_off() {
    let day = Day::new();
    for synced in 0..day.entries.len() {
        let length = day.entries[synced].bytes.len();
        let torn = (0..=length).map(Fate::Torn);
        let flipped = (0..length * 8).step_by(8).map(|bit| Fate::Flipped(bit + bit / 8 % 8));
        for fate in torn.chain(flipped) {
            // What was written after it is there, and must not be believed.
            let mut disk = day.on_disk(synced);
            disk.lose_power(|index, _| if index == 0 { fate } else { Fate::Kept });
            // Where it was torn zeros stand, which may be what stood there.
            let bytes = &day.entries[synced].bytes;
            let is_whole =
                matches!(fate, Fate::Torn(at) if bytes[at..].iter().all(|byte| *byte == 0));
            let expected = if is_whole { day.entries.len() } else { synced };
            assert_eq!(day.is_believed(&mut disk), expected, "{fate:?} of record {synced}");
        }
    }
}

// covers: I1, I2, I3
#[test]
fn every_prefix_is_a_beginning_of_the_day_and_no_more() {
    let day = Day::new();
    let whole: Vec<u8> = day.entries.iter().flat_map(|entry| entry.bytes.clone()).collect();
    for length in 0..=whole.len() {
        let mut disk = Disk::default();
        disk.write(&whole[..length]).unwrap();
        let kept = day.is_believed(&mut disk);
        let bytes: usize = day.entries[..kept].iter().map(|entry| entry.bytes.len()).sum();
        let next = day.entries.get(kept).map_or(usize::MAX, |entry| entry.bytes.len());
        assert!(bytes <= length && length - bytes < next, "{length}");
        // If so much had been synced, then a part of a record is a fault and not an end.
        let mut promised = Disk::default();
        promised.write(&whole[..length]).unwrap();
        promised.sync().unwrap();
        assert_eq!(promised.open().is_ok(), bytes == length, "{length}");
    }
}
