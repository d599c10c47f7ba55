//! Mutual TLS: who comes by certificate, until when, and what becomes of streams when things change.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aaep_transport::client::{ClientIdentity, Options, Token};
use aaep_transport::grpc::GrpcClient;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, ExtendedKeyUsagePurpose,
    IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SanType, SerialNumber,
};

use crate::support::*;

const HOUR: Duration = Duration::from_secs(3600);

/// An authority, and what it has issued.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate with its key, and its number.
struct Issued {
    identity: ClientIdentity,
    number: u64,
    sha256: String,
}

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    Authority { issuer: Issuer::new(params, key), pem }
}

impl Authority {
    /// A certificate with this name, good for so long.
    fn issue(&self, number: u64, name: SanType, life: Duration) -> Issued {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = vec![name];
        params.serial_number = Some(SerialNumber::from(number));
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let now = SystemTime::now();
        (params.not_before, params.not_after) = ((now - HOUR).into(), (now + life).into());
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        use sha2::Digest;
        let hash = sha2::Sha256::digest(certificate.der());
        let sha256 = hash.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":");
        let identity = ClientIdentity {
            chain_pem: certificate.pem().into_bytes(),
            key_pem: key.serialize_pem().into_bytes(),
        };
        Issued { identity, number, sha256 }
    }

    fn revoke(&self, numbers: &[u64], life: Duration) -> String {
        let now = SystemTime::now();
        let revoked = numbers.iter().map(|number| RevokedCertParams {
            serial_number: SerialNumber::from(*number),
            revocation_time: (now - HOUR).into(),
            reason_code: None,
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: (now - 2 * HOUR).into(),
            next_update: (now - HOUR + life).into(),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).unwrap().pem().unwrap()
    }
}

fn email(name: &str) -> SanType {
    SanType::Rfc822Name(format!("{name}@example.org").try_into().unwrap())
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    std::fs::write(path, bytes).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
}

/// A hub with TLS of its own, and clients vouched for by another authority.
struct Room {
    hub: Arc<Hub>,
    files: tempfile::TempDir,
    server: Authority,
    clients: Authority,
}

impl Room {
    fn new(principals: &str, revoked: Option<&[u64]>) -> Self {
        Self::with(authority("clients"), principals, revoked)
    }

    fn with(clients: Authority, principals: &str, revoked: Option<&[u64]>) -> Self {
        let (files, server) = (tempfile::tempdir().unwrap(), authority("server"));
        let place = |name: &str| files.path().join(name);
        let name = SanType::IpAddress([127, 0, 0, 1].into());
        let own = server.issue(1, name, 24 * HOUR);
        write(&place("certificate.pem"), &own.identity.chain_pem);
        write(&place("key.pem"), &own.identity.key_pem);
        write(&place("clients.pem"), &clients.pem);
        let mut toml = format!(
            "[tls]\ncertificate = {:?}\nkey = {:?}\nclient_ca = {:?}\n",
            place("certificate.pem"),
            place("key.pem"),
            place("clients.pem")
        );
        if let Some(revoked) = revoked {
            write(&place("revoked.pem"), clients.revoke(revoked, 24 * HOUR));
            toml += &format!("client_crl = {:?}\n", place("revoked.pem"));
        }
        let setup = Setup::default().set("AAEP_GRPC", "127.0.0.1:0");
        let hub = Hub::start(setup.toml(&toml).principals(principals));
        Self { hub, files, server, clients }
    }

    fn options(&self, issued: Option<&Issued>) -> Options {
        Options {
            extra_roots_pem: Some(self.server.pem.clone().into_bytes()),
            identity: issued.map(|issued| issued.identity.clone()),
            ..Options::default()
        }
    }

    fn client(&self, issued: Option<&Issued>) -> HttpClient {
        HttpClient::new(&self.hub.base(), self.options(issued)).unwrap()
    }

