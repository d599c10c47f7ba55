//! A store that was put back from an old copy: what it does not know any more counts for nobody.

use super::sick::sql;
use super::*;

/// Cuts the log off where it was once.
fn put_back(server: &postgres::Server, place: &str) {
    sql(server, &format!("DELETE FROM aaep_log WHERE place > {place}"));
}

fn end(server: &postgres::Server) -> String {
    sql(server, "SELECT max(place) FROM aaep_log")
}

/// A yes was given and used; then the store is put back to when the yes was not used yet, and the
/// question of another agent was not answered.
// covers: I1, I2
#[test]
fn after_an_old_copy_of_the_store_no_approval_is_used_again_and_every_question_is_rejected() {
    let Some(server) = server() else { return };
    let shared = Shared::new(server.address());
    run(async {
        let (setup, _) = shared.setup();
        let a = Hub::start(setup);
        a.logs(&["This node owns the log"]);
        let person = a.person();
        let Question { agent, session, mut ear, asked, heard } = question(&person).await;
        ear.decide(&heard, "accept").await;
        assert_eq!(agent.outcome(&asked).await, "accepted");
        let other = agent.ask_for(&session, &deletion("other.txt")).await;
        let _ = ear.event("awaiting.confirmation").await;
        let yesterday = end(&server);
        assert_eq!(agent.invoke(&asked, "{}").await.status.as_u16(), 200);
        let home = a.shared_directory();
        a.signal("TERM");
        assert!(a.ended().success());
        drop((ear, a));
        put_back(&server, &yesterday);
        let (setup, _) = shared.setup();
        let b = Hub::start_in(setup, home);
        b.logs(&["it is an old copy", "Every request that waited was rejected"]);
        let agent = person.at(&b).agent();
        let (view, _) = open_again(&agent, &other).await;
        assert_eq!(view["status"], "rejected", "{view}");
        let again = agent.invoke(&asked, "{}").await;
        assert_eq!(again.status.as_u16(), 404, "an approval was used twice: {again:?}");
        let refused = agent.try_ask(&session, &deletion("more.txt")).await;
        assert_eq!(refused.status.as_u16(), 404, "the session went on: {refused:?}");
        // What follows is in the log: the next owner need not be told again.
        let home = b.shared_directory();
        b.signal("TERM");
        assert!(b.ended().success());
        drop(b);
        let (setup, _) = shared.setup();
        let c = Hub::start_in(setup, home);
        c.logs(&["This node owns the log"]);
        assert!(!c.log().iter().any(|line| line.contains("old copy")), "{:#?}", c.log());
        assert_eq!(person.at(&c).agent().look(&other, 0).await["status"], "rejected");
    });
}

/// The node that owned the log is gone with its disk; one that only passed callers on has noted how far
/// the log was.
// covers: I2
#[test]
fn a_node_that_only_watched_notices_an_old_copy_too() {
    let Some(server) = server() else { return };
    let shared = Shared::new(server.address());
    run(async {
        let (a, b, _) = shared.pair();
        let person = b.person();
        let Question { agent, session, mut ear, asked, heard } = question(&person).await;
        let yesterday = end(&server);
        ear.decide(&heard, "reject").await;
        assert_eq!(agent.outcome(&asked).await, "rejected");
        let today = end(&server);
        // B looks every second.
        tokio::time::sleep(Duration::from_secs(3)).await;
        // The owner dies with everything it knew, and comes back in an empty directory.
        b.signal("STOP");
        a.kill();
        drop((ear, a));
        put_back(&server, &yesterday);
        assert_ne!(yesterday, today);
        b.signal("CONT");
        b.logs(&["it is an old copy", "Every request that waited was rejected"]);
        let (view, _) = open_again(&agent, &asked).await;
        assert_eq!(view["status"], "rejected", "{view}");
        let refused = agent.try_ask(&session, &deletion("more.txt")).await;
        assert_eq!(refused.status.as_u16(), 404, "the session went on: {refused:?}");
    });
}

/// A new node learns how far the log is from the store while another owns it, and goes on from there.
/// One that takes over a log that it never saw cannot know, and lets nothing of it go on.
// covers: I2
#[test]
fn a_node_that_never_saw_the_log_takes_it_for_an_old_copy() {
    let Some(server) = server() else { return };
    let shared = Shared::new(server.address());
    run(async {
        let (a, _) = shared.node();
        a.logs(&["This node owns the log"]);
        let person = a.person();
        let Question { asked, ear, .. } = question(&person).await;
        drop(ear);
        a.kill();
        // A store that was put back has no lease in force.
        sql(&server, "DELETE FROM aaep_lease");
        let (b, _) = shared.node();
        b.logs(&["may be an old copy", "Every request that waited was rejected"]);
        let (view, _) = open_again(&person.at(&b).agent(), &asked).await;
        assert_eq!(view["status"], "rejected", "{view}");
    });
}
