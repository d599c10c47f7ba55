"""Each adapter's example, run with the real framework and a scripted model. Run in an environment with
`requirements.txt`:

    AAEP_PROGRAM=/path/to/aaep python adapters.py EXAMPLES
"""

import ast
import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

EXAMPLES = Path(sys.argv.pop(1))
NAMES = ["ag_ui", "agent_framework", "anthropic", "langchain", "openai_agents", "opentelemetry", "pydantic_ai"]


def run(name, answer):
    command = [sys.executable, "-W", "error::RuntimeWarning", EXAMPLES / f"{name}_transfer.py", answer]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        wanted = [(name, answer) for name in NAMES for answer in ("accept", "reject")]
        with ThreadPoolExecutor(2) as pool:
            cls.ran = dict(zip(wanted, pool.map(lambda one: run(*one), wanted)))

    def heard(self, name, answer):
        """What it printed, and which events were heard, after the tool that needs no consent."""
        done = self.ran[name, answer]
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        events = next(ast.literal_eval(line) for line in lines if line.startswith("['session.started'"))
        asked = events.index("awaiting.confirmation")
        self.assertEqual(events[:asked].count("tool.invoked"), 1, "the other tool is announced")
        return lines, events[asked:]

    def test_after_a_yes_it_runs_once_and_people_hear_it(self):
        for name in NAMES:
            with self.subTest(name):
                lines, events = self.heard(name, "accept")
                self.assertEqual(sum(line.startswith("moved") for line in lines), 1, lines)
                self.assertEqual((events.count("tool.invoked"), events.count("tool.completed")), (1, 1))
                self.assertLess(events.index("tool.invoked"), events.index("tool.completed"))

    def test_after_a_no_nothing_runs(self):
        for name in NAMES:
            with self.subTest(name):
                lines, events = self.heard(name, "reject")
                self.assertFalse([line for line in lines if line.startswith("moved")])
                self.assertNotIn("tool.invoked", events)
                self.assertEqual(events[-1], "session.completed")

    def test_an_interrupt_of_a_graph_is_a_question(self):
        import asyncio
        from typing import TypedDict

        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph.graph import END, START, StateGraph
        from langgraph.types import interrupt

        from aaep import Agent, Gate, Hub
        from aaep.adapters.langchain import run as run_graph

        class State(TypedDict, total=False):
            month: str

        async def graph_of(hub):
            graph = StateGraph(State)
            graph.add_node("month", lambda state: {"month": interrupt("For which month?")})
            graph.add_edge(START, "month")
            graph.add_edge("month", END)
            built = graph.compile(checkpointer=InMemorySaver())
            async with Agent("graph", hub.url).session("Asking.") as session:
                return await run_graph(built, {}, Gate(session), {"configurable": {"thread_id": "1"}})

        with Hub(answer="accept", response="May") as hub:
            self.assertEqual(asyncio.run(graph_of(hub))["month"], "May")
            self.assertEqual(hub.wait_for("awaiting.clarification")["question"], "For which month?")

    def test_what_opentelemetry_is_told(self):
        for answer, outcome in [("accept", "accepted"), ("reject", "rejected")]:
            lines, _ = self.heard("opentelemetry", answer)
            self.assertIn(f"span aaep.confirm transfer {outcome}", lines)
            self.assertIn("metrics ['aaep.requests', 'aaep.wait.duration']", lines)

    def test_an_ag_ui_frontend_sees_a_whole_run(self):
        lines, _ = self.heard("ag_ui", "accept")
        seen = ast.literal_eval(lines[-1])
        self.assertEqual((seen[0], seen[-1]), ("RUN_STARTED", "RUN_FINISHED"))
        self.assertEqual(seen.count("TOOL_CALL_RESULT"), 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
