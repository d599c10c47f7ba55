//! A call comes back once.
use aaep_agent::Call;

async fn twice(call: Call) {
    let _ = call.succeed("Done.").await;
    let _ = call.fail("Or not.").await; //~ E0382
}

fn main() {}
