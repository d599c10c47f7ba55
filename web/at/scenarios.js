// What is tried with a screen reader, each with a sentence for people.

import { sleep } from "./desktop.js";

/** Nothing grave: one step answers it. */
export const MILD = { risk_level: "low", irreversible: false, reversibility: "reversible", consequence: "It is gone." };

/** The person's, where a hub has one. */
export const PIN = "7391";

/** Each of these begins in the field for talking to the agent, and is played from browse mode as well. */
const BOTH_MODES = ["question", "choices", "number", "yes-no", "two", "stop", "grave"];

/** The same, from where a person reads the page in browse mode; at the end they say where they are. */
const browsing = ({ about, play, ...rest }) => ({
  ...rest,
  about: `In browse mode: ${about.charAt(0).toLowerCase()}${about.slice(1)}`,
  async play(at) {
    at.begin = () => at.reads();
    await play(at);
    await at.press("Down");
  },
});

const PLAYED = {
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
  "writing": {
    about: "A request comes in the middle of a word. It waits until the person pauses; what they wrote stays, and they go on writing.",
    async play(at) {
      await at.field();
      const agent = await at.agent("Cleaning up.");
      await at.step("an agent starts", null, { until: "Cleaning up" });
      await at.step("write balance, and a request comes after bal", async () => {
        at.desktop.type("bal");
        await agent.confirm("Delete file number 102.", MILD);
        at.desktop.type("ance");
      }, { until: "file number 102" });
      await at.step("press Ctrl+Shift+7, reject", () => at.desktop.key("ctrl+shift+7"), { until: "rejected" });
      await at.step("the agent is done", () => agent.end("Nothing was deleted."), { until: "Done" });
      await at.desktop.key("ctrl+a", "BackSpace");
    },
  },
  "browsing": {
    about: "A request comes while the person reads the page in browse mode. They read it with the arrows, reject it with a shortcut, and go on where they were.",
    async play(at) {
      await at.press("h");
      await at.press("h");
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
      await at.begin();
      const agent = await at.agent("Preparing a transfer.");
      await at.step("an agent starts", null, { until: "Preparing" });
      const request = await at.step("a request comes", () => agent.confirm("Transfer 20 euros to Ann.", { tool: "bank.transfer",
        arguments: { amount: 20, recipient: "Ann" }, consequence: "The money leaves your account." }), { until: "Transfer 20 euros" });
      await at.press("Tab");
      await at.press("Tab");
      await at.step("press Enter", () => at.desktop.key("Return"), { until: "about to accept" });
      await at.press("Tab");
      await at.press("Tab");
      await at.step("press Enter", () => at.desktop.key("Return"), { until: "accepted" });
      const call = await at.step("the agent does it", () => agent.invoke(request), { until: "now" });
      await at.step("it is done", () => agent.emit("tool.completed", { tool: "bank.transfer", tool_call_id: call, status: "success",
        summary_normal: "20 euros were sent to Ann." }), { until: "were sent" });
      await at.step("the agent is done", () => agent.end("20 euros were sent to Ann."), { until: "Done" });
    },
  },
  "two": {
    about: "Two requests come one after the other. The second is read when the first is answered, after its outcome.",
    async play(at) {
      await at.begin();
      const agent = await at.agent("Asking a lot.");
      await at.step("an agent starts", null, { until: "Asking" });
      await at.step("two requests come", async () => {
        await agent.confirm("First thing.", MILD);
        await agent.confirm("Second thing.", MILD);
      }, { until: "2 requests wait" });
      await at.step("press Ctrl+Shift+7, reject", () => at.desktop.key("ctrl+shift+7"), { until: "Second thing" });
      await at.press("Tab");
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
        await at.hears("Send the letter");
        await agent.withdraw(request);
      }, { until: "Focus mode" });
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
        { until: "Focus mode", within: 120_000 });
      await at.step("the agent is done", () => agent.end("That is all."), { until: "Done" });
    },
  },
  "question": {
    about: "A question in one's own words; first nothing is written, then an answer.",
    async play(at) {
      await at.begin();
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
  "choices": {
    about: "A question with choices; first nothing is chosen, then the second.",
    async play(at) {
      await at.begin();
      const agent = await at.agent("Booking.");
      await at.step("an agent starts", null, { until: "Booking" });
      const choices = [{ value: "bus", label: "By bus" }, { value: "train", label: "By train" }];
      await at.step("a question comes", () => agent.clarify("How do you go?", ["multiple_choice"], { choices }), { until: "How do you go" });
      await at.press("Tab");
      await at.press("Tab");
      await at.step("press Enter", () => at.desktop.key("Return"), { until: "Choose one" });
      await at.press("Down");
      await at.press("space");
      await at.press("Tab");
      await at.step("press Enter", () => at.desktop.key("Return"), { until: "answered" });
      await at.step("the agent is done", () => agent.end("By train, then."), { until: "Done" });
    },
  },
  "number": {
    about: "A question that wants a number; first a word is written, then a number.",
    async play(at) {
      await at.begin();
      const agent = await at.agent("Booking.");
      await at.step("an agent starts", null, { until: "Booking" });
      await at.step("a question comes", () => agent.clarify("How many seats?", ["numeric"]), { until: "How many seats" });
      await at.press("Tab");
      at.desktop.type("two");
      await at.desktop.quiet(1500);
      await at.step("write two, and press Enter", () => at.desktop.key("Return"), { until: "in digits" });
      await at.desktop.key("ctrl+a");
      at.desktop.type("2");
      await at.desktop.quiet(1500);
      await at.step("write 2 instead, and press Enter", () => at.desktop.key("Return"), { until: "answered" });
      await at.step("the agent is done", () => agent.end("Two seats, then."), { until: "Done" });
    },
  },
  "yes-no": {
    about: "A question that is answered by yes or no, with Tab and Enter.",
    async play(at) {
      await at.begin();
      const agent = await at.agent("Booking.");
      await at.step("an agent starts", null, { until: "Booking" });
      await at.step("a question comes", () => agent.clarify("A seat at the window?", ["yes_no"]), { until: "at the window" });
      await at.press("Tab");
      await at.press("Tab");
      await at.step("press Enter", () => at.desktop.key("Return"), { until: "answered" });
      await at.step("the agent is done", () => agent.end("A seat at the aisle, then."), { until: "Done" });
    },
  },
  "hub-lost": {
    about: "The hub goes away while a request is open, and comes back. Both are said; the request still waits, and is answered.",
    restarts: true,
    async play(at) {
      await at.field();
      const agent = await at.agent("Cleaning up.");
      await at.step("an agent starts", null, { until: "Cleaning up" });
      await at.step("a request comes", () => agent.confirm("Delete file number 106.", MILD), { until: "file number 106" });
      await at.step("the hub goes away", () => at.hub.end("SIGKILL"), { until: "is lost" });
      await at.step("the hub comes back", () => at.hub.begin(), { until: "again" });
      await at.step("press Ctrl+Shift+7, reject", () => at.desktop.key("ctrl+shift+7"), { until: "rejected" });
      await at.step("the agent is done", () => agent.end("Nothing was deleted."), { until: "Done" });
    },
  },
  "elsewhere": {
    about: "A request is open, and somebody answers it in another place. That is said, with what it was, and the person is where they were.",
    async play(at) {
      await at.field();
      const agent = await at.agent("Cleaning up.");
      await at.step("an agent starts", null, { until: "Cleaning up" });
      await at.step("a request comes", () => agent.confirm("Delete file number 109.", MILD), { until: "file number 109" });
      await at.step("another listener rejects it", () => at.elsewhere("no 1"), { until: "Say something" });
      await at.step("the agent is done", () => agent.end("Nothing was deleted."), { until: "Done" });
    },
  },
  "urgent": {
    about: "An agent fails while the question of another is being read. The question is read to its end first.",
    async play(at) {
      await at.field();
      const agent = await at.agent("Cleaning up.");
      const other = await at.agent("Copying.", "Copier");
      await at.step("two agents start", null, { until: "Copying" });
      await at.step("a request comes, and the other agent fails while it is read", async () => {
        await agent.confirm("Delete file number 110.", MILD);
        await at.hears("Delete file number 110");
        await other.emit("session.errored", { error_category: "requires_user", summary_normal: "The disk is full.",
          remediation_hint: "Make room." });
      }, { until: "The disk is full" });
      await at.step("press Ctrl+Shift+7, reject", () => at.desktop.key("ctrl+shift+7"), { until: "rejected" });
      await at.step("the agent is done", () => agent.end("Nothing was deleted."), { until: "Done" });
    },
  },
  "only-asked": {
    about: "The person wants to hear only what asks them. What the agent reports is not said; a request, its outcome and a failure are.",
    async play(at) {
      await at.announces("Down");
      await at.field();
      const agent = await at.agent("Copying.");
      await at.step("an agent starts, and reports", async () => {
        await agent.emit("progress.updated", { progress: { step: 1, total_steps: 2 }, summary_normal: "Step 1 of 2." });
        await sleep(3000);
      });
      await at.step("a request comes", () => agent.confirm("Overwrite the copy.", MILD), { until: "Overwrite" });
      await at.step("press Ctrl+Shift+7, reject", () => at.desktop.key("ctrl+shift+7"), { until: "rejected" });
      await at.step("it reports again", async () => {
        await agent.emit("progress.updated", { progress: { step: 2, total_steps: 2 }, summary_normal: "Step 2 of 2." });
        await sleep(3000);
      });
      await at.step("the agent fails", () => agent.emit("session.errored", { error_category: "permanent",
        summary_normal: "The disk is broken." }), { until: "broken" });
      await at.announces("Up");
    },
  },
  "refused": {
    about: "The hub refuses a token that is not the person's. The page says so; with the right one it connects.",
    house: true,
    async play(at) {
      await at.enters("a token that the hub does not know", `${at.token.slice(0, -4)}AAAA`, "does not know");
      await at.types("the right one", at.token, "Connected");
    },
  },
  "pin": {
    about: "Something grave needs the PIN. First a wrong one is typed, then the right one. Neither is ever said.",
    house: true,
    async play(at) {
      await at.enters("a token", at.token, "Connected");
      const agent = await at.agent("Cleaning up.");
      await at.step("an agent starts", null, { until: "Cleaning up" });
      await at.step("a request comes", () => agent.confirm("Delete the disk.", { consequence: "It is gone." }), { until: "Delete the disk" });
      await at.step("press Ctrl+Shift+9, accept", () => at.desktop.key("ctrl+shift+9"), { until: "about to accept" });
      await at.press("Tab");
      await at.press("Tab");
      await at.step("press Enter", () => at.desktop.key("Return"), { until: "PIN" });
      await at.press("Tab");
      await at.types("a wrong PIN", "8204", "not your PIN");
      await at.types("the PIN", PIN, "accepted");
      await at.step("the agent is done", () => agent.end("The disk is empty."), { until: "Done" });
    },
  },
  "swapped": {
    about: "A dishonest hub swaps the words of a question that is open. That is said, the new words are read whole, and only they are answered.",
    swaps: true,
    async play(at) {
      await at.field();
      const agent = await at.agent("Cleaning up.");
      await at.step("an agent starts", null, { until: "Cleaning up" });
      await at.step("a request comes", () => agent.confirm("Delete file number 111.", MILD), { until: "file number 111" });
      await at.step("the hub swaps its words", () => at.hub.swapper.swap({ action: "Delete all files.", summary_normal: "Delete all files." }),
        { until: "all files" });
      await at.step("press Ctrl+Shift+7, reject", () => at.desktop.key("ctrl+shift+7"), { until: "rejected" });
      await at.step("the agent is done", () => agent.end("Nothing was deleted."), { until: "Done" });
    },
  },
  "later": {
    about: "In browse mode the arrows stay inside the request. Escape puts it off from anywhere, a shortcut opens it again.",
    async play(at) {
      await at.press("h");
      await at.press("h");
      const agent = await at.agent("Cleaning up.");
      await at.step("an agent starts", null, { until: "Cleaning up" });
      await at.step("a request comes", () => agent.confirm("Delete file number 103.", MILD), { until: "file number 103" });
      await at.press("Down");
      await at.press("Up");
      await at.press("Up");
      await at.step("press Escape", () => at.desktop.key("Escape"), { until: "Put off" });
      await at.press("Down");
      await at.step("press Ctrl+Shift+1, the next request", () => at.desktop.key("ctrl+shift+1"), { until: "file number 103" });
      await at.step("press Ctrl+Shift+7, reject", () => at.desktop.key("ctrl+shift+7"), { until: "rejected" });
      await at.step("the agent is done", () => agent.end("Nothing was deleted."), { until: "Done" });
    },
  },
  "stop": {
    about: "Somebody wants to stop an agent, which ends by itself meanwhile.",
    async play(at) {
      await at.begin();
      const agent = await at.agent("Cleaning up.");
      await at.step("an agent starts", null, { until: "Cleaning up" });
      await at.step("press Ctrl+Shift+6, stop", () => at.desktop.key("ctrl+shift+6"), { until: "Stop Tester" });
      await at.press("Tab");
      await at.press("Tab");
      await at.step("the agent is done", () => agent.end("Nothing was deleted."), { until: "Nothing was deleted" });
    },
  },
  "script": {
    about: "A shell script asks, under its own name: aaep ask --name deployer.",
    async play(at) {
      await at.field();
      await at.step("a script asks", () => at.script("Publish the new version?", "--name", "deployer", "--risk", "medium",
        "--undone", "with-effort", "--consequence", "Everybody sees it."), { until: "Publish the new version" });
      await at.step("press Ctrl+Shift+9, accept", () => at.desktop.key("ctrl+shift+9"), { until: "accepted" });
    },
  },
  "streamed": {
    about: "An agent writes a text, word by word. It is not read while it comes; that it is written, and that it is there, is said once.",
    async play(at) {
      await at.field();
      const agent = await at.agent("Writing a poem.");
      await at.step("an agent starts", null, { until: "poem" });
      await at.step("it writes", async () => {
        let position = 0;
        for (const chunk of "Roses are red. Violets are blue. Nobody hears half a word.".split(/(?<= )/)) {
          await agent.emit("output.streaming", { chunk, position, complete: chunk === "word.", output_id: "out_1" });
          position += chunk.length;
          await sleep(250);
        }
      }, { until: "written" });
      await at.step("the agent is done", () => agent.end("A poem."), { until: "Done" });
    },
  },
  "braille": {
    about: "A request on a braille display of 40 cells, through Orca. It stays there until it is answered, and can be panned.",
    braille: true,
    async play(at) {
      await at.field();
      const agent = await at.agent("Cleaning up.");
      await at.step("an agent starts", null, { until: "Cleaning up" });
      await at.step("a request comes", () => agent.confirm("Delete file number 104.", MILD), { until: "file number 104" });
      for (let piece = 0; piece < 2; piece += 1) await at.step("pan to the right", () => at.desktop.display.press("FWINRT"));
      await at.step("the agent reports twenty times", async () => {
        for (let step = 1; step <= 20; step += 1) {
          await agent.emit("progress.updated", { progress: { step, total_steps: 20 }, summary_normal: `Step ${step} of 20.` });
          await sleep(100);
        }
      });
      await at.press("Tab");
      await at.step("press Enter", () => at.desktop.key("Return"), { until: "20 of 20" });
      await at.step("the agent is done", () => agent.end("Nothing was deleted."), { until: "Done" });
    },
  },
  "failed": {
    about: "An agent fails while its request is open. That is said at once, with what can be done, and the person is where they were.",
    async play(at) {
      await at.field();
      const agent = await at.agent("Copying.");
      await at.step("an agent starts", null, { until: "Copying" });
      await at.step("a request comes", () => agent.confirm("Overwrite the copy.", MILD), { until: "Overwrite" });
      await at.step("the agent fails", () => agent.emit("session.errored", { error_category: "requires_user",
        summary_normal: "The disk is full.", remediation_hint: "Make room." }), { until: "Focus mode" });
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
  "beside": {
    about: "`aaep listen` in a terminal that Orca reads. A request is heard when it comes, and so is what became of it.",
    terminal: true,
    async play(at) {
      await at.listens("--pause 0");
      const agent = await at.agent("Cleaning up.");
      await at.step("an agent starts", null, { until: "Cleaning up" });
      await at.step("a request comes", () => agent.confirm("Delete file number 107.", MILD), { until: "file number 107" });
      await at.step("type n", () => at.desktop.type("n"), { until: "rejected" });
      await at.step("the agent is done", () => agent.end("Nothing was deleted."), { until: "Done" });
      await at.step("a question comes", () => at.question("Where to?"), { until: "Where to" });
      await at.step("type a", () => at.desktop.type("a"), { until: "Type your answer" });
      at.desktop.type("Lagos");
      await at.desktop.quiet(1500);
      await at.step("type Lagos, and press Enter", () => at.desktop.key("Return"), { until: "answered" });
      await at.step("type q", () => at.desktop.type("q"), { until: "Goodbye" });
    },
  },
  "beside-braille": {
    about: "`aaep listen --braille` and Orca share a display of 40 cells. A request stays on it until the person gives the display " +
      "back to Orca, with the key that goes to the cursor; what is new takes it again; afterwards it is Orca's.",
    terminal: true,
    braille: true,
    async play(at) {
      await at.listens("--pause 0 --braille");
      const agent = await at.agent("Cleaning up.");
      await at.step("an agent starts", null, { until: "Cleaning up" });
      await at.step("a request comes", () => agent.confirm("Delete file number 108.", MILD), { until: "file number 108" });
      await at.step("press the key that goes to the cursor", () => at.desktop.display.press("HOME"));
      await at.step("a line up: it is Orca that answers", () => at.desktop.display.press("LNUP"));
      await at.step("the key again: Orca goes back to the cursor", () => at.desktop.display.press("HOME"));
      await at.step("type r, to hear it again", () => at.desktop.type("r"), { until: "file number 108" });
      await at.step("pan to the right", () => at.desktop.display.press("FWINRT"));
      await at.step("type n", () => at.desktop.type("n"), { until: "rejected" });
      await at.step("the agent is done", () => agent.end("Nothing was deleted."), { until: "Done" });
      await at.step("type q", () => at.desktop.type("q"), { until: "Goodbye" });
    },
  },
};

export const SCENARIOS = { ...PLAYED,
  ...Object.fromEntries(BOTH_MODES.map((name) => [`${name}-browsing`, browsing(PLAYED[name])])) };

/** What `cargo xtask test` plays: the rest is for the command of its own. */
export const QUICK = ["typing", "two", "grave"];
