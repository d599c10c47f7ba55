//! The address of a JetStream cluster.

use std::fmt;

use percent_encoding::percent_decode_str;

use super::JetStreamRefused;
use crate::log::remote::is_this_machine;

/// How to write an address.
const EXAMPLE: &str = "nats://user:password@host-1:4222,host-2:4222,host-3:4222?system_user=NAME&system_password=PASSWORD";

/// Somebody whom the servers let in.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) user: String,
    pub(super) password: String,
}

/// Where the servers are, who this is, and who may ask them what they promise.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) servers: Vec<String>,
    pub(super) user: Option<Account>,
    pub(super) system: Account,
    /// Whether what is sent is encrypted.
    pub(super) tls: bool,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The rest is passwords.
        f.debug_struct("Address").field("servers", &self.servers).finish_non_exhaustive()
    }
}

impl Address {
    /// Servers on other machines are spoken to over TLS only.
    pub(super) fn parse(address: &str) -> Result<Self, JetStreamRefused> {
        let bad = |why: &str| JetStreamRefused::Address(format!("{why}. Write it as {EXAMPLE}"));
        let (rest, mut tls) =
            match (address.strip_prefix("nats://"), address.strip_prefix("tls://")) {
                (Some(rest), _) => (rest, false),
                (None, Some(rest)) => (rest, true),
                (None, None) => return Err(bad("it begins with neither nats:// nor tls://")),
            };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let rest = rest.trim_end_matches('/');
        let (user, hosts) = match rest.rsplit_once('@') {
            Some((user, hosts)) => {
                (Some(account(user).ok_or_else(|| bad("a password lacks"))?), hosts)
            }
            None => (None, rest),
        };
        let mut servers = Vec::new();
        for host in hosts.split(',') {
            let (name, port) = split_port(host);
            let fits = |text: &str| {
                text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte))
            };
            if name.is_empty() || !fits(name) {
                return Err(bad("a server has no name"));
            }
            let port: u16 =
                port.unwrap_or("4222").parse().map_err(|_| bad("a port is no number"))?;
            tls |= !is_this_machine(name);
            servers.push(format!("{name}:{port}"));
        }
        let (mut system_user, mut system_password) = (None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let value =
                pair.split_once('=').and_then(|(name, value)| Some((name, decoded(value)?)));
            match value {
                Some(("system_user", value)) => system_user = Some(value),
                Some(("system_password", value)) => system_password = Some(value),
                _ => return Err(bad("after the question mark stands something unknown")),
            }
        }
        let (Some(user_of_system), Some(password)) = (system_user, system_password) else {
            return Err(bad(
                "it names no user of the system account, without whom nobody can see what the servers promise",
            ));
        };
        let system = Account { user: user_of_system, password };
        Ok(Self { servers, user, system, tls })
    }
}

/// The name of a host and its port, if one stands there. An address of IPv6 stands in brackets.
fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    }
}

fn account(text: &str) -> Option<Account> {
    let (user, password) = text.split_once(':')?;
    Some(Account { user: decoded(user)?, password: decoded(password)? })
}

fn decoded(text: &str) -> Option<String> {
    percent_decode_str(text).decode_utf8().ok().map(|text| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: &str = "system_user=sys&system_password=p%40ss";

    #[test]
    fn servers_users_and_passwords_are_read() {
        let read =
            Address::parse(&format!("nats://a:b%3Ac@127.0.0.1:1,[::1],localhost:3?{SYSTEM}"));
        let read = read.unwrap();
        assert_eq!(read.servers, ["127.0.0.1:1", "[::1]:4222", "localhost:3"]);
        let user = Account { user: "a".into(), password: "b:c".into() };
        assert!(read.user == Some(user) && !read.tls);
        assert!(read.system == Account { user: "sys".into(), password: "p@ss".into() });
        assert!(!format!("{read:?}").contains("p@ss"));
    }

    #[test]
    fn other_machines_are_spoken_to_over_tls_only() {
        let tls =
            |servers: &str| Address::parse(&format!("nats://{servers}?{SYSTEM}")).unwrap().tls;
        assert!(tls("db.example") && tls("localhost,10.0.0.1:4222") && !tls("127.0.0.1"));
        assert!(Address::parse(&format!("tls://localhost?{SYSTEM}")).unwrap().tls);
    }

    #[test]
    fn an_address_that_cannot_be_read_is_refused_with_how_to_write_it() {
        for bad in [
            "http://a?system_user=a&system_password=b",
            "nats://?system_user=a&system_password=b",
            "nats://a:port?system_user=a&system_password=b",
            "nats://user@a?system_user=a&system_password=b",
            "nats://a",
            "nats://a?system_user=a",
            "nats://a?replicas=1",
        ] {
            let refused = Address::parse(bad).unwrap_err().to_string();
            assert!(refused.contains("nats://user:password@host-1"), "{bad}: {refused}");
        }
    }
}
