//! Signing in from the page, as far as no provider is needed: what is refused, and what is said.

use aaep_hub::Hub;
use aaep_transport::client::{FullResponse, HttpClient, Options};
use http::header::{CONTENT_TYPE, ORIGIN};
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Value, json};

use crate::support::{Key, config, set};

const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// Calls as the page of this origin makes them.
struct Page {
    client: HttpClient,
    origin: Option<String>,
}

impl Page {
    async fn post(&self, path: &str, body: Value) -> FullResponse {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(origin) = &self.origin {
            headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        let path = format!("/sign-in/{path}");
        self.client.request(Method::POST, &path, headers, body.to_string()).await.unwrap()
    }

    async fn says(&self, path: &str, body: Value, status: u16, text: &str) {
        let answer = self.post(path, body).await;
        let said = String::from_utf8_lossy(&answer.body);
        assert_eq!(answer.status, status, "{said}");
        assert!(said.contains(text), "{said}");
    }
}

// covers: S5, W5
#[tokio::test(flavor = "multi_thread")]
async fn only_a_page_of_the_hub_signs_in_with_a_provider_that_it_names() {
    let (place, key) = (tempfile::tempdir().unwrap(), Key::new("first"));
    let mut config = config(place.path(), &set(&[&key]));
    config.listen = vec!["127.0.0.1:0".parse().unwrap()];
    config.unix_socket.enabled = false;
    // Nobody listens there.
    config.issuers[0].issuer = "https://127.0.0.1:9".into();
    let without = config.issuers[0].clone();
    config.issuers.push(aaep_hub::config::IssuerEntry {
        name: aaep_hub::config::Label::parse("robots").unwrap(),
        ..without
    });
    config.issuers[0].sign_in =
        Some(toml::from_str("client_id = \"aaep\"\nresource = \"urn:hub\"").unwrap());
    let hub = Hub::builder().config(config).start().await.unwrap();
    let url = hub.url(hub.addresses()[0]);
    let client = || HttpClient::new(&url, Options::default()).unwrap();
    let origin = url.strip_suffix("/aaep/v1").unwrap().to_owned();
    let page = Page { client: client(), origin: Some(origin) };

    let offers = client().get("/sign-in").await.unwrap();
    let offers: Value = serde_json::from_slice(&offers.body).unwrap();
    let expected = json!({"providers": [{
        "name": "login", "issuer": "https://127.0.0.1:9", "client_id": "aaep",
        "scopes": ["openid", "offline_access"], "resource": "urn:hub",
    }]});
    assert_eq!(offers, expected, "those without `sign_in` are nobody's business");

    let begin = |provider: &str, state: &str, challenge: &str| {
        json!({
            "provider": provider, "state": state, "code_challenge": challenge,
        })
    };
    page.says("begin", begin("robots", "abc", CHALLENGE), 404, "Nobody signs in").await;
    page.says("begin", begin("other", "abc", CHALLENGE), 404, "Nobody signs in").await;
    for (state, challenge) in [
        ("", CHALLENGE),
        ("a b", CHALLENGE),
        ("abc", "plain"),
        ("abc", &CHALLENGE.replace('-', "&")),
    ] {
        page.says("begin", begin("login", state, challenge), 400, "base64url").await;
    }
    let long = "x".repeat(129);
    page.says("begin", begin("login", &long, CHALLENGE), 400, "base64url").await;
    page.says("begin", json!({"provider": "login"}), 400, "openapi").await;
    page.says("token", json!({"provider": "login"}), 400, "refresh_token").await;
    let mixed =
        json!({"provider": "login", "code": "c", "code_verifier": "v", "refresh_token": "r"});
    page.says("token", mixed, 400, "refresh_token").await;
    let large = json!({"provider": "login", "refresh_token": "r".repeat(1 << 20)});
    assert_eq!(page.post("token", large).await.status, 413);
    // What cannot be reached is said, and nothing waits for it for long.
    page.says("begin", begin("login", "abc", CHALLENGE), 502, "cannot be reached").await;

    // A program is told its own way, and a page of somebody else's is not let in.
    let program = Page { client: client(), origin: None };
    program.says("begin", begin("login", "abc", CHALLENGE), 400, "aaep login").await;
    let foreign = Page { client: client(), origin: Some("https://evil.example".into()) };
    assert_eq!(foreign.post("begin", begin("login", "abc", CHALLENGE)).await.status, 403);
    hub.stop().await.unwrap();
}
