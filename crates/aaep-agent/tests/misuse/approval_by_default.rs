//! There is no approval by default.
use aaep_agent::Approval;

fn forge() -> Approval<u32> {
    Approval::default() //~ E0599
}

fn main() {}
