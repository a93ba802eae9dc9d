"""Networks of routers in virtual time, with faults, clients and an oracle.

A *scenario* (`scenario.py`) is plain data that follows from a seed (`scenario_generator.py`).
`simulation.play` runs it and returns an *outcome*: the violations that the oracle found, and counts
of what happened. The same scenario always goes the same way, so one with a violation can be made
smaller (`shrinker.py`), written to a file and played again.
"""
