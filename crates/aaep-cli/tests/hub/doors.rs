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
