//! The page as the hub serves it: to whom, with which headers, and how it gets its token.

use crate::support::*;

const POLICY: &str = "content-security-policy: default-src 'none'; script-src 'self'";

fn get(hub: &Hub, path: &str, headers: &[(&str, &str)]) -> Reply {
    let raw = Raw::connect(hub);
    let head = raw.head("GET", path, None, headers) + "\r\n";
    Raw::once(hub, head)
}

// covers: S5
#[test]
fn the_page_is_there_with_a_strict_policy_and_everything_it_loads_is_the_hubs() {
    let hub = Hub::shared();
    let page = get(&hub, "/", &[]);
    assert_eq!(page.status, 200);
    for header in [
        POLICY,
        "require-trusted-types-for 'script'",
        "frame-ancestors 'none'",
        "referrer-policy: no-referrer",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
    ] {
        assert!(page.head.contains(header), "{header}\n{}", page.head);
    }
    assert!(page.text().contains("<aaep-subscriber base=\"/aaep/v1\">"));
    for (path, kind) in [
        ("/page/aaep-subscriber.js", "text/javascript; charset=utf-8"),
        ("/page/styles.css", "text/css; charset=utf-8"),
        ("/page/messages/ar/said.json", "application/json"),
        ("/page/alike.json", "application/json"),
    ] {
        let file = get(&hub, path, &[]);
        assert_eq!(file.status, 200, "{path}");
        assert!(file.head.contains(&format!("content-type: {kind}")), "{}", file.head);
        let etag = file.head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
        let again = get(&hub, path, &[("if-none-match", &format!("\"other\", {etag}"))]);
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
    }
    for nowhere in
        ["/page/", "/page/index.html", "/page/../Cargo.toml", "/page/messages/en/terminal.json"]
    {
        assert_eq!(get(&hub, nowhere, &[]).status, 404, "{nowhere}");
    }
}

// covers: S5, W5
#[test]
fn other_sites_may_load_the_files_and_nothing_else() {
    let hub = Hub::shared();
    for (name, value) in
        [("origin", "https://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")]
    {
        let file = get(&hub, "/page/aaep-subscriber.js", &[(name, value)]);
        assert_eq!(file.status, 200, "{value}");
        assert!(file.head.contains("access-control-allow-origin: *"), "{}", file.head);
        assert_eq!(get(&hub, "/", &[(name, value)]).status, 403, "{value}");
        let raw = Raw::connect(&hub);
        let post = raw.post("page/token", None, "{\"code\":\"x\"}");
        let post = post.replacen("\r\n", &format!("\r\n{name}: {value}\r\n"), 1);
        assert_eq!(Raw::once(&hub, post).status, 403, "{value}");
    }
    // A page that pointed its own name here gets nothing at all.
    let request = "GET /page/aaep-subscriber.js HTTP/1.1\r\nhost: evil.example\r\n\r\n";
    assert_eq!(Raw::once(&hub, request).status, 403);
}

// covers: S4, S5
#[test]
fn a_code_that_nobody_was_given_is_worth_nothing() {
    let hub = Hub::shared();
    let ask = |body: &str| Raw::once(&hub, Raw::connect(&hub).post("page/token", None, body));
    assert_eq!(ask("{\"code\":\"guess\"}").status, 401);
    for malformed in ["", "{}", "[]", "{\"code\":7}", "code=x"] {
        assert_eq!(ask(malformed).status, 400, "{malformed}");
    }
    assert_eq!(ask(&format!("{{\"code\":\"{}\"}}", "x".repeat(600))).status, 413);
}

// covers: D9
#[test]
fn a_page_of_an_allowed_origin_may_read_the_servers_clock() {
    let hub = Hub::start(Setup::default().toml("allowed_origins = [\"https://friend.example\"]"));
    let raw = Raw::connect(&hub);
    let asked = [("origin", "https://friend.example"), ("access-control-request-method", "POST")];
    let allowed = Raw::once(&hub, raw.head("OPTIONS", "subscriptions", None, &asked) + "\r\n");
    assert_eq!(allowed.status, 204);
    for part in ["authorization", "content-type", "last-event-id"] {
        assert!(allowed.head.contains(part), "{}", allowed.head);
    }
    let events = get(&hub, "/healthz", &[("origin", "https://friend.example")]);
    assert!(events.head.contains("access-control-expose-headers: date"), "{}", events.head);
}
