//! This compiles: what is wrong in the other files is wrong for its own reason.
use aaep_agent::{Confirmation, RiskLevel, Session};

async fn once(session: Session) -> Result<(), Box<dyn std::error::Error>> {
    let request = Confirmation::reversible("move", "Move it.", "It can be moved back.")
        .risk(RiskLevel::Low)
        .accept_on_silence();
    let parked = session.park(String::from("it"), request).await?;
    let approval = parked.decision().await?;
    let (action, call) = session.invoke(parked, approval).await?;
    call.succeed(action).await?;
    session
        .confirm("move", "Move it.", "It can be moved back.")
        .reversible()
        .risk(RiskLevel::Low)
        .accept_on_silence()
        .args("it")
        .run(|call| async move { Ok::<_, std::io::Error>(call.key().len()) })
        .await?;
    session.complete("Done.").await?;
    Ok(())
}

fn main() {
    let _ = once;
}
