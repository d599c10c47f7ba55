//! Behind the real nginx and the real Caddy, with the configurations of `packaging/proxy`.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aaep_transport::link::Options as LinkOptions;
use aaep_transport::ws;

use crate::skipped::skipped;
use crate::support::*;

/// A proxy in front of a hub, ended with this.
struct Proxy {
    child: Child,
    port: u16,
    pem: Vec<u8>,
    files: tempfile::TempDir,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.files.path().join("log"));
            eprintln!("--- the proxy's log ---\n{}", log.unwrap_or_default());
        }
    }
}

/// Where a program is; says that the test is skipped where there is none, unless it has to be there.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<_> = std::env::split_paths(&path).collect();
    places.push("/usr/sbin".into());
    let found = places.into_iter().map(|place| place.join(name)).find(|file| file.is_file());
    if found.is_none() {
        assert!(std::env::var_os("AAEP_PROXIES").is_none(), "{name} is not installed");
        skipped(&format!("{name} is not installed"));
    }
    found
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A file of `packaging/proxy`, with these words in the place of those that everybody changes.
fn configuration(name: &str, changes: &[(&str, &str)]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/proxy");
    let mut text = std::fs::read_to_string(folder.join(name)).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{name} has no {from}");
        text = text.replace(from, to);
    }
    text
}

/// A hub that expects its clients through a proxy on this port.
fn hub_behind(port: u16) -> std::sync::Arc<Hub> {
    let toml = format!("behind_proxy = [\"127.0.0.1\"]\nallowed_hosts = [\"localhost:{port}\"]\n");
    Hub::start(Setup::default().toml(&toml))
}

