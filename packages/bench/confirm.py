"""Confirmations one after the other with the Python package: how long each took, in microseconds."""

import sys
import time

from aaep import Agent

url, count = sys.argv[1], int(sys.argv[2])
with Agent("bench-python", url).session("Measuring.") as session:
    for turn in range(count):
        began = time.perf_counter()
        with session.confirm(
            "transfer", {"amount": "500.00", "turn": turn},
            action="Transfer 500 euros.", consequence="It cannot be called back.",
        ):
            pass
        print(int((time.perf_counter() - began) * 1e6))
