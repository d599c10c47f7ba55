//! Nodes that cannot own the log leave it to those that can, and a node that stops hands it on.

use super::*;

/// What `psql` says to this, on the server of a test.
pub(super) fn sql(server: &postgres::Server, query: &str) -> String {
    let port = server.port.to_string();
    let arguments = ["-h", "127.0.0.1", "-p", &port, "-U", "aaep", "-d", "postgres", "-Atc", query];
    let done = std::process::Command::new("psql").args(arguments).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

// covers: I24, I33
#[test]
fn a_node_with_another_key_or_a_busy_address_does_not_start() {
    let Some(server) = server() else { return };
    let shared = Shared::new(server.address());
    let (a, _) = shared.node();
    a.logs(&["This node owns the log"]);
    let other = a.home().join("other.key");
    let bytes: Vec<u8> = (64..128).collect();
    std::fs::write(&other, bytes).unwrap();
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o600)).unwrap();
    let free = format!("127.0.0.1:{}", postgres::free_port());
    let (status, said) = shared.setup_with(&free, &other).fails();
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("Give every node of the cluster the same key"), "{said}");
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = busy.local_addr().unwrap().to_string();
    let (status, said) = shared.setup_with(&address, &shared.key).fails();
    assert_eq!(status, 2, "{said}");
    assert!(said.contains(&address) && said.contains("--cluster-address"), "{said}");
    // Nothing of that touched the one that owns the log.
    assert_eq!(sql(&server, "SELECT count(*) FROM aaep_log"), "1", "one claim");
}

/// Two nodes that cannot own the log, and one that can, which stands behind them.
// covers: I24
#[test]
fn nodes_that_cannot_own_the_log_leave_it_to_one_that_can_and_say_why_once() {
    let Some(server) = server() else { return };
    let shared = Shared::new(server.address());
    run(async {
        let (a, _) = shared.node();
        a.logs(&["This node owns the log"]);
        // Each of them was well when it started.
        let address = format!("127.0.0.1:{}", postgres::free_port());
        let busy = shared.named(&address);
        let (full, _) = shared.node();
        let (b, _) = shared.node();
        for node in [&busy, &full, &b] {
            node.logs(&["owns the log; callers are passed on"]);
        }
        let _listens = std::net::TcpListener::bind(&address).unwrap();
        let copy = find(full.home(), "heads").parent().unwrap().join("copy");
        std::fs::write(&copy, "where the copy should be").unwrap();
        let person = b.person();
        let Question { agent, asked, ear: _ear, .. } = question(&person).await;
        a.kill();
        let (view, took) = open_again(&agent, &asked).await;
        assert_eq!(view["status"], "pending", "{view}");
        assert!(took < Duration::from_secs(8), "{took:?}");
        // However often an owner ends, the sick ones never get in the way for good.
        let (c, _) = shared.node();
        c.logs(&["owns the log; callers are passed on"]);
        b.kill();
        busy.logs(&["Nobody can listen on", "tries again later"]);
        full.logs(&["copy", "tries again later"]);
        c.logs(&["This node owns the log"]);
        let (view, _) = open_again(&person.at(&c).agent(), &asked).await;
        assert_eq!(view["status"], "pending", "{view}");
        for node in [&busy, &full] {
            let told = node.log();
            let told = told.iter().filter(|line| line.contains("tries again later")).count();
            assert!(
                (1..=3).contains(&told),
                "it is said once for each owner that was lost: {told}"
            );
        }
    });
}

/// The directory of this name below another.
fn find(below: &Path, name: &str) -> PathBuf {
    let mut all = vec![below.to_owned()];
    while let Some(directory) = all.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            if entry.file_name() == name {
                return entry.path();
            }
            if entry.file_type().unwrap().is_dir() {
                all.push(entry.path());
            }
        }
    }
    panic!("there is no {name} in {}", below.display());
}

/// Two hubs that were given one address, on machines of their own: here the first is held before its
/// address could be taken a second time.
// covers: I24
#[test]
fn of_two_hubs_with_the_same_address_one_owns_the_log_and_the_other_says_so() {
    let Some(server) = server() else { return };
    let shared = Shared::new(server.address());
    run(async {
        let (setup, own) = shared.setup();
        let address = own.trim_start_matches("http://").trim_end_matches("/aaep/v1").to_owned();
        // The other one, as the store sees it: alive, under the same address.
        let a = Hub::start(setup);
        a.logs(&["This node owns the log"]);
        let person = a.person();
        let Question { agent, asked, ear, heard, .. } = question(&person).await;
        let ours = sql(&server, "SELECT node FROM aaep_lease");
        assert!(ours.starts_with(&format!("{address}#")), "{ours}");
        let until = "clock_timestamp() + interval '2 seconds'";
        let twin = format!(
            "UPDATE aaep_lease SET node = '{address}#00000000', revision = nextval('aaep_revision'), until = {until}"
        );
        // It renews as a hub does, for longer than a lease lasts.
        sql(&server, &twin);
        let claims = "SELECT count(*) FROM aaep_log";
        let renews = async {
            for _ in 0..12 {
                sql(&server, &twin);
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        };
        renews.await;
        a.logs(&["Another hub that is at work has the --cluster-address of this one", &address]);
        let before = sql(&server, claims);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(sql(&server, claims), before, "it claimed the log in the other's time");
        // The other one ends, and all goes on.
        let (view, _) = open_again(&agent, &asked).await;
        assert_eq!(view["status"], "pending", "{view}");
        drop(ear);
        let mut ear = person.reader().await;
        let again = ear.event("awaiting.confirmation").await;
        assert_eq!(again["reply_token"], heard["reply_token"]);
        ear.decide(&again, "accept").await;
        assert_eq!(agent.outcome(&asked).await, "accepted");
    });
}

// covers: I23, I24
#[test]
fn a_node_that_is_told_to_stop_hands_a_pending_question_on_at_once() {
    let Some(server) = server() else { return };
    let shared = Shared::new(server.address());
    run(async {
        let (a, b, own) = shared.pair();
        let address = own.trim_start_matches("http://").trim_end_matches("/aaep/v1").to_owned();
        let person = b.person();
        let Question { agent, asked, heard, ear, .. } = question(&person).await;
        drop(ear);
        a.signal("TERM");
        assert!(a.ended().success());
        let held = format!("SELECT count(*) FROM aaep_lease WHERE node LIKE '{address}#%'");
        assert_eq!(sql(&server, &held), "0", "the lease was not given back");
        let (view, took) = open_again(&agent, &asked).await;
        println!("open again {took:?} after the end");
        assert_eq!(view["status"], "pending", "{view}");
        let mut ear = person.reader().await;
        let again = ear.event("awaiting.confirmation").await;
        assert_eq!(again["reply_token"], heard["reply_token"]);
        ear.decide(&again, "accept").await;
        assert_eq!(agent.outcome(&asked).await, "accepted");
        assert_eq!(agent.invoke(&asked, "{}").await.status.as_u16(), 200);
    });
}