    /// Whether it gets no connection, or no answer: within the second in which a certificate expires, TLS
    /// still takes it.
    async fn shuts_out(&self, issued: &Issued) -> bool {
        self.client(Some(issued)).get("status").await.map_or(true, |answer| answer.status == 401)
    }

    /// Says what was revoked, and has the hub read it.
    fn revoke(&self, numbers: &[u64]) {
        write(&self.file("revoked.pem"), self.clients.revoke(numbers, 24 * HOUR));
        self.reload();
    }

    fn reload(&self) {
        let before = self.hub.log().len();
        self.hub.signal("HUP");
        self.hub.logs_after(before, &["were read again"]);
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }
}

fn principal(name: &str, role: &str, by: &str) -> String {
    format!("[[principals]]\nname = {name:?}\nrole = {role:?}\nuser = \"ann\"\n{by}\n")
}

// covers: S4, S5, W5, W11
#[test]
fn whoever_shows_a_certificate_is_its_principal_or_nobody() {
    run(async {
        let clients = authority("clients");
        let agent = clients.issue(7, email("agent"), 24 * HOUR);
        let by_hash = format!("certificate_sha256 = {:?}", agent.sha256);
        let principals = principal("bank", "agent", &by_hash)
            + &principal(
                "phone",
                "accessibility_consumer",
                "certificate_name = \"email:Ann@example.org\"",
            )
            + &principal("service", "auditor", "certificate_name = \"uri:spiffe://bank/audit\"");
        let room = Room::with(clients, &principals, None);
        let phone = room.clients.issue(8, email("ann"), 24 * HOUR);
        let spiffe = SanType::URI("spiffe://bank/audit".try_into().unwrap());
        let auditor = room.clients.issue(9, spiffe, 24 * HOUR);
        let grpc_url = room.hub.grpc();
        assert!(grpc_url.starts_with("grpcs://"), "{grpc_url}");
        // One asks, one answers, over certificates alone.
        let asking = Agent::new(room.client(Some(&agent)), "bank");
        let mut ear = Ear::subscribe(room.client(Some(&phone))).await;
        let asked = asking.ask(&asking.open().await).await;
        let question = ear.event("awaiting.confirmation").await;
        ear.decide(&question, "accept").await;
        assert_eq!(asking.outcome(&asked).await, "accepted");
        // Over gRPC the certificate says the same.
        let grpc = |issued: Option<&Issued>| GrpcClient::connect(&grpc_url, room.options(issued));
        let terms = request(everything());
        let answer = grpc(Some(&phone)).await.unwrap().open(terms.clone()).await.unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["type"], "subscription.accepted", "{answer}");
        // And an agent cannot answer.
        let answer = grpc(Some(&agent)).await.unwrap().open(terms.clone()).await.unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let granted = &answer["honored_capabilities"];
        assert_eq!(granted["supports_confirmation_reply"], false, "{answer}");
        let forged = authority("clients").issue(8, email("ann"), 24 * HOUR);
        let forged = match grpc(Some(&forged)).await {
            Ok(mut client) => client.open(terms).await.map(drop),
            Err(error) => Err(error),
        };
        assert!(forged.is_err(), "another authority vouches for nobody");
        assert_eq!(room.client(Some(&auditor)).get("status").await.unwrap().status, 200);
        // Roles hold: an agent does not become a listener's answer, nor the other way round.
        let opening = json!({"producer": {"agent_id": "x"}, "summary_normal": "Looking."});
        let opened = room.client(Some(&phone)).post("agent/sessions", opening.to_string()).await;
        assert_eq!(opened.unwrap().status, 403);
        // Vouched for and unknown: nobody, also on this machine.
        let stranger = room.clients.issue(10, email("bob"), 24 * HOUR);
        assert_eq!(room.client(Some(&stranger)).get("status").await.unwrap().status, 401);
        // A wrong token beside a good certificate is a wrong token.
        let mut options = room.options(Some(&phone));
        options.token = Some(Token::parse(&format!("aaep_{}", "w".repeat(43))).unwrap());
        let client = HttpClient::new(&room.hub.base(), options).unwrap();
        assert_eq!(client.get("status").await.unwrap().status, 401);
        // The right name from another authority, and one that is over: no connection at all.
        let forged = authority("clients").issue(8, email("ann"), 24 * HOUR);
        assert!(room.client(Some(&forged)).get("status").await.is_err());
        let over = room.clients.issue(11, email("ann"), Duration::ZERO);
        assert!(room.shuts_out(&over).await);
        // Without a certificate everything is as before: this machine, without a token.
        assert_eq!(room.client(None).get("status").await.unwrap().status, 200);
        assert_ne!(agent.number, phone.number);
    });
}

