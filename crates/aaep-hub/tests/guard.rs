//! Hostile requests, and honest ones.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

use std::net::SocketAddr;

use aaep_hub::access::Via;
use aaep_hub::config::{Config, HostName, ProxyNet, WebOrigin};
use aaep_hub::guard::{Guard, GuardRefusal, bearer, content_type};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Uri};

fn guard(config: &Config, bound: &[&str]) -> Guard {
    let bound: Vec<SocketAddr> = bound.iter().map(|text| text.parse().unwrap()).collect();
    Guard::new(config, &bound)
}

fn plain() -> Guard {
    guard(&Config::default(), &["127.0.0.1:8707"])
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in pairs {
        let value = HeaderValue::from_bytes(value.as_bytes()).unwrap();
        map.append(HeaderName::try_from(*name).unwrap(), value);
    }
    map
}

fn host(guard: &Guard, host: &str) -> Result<String, GuardRefusal> {
    guard.host(&Uri::from_static("/aaep/v1/events"), &headers(&[("host", host)]))
}

const HERE: &str = "127.0.0.1:50000";

#[test]
fn a_hub_on_loopback_is_known_by_its_loopback_names_only() {
    for good in ["localhost:8707", "LocalHost:8707", "127.0.0.1:8707", "[::1]:8707"] {
        assert_eq!(host(&plain(), good), Ok(good.to_ascii_lowercase()));
    }
    let hostile = [
        "evil.example",
        "evil.example:8707",
        "localhost",
        "127.0.0.1",
        "localhost:8708",
        "localhost:",
        "localhost.:8707",
        "localhost:08707",
        "localhost:8707.evil.example",
        "localhost.evil.example:8707",
        "evil.example@localhost:8707",
        "localhost:8707@evil.example",
        "127.1:8707",
        "2130706433:8707",
        "0x7f.1:8707",
        "0.0.0.0:8707",
        "[::]:8707",
        "::1:8707",
        "[::ffff:127.0.0.1]:8707",
        "127.0.0.1:8707, evil.example",
        "localhost:8707/",
        "http://localhost:8707",
        "",
        " ",
        "*",
        "null",
        "löcalhost:8707",
        "192.168.1.7:8707",
        "127.0.0.2:8707",
    ];
    for bad in hostile {
        assert!(host(&plain(), bad).is_err(), "{bad}");
    }
}

#[test]
fn a_host_that_is_missing_doubled_or_contradicted_is_refused() {
    let check = |uri: &str, pairs: &[(&str, &str)]| {
        plain().host(&uri.parse::<Uri>().unwrap(), &headers(pairs))
    };
    let good = ("host", "localhost:8707");
    assert!(check("http://localhost:8707/x", &[good]).is_ok());
    assert_eq!(check("/x", &[]), Err(GuardRefusal::UnclearHost));
    assert_eq!(check("/x", &[good, good]), Err(GuardRefusal::UnclearHost));
    assert_eq!(check("/x", &[good, ("host", "evil.example")]), Err(GuardRefusal::UnclearHost));
    assert_eq!(check("http://evil.example/x", &[good]), Err(GuardRefusal::UnclearHost));
    let evil = ("host", "evil.example");
    assert_eq!(check("http://localhost:8707/x", &[evil]), Err(GuardRefusal::UnclearHost));
    assert_eq!(check("http://evil.example/x", &[evil]), Err(GuardRefusal::ForeignHost));
    assert_eq!(check("http://u:p@localhost:8707/x", &[good]), Err(GuardRefusal::UnclearHost));
}

