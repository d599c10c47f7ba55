"""The bank transfer of §6.10: python3 bank_transfer.py, or with the address of a hub behind it."""

import os
import sys

from aaep_agent import Agent, NotApproved
from aaep_hub import Stranger, local_hub


def main():
    url = sys.argv[1] if len(sys.argv) > 1 else local_hub()
    agent = Agent(url, "python-bank-assistant", os.environ.get("AAEP_TOKEN"))
    try:
        with agent.session("Moving $500 to savings, as you asked.") as session:
            with session.tool("balance", "Looking at the balance."):
                pass
            with session.confirmed(
                "transfer_funds",
                {"from": "checking", "to": "savings", "amount": "500.00", "currency": "USD"},
                action="Transfer $500 from checking to savings.",
                consequence="It cannot be easily reversed.",
            ) as call:
                amount = call.arguments["amount"]  # here the money would move
                call.summary = f"{amount} dollars were moved."
            session.say("Your savings have grown. 💰")
        print("Done.")
    except NotApproved as error:
        print(f"Not done: {error.status}.")
    except Stranger as error:
        sys.exit(f"Not asked: {error}.")


main()
