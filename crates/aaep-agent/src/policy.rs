//! Tools that run as a policy says: asked about, announced, or neither. An author who runs every tool
//! through this cannot forget to ask.

use std::future::Future;

use aaep_policy::{Policy, Ruling, Verdict};
use aaep_types::{Decision, Reversibility};
use serde::Serialize;

use crate::confirmation::{Confirmation, Kind};
use crate::error::{Error, ToolError};
use crate::session::Session;
use crate::words::Words;

impl Session {
    // enforces: T12, T27
    /// Runs a tool as the policy says: asks first and waits for a yes, or says that it runs, or just
    /// runs it. What no rule covers is asked, as something grave. `work` is not begun before that.
    ///
    /// ```no_run
    /// # async fn example(session: aaep_agent::Session) -> Result<(), Box<dyn std::error::Error>> {
    /// let policy = aaep_policy::Policy::parse(&std::fs::read_to_string("policy.toml")?)
    ///     .map_err(|problems| format!("{problems:?}"))?;
    /// let path = "build".to_owned();
    /// let arguments = serde_json::json!({ "path": path });
    /// let work = async move { std::fs::remove_dir_all(path) };
    /// session.run_under(&policy, "files.delete", &arguments, work).await?;
    /// # Ok(()) }
    /// ```
    pub async fn run_under<T, E>(
        &self,
        policy: &Policy,
        tool: &str,
        arguments: &(impl Serialize + ?Sized),
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
    {
        // What cannot be written down is judged as what nobody can read: it is asked.
        let json = serde_json::to_string(arguments).unwrap_or_else(|_| "?".into());
        let ruling = policy.decide(tool, &json);
        match (ruling.verdict, ruling.reversibility) {
            (Verdict::Silent, _) => {
                work.await.map_err(|error| ToolError::Failed(error.into().into()).into())
            }
            (Verdict::Announce, _) => {
                let call = self.tool(tool).summary(words(&ruling)).risk(ruling.risk);
                let call = call.args_summary(ruling.arguments.as_str()).arguments_json(json);
                call.run(work).await
            }
            (Verdict::Ask, Reversibility::Irreversible) => {
                let request = Confirmation::irreversible(tool, &ruling.action, &ruling.consequence);
                self.ask_then_run(&ruling, json, request, work).await
            }
            (Verdict::Ask, Reversibility::ReversibleWithEffort) => {
                let request = Confirmation::with_effort(tool, &ruling.action, &ruling.consequence);
                self.ask_then_run(&ruling, json, request, work).await
            }
            (Verdict::Ask, Reversibility::Reversible) => {
                let request = Confirmation::reversible(tool, &ruling.action, &ruling.consequence);
                let request = match ruling.default {
                    Decision::Accept => request.accept_on_silence(),
                    Decision::Reject => request,
                };
                self.ask_then_run(&ruling, json, request, work).await
            }
        }
    }

    async fn ask_then_run<T, E, K: Kind>(
        &self,
        ruling: &Ruling,
        arguments: String,
        request: Confirmation<K>,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
    {
        let seconds = u32::try_from(ruling.timeout.get()).unwrap_or(u32::MAX);
        let request = request.risk(ruling.risk).words(words(ruling)).timeout_seconds(seconds);
        // A future does nothing before it is polled, and nobody can poll what is parked.
        let parked = self.park(work, request.arguments_json(arguments)).await?;
        let approval = parked.decision().await?;
        let (work, call) = self.invoke(parked, approval).await?;
        call.run(work).await
    }
}

fn words(ruling: &Ruling) -> Words {
    Words::new(ruling.normal()).terse(ruling.summary.as_str()).language(ruling.language.as_str())
}
