//! An approval cannot be copied.
use aaep_agent::Approval;

fn two(approval: Approval<u32>) -> (Approval<u32>, Approval<u32>) {
    (approval.clone(), approval) //~ E0599
}

fn main() {}