#[test]
fn each_listening_address_and_allowed_host_is_known_and_nothing_else() {
    let config = Config {
        allowed_hosts: ["hub.example.org", "Other.example:444", "[2001:DB8::1]"]
            .map(|text| HostName::parse(text).unwrap())
            .into(),
        ..Config::default()
    };
    let everywhere = guard(&config, &["0.0.0.0:8707", "[2001:db8::2]:80"]);
    let good = [
        "localhost:8707",
        "hub.example.org",
        "hub.example.org:8707",
        "HUB.example.org:80",
        "other.example:444",
        "[2001:db8::1]:8707",
        "[2001:db8::1]",
        "[2001:db8::2]:80",
        "[2001:db8::2]",
    ];
    for good in good {
        assert!(host(&everywhere, good).is_ok(), "{good}");
    }
    let bad = [
        "0.0.0.0:8707",
        "other.example",
        "other.example:8707",
        "sub.hub.example.org",
        "hub.example.org:1",
        "192.0.2.1:8707",
        "localhost:80",
        "[2001:db8::2]:8707",
    ];
    for bad in bad {
        assert_eq!(host(&everywhere, bad), Err(GuardRefusal::ForeignHost), "{bad}");
    }
    let lan = guard(&Config::default(), &["192.0.2.1:80"]);
    assert!(host(&lan, "192.0.2.1").is_ok() && host(&lan, "localhost").is_err());
}

#[test]
fn a_foreign_or_null_origin_is_refused() {
    let config = Config {
        allowed_origins: vec![WebOrigin::parse("https://app.example.org").unwrap()],
        ..Config::default()
    };
    let guard = guard(&config, &["127.0.0.1:8707"]);
    let check = |pairs: &[(&str, &str)], secure| {
        let headers = headers(pairs);
        guard
            .origin(&Method::POST, &headers, "localhost:8707", secure)
            .map(|page| page.map(String::from))
    };
    let origin = |origin: &str, secure| check(&[("origin", origin)], secure);
    assert_eq!(check(&[], false), Ok(None));
    assert_eq!(origin("http://localhost:8707", false), Ok(None));
    assert_eq!(origin("https://localhost:8707", true), Ok(None));
    let allowed = "https://app.example.org";
    assert_eq!(origin(allowed, false), Ok(Some(allowed.into())));
    let hostile = [
        "null",
        "",
        "http://localhost",
        "http://localhost:3000",
        "https://localhost:8707",
        "http://127.0.0.1:8707",
        "http://evil.example",
        "http://localhost:8707.evil.example",
        "http://localhost:8707/",
        "http://localhost:8707@evil.example",
        "http://evil.example#localhost:8707",
        "httphttp://localhost:8707",
        "file://",
        "chrome-extension://abc",
        "http://app.example.org",
        "https://app.example.org:8443",
        "https://evil.app.example.org",
        "https://app.example.org.evil.example",
        "https://app.example.org http://evil.example",
        "*",
        "http://løcalhost:8707",
    ];
    for bad in hostile {
        assert_eq!(origin(bad, false), Err(GuardRefusal::ForeignOrigin), "{bad}");
    }
    assert_eq!(
        origin("http://localhost:8707", true),
        Err(GuardRefusal::ForeignOrigin),
        "plain page"
    );
    let twice = [("origin", "http://localhost:8707"), ("origin", "null")];
    assert_eq!(check(&twice, false), Err(GuardRefusal::ForeignOrigin));
}

#[test]
fn a_foreign_page_is_refused_also_where_browsers_send_no_origin() {
    let guard = plain();
    let check = |method: Method, pairs: &[(&str, &str)]| {
        guard.origin(&method, &headers(pairs), "localhost:8707", false).is_ok()
    };
    for good in ["same-origin", "none"] {
        assert!(check(Method::GET, &[("sec-fetch-site", good)]));
    }
    for bad in ["cross-site", "same-site", "", "SAME-ORIGIN, none", "else"] {
        assert!(
            !check(Method::GET, &[("sec-fetch-site", bad), ("sec-fetch-mode", "no-cors")]),
            "{bad}"
        );
    }
    let link = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ];
    assert!(check(Method::GET, &link), "somebody followed a link");
    assert!(!check(Method::POST, &link), "a form is no link");
    let frame = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "iframe"),
    ];
    assert!(!check(Method::GET, &frame), "a frame is no link");
}

