//! `aaep stdio`: speaks for a hub over standard input and output.

use std::io::{self, Write};

use aaep_transport::link::{Link, LinkError, Options};
use aaep_transport::stdio;
use clap::Args;

use crate::capture::open_link;
use crate::exit::{self, Exit};
use crate::lines::Plain;
use crate::listen::{HubsOptions, hubs};

/// Speak for a hub over standard input and output, as JSON-RPC 2.0 by line.
///
/// Any program that can start another one hears and answers so, also on another machine over SSH. It
/// passes on what is said, both ways, and understands none of it.
#[derive(Args, Debug)]
#[command(after_help = "\
It ends with 0 when either side is done, and with 2 if no hub can be reached.

Examples:
  aaep stdio
  aaep listen 'stdio:ssh build-machine aaep stdio'
See docs/grpc.md.")]
pub(crate) struct StdioOptions {
    #[command(flatten)]
    pub(crate) hub: HubsOptions,
}

pub(crate) fn run(options: &StdioOptions, out: &mut impl Write) -> io::Result<Exit> {
    let mut found = match hubs(&options.hub) {
        Ok(found) => found,
        Err(why) => return Ok(unable(&why)),
    };
    let hub = match (found.pop(), found.is_empty()) {
        (Some(hub), true) => hub,
        (Some(_), false) => return Ok(unable("Name one hub to speak for.")),
        (None, _) => return Ok(unable("No hub runs on this machine. Name one to speak for.")),
    };
    crate::stdio::serve(out, move |to| async move {
        let there = match open_link(&hub, true).await {
            Ok(link) => link,
            Err(why) => return unable(&format!("The hub cannot be reached: {why}.")),
        };
        let here = stdio::serve(crate::stdio::input(), to, &Options::default());
        pass_on(here, there).await;
        Exit::Good
    })
}

fn unable(why: &str) -> Exit {
    exit::say(&Plain(why).to_string());
    Exit::Unable
}

/// Passes messages on, both ways, until either side is done.
async fn pass_on(here: Link, there: Link) {
    let (mut to_here, mut from_here) = here.split();
    let (mut to_there, mut from_there) = there.split();
    loop {
        let done = tokio::select! {
            message = from_here.receive() => match message {
                Ok(Some(message)) => gone(to_there.send(message).await),
                Ok(None) | Err(LinkError::Lost(_) | LinkError::Closed) => true,
                // One message that cannot be passed on.
                Err(error) => passed_over(&error),
            },
            message = from_there.receive() => match message {
                Ok(Some(message)) => gone(to_here.send(message).await),
                Ok(None) | Err(LinkError::Lost(_) | LinkError::Closed) => true,
                Err(error) => passed_over(&error),
            },
        };
        if done {
            return;
        }
    }
}

/// Whether nobody is there any more to send to.
fn gone(sent: Result<(), LinkError>) -> bool {
    match sent {
        Ok(()) => false,
        // What is no message has no place in JSON-RPC; the conversation goes on without it.
        Err(error @ LinkError::Violation(_)) => passed_over(&error),
        Err(_) => true,
    }
}

fn passed_over(error: &LinkError) -> bool {
    exit::say(&format!("A message is left out: {}.", Plain(&error.to_string())));
    false
}
