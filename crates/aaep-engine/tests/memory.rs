//! I22: what is settled leaves memory; only what may still be needed stays.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

mod world;

use aaep_engine::*;
use aaep_types::EventKind;
use world::World;

fn with(limits: Limits) -> World {
    let mut world = World::new();
    world.engine = Engine::new(world::secrets(), limits);
    let (ann, phone) = (world.ann.clone(), world.phone);
    world.join(&ann, phone);
    world
}

fn arguments(number: usize) -> String {
    format!(r#"{{"file":"{number:0100}"}}"#)
}

// covers: I22, I11
#[test]
fn arguments_leave_memory_when_a_request_is_settled_and_stay_while_its_call_runs() {
    let mut world = with(Limits { approval_seconds: 10, ..Limits::default() });
    let session = world.open();
    let held = |world: &World| world.engine.footprint().argument_bytes;
    let one = arguments(0).len();
    let [no, unused, used] = [0, 1, 2].map(|number| world.ask(session, &arguments(number)));
    assert_eq!(held(&world), 3 * one);
    world.reply(no, "reject");
    assert_eq!(held(&world), 2 * one);
    world.reply(unused, "accept");
    world.reply(used, "accept");
    world.invoke(used, None).unwrap();
    let call = world.others.iter().find_map(|output| match output {
        Output::Granted { call, .. } => Some(*call),
        _ => None,
    });
    let call = call.unwrap();
    assert_eq!(world.engine.spent(used).as_deref(), Some(&*arguments(2)));
    world.pass(10);
    assert_eq!((world.engine.status(unused), held(&world)), (Some(Status::Expired), one));
    // Also after a restart a repeated call gets the same bytes.
    world.restart(ClockTrust::Trusted);
    assert_eq!(world.engine.spent(used).as_deref(), Some(&*arguments(2)));
    assert_eq!(held(&world), one);
    let done = format!(
        r#"{{"tool":"transfer_funds","tool_call_id":"{call}","status":"success","summary_normal":"Sent."}}"#
    );
    world.emit(session, EventKind::ToolCompleted, &done).unwrap();
    assert_eq!((world.engine.spent(used), held(&world)), (None, 0));
}

// covers: I22
#[test]
fn what_is_known_of_settled_requests_and_ended_sessions_is_bounded() {
    let limits = Limits {
        prompts_per_window: u32::MAX,
        settled_per_session: 10,
        ended_requests_per_user: 25,
        ..Limits::default()
    };
    let mut world = with(limits);
    let mut last = RequestId::from_bits(0);
    for _ in 0..20 {
        let session = world.open();
        for number in 0..30 {
            last = world.ask(session, &arguments(number));
            world.reply(last, "reject");
            world.pass(1);
        }
        assert!(world.engine.footprint().requests <= 25 + 11);
        world.emit(session, EventKind::SessionCompleted, r#"{"summary_normal":"Done."}"#).unwrap();
    }
    let held = world.engine.footprint();
    assert!(
        held.requests <= 25 && held.ended_sessions <= 2 && held.argument_bytes == 0,
        "{held:?}"
    );
    assert!(held.timers < 1100, "{held:?}");
    // Late readers still see what came last.
    let view = world.engine.request(&world.agent, last).unwrap();
    assert!(matches!(view.status, Status::Resolved { outcome: Outcome::Rejected, runs: false }));
}

// covers: I22, T18
#[test]
fn completed_outputs_leave_memory_and_the_last_of_them_cannot_be_begun_again() {
    let mut world = with(Limits { completed_outputs: 100, ..Limits::default() });
    let session = world.open();
    let write = |world: &mut World, number: u32| {
        let output = format!(
            r#"{{"output_id":"out_{number:032x}","chunk":"x","position":0,"complete":true}}"#
        );
        world.emit(session, EventKind::OutputStreaming, &output)
    };
    for number in 0..5000 {
        write(&mut world, number).unwrap();
    }
    assert_eq!(world.engine.footprint().outputs, 100);
    assert_eq!(write(&mut world, 4999).unwrap_err().rule.id, "T18");
}
