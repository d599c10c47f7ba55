//! Who gets in: hosts, origins, content types, tokens; and nothing of a body before that is clear.

use crate::support::*;

/// A POST that opens a session, with other headers than usual.
fn opening(raw: &Raw, host: &str, headers: &str) -> String {
    let body = r#"{"producer":{"agent_id":"page"},"summary_normal":"Hello."}"#;
    let _ = raw;
    format!(
        "POST /aaep/v1/agent/sessions HTTP/1.1\r\n{host}{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

const JSON: &str = "content-type: application/json\r\n";

// covers: S5, W5
#[test]
fn a_web_page_gets_nowhere() {
    let hub = Hub::start(Setup::default().toml("allowed_origins = [\"https://friend.example\"]"));
    let address = hub.address();
    let port = address.port();
    let host = format!("host: {address}\r\n");
    let cases: Vec<(String, String, u16)> = vec![
        // DNS rebinding: the page's own name points here.
        (format!("host: evil.example:{port}\r\n"), JSON.into(), 403),
        ("host: evil.example\r\n".into(), JSON.into(), 403),
        (format!("host: 127.0.0.1.evil.example:{port}\r\n"), JSON.into(), 403),
        ("host: 127.0.0.1:1\r\n".into(), JSON.into(), 403),
        ("host: \r\n".into(), JSON.into(), 403),
        (String::new(), JSON.into(), 400),
        (format!("{host}host: evil.example\r\n"), JSON.into(), 400),
        // Cross-site requests.
        (host.clone(), format!("{JSON}origin: https://evil.example\r\n"), 403),
        (host.clone(), format!("{JSON}origin: null\r\n"), 403),
        (host.clone(), format!("{JSON}origin: \r\n"), 403),
        (host.clone(), format!("{JSON}origin: https://{address}\r\n"), 403),
        (host.clone(), format!("{JSON}origin: http://{address}.evil.example\r\n"), 403),
        (host.clone(), format!("{JSON}origin: http://{address}\r\norigin: null\r\n"), 403),
        (host.clone(), format!("{JSON}sec-fetch-site: cross-site\r\n"), 403),
        (host.clone(), "content-type: text/plain\r\n".into(), 415),
        (host.clone(), "content-type: application/x-www-form-urlencoded\r\n".into(), 415),
        (host.clone(), "content-type: text/plain; x=application/json\r\n".into(), 415),
        (host.clone(), "content-type: application/json; charset=utf-16\r\n".into(), 415),
        (host.clone(), String::new(), 415),
        (host.clone(), format!("{JSON}content-type: text/plain\r\n"), 415),
        // A proxy that nobody named passes somebody on.
        (host.clone(), format!("{JSON}x-forwarded-for: 192.0.2.1\r\n"), 401),
        (host.clone(), format!("{JSON}via: 1.1 somewhere\r\n"), 401),
        // What is fine.
        (host.clone(), format!("{JSON}origin: http://{address}\r\n"), 201),
        (format!("host: localhost:{port}\r\n"), JSON.into(), 201),
        (host.clone(), format!("{JSON}origin: https://friend.example\r\n"), 201),
        (host.clone(), "content-type: Application/JSON; charset=UTF-8\r\n".into(), 201),
    ];
    for (host, headers, status) in cases {
        let raw = Raw::connect(&hub);
        let reply = Raw::once(&hub, opening(&raw, &host, &headers));
        assert_eq!(reply.status, status, "{host:?} {headers:?} {}", reply.text());
        let allowed = reply.head.contains("access-control-allow-origin");
        assert_eq!(allowed, headers.contains("friend"), "{headers:?}");
    }
    run(async {
        let counted = hub.outside(None).get("metrics").await.unwrap();
        let counted = String::from_utf8(counted.body.to_vec()).unwrap();
        assert!(counted.contains("\naaep_sessions_total 4\n"), "{counted}");
    });
}

// covers: S5, W9
#[test]
fn a_web_page_opens_no_web_socket_and_reads_no_stream() {
    let hub = Hub::shared();
    let upgrade = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    for (path, headers) in [("ws", &upgrade[..]), ("events", &[]), ("/metrics", &[]), ("/", &[])] {
        for origin in ["https://evil.example", "null", "http://localhost"] {
            let mut raw = Raw::connect(&hub);
            let headers = [headers, &[("origin", origin)]].concat();
            raw.send(raw.head("GET", path, None, &headers) + "\r\n");
            let reply = raw.reply();
            assert_eq!(reply.status, 403, "{path} {origin}");
            assert!(!reply.head.contains("access-control"), "{}", reply.head);
            let mut raw = Raw::connect(&hub);
            let asked = [("origin", origin), ("access-control-request-method", "POST")];
            raw.send(raw.head("OPTIONS", path, None, &asked) + "\r\n");
            assert_eq!(raw.reply().status, 403, "{path} {origin}");
        }
    }
    let mut raw = Raw::connect(&hub);
    raw.send(raw.head("GET", "ws", None, &upgrade) + "\r\n");
    assert_eq!(raw.reply().status, 101);
    let mut raw = Raw::connect(&hub);
    let other = [&upgrade[..], &[("sec-websocket-protocol", "chat, mqtt")]].concat();
    raw.send(raw.head("GET", "ws", None, &other) + "\r\n");
    assert_eq!(raw.reply().status, 400);
}

// covers: D5, S5, S6
#[test]
fn whoever_may_not_come_in_is_told_before_a_byte_of_the_body_is_read() {
    let hub = Hub::shared();
    let reader = hub.person().token("reader");
    let long = [("content-type", "application/json"), ("content-length", "1000000")];
    let plain = [("content-type", "text/plain"), ("content-length", "1000000")];
    for (path, token, headers, status) in [
        ("replies", Some(token("nobody")), long, 401),
        ("agent/sessions", Some(reader), long, 403),
        ("agent/sessions", None, plain, 415),
    ] {
        // The body never comes, and the answer does.
        let mut raw = Raw::connect(&hub);
        raw.send(raw.head("POST", path, token.as_deref(), &headers) + "\r\n");
        assert_eq!(raw.reply().status, status, "{path}");
        // Nor is it asked for.
        let mut raw = Raw::connect(&hub);
        let expecting = [&headers[..], &[("expect", "100-continue")]].concat();
        raw.send(raw.head("POST", path, token.as_deref(), &expecting) + "\r\n");
        assert_eq!(raw.reply().status, status, "{path}");
    }
}

// covers: S4, S5, W5
#[test]
fn a_token_that_is_wrong_opens_nothing_not_even_what_needs_none() {
    let hub = Hub::shared();
    let good = hub.person().token("reader");
    let malformed = [
        "Basic YW5uOmFubg==".to_owned(),
        "Bearer".into(),
        "Bearer ".into(),
        format!("Bearer {good} {good}"),
        format!("Bearer {good}, Bearer {good}"),
        format!("Token {good}"),
        format!("Bearer {}", &good[..47]),
        format!("Bearer {good}x"),
        format!("Bearer {}", good.to_uppercase()),
        format!("Bearer {}", token("nobody")),
    ];
    for value in malformed {
        let mut raw = Raw::connect(&hub);
        raw.send(raw.head("GET", "events", None, &[("authorization", &value)]) + "\r\n");
        assert_eq!(raw.reply().status, 401, "{value}");
    }
    let mut raw = Raw::connect(&hub);
    let twice = [("authorization", &*format!("Bearer {good}")), ("authorization", "Bearer x")];
    raw.send(raw.head("GET", "events", None, &twice) + "\r\n");
    assert_eq!(raw.reply().status, 401);
    // In the address or a cookie it is no token at all, and loopback is only `local`.
    let mut raw = Raw::connect(&hub);
    let cookie = format!("authorization={good}");
    let path = format!("/metrics?access_token={good}");
    raw.send(raw.head("GET", &path, None, &[("cookie", &cookie)]) + "\r\n");
    assert_eq!(raw.reply().status, 200);
}

// covers: S5
#[test]
fn loopback_can_be_made_to_demand_tokens() {
    run(async {
        let hub = Hub::start(Setup::default().toml("loopback_without_credentials = false"));
        for path in ["events", "agent/inputs"] {
            assert_eq!(hub.anonymous().get(path).await.unwrap().status, 401, "{path}");
        }
        assert_eq!(hub.outside(None).get("metrics").await.unwrap().status, 401);
        assert_eq!(hub.outside(None).get("healthz").await.unwrap().status, 200);
        let reader = hub.person().token("reader");
        assert_eq!(hub.outside(Some(&reader)).get("metrics").await.unwrap().status, 403);
        let auditor = token("auditor");
        assert_eq!(hub.outside(Some(&auditor)).get("metrics").await.unwrap().status, 200);
        // The Unix socket knows its user, and needs none.
        let mut ear = Ear::unix(&hub).await;
        ear.send(
            &json!({ "type": "subscription.close", "subscription_id": ear.subscription })
                .to_string(),
        )
        .await;
        assert_eq!(ear.until_end().await, Vec::<Value>::new());
    });
}

/// What browsers send by themselves, without a word of the user: no `Origin`, no token.
const BY_BROWSERS: [&[(&str, &str)]; 9] = [
    // A link on a foreign page, window.open, a form, a redirect.
    &[
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ],
    // The same from a page on another port of this machine.
    &[
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ],
    // A link in a mail or a chat, a bookmark, the address bar.
    &[("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate"), ("sec-fetch-user", "?1")],
    // A frame, an image, a script, a fetch whose answer nobody reads, a preload.
    &[
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "iframe"),
    ],
    &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image")],
    &[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "script")],
    &[
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "no-cors"),
        ("accept", "application/json"),
    ],
    &[
        ("sec-fetch-site", "same-origin"),
        ("sec-fetch-mode", "no-cors"),
        ("sec-purpose", "prefetch"),
    ],
    // A browser that does not say how the request came to be.
    &[("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"), ("accept", "application/json")],
];