impl Proxy {
    /// Starts one by this command, once its files are there.
    fn start(port: u16, command: impl FnOnce(&Path) -> Command) -> Self {
        let files = tempfile::tempdir().unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let key = files.path().join("key.pem");
        std::fs::write(files.path().join("certificate.pem"), made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
        let mut command = command(files.path());
        let log = std::fs::File::create(files.path().join("log")).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        let child = command.spawn().unwrap();
        let mut proxy = Self { child, port, pem: made.cert.pem().into_bytes(), files };
        let until = Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(proxy.child.try_wait().unwrap().is_none(), "the proxy ended");
            assert!(Instant::now() < until, "the proxy does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        proxy
    }

    fn nginx(hub: &Hub, port: u16, more: &[(&str, &str)]) -> Option<Self> {
        let nginx = program("nginx")?;
        let upstream = hub.address().to_string();
        Some(Self::start(port, |files| {
            let (listen, place) = (format!("listen 127.0.0.1:{port} ssl"), files.display());
            let (pem, key) = (format!("{place}/certificate.pem"), format!("{place}/key.pem"));
            let usual = [
                ("listen 443 ssl", &*listen),
                ("127.0.0.1:8707;\n    keepalive", &*format!("{upstream};\n    keepalive")),
                ("server_name hub.example.org", "server_name localhost"),
                ("/etc/aaep/certificate.pem", &*pem),
                ("/etc/aaep/key.pem", &*key),
            ]
            .map(|(from, to)| (from.to_owned(), to.to_owned()));
            let all: Vec<_> = usual.iter().map(|(from, to)| (&**from, &**to)).collect();
            let part = configuration("nginx.conf", &[&all, more].concat());
            let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                .map(|kind| format!("{kind}_temp_path {place}/{kind};\n"))
                .concat();
            let whole = format!(
                "daemon off;\nmaster_process off;\npid {place}/pid;\nerror_log stderr info;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}{part}\n}}\n"
            );
            std::fs::write(files.join("nginx.conf"), whole).unwrap();
            let mut command = Command::new(nginx);
            command.args(["-e", "stderr", "-p"]).arg(files).arg("-c").arg(files.join("nginx.conf"));
            command
        }))
    }

    fn caddy(hub: &Hub, port: u16) -> Option<Self> {
        let caddy = program("caddy")?;
        let upstream = hub.address().to_string();
        Some(Self::start(port, |files| {
            let place = files.display();
            let site = format!("\nhttps://localhost:{port} {{\n\tbind 127.0.0.1\n");
            let tls = format!("tls {place}/certificate.pem {place}/key.pem");
            let part = configuration(
                "Caddyfile",
                &[
                    ("\nhub.example.org {\n", &site),
                    ("tls /etc/aaep/certificate.pem /etc/aaep/key.pem", &tls),
                    ("reverse_proxy 127.0.0.1:8707", &format!("reverse_proxy {upstream}")),
                ],
            );
            let options = "{\n\tadmin off\n\tauto_https disable_redirects\n}\n";
            std::fs::write(files.join("Caddyfile"), format!("{options}{part}")).unwrap();
            let mut command = Command::new(caddy);
            command.args(["run", "--adapter", "caddyfile", "--config"]);
            command.arg(files.join("Caddyfile"));
            command.env("HOME", files).env("XDG_DATA_HOME", files).env("XDG_CONFIG_HOME", files);
            command
        }))
    }

    fn options(&self, token: Option<&str>) -> aaep_transport::client::Options {
        aaep_transport::client::Options {
            token: token.map(|token| aaep_transport::client::Token::parse(token).unwrap()),
            extra_roots_pem: Some(self.pem.clone()),
            ..Default::default()
        }
    }

    /// A client of the hub, through the proxy, under this name.
    fn client(&self, name: &str, path: &str, token: Option<&str>) -> HttpClient {
        let base = format!("https://{name}:{}{path}", self.port);
        HttpClient::new(&base, self.options(token)).unwrap()
    }

    fn api(&self, token: &str) -> HttpClient {
        self.client("localhost", "/aaep/v1", Some(token))
    }

    /// Everything that people and agents do.
    async fn carries_everything(&self, hub: &std::sync::Arc<Hub>) {
        let person = hub.person();
        let agent = Agent::new(self.api(&person.token("agent")), &person.name("agent"));
        // Over server-sent events, which are not held back.
        let mut reader = Ear::subscribe(self.api(&person.token("reader"))).await;
        // Over a WebSocket.
        let url = format!("wss://localhost:{}/aaep/v1/ws", self.port);
        let options = self.options(Some(&person.token("phone")));
        let link = ws::connect(&url, true, &options, LinkOptions::default()).await.unwrap();
        let mut phone = Ear::over(link, true).await;
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        reader.event("awaiting.confirmation").await;
        let question = phone.event("awaiting.confirmation").await;
        phone.decide(&question, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
        agent.complete(&session).await;
        reader.event("session.completed").await;
        // What subscribers are told is where they can come: scheme, host and port.
        let asked = self.api(&person.token("reader"));
        let answer = asked.post("subscriptions", crate::support::request(everything())).await;
        let accepted = String::from_utf8(answer.unwrap().body.to_vec()).unwrap();
        let manifest = format!("https://localhost:{}/.well-known/aaep-manifest.json", self.port);
        assert!(accepted.contains(&manifest), "{accepted}");
        let found = self.client("localhost", "/", None).get(".well-known/aaep-manifest.json").await;
        assert_eq!(found.unwrap().status, 200);
        let page = self.client("localhost", "/", None).get("").await.unwrap();
        assert!(String::from_utf8_lossy(&page.body).contains("<aaep-subscriber"));
        // The proxy is on this machine, and its clients are not: without a token nobody comes in.
        let nobody = self.client("localhost", "/aaep/v1", None).get("events").await.unwrap();
        assert_eq!(nobody.status, 401);
        let id = nobody.headers["x-request-id"].to_str().unwrap().to_owned();
        assert!(id.len() > 16, "the proxy's own id is longer than the hub's: {id}");
        hub.logs(&["a request was refused", &id, "no token"]);
    }
}

// covers: W5
#[test]
fn nginx_carries_everything() {
    run(async {
        let port = free_port();
        let hub = hub_behind(port);
        let Some(proxy) = Proxy::nginx(&hub, port, &[]) else { return };
        proxy.carries_everything(&hub).await;
        // By a name that the hub does not know: the answer and the log say which and what to do.
        let lost = proxy.client("127.0.0.1", "/aaep/v1", Some(&hub.person().token("reader")));
        let lost = lost.post("subscriptions", request(everything())).await.unwrap();
        let text = String::from_utf8_lossy(&lost.body).into_owned();
        assert!(lost.status == 403 && text.contains("allowed_hosts"), "{text}");
        let id = lost.headers["x-request-id"].to_str().unwrap();
        hub.logs(&["a request was refused", "allowed_hosts", id]);
    });
}

#[test]
fn caddy_carries_everything() {
    run(async {
        let port = free_port();
        let hub = hub_behind(port);
        let Some(proxy) = Proxy::caddy(&hub, port) else { return };
        proxy.carries_everything(&hub).await;
    });
}

#[test]
fn an_nginx_that_does_not_pass_the_host_on_is_told_from_a_missing_token() {
    run(async {
        let port = free_port();
        let hub = hub_behind(port);
        let without = [("proxy_set_header Host              $http_host;", "")];
        let Some(proxy) = Proxy::nginx(&hub, port, &without) else { return };
        let asked = proxy.api(&hub.person().token("reader"));
        let refused = asked.post("subscriptions", request(everything())).await.unwrap();
        let text = String::from_utf8_lossy(&refused.body).into_owned();
        assert!(refused.status == 403 && text.contains("allowed_hosts"), "{text}");
        let id = refused.headers["x-request-id"].to_str().unwrap();
        hub.logs(&["a request was refused", "allowed_hosts", id]);
    });
}
