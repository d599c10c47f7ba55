//! Where the examples find their hub: at the address on the command line or in `AAEP_URL`, with the
//! token in `AAEP_TOKEN`; without an address, in this very process.

use std::error::Error;

use aaep_agent::{Agent, Producer, Remote};

/// The agent, and the hub if it is in this process.
pub struct Place {
    pub agent: Agent,
    #[cfg(feature = "embedded")]
    hub: Option<aaep_hub::Running>,
}

impl Place {
    /// `url` is what the command line says, if it says something.
    pub async fn find(url: Option<String>, producer: Producer) -> Result<Self, Box<dyn Error>> {
        match url.or_else(|| std::env::var("AAEP_URL").ok()) {
            Some(url) => {
                let mut hub = Remote::at(url);
                if let Ok(token) = std::env::var("AAEP_TOKEN") {
                    hub = hub.token(token);
                }
                let agent = Agent::connect(hub, producer)?;
                Ok(Self {
                    agent,
                    #[cfg(feature = "embedded")]
                    hub: None,
                })
            }
            None => Self::here(producer).await,
        }
    }

    #[cfg(feature = "embedded")]
    async fn here(producer: Producer) -> Result<Self, Box<dyn Error>> {
        use aaep_hub::config::{Config, Development};
        let config = Config {
            ephemeral: true,
            // For trying out: every program on this machine may answer.
            development: Development { local_replies: true, ..Development::default() },
            ..Config::default()
        };
        let hub = aaep_hub::Hub::builder().config(config).start().await?;
        for warning in hub.warnings() {
            eprintln!("{warning}");
        }
        for address in hub.addresses() {
            println!("Listen and answer at {}", hub.url(*address));
        }
        let agent = Agent::embed(hub.hub(), producer)?;
        Ok(Self { agent, hub: Some(hub) })
    }

    #[cfg(not(feature = "embedded"))]
    async fn here(_: Producer) -> Result<Self, Box<dyn Error>> {
        Err("Name the hub: give its address, or build with --features embedded.".into())
    }

    /// Lets everything be said before the process ends.
    pub async fn leave(self) -> Result<(), Box<dyn Error>> {
        self.agent.close().await;
        #[cfg(feature = "embedded")]
        if let Some(hub) = self.hub {
            hub.stop().await?;
        }
        Ok(())
    }
}
