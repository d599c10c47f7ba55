//! Something between a node and the server that swallows what it is told to.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;

/// Everything passes.
pub const PASS: u8 = 0;
/// What comes back from the server is swallowed, and the connection is cut.
pub const CUT_ANSWERS: u8 = 1;
/// What goes to the server is swallowed, and the connection is cut.
pub const CUT_REQUESTS: u8 = 2;
/// What comes back is swallowed, and nobody hears anything.
pub const SWALLOW_ANSWERS: u8 = 3;

pub struct Proxy {
    pub port: u16,
    mode: Arc<AtomicU8>,
}

impl Proxy {
    pub fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mode = Arc::new(AtomicU8::new(PASS));
        let shared = mode.clone();
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let (near2, far2) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                let (there, back) = (shared.clone(), shared.clone());
                thread::spawn(move || pipe(near, far, &there, CUT_REQUESTS));
                thread::spawn(move || pipe(far2, near2, &back, CUT_ANSWERS));
            }
        });
        Self { port, mode }
    }

    pub fn set(&self, mode: u8) {
        self.mode.store(mode, Ordering::SeqCst);
    }
}

fn pipe(mut from: TcpStream, mut to: TcpStream, mode: &AtomicU8, cut: u8) {
    let mut bytes = [0; 65536];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let now = mode.load(Ordering::SeqCst);
        if now == cut {
            break;
        }
        if now == SWALLOW_ANSWERS && cut == CUT_ANSWERS {
            continue;
        }
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
