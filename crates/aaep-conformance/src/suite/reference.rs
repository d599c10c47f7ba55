//! A small producer and a small subscriber that keep the rules of all three levels, and one for each rule
//! that they can break.
//!
//! They exist to try the suite on. The producer has two tokens, [`OWNER`] and [`STRANGER`]; without any, one is the
//! owner. No tool of it does anything.

mod fault;
mod listener;
mod listening;
mod serve;
mod subscriber_fault;
mod subscriptions;
mod world;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpSocket;
use tokio::task::JoinHandle;

pub use fault::ProducerFault;
pub use listening::Subscriber;
pub use subscriber_fault::SubscriberFault;
use world::World;

/// The token of somebody who may answer.
pub const OWNER: &str = "reference-owner";
/// The token of somebody who may not.
pub const STRANGER: &str = "reference-stranger";

/// A producer that runs until it is dropped.
#[derive(Debug)]
pub struct Producer {
    base: String,
    task: JoinHandle<()>,
}

impl Producer {
    /// Starts one on a free port of 127.0.0.1, with this fault or without any.
    pub async fn start(fault: Option<ProducerFault>) -> io::Result<Self> {
        // Small buffers, so that a listener that reads nothing is noticed early.
        let socket = TcpSocket::new_v4()?;
        socket.set_send_buffer_size(8192)?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let listener = socket.listen(1024)?;
        let base = format!("http://{}/aaep/v1", listener.local_addr()?);
        let world = Arc::new(World::new(fault));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve::connection(stream, Arc::clone(&world)));
            }
        });
        Ok(Self { base, task })
    }

    /// Its address.
    pub fn base(&self) -> &str {
        &self.base
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
