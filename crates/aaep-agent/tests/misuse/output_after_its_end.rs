//! An output that is complete takes no more text.
use aaep_agent::Output;

async fn more(mut output: Output) {
    let _ = output.finish().await;
    let _ = output.write("and more").await; //~ E0382
}

fn main() {}
