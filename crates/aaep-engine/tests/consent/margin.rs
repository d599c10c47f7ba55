//! After a machine took over from another, whose clock may have been off.

use aaep_engine::*;

use crate::PAY;
use crate::world::World;

/// The clocks of two machines are at most so far apart.
const APART: u32 = 2;

// covers: I7, I8
#[test]
fn after_a_takeover_replies_stop_counting_sooner_and_silence_counts_later() {
    for (seconds, counts) in [(297, true), (298, false), (301, false)] {
        let mut world = World::new();
        let session = world.open();
        let request = world.ask(session, PAY);
        world.take_over(APART);
        world.pass(seconds);
        world.reply(request, "accept");
        let accepted = Some((Outcome::Accepted, true)).filter(|_| counts);
        assert_eq!(world.decided(request), accepted, "after {seconds} s");
        world.pass(302 - seconds);
        let in_the_end = accepted.or(Some((Outcome::TimedOut, false)));
        assert_eq!(world.decided(request), in_the_end, "after {seconds} s");
    }
}

// covers: I7, I8
#[test]
fn without_a_takeover_replies_count_until_the_deadline() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    world.restart(ClockTrust::Trusted);
    world.pass(299);
    world.reply(request, "accept");
    assert_eq!(world.decided(request), Some((Outcome::Accepted, true)));
}

// covers: I8, D41
#[test]
fn after_a_takeover_an_approval_ends_sooner() {
    let lives = Limits::default().approval_seconds;
    for (seconds, runs) in [(lives - 3, true), (lives - 2, false)] {
        let mut world = World::new();
        let session = world.open();
        let request = world.ask(session, PAY);
        world.reply(request, "accept");
        world.take_over(APART);
        world.pass(seconds);
        assert_eq!(world.invoke(request, None).is_ok(), runs, "after {seconds} s");
    }
}