// covers: S4
#[test]
fn a_revoked_certificate_ends_its_streams_at_once_and_no_others() {
    run(async {
        let by = |name: &str| format!("certificate_name = \"email:{name}@example.org\"");
        let principals = principal("phone", "accessibility_consumer", &by("ann"))
            + &principal("tablet", "accessibility_consumer", &by("tab"))
            + &principal("bank", "agent", &by("bank"));
        let room = Room::new(&principals, Some(&[99]));
        let [phone, tablet, bank] = [("ann", 1), ("tab", 2), ("bank", 3)]
            .map(|(name, number)| room.clients.issue(number, email(name), 24 * HOUR));
        let mut lost = Ear::subscribe(room.client(Some(&phone))).await;
        let mut kept = Ear::subscribe(room.client(Some(&tablet))).await;
        let kept_open = room.client(Some(&phone));
        assert_eq!(kept_open.get("status").await.unwrap().status, 200);
        let agent = Agent::new(room.client(Some(&bank)), "bank");
        let session = agent.open().await;
        // A new certificate of the server's own, and other revocations, in one reload.
        let name = SanType::IpAddress([127, 0, 0, 1].into());
        let own = room.server.issue(50, name, 24 * HOUR);
        write(&room.file("certificate.pem"), &own.identity.chain_pem);
        write(&room.file("key.pem"), &own.identity.key_pem);
        room.revoke(&[99, phone.number]);
        lost.until_end().await;
        // On the connection that it had, and on a new one.
        assert!(kept_open.get("status").await.is_ok_and(|answer| answer.status == 401));
        assert!(room.client(Some(&phone)).get("status").await.is_err());
        // The others' streams were not touched: what is asked now is heard and answered.
        let request = agent.ask(&session).await;
        let question = kept.event("awaiting.confirmation").await;
        kept.decide(&question, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
        // A list that is out of date lets nobody in by certificate.
        write(&room.file("revoked.pem"), room.clients.revoke(&[], Duration::from_secs(60)));
        room.reload();
        kept.until_end().await;
        assert!(room.client(Some(&tablet)).get("status").await.is_err());
    });
}

// covers: S4
#[test]
fn a_certificate_that_expires_ends_its_stream_and_a_new_one_goes_on() {
    run(async {
        let by = |name: &str| format!("certificate_name = \"email:{name}@example.org\"");
        let principals = principal("phone", "accessibility_consumer", &by("ann"))
            + &principal("bank", "agent", &by("bank"));
        let room = Room::new(&principals, None);
        let short = room.clients.issue(1, email("ann"), Duration::from_secs(15));
        let bank = room.clients.issue(2, email("bank"), 24 * HOUR);
        let agent = Agent::new(room.client(Some(&bank)), "bank");
        let session = agent.open().await;
        let mut ear = Ear::subscribe(room.client(Some(&short))).await;
        ear.event("session.started").await;
        ear.until_end().await;
        let request = agent.ask(&session).await;
        assert!(room.shuts_out(&short).await);
        // The subscription waits for its owner, who comes back with a new certificate.
        let long = room.clients.issue(3, email("ann"), 24 * HOUR);
        let last = ear.last_event_id();
        let mut back =
            Ear::attach(room.client(Some(&long)), &ear.subscription, last.as_deref()).await;
        let question = back.event("awaiting.confirmation").await;
        back.decide(&question, "reject").await;
        assert_eq!(agent.outcome(&request).await, "rejected");
    });
}

#[test]
fn the_command_line_shows_a_certificate_to_listen_and_to_ask() {
    let by = |name: &str| format!("certificate_name = \"email:{name}@example.org\"");
    let principals = principal("phone", "accessibility_consumer", &by("ann"))
        + &principal("bank", "agent", &by("bank"));
    let room = Room::new(&principals, None);
    for (number, name) in [(1, "ann"), (2, "bank")] {
        let issued = room.clients.issue(number, email(name), 24 * HOUR);
        write(&room.file(&format!("{name}.pem")), &issued.identity.chain_pem);
        write(&room.file(&format!("{name}.key")), &issued.identity.key_pem);
    }
    write(&room.file("server.pem"), &room.server.pem);
    let command = |name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
        command.env_clear().env("HOME", room.files.path()).stdin(Stdio::null());
        command.args([if name == "ann" { "listen" } else { "ask" }, "--cert"]);
        command.arg(room.file(&format!("{name}.pem"))).arg("--key");
        command.arg(room.file(&format!("{name}.key"))).arg("--ca").arg(room.file("server.pem"));
        command
    };
    let mut listener = command("ann");
    listener.args(["--once", "--json", &room.hub.base()]).stdin(Stdio::piped());
    let mut listener = listener.stdout(Stdio::piped()).spawn().unwrap();
    let mut answers = listener.stdin.take().unwrap();
    let lines = std::io::BufReader::new(listener.stdout.take().unwrap());
    let asker = {
        let mut ask = command("bank");
        ask.args(["--hub", &room.hub.base(), "--risk", "low", "--undone", "yes", "Go?"]);
        ask.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for line in std::io::BufRead::lines(lines).map_while(Result::ok) {
        let line: Value = serde_json::from_str(&line).unwrap();
        if line["happening"] == "asked" {
            let answer = json!({"request": 1, "answer": "accept", "certain": true});
            std::io::Write::write_all(&mut answers, format!("{answer}\n").as_bytes()).unwrap();
        }
    }
    let asked = asker.wait_with_output().unwrap();
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let _ = listener.wait();
    // One without the other is no identity.
    let mut half = Command::new(env!("CARGO_BIN_EXE_aaep"));
    half.args(["listen", "--cert"]).arg(room.file("ann.pem"));
    assert_eq!(half.output().unwrap().status.code(), Some(2));
}

#[test]
fn what_cannot_be_with_certificates_is_said_before_the_hub_starts() {
    let by = "certificate_name = \"email:ann@example.org\"";
    let listener = |by: &str| principal("phone", "accessibility_consumer", by);
    let (code, said) = Setup::default().principals(&listener(by)).fails();
    assert!(code == 2 && said.contains("tls.client_ca"), "{said}");
    let both = format!("{by}\ntoken_file = \"x\"");
    let (code, said) = Setup::default().principals(&listener(&both)).fails();
    assert!(code == 2 && said.contains("exactly one"), "{said}");
    let (code, said) = Setup::default().toml("[tls]\nclient_ca = \"x\"").fails();
    assert!(code == 2 && said.contains("tls.certificate"), "{said}");
    let room = Room::new(&listener(by), None);
    let tls = |ca: &Path| {
        format!(
            "[tls]\ncertificate = {:?}\nkey = {:?}\nclient_ca = {ca:?}",
            room.file("certificate.pem"),
            room.file("key.pem")
        )
    };
    let (code, said) = Setup::default().toml(&tls(&room.file("key.pem"))).fails();
    assert!(code == 2 && said.contains("holds no certificate"), "{said}");
    for (wrong, why) in [
        ("certificate_sha256 = \"abc\"", "openssl x509"),
        ("certificate_name = \"ann\"", "dns:, email: or uri:"),
    ] {
        let setup = Setup::default().toml(&tls(&room.file("clients.pem")));
        let (code, said) = setup.principals(&listener(wrong)).fails();
        assert!(code == 2 && said.contains(why), "{said}");
    }
}
