//! Random input for a while. Whatever is said and answered, every stream stays lawful, and the demo
//! goes on. `AAEP_SOAK_SECONDS` says for how long; `AAEP_SOAK_SEED` repeats a run.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::demo;
use crate::support::*;

/// How long it takes unless somebody wants more.
const SECONDS: u64 = 20;

/// People who listen, answer and speak at the same time.
const PEOPLE: u64 = 4;

const WORDS: [&str; 20] = [
    "balance",
    "transfer",
    "to",
    "email",
    "delete",
    "book",
    "three",
    "sentences",
    "ask me",
    "fail",
    "hand off",
    "a long job",
    "several",
    "at once",
    "give up",
    "help",
    "12.50",
    "\u{202e}évil",
    "api_key=sk-test-12345",
    "👋🏽",
];

/// A small generator of numbers that look random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn words(&mut self) -> String {
        let many = self.roll(4) + 1;
        let words = (0..many).map(|_| WORDS[self.roll(WORDS.len() as u64) as usize]);
        words.collect::<Vec<_>>().join(" ")
    }
}

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// One person: says things, sometimes nonsense, and answers some questions, some of them twice or
/// with a token of their own making.
async fn person(hub: &Hub, number: u64, mut dice: Dice, until: Instant) -> Ear {
    let mut ear = match number % 3 {
        0 => Ear::subscribe(hub.anonymous()).await,
        1 => Ear::listen(hub.anonymous()).await,
        _ => Ear::web_socket(hub, None, true).await,
    };
    let client = hub.anonymous();
    while Instant::now() < until {
        let said = match dice.roll(12) {
            0 => "nonsense".to_owned(),
            1 => json!({ "kind": "user_input", "text": 7 }).to_string(),
            2 => decision("rpl_00000000000000000000000000000000", "sub_1", "accept"),
            _ => json!({ "kind": "user_input", "text": dice.words() }).to_string(),
        };
        let _ = client.post("messages", said).await.unwrap();
        let pause = tokio::time::sleep(Duration::from_millis(dice.roll(250)));
        tokio::pin!(pause);
        loop {
            let event = tokio::select! {
                event = ear.next() => event,
                () = &mut pause => break,
            };
            let answer = ["accept", "reject"][dice.roll(2) as usize];
            match (event["type"].as_str().unwrap_or_default(), dice.roll(5)) {
                (_, 0) => {}
                ("aaep:agent.awaiting.confirmation", again) => {
                    ear.decide(&event, answer).await;
                    if again == 1 {
                        ear.decide(&event, "accept").await;
                    }
                }
                ("aaep:agent.awaiting.clarification", _) => {
                    ear.answer(&event, json!(dice.words())).await;
                }
                _ => {}
            }
        }
    }
    ear
}

// covers: T1, T12, T14, I1, I9
#[test]
fn random_input_leaves_every_stream_lawful_and_the_demo_alive() {
    let seconds = number("AAEP_SOAK_SECONDS", SECONDS);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = number("AAEP_SOAK_SEED", since.as_nanos() as u64 | 1);
    println!("AAEP_SOAK_SEED={seed}");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let hub = demo(&[]);
        let until = Instant::now() + Duration::from_secs(seconds);
        let people = (0..PEOPLE).map(|n| {
            let dice = Dice(seed.wrapping_mul(n + 1) | 1);
            person(&hub, n, dice, until)
        });
        let mut ears = futures_util::future::join_all(people).await;
        assert!(hub.is_up());
        hub.signal("INT");
        for ear in &mut ears {
            while ear.try_next().await.is_some() {}
        }
        assert_eq!(hub.ended().code(), Some(0));
        let secret = ears
            .iter()
            .flat_map(|ear| &ear.heard)
            .find(|heard| heard.contains("sk-test-12345") && heard.contains("\"event_id\""));
        assert_eq!(secret, None, "a secret that was said is not repeated");
        for (number, ear) in ears.iter().enumerate() {
            assert!(ear.heard.len() > 10, "person {number} heard {} messages", ear.heard.len());
            ear.is_lawful();
        }
    });
}
