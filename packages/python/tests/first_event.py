"""The first thing that somebody hears."""

from aaep import Agent, Hub

with Hub(answer="accept") as hub, Agent("first", hub.url).session("Beginning."):
    print("heard:", hub.wait_for("session.started")["summary_normal"])
