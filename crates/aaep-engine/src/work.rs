//! Counts how many things the engine looks at, in its own tests: what others hold must not matter.

#[cfg(test)]
thread_local! {
    static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// One more thing was looked at.
pub(crate) fn count() {
    #[cfg(test)]
    LOOKED_AT.set(LOOKED_AT.get() + 1);
}

/// How many things were looked at meanwhile.
#[cfg(test)]
pub(crate) fn counted<T>(work: impl FnOnce() -> T) -> usize {
    let before = LOOKED_AT.get();
    let _ = work();
    LOOKED_AT.get() - before
}

#[cfg(test)]
mod tests {
    use aaep_types::{DescribedBy, EventKind, LanguageTag, SessionId, SubscriptionId, Timestamp};

    use super::counted;
    use crate::*;

    const NOW: Boot = Boot(1_000_000);

    fn now() -> Now {
        Now { boot: NOW, wall: Timestamp::from_millis(1_779_632_531_342).unwrap() }
    }

    fn drain(engine: &mut Engine, delivery: &mut Delivery) {
        while let Some(output) = engine.poll_output() {
            match output {
                Output::Append { number, .. } => {
                    engine.handle(Input::Persisted { number }, now()).unwrap();
                }
                Output::Event(event) => delivery.offer(&event, NOW).unwrap(),
                _ => {}
            }
            while delivery.poll_output(NOW).is_some() {}
        }
    }

    fn user(engine: &mut Engine, delivery: &mut Delivery, number: u128) -> (Principal, SessionId) {
        let name = format!("user{number}");
        let (agent, phone) = (
            Principal::new(&format!("agent of {name}"), Role::Agent, &name),
            Principal::new(&format!("phone of {name}"), Role::AccessibilityConsumer, &name),
        );
        let subscription = SubscriptionId::from_bits(number);
        let joined = Input::Joined { peer: &phone, subscription, confirms: true, clarifies: true };
        engine.handle(joined, now()).unwrap();
        let terms = aaep_shaping::Terms::new(&aaep_types::handshake::Capabilities::none());
        delivery.subscribe(subscription, &phone, terms, NOW);
        delivery.attach(subscription, &phone, None, NOW);
        let open = Open {
            agent: &agent,
            producer: r#"{"agent_id":"x"}"#,
            summary: "Working.",
            language: LanguageTag::parse("en").unwrap(),
            lease_seconds: 1000,
            payload: "",
        };
        let Handled::Session(session) = engine.handle(Input::Open(open), now()).unwrap() else {
            panic!()
        };
        ask(engine, &agent, session, "1");
        drain(engine, delivery);
        (agent, session)
    }

    fn ask(engine: &mut Engine, agent: &Principal, session: SessionId, arguments: &str) {
        let ask = Ask {
            agent,
            session,
            question: &AgentQuestion::read(
                EventKind::AwaitingConfirmation,
                "pay",
                arguments,
                r#"{"action":"Pay.","consequence":"Gone.","timeout_seconds":300,"default_decision":"reject","risk_level":"high","irreversible":true}"#,
            ),
            described_by: DescribedBy::Agent,
        };
        engine.handle(Input::Ask(ask), now()).unwrap();
    }

    /// What is looked at for an ask, an event and a disconnect of one user among so many others.
    fn work_among(others: u128) -> [usize; 3] {
        let (mut engine, mut delivery): (Engine, Delivery) = (
            Engine::new(Secrets { seed: [1; 32], token_key: [2; 32] }, Limits::default()),
            Delivery::new(Limits::default()),
        );
        let (agent, session) = user(&mut engine, &mut delivery, 1);
        for other in 2..2 + others {
            user(&mut engine, &mut delivery, other);
        }
        let asking = counted(|| ask(&mut engine, &agent, session, "2"));
        let hearing = counted(|| drain(&mut engine, &mut delivery));
        let subscription = SubscriptionId::from_bits(1);
        let leaving = counted(|| engine.handle(Input::Lost { subscription }, now()).unwrap());
        [asking, hearing, leaving]
    }

    /// What is looked at when somebody leaves whose agent has asked so much, while another one stays.
    fn work_of_leaving(sessions: usize) -> usize {
        let secrets = Secrets { seed: [1; 32], token_key: [2; 32] };
        let mut engine: Engine = Engine::new(secrets, Limits::default());
        let mut delivery: Delivery = Delivery::new(Limits::default());
        let (agent, _) = user(&mut engine, &mut delivery, 1);
        let phone = Principal::new("phone of user1", Role::AccessibilityConsumer, "user1");
        for number in 2..66 {
            let subscription = SubscriptionId::from_bits(number);
            let joined =
                Input::Joined { peer: &phone, subscription, confirms: true, clarifies: true };
            engine.handle(joined, now()).unwrap();
        }
        for _ in 0..sessions {
            let open = Open {
                agent: &agent,
                producer: r#"{"agent_id":"x"}"#,
                summary: "Working.",
                language: LanguageTag::parse("en").unwrap(),
                lease_seconds: 1000,
                payload: "",
            };
            let Ok(Handled::Session(session)) = engine.handle(Input::Open(open), now()) else {
                panic!()
            };
            ask(&mut engine, &agent, session, "1");
        }
        let subscription = SubscriptionId::from_bits(1);
        counted(|| engine.handle(Input::Left { subscription }, now()).unwrap())
    }

    // covers: I29
    #[test]
    fn leaving_costs_the_same_however_much_the_own_agent_has_asked() {
        let few = work_of_leaving(2);
        assert!(few > 0);
        assert_eq!(few, work_of_leaving(150));
    }

    // covers: I29
    #[test]
    fn asking_hearing_and_leaving_look_at_ones_own_alone_however_many_others_there_are() {
        let few = work_among(10);
        assert!(few.iter().all(|work| *work > 0), "{few:?}");
        assert_eq!(few, work_among(1000));
    }
}
