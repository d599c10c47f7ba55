"""What the installed package does, with the real hub. Run in a fresh environment:

    AAEP_PROGRAM=/path/to/aaep python behaviour.py
"""

import asyncio
import doctest
import signal
import subprocess
import sys
import time
import unittest
import warnings
from concurrent.futures import ThreadPoolExecutor

import json
import os
from pathlib import Path

import aaep
import aaep._gate
import aaep._hub
import aaep._session
import aaep._subscriber
from aaep import Agent, Gate, Hub, Inbox, NotApproved, SessionOver, Stopped, Words

WORDS = {"action": "Transfer 500 euros.", "consequence": "It cannot be called back."}


def kinds(hub):
    return [event["type"].removeprefix("aaep:agent.") for event in hub.events]


def heard(hub, kind):
    """Waits until an event of this kind was heard."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for event in list(hub.events):
            if event["type"] == f"aaep:agent.{kind}":
                return event
        time.sleep(0.02)
    raise AssertionError(f"no {kind} was heard, only {kinds(hub)}")


def away(hub):
    """The hub stands still, with all its threads."""
    hub._process.send_signal(signal.SIGSTOP)
    tasks = Path(f"/proc/{hub._process.pid}/task")
    while any((task / "stat").read_text().rsplit(")", 1)[1].split()[0] != "T" for task in tasks.iterdir()):
        time.sleep(0.005)


class Consent(unittest.TestCase):
    def test_a_block_runs_only_after_a_yes_with_what_was_confirmed(self):
        with Hub(answer="accept") as hub:
            with Agent("bank", hub.url).session("Moving money.") as session:
                with session.confirm("transfer", {"amount": "500.00"}, **WORDS) as call:
                    self.assertIn("awaiting.confirmation", kinds(hub))
                    self.assertEqual(call.arguments, {"amount": "500.00"})
                    self.assertTrue(call.key)
                    call.summary("500 euros were moved.")
            done = heard(hub, "tool.completed")
            self.assertEqual((done["status"], done["summary_normal"]), ("success", "500 euros were moved."))
            heard(hub, "session.completed")
            self.assertEqual(kinds(hub).count("tool.invoked"), 1)

    def test_after_a_no_nothing_runs(self):
        ran = []
        with Hub(answer="reject") as hub:
            with self.assertRaises(NotApproved) as no:
                with Agent("bank", hub.url).session("Moving money.") as session:
                    with session.confirm("transfer", {}, **WORDS):
                        ran.append("block")
            self.assertEqual(no.exception.reason, "rejected")
            heard(hub, "session.completed")
            self.assertNotIn("tool.invoked", kinds(hub))
        self.assertEqual(ran, [])

    def test_nobody_answers_and_silence_means_no(self):
        with Hub() as hub, self.assertRaises(NotApproved) as no:
            with Agent("bank", hub.url).session("Moving money.") as session:
                with session.confirm("transfer", {}, timeout_seconds=1, **WORDS):
                    self.fail("it ran")
        self.assertEqual(no.exception.reason, "timed_out")

    def test_silence_is_a_yes_only_where_it_is_easily_undone(self):
        with Hub() as hub, Agent("bank", hub.url).session("Sorting mail.") as session:
            with self.assertRaises(ValueError):
                session.confirm("sort", {}, accept_on_silence=True, **WORDS).__enter__()
            words = {"action": "Sort your mail.", "consequence": "It can be sorted back."}
            easily = {"undo": "easily", "risk": "low", "accept_on_silence": True, "timeout_seconds": 1}
            with session.confirm("sort", {}, **easily, **words) as call:
                self.assertEqual(call.by, "timeout")

    def test_a_decorated_function_runs_only_after_a_yes(self):
        ran = []

        def pay(hub):
            with Agent("bank", hub.url).session("Moving money.") as session:

                @session.confirmed(action="Pay {amount} to {to}.", consequence="It is gone.")
                def transfer(to, amount="1.00"):
                    ran.append((to, amount))
                    return "receipt"

                return transfer("ann")

        with Hub(answer="accept") as hub:
            self.assertEqual(pay(hub), "receipt")
            self.assertEqual(heard(hub, "awaiting.confirmation")["action"], "Pay 1.00 to ann.")
        with Hub(answer="reject") as hub, self.assertRaises(NotApproved):
            pay(hub)
        self.assertEqual(ran, [("ann", "1.00")])

    def test_a_tool_that_fails_is_completed_as_failed_and_its_error_comes_through(self):
        with Hub(answer="accept") as hub, self.assertRaises(ZeroDivisionError):
            try:
                with Agent("bank", hub.url).session("Counting.") as session:
                    with session.tool("count", "Counting."):
                        1 / 0
            finally:
                self.assertEqual(heard(hub, "tool.completed")["status"], "error")
                heard(hub, "session.errored")


class Work(unittest.TestCase):
    def test_a_tool_may_block_longer_than_the_lease(self):
        with Hub(answer="accept") as hub:
            with Agent("bank", hub.url).session("Waiting.", lease_seconds=15) as session:
                with session.tool("slow", "Taking its time."):
                    time.sleep(17)
                self.assertFalse(session.stopped)
            heard(hub, "session.completed")

    def test_progress_and_streaming_are_heard(self):
        with Hub(answer="accept") as hub:
            with Agent("bank", hub.url).session("Writing.") as session:
                session.thinking("Thinking about it.")
                session.progress(40, description="Copying.")
                with session.output() as out:
                    for token in ["The rent ", "is paid", "."]:
                        out.write(token)
            self.assertEqual(heard(hub, "progress.updated")["progress"]["percent"], 40)
            heard(hub, "session.completed")
            chunks = [event["chunk"] for event in hub.events if "chunk" in event]
            self.assertEqual("".join(chunks), "The rent is paid.")

    def test_what_was_done_while_the_hub_was_away_is_not_reported_as_failed(self):
        with Hub(answer="accept") as hub:
            agent = Agent("bank", hub.url, patience=0.5)
            opening = agent.session("Moving money.")
            session = opening.__enter__()
            try:
                with warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    with session.confirm("transfer", {}, **WORDS):
                        away(hub)
                self.assertIn("the hub could not be told yet", str(said[0].message))
            finally:
                hub._process.send_signal(signal.SIGCONT)
            self.assertEqual(heard(hub, "tool.completed")["status"], "success")
            opening.__exit__(None, None, None)

    def test_what_was_done_while_the_hub_was_away_to_the_end_is_no_exception_and_is_told(self):
        def pay(hub):
            with Agent("bank", hub.url, patience=1).session("Moving money.") as session:
                with session.confirm("transfer", {}, **WORDS):
                    away(hub)
                return "receipt"

        async def apay(hub):
            async with Agent("bank", hub.url, patience=1).session("Moving money.") as session:
                async with session.confirm("transfer", {}, **WORDS):
                    away(hub)
                return "receipt"

        for kind, run in [("with", pay), ("async with", lambda hub: asyncio.run(apay(hub)))]:
            with self.subTest(kind), Hub(answer="accept") as hub:
                try:
                    with warnings.catch_warnings(record=True) as said:
                        warnings.simplefilter("always")
                        self.assertEqual(run(hub), "receipt")
                    texts = [str(one.message) for one in said]
                    self.assertTrue(any("transfer ran" in text for text in texts), texts)
                    self.assertTrue(any("The session is done" in text for text in texts), texts)
                finally:
                    hub._process.send_signal(signal.SIGCONT)
                self.assertEqual(heard(hub, "tool.completed")["status"], "success")

    def test_words_that_the_hub_refuses_leave_the_status_of_a_tool_as_it_was(self):
        with Hub(answer="accept") as hub:
            with Agent("bank", hub.url).session("Looking.") as session:
                with session.tool("look", "Looking.") as call:
                    call.summary("Found \u202ehsac.")
            done = heard(hub, "tool.completed")
            self.assertEqual(done["status"], "success")
            self.assertEqual(done["summary_normal"], "look is over; the words for it were refused.")

    @unittest.skipUnless(hasattr(os, "fork"), "nothing is forked here")
    def test_an_agent_of_a_forked_process_says_so_and_a_new_one_works(self):
        with Hub(answer="accept") as hub:
            old = Agent("bank", hub.url)
            with old.session("Before.") as session:
                read, write = os.pipe()
                child = os.fork()
                if child == 0:
                    signal.alarm(30)  # what hangs ends
                    said = []
                    for use in (lambda: old.session("In a fork.").__enter__(), lambda: session.thinking("About it.")):
                        try:
                            use()
                        except aaep.Misuse as misuse:
                            said.append(str(misuse))
                    try:
                        with Agent("fork", hub.url).session("Of the fork.") as own, own.tool("look", "Looking."):
                            said.append(own.id)
                    finally:
                        os.write(write, json.dumps(said).encode())
                        os._exit(0)
                os.close(write)
                with os.fdopen(read) as pipe:
                    said = json.load(pipe)
                self.assertEqual(os.waitpid(child, 0)[1], 0)
                self.assertEqual(len(said), 3, said)
                for text in said[:2]:
                    self.assertIn("Make a new Agent in this process", text)
                session.thinking("The first process goes on.")
            hub.wait_for("session.completed", 2)
            ended = [event["session_id"] for event in hub.events if event["type"].endswith("session.completed")]
            self.assertEqual(set(ended), {said[2], session.id})


class Asyncio(unittest.TestCase):
    def test_two_sessions_at_once_and_a_cancelled_task_gives_its_session_up(self):
        async def one(hub, name):
            async with Agent(name, hub.url).session("Moving money.") as session:
                async with session.confirm("transfer", {"of": name}, **WORDS) as call:
                    await asyncio.sleep(0)
                    return call.arguments["of"]

        async def both(hub):
            return await asyncio.gather(one(hub, "ann"), one(hub, "bob"))

        async def given_up(hub):
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(one(hub, "eve"), 1)

        with Hub(answer="accept") as hub:
            self.assertEqual(asyncio.run(both(hub)), ["ann", "bob"])
        with Hub() as hub:
            hub._reply = lambda event: None
            hub._listen()
            asyncio.run(given_up(hub))
            heard(hub, "awaiting.confirmation")
            heard(hub, "session.cancelled")
            self.assertNotIn("tool.invoked", kinds(hub))


class Questions(unittest.TestCase):
    def test_answers_are_of_the_kind_that_was_asked_for(self):
        for response, ask, wanted in [
            ("May", lambda session: session.ask("For which month?"), "May"),
            (True, lambda session: session.ask_yes_no("Really?"), True),
            (2.5, lambda session: session.ask_number("How many?"), 2.5),
            ("2", lambda session: session.choose("Which?", ["red", "blue"]), 1),
        ]:
            with Hub(answer="accept", response=response) as hub:
                with Agent("bank", hub.url).session("Asking.") as session:
                    self.assertEqual(ask(session), wanted)


class Stops(unittest.TestCase):
    def test_a_stop_by_the_user_is_an_exception_of_its_own_and_no_failure_of_the_agent(self):
        ran = []
        with Hub(answer="stop") as hub:
            with self.assertRaises(Stopped):
                with Agent("bank", hub.url).session("Moving money.") as session:
                    with session.confirm("transfer", {}, **WORDS):
                        ran.append("block")
            self.assertEqual(heard(hub, "session.cancelled")["cancelled_by"], "user")
            self.assertEqual(ran, [])
            self.assertNotIn("session.errored", kinds(hub))

    def test_a_tool_that_runs_meanwhile_learns_of_it(self):
        with Hub(answer="stop") as hub:
            with self.assertRaises(Stopped):
                with Agent("bank", hub.url).session("Looking.") as session:
                    with session.tool("look", "Looking."):
                        hub.stop_agent(session.id)
                        deadline = time.monotonic() + 20
                        while not session.stopped and time.monotonic() < deadline:
                            time.sleep(0.02)
                        self.assertTrue(session.stopped)
                        session.progress(50)

    def test_what_the_agent_ended_itself_was_not_stopped(self):
        with Hub(answer="accept") as hub, Agent("bank", hub.url).session("Ending.") as session:
            session.complete("Done.")
            with self.assertRaises(SessionOver) as over:
                session.thinking("More.")
            self.assertNotIsInstance(over.exception, Stopped)


class Gates(unittest.TestCase):
    def test_the_gate_asks_where_the_policy_wants_it_though_the_agent_would_not(self):
        policy = Path("policy.toml").absolute()
        policy.write_text('[[rule]]\ntool = "look"\nrisk_level = "low"\nreversibility = "reversible"\nverdict = "announce"\n')
        with Hub(answer="reject", settings={"AAEP_POLICY": str(policy)}) as hub:
            with Agent("shop", hub.url).session("Buying.") as session:
                gate = Gate(session)
                self.assertEqual(gate.call("look", {"for": "shoes"}, lambda given: given["for"]), "shoes")
                with self.assertRaises(NotApproved):
                    gate.call("pay", {"amount": "80.00"}, lambda _: self.fail("it ran"))
            self.assertEqual(heard(hub, "awaiting.confirmation")["action"], "Run pay.")

    def test_calls_that_are_held_back_run_or_not_and_people_hear_how_they_ended(self):
        async def both(hub):
            async with Agent("shop", hub.url).session("Buying.") as session:
                gate = Gate(session, {"pay": aaep.Consent("Pay {amount} euros.", "It is gone.")})
                calls = [("a", "pay", {"amount": "1.00"}), ("b", "pay", {"amount": "2.00"})]
                async with gate.held_back(calls) as decisions:
                    decisions["b"].call.failed("There was no money.")
                    return decisions["a"].approved and decisions["b"].approved

        with Hub(answer="accept") as hub:
            self.assertTrue(asyncio.run(both(hub)))
            heard(hub, "session.completed")
            ended = sorted(event["status"] for event in hub.events if event["type"].endswith("tool.completed"))
            self.assertEqual(ended, ["error", "success"])


    def test_a_tool_that_is_refused_elsewhere_for_consent_runs_once(self):
        ran = []

        def run(given):
            ran.append(given)
            raise aaep.Refused("A hub of its own wants consent.", status=409, rule="T27")

        async def arun(hub):
            async with Agent("shop", hub.url).session("Buying.") as session:
                await Gate(session).acall("look", {}, run)

        with Hub(answer="accept") as hub:
            with self.assertRaises(aaep.Refused), Agent("shop", hub.url).session("Buying.") as session:
                Gate(session).call("look", {}, run)
            self.assertEqual(len(ran), 1)
            with self.assertRaises(aaep.Refused):
                asyncio.run(arun(hub))
            self.assertEqual(len(ran), 2)
            self.assertNotIn("awaiting.confirmation", kinds(hub))

    def test_of_several_calls_nobody_knows_the_end_if_the_framework_breaks_off(self):
        async def broken(hub, count):
            async with Agent("shop", hub.url).session("Buying.") as session:
                calls = [(str(place), "pay", {"amount": str(place)}) for place in range(count)]
                async with Gate(session).held_back(calls):
                    raise ZeroDivisionError

        for count, wanted in [(1, ["error"]), (2, ["timeout", "timeout"])]:
            with Hub(answer="accept") as hub, self.assertRaises(ZeroDivisionError):
                try:
                    asyncio.run(broken(hub, count))
                finally:
                    heard(hub, "session.errored")
                    ended = [event["status"] for event in hub.events if event["type"].endswith("tool.completed")]
                    self.assertEqual(ended, wanted)

    def test_what_a_framework_does_is_given_up_when_the_user_stops(self):
        went_on = []

        async def framework():
            try:
                await asyncio.sleep(60)
                went_on.append("a tool")
            except asyncio.CancelledError:
                went_on.append("given up")
                raise

        async def stopped(hub):
            async with Agent("shop", hub.url).session("Buying.") as session:
                hub.stop_agent(session.id)
                await Gate(session).unless_stopped(framework())

        async def ended(hub):
            async with Agent("shop", hub.url).session("Buying.") as session:
                return await Gate(session).unless_stopped(asyncio.sleep(0, "receipt"))

        with Hub(answer="accept") as hub:
            with self.assertRaises(Stopped):
                asyncio.run(stopped(hub))
            self.assertEqual(went_on, ["given up"])
            self.assertEqual(asyncio.run(ended(hub)), "receipt")


class Listening(unittest.TestCase):
    """The vectors that the Rust library and the page pass."""

    VECTORS = Path(os.environ["AAEP_VECTORS"])

    def test_the_inbox_tells_and_sends_what_the_vectors_want(self):
        vectors = json.loads((self.VECTORS / "inbox.json").read_text())
        self.assertGreater(len(vectors), 20)
        for vector in vectors:
            with self.subTest(vector["name"]):
                inbox = Inbox(text=vector.get("text", "sentence"), unix_ms=1_779_631_200_000)
                inbox.begin(now=0)
                for step in vector["steps"]:
                    self.take(inbox, step)

    def take(self, inbox, step):
        now, sent, refused = step["at"], [], False
        try:
            if "raw" in step:
                inbox.message(step["raw"], now=now)
            for message in step.get("message", []) if isinstance(step.get("message"), list) else [step.get("message")]:
                if message is not None:
                    inbox.message(message, now=now)
            if "attached" in step:
                inbox.attached(now=now)
            if "lost" in step:
                inbox.lost(step["lost"], now=now)
            if "begin" in step:
                sent.append(inbox.begin(now=now))
            if "answer" in step:
                inbox.answer(step["answer"]["number"], step["answer"]["answer"], now=now)
            if "more_time" in step:
                inbox.more_time(step["more_time"]["number"], step["more_time"]["seconds"], now=now)
        except ValueError:
            refused = True
        self.assertEqual(refused, step.get("refused", False))
        told = [self.written(happening) for happening in inbox.told(now=now)]
        self.assertEqual(told, step.get("told", []))
        sent = inbox.to_send(now=now) + sent
        for message in sent:
            if "subscriber" in message or "subscriber_version" in message:
                message.pop("subscriber_version", None)
        self.assertEqual([one.get("type") for one in sent], [one.get("type") for one in step.get("sent", [])])
        for found, wanted in zip(sent, step.get("sent", [])):
            self.assertEqual(found, found | {key: value for key, value in wanted.items() if key != "subscriber_version"})

    def written(self, happening):
        what = {"kind": happening.kind, **happening.what}
        if happening.kind == "event":
            what["event_id"] = what.pop("event")["event_id"]
        if happening.kind == "settled":
            what["request"] = {"number": what["request"]["number"]}
        return what

    def test_words_are_said_in_the_listeners_language(self):
        inbox = Inbox()
        inbox.begin(now=0)
        inbox.lost("the network is down", now=5)
        said = {tag: Words(tag).say(inbox.told(now=5)[0]) for tag in ["en"]}
        self.assertTrue(said["en"][0])
        self.assertEqual(Words("yo-NG").language, "yo")
        self.assertEqual(Words("xx").language, "en")


class Documentation(unittest.TestCase):
    def test_the_page_about_the_gate_runs(self):
        page = (Path(os.environ["AAEP_DOCS"]) / "gate.md").read_text()
        code = page.split("```python\n", 1)[1].split("```", 1)[0]
        for answer, said in [("accept", "found shoes paid 80.00 to the shop"), ("reject", "nothing was paid: rejected")]:
            with Hub(answer=answer) as hub:
                known = os.environ | {"AAEP_URL": hub.url}
                printed = subprocess.check_output([sys.executable, "-c", code], env=known, text=True)
                self.assertIn(said, printed)


    def test_the_snippet_of_the_readme_runs(self):
        readme = (Path(os.environ["AAEP_DOCS"]).parent / "packages/python/README.md").read_text()
        snippets = [part.split("```", 1)[0] for part in readme.split("```python\n")[1:]]
        self.assertEqual(len(snippets), 2)
        paying = "def pay(**given): print('paid', given['amount'], bool(given['idempotency_key']))\n"
        for snippet, said in zip(snippets, ["paid 800.00 True\n", "moved 5.00\n"]):
            with Hub(answer="accept") as hub:
                known = os.environ | {"AAEP_URL": hub.url}
                command = [sys.executable, "-c", paying + snippet]
                self.assertEqual(subprocess.check_output(command, env=known, text=True), said)
            with Hub(answer="reject") as hub:
                known = os.environ | {"AAEP_URL": hub.url}
                done = subprocess.run([sys.executable, "-c", paying + snippet], env=known, capture_output=True, text=True)
                self.assertEqual(done.stdout, "")
                self.assertIn("NotApproved", done.stderr)


class Ends(unittest.TestCase):
    def test_python_ends_well_right_after_the_last_call(self):
        code = (
            "import asyncio\nfrom aaep import Agent\n"
            "async def main():\n"
            "    async with Agent('short').session('Looking.') as session:\n"
            "        async with session.tool('look', 'Looking.'): pass\n"
            "asyncio.run(main())\n"
        )
        with Hub(answer="accept") as hub, ThreadPoolExecutor(4) as pool:
            known = os.environ | {"AAEP_URL": hub.url}
            ended = pool.map(lambda _: subprocess.run([sys.executable, "-c", code], env=known).returncode, range(40))
            # Before, about one in ten was taken down by a thread that still waited for Python's lock.
            self.assertEqual(list(ended), [0] * 40)


class Errors(unittest.TestCase):
    def test_an_agent_without_a_hub_says_so_and_soon(self):
        for url in ["http://127.0.0.1:9", "unix:/tmp/aaep-nobody-listens-here.sock"]:
            began = time.monotonic()
            with self.assertRaises(aaep.Unavailable) as away:
                Agent("bank", url).session("Nothing.").__enter__()
            self.assertIn("start a hub with", str(away.exception))
            self.assertLess(time.monotonic() - began, 5)

    def test_importing_is_cheap(self):
        code = "import time; t = time.perf_counter(); import aaep; print((time.perf_counter() - t) * 1000)"
        runs = sorted(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(9))
        print(f"import aaep: {runs[0]:.0f} ms at best, {runs[4]:.0f} ms in the middle of {len(runs)}")
        # The aim is 60 ms; this machine may be busy.
        self.assertLess(runs[0], 1000)
        # Not by the clock: what takes long is what is imported.
        code = "import sys; before = set(sys.modules); import aaep; print(*set(sys.modules) - before)"
        loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
        heavy = {"asyncio", "concurrent.futures", "dataclasses", "inspect", "logging", "subprocess", "http.client"}
        self.assertFalse(heavy & set(loaded))
        ours = [name for name in loaded if name.split(".")[0] == "aaep"]
        self.assertEqual(len(ours), 7, ours)
        self.assertLess(len(loaded), 60, loaded)

    def test_the_examples_of_the_docstrings_run(self):
        for module in (aaep, aaep._gate, aaep._hub, aaep._session, aaep._subscriber):
            found = doctest.testmod(module)
            self.assertEqual(found.failed, 0)
            self.assertGreater(found.attempted, 0, module.__name__)


if __name__ == "__main__":
    unittest.main(verbosity=2)