/// What programs send: curl, Python, Node, the page in a browser.
const BY_PROGRAMS: [&[(&str, &str)]; 4] = [
    &[("user-agent", "curl/8.14.1"), ("accept", "*/*")],
    &[("user-agent", "Python-urllib/3.13"), ("accept-encoding", "identity")],
    &[("user-agent", "node"), ("accept", "*/*"), ("sec-fetch-mode", "cors")],
    &[("user-agent", "Mozilla/5.0"), ("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors")],
];

// covers: S5, W5
#[test]
fn no_link_or_image_of_a_web_page_reaches_the_api() {
    let toml = "[development]\nlocal_replies = true";
    let hub = Hub::start(Setup::default().toml(toml));
    let status = |path: &str, headers: &[(&str, &str)]| {
        let mut raw = Raw::connect(&hub);
        raw.send(raw.head("GET", path, None, headers) + "\r\n");
        raw.reply()
    };
    // An agent without a token shows a secret of its own. Here the browser shows it as well, so that
    // nothing but what it says of itself stands in its way.
    let raw = Raw::connect(&hub);
    let opened = Raw::once(&hub, opening(&raw, &format!("host: {}\r\n", hub.address()), JSON));
    let opened: Value = serde_json::from_slice(opened.body.as_ref()).unwrap();
    let secret = text(&opened, "session_secret").to_owned();
    let status = |path: &str, headers: &[(&str, &str)]| {
        status(path, &[headers, &[("aaep-session-secret", &*secret)]].concat())
    };
    // From the first look on, what people say is kept for the agent.
    assert_eq!(status("agent/inputs", BY_PROGRAMS[0]).status, 200);
    let said = r#"{"kind":"user_input","text":"Hello."}"#;
    run(async {
        let posted = hub.anonymous().post("messages", said.to_owned()).await.unwrap();
        assert_eq!(posted.status, 202, "{posted:?}");
    });
    let request = format!("agent/requests/req_{}", "0".repeat(32));
    let session = "agent/sessions/sess_00000000000000000000000000000000";
    for headers in BY_BROWSERS {
        for path in ["agent/inputs", "agent/inputs?wait=1", &request, session, "events", "ws"] {
            let reply = status(path, headers);
            assert_eq!(reply.status, 403, "{path} {headers:?} {}", reply.text());
        }
    }
    // Nobody took what was said; now a program does.
    let reply = status("agent/inputs", BY_PROGRAMS[1]);
    assert!(reply.status == 200 && reply.text().contains("Hello."), "{}", reply.text());
    for headers in BY_PROGRAMS {
        assert_eq!(status("agent/inputs", headers).status, 200, "{headers:?}");
        assert_eq!(status(&request, headers).status, 404, "{headers:?}");
    }
    // What people may look at in a browser, they may follow a link to.
    for path in ["/", "/healthz", "/readyz", "/metrics", "/openapi.json"] {
        assert_eq!(status(path, BY_BROWSERS[0]).status, 200, "{path}");
    }
}

// covers: S5
#[test]
fn wrong_page_codes_slow_the_guesser_down() {
    let hub = Hub::start(Setup::default());
    let guess = |code: &str| {
        let body = format!(r#"{{"code":"{code}"}}"#);
        let length = body.len().to_string();
        let mut raw = Raw::connect(&hub);
        let headers = [("content-type", "application/json"), ("content-length", &*length)];
        raw.send(raw.head("POST", "page/token", None, &headers) + "\r\n" + &body);
        raw.reply().status
    };
    let started = std::time::Instant::now();
    for _ in 0..9 {
        assert_eq!(guess("guess"), 401);
    }
    // Four of them waited: 0.1, 0.2, 0.4 and 0.8 seconds.
    let took = started.elapsed();
    assert!(took >= std::time::Duration::from_millis(1500), "{took:?}");
}
