//! Waiting for a person through a hub that may restart meanwhile.

use std::time::Duration;

use aaep_agent::{Approval, Error, Parked};
use tokio::time::{Instant, sleep};

/// The pause before a hub that cannot be reached is asked again.
const PAUSE: Duration = Duration::from_millis(500);

/// The decision, whatever becomes of the hub meanwhile: a durable hub keeps the request, so an answer
/// given after its restart still counts. After `until` nobody is waited for any longer.
pub async fn decision<A>(parked: &Parked<A>, until: Instant) -> Result<Approval<A>, Error> {
    loop {
        match parked.decision().await {
            Err(error) if error.is_unavailable() && Instant::now() < until => sleep(PAUSE).await,
            decided => return decided,
        }
    }
}
