//! The ledger against a model so simple that it can be read at a glance.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

mod world;

use aaep_engine::*;
use aaep_types::SubscriptionId;
use proptest::prelude::*;
use world::World;

const ACTIONS: usize = 4;
const WAIT: u64 = 300;
const APPROVAL: u64 = 600;

#[derive(Clone, Debug)]
enum Step {
    Ask(usize),
    Reply { action: usize, accept: bool, who: Who },
    Pass(u64),
    Invoke { action: usize, changed: bool },
    Withdraw(usize),
    Restart,
}

#[derive(Clone, Copy, Debug)]
enum Who {
    Ann,
    Bob,
    Audit,
    Agent,
}

/// What became of the latest request for an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Waiting { until: u64 },
    Approved { until: u64 },
    Expired,
    Refused,
    Spent,
}

fn step() -> impl Strategy<Value = Step> {
    let action = 0..ACTIONS;
    let who = prop_oneof![4 => Just(Who::Ann), 1 => Just(Who::Bob), 1 => Just(Who::Audit), 1 => Just(Who::Agent)];
    prop_oneof![
        3 => action.clone().prop_map(Step::Ask),
        4 => (action.clone(), any::<bool>(), who).prop_map(|(action, accept, who)| Step::Reply { action, accept, who }),
        2 => prop_oneof![Just(1), Just(40), Just(150), Just(299), Just(300)].prop_map(Step::Pass),
        3 => (action.clone(), any::<bool>()).prop_map(|(action, changed)| Step::Invoke { action, changed }),
        1 => action.prop_map(Step::Withdraw),
        1 => Just(Step::Restart),
    ]
}

struct Both {
    world: World,
    session: aaep_types::SessionId,
    requests: [Option<RequestId>; ACTIONS],
    fates: [Option<Fate>; ACTIONS],
    seconds: u64,
}

fn arguments(action: usize) -> String {
    format!("{{\"amount\":\"{action}\"}}")
}

impl Both {
    fn new() -> Self {
        let mut world = World::new();
        let session = world.open();
        Self { world, session, requests: [None; ACTIONS], fates: [None; ACTIONS], seconds: 0 }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Ask(action) => self.ask(action),
            Step::Reply { action, accept, who } => self.reply(action, accept, who),
            Step::Pass(seconds) => self.pass(seconds),
            Step::Invoke { action, changed } => self.invoke(action, changed),
            Step::Withdraw(action) => self.withdraw(action),
            Step::Restart => self.world.restart(ClockTrust::Trusted),
        }
    }

    fn ask(&mut self, action: usize) {
        let more = r#","timeout_seconds":300,"default_decision":"reject","risk_level":"high","irreversible":true"#;
        let Ok(Handled::Waiting { request, again, .. }) =
            self.world.try_ask(self.session, &arguments(action), more)
        else {
            return; // Asked too often: the model has no budget, and nothing changed.
        };
        let waiting = matches!(self.fates[action], Some(Fate::Waiting { .. }));
        assert_eq!(again, waiting, "one pending request for one action");
        if !again {
            self.requests[action] = Some(request);
            self.fates[action] = Some(Fate::Waiting { until: self.seconds + WAIT });
        }
    }

    fn reply(&mut self, action: usize, accept: bool, who: Who) {
        let Some(request) = self.requests[action] else { return };
        let (ann, phone) = (self.world.ann.clone(), self.world.phone);
        let (peer, subscription) = match who {
            Who::Ann => (ann, phone),
            Who::Bob => (
                Principal::new("bob", Role::AccessibilityConsumer, "bob"),
                SubscriptionId::from_bits(7),
            ),
            Who::Audit => {
                (Principal::new("audit", Role::Auditor, "ann"), SubscriptionId::from_bits(8))
            }
            Who::Agent => (self.world.agent.clone(), SubscriptionId::from_bits(9)),
        };
        self.world.join(&peer, subscription);
        let token = self.world.token(request);
        self.world.reply_as(&peer, subscription, &token, if accept { "accept" } else { "reject" });
        if let (Who::Ann, Some(Fate::Waiting { .. })) = (who, self.fates[action]) {
            self.fates[action] = Some(if accept {
                Fate::Approved { until: self.seconds + APPROVAL }
            } else {
                Fate::Refused
            });
        }
    }

    fn pass(&mut self, seconds: u64) {
        self.world.pass(seconds);
        self.seconds += seconds;
        for fate in self.fates.iter_mut().flatten() {
            if matches!(fate, Fate::Waiting { until } if *until <= self.seconds) {
                *fate = Fate::Refused;
            }
            if matches!(fate, Fate::Approved { until } if *until <= self.seconds) {
                *fate = Fate::Expired;
            }
        }
    }

    fn invoke(&mut self, action: usize, changed: bool) {
        let Some(request) = self.requests[action] else { return };
        let before = self.world.granted(request);
        let given = if changed { arguments(action + 100) } else { arguments(action) };
        let allowed = !changed && matches!(self.fates[action], Some(Fate::Approved { .. }));
        assert_eq!(self.world.invoke(request, Some(&given)).is_ok(), allowed);
        assert_eq!(self.world.granted(request) - before, usize::from(allowed));
        if allowed {
            self.fates[action] = Some(Fate::Spent);
        }
    }

    fn withdraw(&mut self, action: usize) {
        let Some(request) = self.requests[action] else { return };
        let agent = self.world.agent.clone();
        let after = match self.fates[action] {
            Some(Fate::Waiting { .. }) => Some(Fate::Refused),
            Some(Fate::Approved { .. }) => Some(Fate::Expired),
            _ => None,
        };
        let done = self.world.handle(Input::Withdraw { agent: &agent, request }).is_ok();
        assert_eq!(done, after.is_some());
        self.fates[action] = after.or(self.fates[action]);
    }

    fn agree(&self) {
        for (request, fate) in self.requests.iter().zip(&self.fates) {
            let (Some(request), Some(fate)) = (request, fate) else { continue };
            let status = self.world.engine.status(*request);
            let agrees = match fate {
                Fate::Waiting { .. } => status == Some(Status::Pending),
                Fate::Expired => status == Some(Status::Expired),
                Fate::Approved { .. } => {
                    matches!(status, Some(Status::Resolved { runs: true, .. }))
                }
                Fate::Refused => matches!(status, Some(Status::Resolved { runs: false, .. })),
                Fate::Spent => status == Some(Status::Invoked),
            };
            assert!(agrees, "{fate:?} against {status:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    // covers: C1, C4, C13, C14, C24, D41, T12, I1, I2, I3, I9, I12
    #[test]
    fn the_ledger_does_what_the_model_does(steps in prop::collection::vec(step(), 1..40)) {
        let mut both = Both::new();
        for step in &steps {
            both.take(step);
            both.agree();
        }
    }
}