#[test]
fn only_json_is_json() {
    let check = |value: &str| content_type(&headers(&[("content-type", value)]));
    let good = [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        "application/json;charset=\"UTF-8\"",
        "application/json ; x=1",
        "application/json;",
    ];
    for good in good {
        assert_eq!(check(good), Ok(()), "{good}");
    }
    let hostile = [
        "",
        "text/plain",
        "text/plain; application/json",
        "text/plain;charset=application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=application/json",
        "text/json",
        "application/jsonp",
        "application/json+x",
        "application/ld+json",
        "application/json, text/plain",
        "text/plain, application/json",
        "application/json text/plain",
        "json",
        "application/json; charset=utf-16",
        "application/json; charset=utf-7; charset=utf-8",
        "application\u{a0}/json",
    ];
    for bad in hostile {
        assert_eq!(check(bad), Err(GuardRefusal::NotJson), "{bad}");
    }
    assert_eq!(content_type(&headers(&[])), Err(GuardRefusal::NotJson));
    let twice = [("content-type", "application/json"), ("content-type", "text/plain")];
    assert_eq!(content_type(&headers(&twice)), Err(GuardRefusal::NotJson));
}

// covers: S4
#[test]
fn authorization_is_one_bearer_token_or_nothing() {
    let check = |value: &str| {
        bearer(&headers(&[("authorization", value)])).map(|token| token.map(String::from))
    };
    assert_eq!(bearer(&headers(&[])), Ok(None));
    for good in ["Bearer aaep_x", "bearer aaep_x", "BEARER aaep_x", "Bearer  aaep_x"] {
        assert_eq!(check(good), Ok(Some("aaep_x".into())), "{good}");
    }
    let hostile = [
        "",
        "Bearer",
        "Bearer ",
        "Bearer  ",
        "aaep_x",
        "Basic YTpi",
        "Basic aaep_x",
        "Bearer a b",
        "Bearer a,b",
        "Bearer\taaep_x",
        "Bearer=aaep_x",
        "Bearer, Bearer x",
        "Token aaep_x",
        "Bearer aaep_x, Bearer aaep_y",
        "Bearer \"aaep_x\"",
        "Bearer äaep_x",
    ];
    for bad in hostile {
        assert_eq!(check(bad), Err(GuardRefusal::UnclearAuthorization), "{bad}");
    }
    let twice = [("authorization", "Bearer a"), ("authorization", "Bearer a")];
    assert_eq!(bearer(&headers(&twice)), Err(GuardRefusal::UnclearAuthorization));
}

// covers: S5, W5
#[test]
fn forwarded_headers_are_believed_from_named_proxies_only() {
    let config = Config {
        behind_proxy: ["10.0.0.0/24", "127.0.0.1"]
            .map(|text| ProxyNet::parse(text).unwrap())
            .into(),
        ..Config::default()
    };
    let guard = guard(&config, &["0.0.0.0:8707"]);
    let client = |peer: &str, pairs: &[(&str, &str)]| {
        guard.client(&headers(pairs), peer.parse().unwrap(), false)
    };
    let address = |peer: &str, forwarded_for: &str| {
        let client = client(peer, &[("x-forwarded-for", forwarded_for)]).unwrap();
        assert_eq!((client.secure, client.via), (true, Via::Network));
        client.address.to_string()
    };
    let proxy = "10.0.0.1:4000";
    assert_eq!(address(proxy, "203.0.113.9"), "203.0.113.9");
    assert_eq!(address("[::ffff:10.0.0.1]:4000", "203.0.113.9"), "203.0.113.9");
    assert_eq!(address(proxy, "127.0.0.1, 203.0.113.9"), "203.0.113.9", "the client's own lies");
    assert_eq!(address(proxy, "203.0.113.9, 10.0.0.7"), "203.0.113.9", "two proxies of ours");
    assert_eq!(address(proxy, "203.0.113.9:1234"), "203.0.113.9");
    assert_eq!(address(proxy, "[2001:db8::1]:1234"), "2001:db8::1");
    assert_eq!(address(proxy, "203.0.113.9, nonsense"), "10.0.0.1");
    assert_eq!(address(proxy, ""), "10.0.0.1");
    assert_eq!(address(proxy, "127.0.0.1"), "127.0.0.1");
    let many = "10.0.0.2,".repeat(10_000);
    assert_eq!(address(proxy, &format!("203.0.113.9,{many}10.0.0.3")), "10.0.0.2");
    // On this machine, but its clients are not.
    assert_eq!(client(HERE, &[]).unwrap().via, Via::Network);
    let https = [("x-forwarded-proto", "HTTPS")];
    assert!(client(proxy, &https).is_ok());
    for plain in ["http", "", "https, http", "ws"] {
        let result = client(proxy, &[("x-forwarded-proto", plain)]);
        assert_eq!(result, Err(GuardRefusal::NotEncrypted), "{plain}");
    }
    // Somebody who is no proxy of ours says so in vain.
    let stranger = client("203.0.113.5:4000", &[("x-forwarded-for", "127.0.0.1"), https[0]]);
    assert_eq!(stranger, Err(GuardRefusal::NotEncrypted));
}

