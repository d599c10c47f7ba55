//! What a service manager wants to know: the protocol of `sd_notify(3)`, one datagram for each state.

/// It serves.
pub(crate) const READY: &str = "READY=1";
/// It takes nothing new, and comes to its end.
pub(crate) const STOPPING: &str = "STOPPING=1";

/// Tells the service manager that started this, if one did and waits for it.
#[cfg(unix)]
pub(crate) fn tell(state: &str) {
    let Some(address) = std::env::var_os("NOTIFY_SOCKET").filter(|address| !address.is_empty())
    else {
        return;
    };
    if let Err(error) = send(&address, state) {
        let address = address.display();
        tracing::warn!("cannot tell the service manager at {address} {state}: {error}");
    }
}

#[cfg(unix)]
fn send(address: &std::ffi::OsStr, state: &str) -> std::io::Result<()> {
    use std::os::unix::net::UnixDatagram;
    let socket = UnixDatagram::unbound()?;
    // A manager that does not read must not hold the hub up.
    socket.set_nonblocking(true)?;
    #[cfg(target_os = "linux")]
    {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::ffi::OsStrExt;
        use std::os::unix::net::SocketAddr;
        if let Some(name) = address.as_bytes().strip_prefix(b"@") {
            let address = SocketAddr::from_abstract_name(name)?;
            return socket.send_to_addr(state.as_bytes(), &address).map(drop);
        }
    }
    socket.send_to(state.as_bytes(), address).map(drop)
}

/// There is none.
#[cfg(not(unix))]
pub(crate) fn tell(_state: &str) {}
