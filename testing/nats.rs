//! Real NATS servers of a test's own, in a temporary directory; included where they are needed.

#![allow(dead_code)] // each test uses its own part of this

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Servers that form a cluster. They end with the value.
pub struct Cluster {
    dir: tempfile::TempDir,
    program: PathBuf,
    servers: Vec<Server>,
}

struct Server {
    child: Child,
    port: u16,
    monitor: u16,
}

impl Cluster {
    /// Starts so many servers, which sync always or as they like. The error says why they cannot be had.
    pub fn start(count: usize, syncs_always: bool) -> Result<Self, String> {
        let program = program().ok_or(
            "there is no nats-server here. `cargo xtask test --only cluster` installs one, or name one in AAEP_NATS_SERVER.",
        )?;
        let dir = tempfile::tempdir().map_err(|why| why.to_string())?;
        // Held until all are known, so that no two are the same.
        let held: Vec<TcpListener> =
            (0..count * 3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<u16> = held.iter().map(|one| one.local_addr().unwrap().port()).collect();
        drop(held);
        let routes: Vec<String> =
            (0..count).map(|one| format!("\"nats://127.0.0.1:{}\"", ports[one * 3 + 2])).collect();
        let cluster = |route: u16| match count {
            1 => String::new(),
            _ => format!(
                "cluster {{ name: test, listen: \"127.0.0.1:{route}\", routes: [{}] }}",
                routes.join(", ")
            ),
        };
        let mut servers = Vec::new();
        for (index, ports) in ports.chunks(3).enumerate() {
            let sync = if syncs_always { "always" } else { "2m" };
            let config = format!(
                "listen: \"127.0.0.1:{}\"\nhttp: \"127.0.0.1:{}\"\nserver_name: n{index}\n{}\n\
                 jetstream {{ store_dir: {:?}, sync_interval: {sync}, max_file: 4GB, max_mem: 256MB }}\n\
                 accounts {{ $SYS {{ users = [ {{ user: sys, password: watch }} ] }}\n\
                 HUBS {{ jetstream: enabled, users = [ {{ user: aaep, password: secret }} ] }} }}\n",
                ports[0],
                ports[1],
                cluster(ports[2]),
                dir.path().join(format!("store-{index}")),
            );
            fs::write(path(dir.path(), index), config).map_err(|why| why.to_string())?;
            let child = launch(&program, dir.path(), index);
            servers.push(Server { child, port: ports[0], monitor: ports[1] });
        }
        let cluster = Self { dir, program, servers };
        cluster.wait();
        Ok(cluster)
    }

    /// The address of all of them.
    pub fn address(&self) -> String {
        let hosts: Vec<String> =
            self.servers.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect();
        address(&hosts.join(","))
    }

    /// Where one listens on 127.0.0.1.
    pub fn port(&self, index: usize) -> u16 {
        self.servers[index].port
    }

    /// Kills one, as a power cut does, but for what the system still writes.
    pub fn kill(&mut self, index: usize) {
        let _ = self.servers[index].child.kill();
        let _ = self.servers[index].child.wait();
    }

    /// Starts one again, without waiting until it is one of the cluster.
    pub fn restart(&mut self, index: usize) {
        self.servers[index].child = launch(&self.program, self.dir.path(), index);
    }

    /// Waits until every server says that it is well.
    pub fn wait(&self) {
        let end = Instant::now() + Duration::from_secs(90);
        for server in &self.servers {
            while !is_well(server.monitor) {
                assert!(Instant::now() < end, "a server was not well within 90 seconds");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// Where one keeps its messages.
    pub fn store(&self, index: usize) -> PathBuf {
        self.dir.path().join(format!("store-{index}"))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        (0..self.servers.len()).for_each(|index| self.kill(index));
    }
}

/// The address of these hosts.
pub fn address(hosts: &str) -> String {
    format!("nats://aaep:secret@{hosts}?system_user=sys&system_password=watch")
}

fn path(dir: &Path, index: usize) -> PathBuf {
    dir.join(format!("n{index}.conf"))
}

fn launch(program: &Path, dir: &Path, index: usize) -> Child {
    Command::new(program)
        .arg("-c")
        .arg(path(dir, index))
        .arg("-l")
        .arg(dir.join(format!("n{index}.log")))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn is_well(monitor: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", monitor)) else { return false };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
    let _ = stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).is_ok() && answer.contains("200 OK")
}

/// The server to run: named by `AAEP_NATS_SERVER`, or the one on the path.
fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("AAEP_NATS_SERVER") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join("nats-server")).find(|file| file.exists())
}
