// What is tried with a screen reader, each with a sentence for people.

/** Nothing grave: one step answers it. */
const MILD = { risk_level: "low", irreversible: false, reversibility: "reversible", consequence: "It is gone." };

export const SCENARIOS = {
  "typing": {
    about: "A request comes while the person is in a text field. They reject it with Tab and Enter, and are where they were.",
    async play(at) {
      await at.field();
      const agent = await at.agent("Cleaning up.");
      await at.step("an agent starts", null, { until: "Cleaning up" });
      await at.step("a request comes", () => agent.confirm("Delete file number 100.", MILD), { until: "file number 100" });
      await at.press("Tab");
      await at.step("press Enter", () => at.desktop.key("Return"), { until: "rejected" });
      await at.step("the agent is done", () => agent.end("Nothing was deleted."), { until: "Done" });
    },
  },
  "browsing": {
    about: "A request comes while the person reads the page with the arrow keys. They read it with the arrows, too, and reject it with a shortcut.",
    async play(at) {
      const agent = await at.agent("Cleaning up.");
      await at.step("an agent starts", null, { until: "Cleaning up" });
      await at.step("a request comes", () => agent.confirm("Delete file number 101.", MILD), { until: "file number 101" });
      for (let line = 0; line < 3; line += 1) await at.press("Down");
      await at.step("press Ctrl+Shift+7, reject", () => at.desktop.key("ctrl+shift+7"), { until: "rejected" });
      await at.press("Down");
      await at.step("the agent is done", () => agent.end("Nothing was deleted."), { until: "Done" });
    },
  },
  "grave": {
    about: "Something of high risk that cannot be undone takes two steps. Then it is done.",
    async play(at) {
      await at.field();
      await at.step('say "transfer 20 euros to Ann"', async () => {
        at.desktop.type("transfer 20 euros to Ann");
        await at.desktop.key("Return");
      }, { until: "Transfer 20 euros" });
      await at.press("Tab");
      await at.press("Tab");
      await at.step("press Enter", () => at.desktop.key("Return"), { until: "about to accept" });
      await at.press("Tab");
      await at.press("Tab");
      await at.step("press Enter", () => at.desktop.key("Return"), { until: "Done" });
    },
  },
  "two": {
    about: "Two requests come one after the other. The second is read when the first is answered, after its outcome.",
    async play(at) {
      await at.field();
      const agent = await at.agent("Asking a lot.");
      await at.step("an agent starts", null, { until: "Asking" });
      await at.step("two requests come", async () => {
        await agent.confirm("First thing.", MILD);
        await agent.confirm("Second thing.", MILD);
      }, { until: "2 requests wait" });
      await at.step("press Ctrl+Shift+7, reject", () => at.desktop.key("ctrl+shift+7"), { until: "Second thing" });
      await at.step("press Ctrl+Shift+9, accept", () => at.desktop.key("ctrl+shift+9"), { until: "accepted" });
      await at.step("the agent is done", () => agent.end("That is all."), { until: "Done" });
    },
  },
  "more-time": {
    about: "More time: only that is said, and the request keeps its number.",
    async play(at) {
      await at.field();
      const agent = await at.agent("Preparing.");
      await at.step("an agent starts", null, { until: "Preparing" });
      await at.step("a request comes", () => agent.confirm("Publish the page.", MILD), { until: "Publish" });
      await at.step("press Ctrl+Shift+4, more time", () => at.desktop.key("ctrl+shift+4"), { until: "More time was given" });
      await at.step("press Ctrl+Shift+7, reject", () => at.desktop.key("ctrl+shift+7"), { until: "rejected" });
      await at.step("the agent is done", () => agent.end("That is all."), { until: "Done" });
    },
  },
  "cancelled": {
    about: "The agent takes a request back while it is being read.",
    async play(at) {
      await at.field();
      const agent = await at.agent("Changing its mind.");
      await at.step("an agent starts", null, { until: "mind" });
      await at.step("a request comes and is taken back", async () => {
        const request = await agent.confirm("Send the letter.", MILD);
        await at.desktop.until(() => at.desktop.heard().at(-1)?.text.includes("Send the letter"), 20_000, "the request");
        await agent.withdraw(request);
      }, { until: "was cancelled" });
      await at.step("the agent is done", () => agent.end("That is all."), { until: "Done" });
    },
  },
  "timed-out": {
    about: "Nobody answers in time.",
    async play(at) {
      await at.field();
      const agent = await at.agent("Waiting.");
      await at.step("an agent starts", null, { until: "Waiting" });
      await at.step("a request comes", () => agent.confirm("Be quick.", { ...MILD, timeout_seconds: 30 }),
        { until: "timed out" });
      await at.step("the agent is done", () => agent.end("That is all."), { until: "Done" });
    },
  },
  "question": {
    about: "A question in one's own words; first nothing is written, then an answer.",
    async play(at) {
      await at.field();
      const agent = await at.agent("Finding out.");
      await at.step("an agent starts", null, { until: "Finding" });
      await at.step("a question comes", () => agent.clarify("Where to?", ["freetext"]), { until: "Where to" });
      await at.step("press Ctrl+Shift+7, which rejects actions", () => at.desktop.key("ctrl+shift+7"), { until: "This is a question" });
      await at.press("Tab");
      await at.step("press Enter", () => at.desktop.key("Return"), { until: "Write your answer first" });
      at.desktop.type("Lagos");
      await at.desktop.quiet(1500);
      await at.step("write Lagos, and press Enter", () => at.desktop.key("Return"), { until: "answered" });
      await at.step("the agent is done", () => agent.end("To Lagos, then."), { until: "Done" });
    },
  },
  "chatter": {
    about: "An agent reports a lot while a request is open, and writes a text. Only the latest is said, after the answer.",
    async play(at) {
      await at.field();
      const agent = await at.agent("Counting.");
      await at.step("an agent starts", null, { until: "Counting" });
      await at.step("a request comes, and two hundred reports", async () => {
        await agent.confirm("Go on counting.", MILD);
        for (let step = 1; step <= 200; step += 1) {
          await agent.emit("progress.updated", { progress: { step, total_steps: 200 }, summary_normal: `Step ${step} of 200.` });
        }
        await agent.emit("output.streaming", { chunk: "One. Two. Three.", position: 0, complete: true, output_id: "out_1" });
      }, { until: "Go on counting" });
      await at.step("press Ctrl+Shift+7, reject", () => at.desktop.key("ctrl+shift+7"), { until: "200 of 200" });
      await at.step("the agent is done", () => agent.end("Counted."), { until: "Done" });
    },
  },
};