// covers: S5, W5, D4
#[test]
fn only_a_direct_connection_from_this_machine_is_local() {
    let guard = plain();
    let client = |peer: &str, tls, pairs: &[(&str, &str)]| {
        guard.client(&headers(pairs), peer.parse().unwrap(), tls)
    };
    for here in [HERE, "127.8.9.10:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        let client = client(here, false, &[]).unwrap();
        assert_eq!((client.via, client.secure), (Via::Loopback, false), "{here}");
    }
    // A proxy on this machine that nobody named.
    for trace in ["x-forwarded-for", "x-forwarded-proto", "x-real-ip", "forwarded", "via"] {
        assert_eq!(client(HERE, false, &[(trace, "x")]).unwrap().via, Via::Network, "{trace}");
    }
    for there in ["192.168.1.2:1", "[2001:db8::1]:1", "[::ffff:192.168.1.2]:1", "0.0.0.0:1"] {
        assert_eq!(client(there, false, &[]), Err(GuardRefusal::NotEncrypted), "{there}");
        let client = client(there, true, &[("x-forwarded-for", "127.0.0.1")]).unwrap();
        assert_eq!((client.via, client.secure), (Via::Network, true), "{there}");
        assert!(!client.address.is_loopback());
    }
}

// covers: W5
#[test]
fn a_request_is_admitted_only_if_every_check_passes() {
    let guard = plain();
    let json = ("content-type", "application/json");
    let good = ("host", "localhost:8707");
    let admit = |method: Method, pairs: &[(&str, &str)], peer: &str| {
        let mut request = Request::builder().method(method).uri("/aaep/v1/replies");
        *request.headers_mut().unwrap() = headers(pairs);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let admitted = guard.admit(&parts, peer.parse().unwrap(), false)?;
        Ok(admitted.bearer.map(String::from))
    };
    assert_eq!(admit(Method::GET, &[good], HERE), Ok(None));
    let token = ("authorization", "Bearer aaep_x");
    assert_eq!(admit(Method::POST, &[good, json, token], HERE), Ok(Some("aaep_x".into())));
    let cases = [
        (vec![json], HERE, GuardRefusal::UnclearHost),
        (vec![("host", "evil.example"), json], HERE, GuardRefusal::ForeignHost),
        (vec![good, json, ("origin", "null")], HERE, GuardRefusal::ForeignOrigin),
        (vec![good, ("content-type", "text/plain")], HERE, GuardRefusal::NotJson),
        (vec![good, json, ("authorization", "Basic x")], HERE, GuardRefusal::UnclearAuthorization),
        (vec![good, json], "192.168.1.2:1", GuardRefusal::NotEncrypted),
    ];
    for (pairs, peer, refused) in cases {
        assert_eq!(admit(Method::POST, &pairs, peer), Err(refused));
        assert!((400..500).contains(&refused.status().as_u16()) && !refused.to_string().is_empty());
    }
}
