//! A PostgreSQL server of a test's own, in a temporary directory; included where it is needed.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running server. It ends with the value.
pub struct Server {
    dir: tempfile::TempDir,
    programs: PathBuf,
    child: Child,
    /// Where it listens on 127.0.0.1.
    pub port: u16,
}

impl Server {
    /// Starts one, with these lines added to its configuration. The error says why it cannot be had.
    pub fn start(settings: &str) -> Result<Self, String> {
        let programs = programs().ok_or("there is no PostgreSQL server here.")?;
        let dir = tempfile::tempdir().map_err(|why| why.to_string())?;
        let data = dir.path().join("data");
        if is_root() {
            // The server refuses to run as root.
            let _ = fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755));
            let _ = fs::create_dir(&data);
            let owned = Command::new("chown").arg("postgres").arg(&data).status();
            if !owned.is_ok_and(|status| status.success()) {
                return Err("this is root, and there is no user postgres.".into());
            }
        }
        let made = as_server(&programs.join("initdb"))
            .args(["--username=aaep", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"])
            .arg("--pgdata")
            .arg(&data)
            .output()
            .map_err(|why| why.to_string())?;
        if !made.status.success() {
            return Err(format!("initdb: {}", String::from_utf8_lossy(&made.stderr)));
        }
        let port = free_port();
        let fixed = format!(
            "\nlisten_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = ''\n{settings}\n"
        );
        let path = data.join("postgresql.conf");
        let before = fs::read_to_string(&path).map_err(|why| why.to_string())?;
        fs::write(&path, before + &fixed).map_err(|why| why.to_string())?;
        let child = launch(&programs, &data);
        let mut server = Self { dir, programs, child, port };
        server.wait();
        Ok(server)
    }

    /// Its address.
    pub fn address(&self) -> String {
        address(self.port)
    }

    /// Kills every process of the server at once, as a power cut does.
    pub fn kill(&mut self) {
        let mut all = children(self.child.id());
        all.push(self.child.id());
        let all: Vec<String> = all.iter().map(u32::to_string).collect();
        let _ = Command::new("kill").arg("-9").args(&all).stderr(Stdio::null()).status();
        let _ = self.child.wait();
        // Processes that the postmaster no longer waits for end a moment later.
        let gone = |pid: &String| !Path::new("/proc").join(pid).exists();
        until(|| all.iter().all(gone));
    }

    /// Starts it again after [`Server::kill`].
    pub fn restart(&mut self) {
        self.child = launch(&self.programs, &self.dir.path().join("data"));
        self.wait();
    }

    fn wait(&mut self) {
        let (ready, port) = (self.programs.join("pg_isready"), self.port.to_string());
        until(|| {
            let asked = Command::new(&ready)
                .args(["-q", "-h", "127.0.0.1", "-U", "aaep", "-d", "postgres", "-p", &port])
                .status();
            asked.is_ok_and(|status| status.success())
        });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The address of a server, or of something between, on this port.
pub fn address(port: u16) -> String {
    format!("postgres://aaep@127.0.0.1:{port}/postgres")
}

/// A port that nobody listens on.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "it took longer than a minute");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn launch(programs: &Path, data: &Path) -> Child {
    as_server(&programs.join("postgres"))
        .arg("-D")
        .arg(data)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// A command as the user that may run a server.
fn as_server(program: &Path) -> Command {
    let mut command = if is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
        command
    } else {
        Command::new(program)
    };
    command.current_dir("/").env("LC_ALL", "C");
    command
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|found| found.uid() == 0)
}

/// The processes that this one started.
fn children(parent: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after = stat.rsplit(") ").next().unwrap_or_default();
        after.split(' ').nth(1) == Some(&parent.to_string())
    })
    .collect()
}

/// The directory with the programs of the newest server that is installed.
fn programs() -> Option<PathBuf> {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = installed.map(|entry| entry.path().join("bin")).collect();
    found.retain(|bin| bin.join("initdb").exists() && bin.join("postgres").exists());
    found.sort();
    found.pop()
}
