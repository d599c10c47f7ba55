//! The hub as the benchmark runs it: nothing on disk, bounds that do not bite, two tokens.

use std::future::pending;

use aaep_hub::Hub;
use aaep_hub::access::Token;
use aaep_hub::config::Config;

/// The token of the one who listens and answers, and that of the agents. Both are known to the
/// load, and worth nothing outside of it.
pub const LISTENER: &str = "aaep_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB";
pub const AGENT: &str = "aaep_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

pub async fn serve() {
    let hash = |token| Token::parse(token).expect("a token").hash().to_hex();
    let text = format!(
        r#"
        listen = ["127.0.0.1:0"]
        grpc = ["127.0.0.1:0"]
        ephemeral = true
        allowed_hosts = ["localhost"]
        [hub]
        languages = ["en", "fr"]
        [development]
        # The load asks and answers, as one process.
        own_replies = true
        [unix_socket]
        enabled = false
        [limits]
        connections = 20000
        connections_per_address = 20000
        subscriptions = 20000
        subscriptions_per_user = 20000
        subscriptions_per_principal = 20000
        prompts_per_window = 4000000
        replies_per_second = 4000000
        calls_per_session = 10000000
        [[principals]]
        name = "reader"
        role = "accessibility_consumer"
        user = "someone"
        token_sha256 = "{}"
        [[principals]]
        name = "worker"
        role = "agent"
        user = "someone"
        token_sha256 = "{}"
        "#,
        hash(LISTENER),
        hash(AGENT),
    );
    let config: Config = toml::from_str(&text).expect("a configuration");
    let running = Hub::builder().config(config).start().await.expect("a hub");
    let grpc = running.grpc_urls().next().expect("an address for gRPC");
    println!("{} {grpc}", running.addresses()[0]);
    pending::<()>().await;
}
