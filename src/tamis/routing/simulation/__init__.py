"""Many routers in virtual time, with faults, clients and an oracle that knows what must happen.

A *scenario* is plain data that follows from a seed. `play` runs it and gives an *outcome*: the
violations that the oracle found, and counts of what happened. The same scenario always goes the
same way, so a violation can be made smaller (`shrink`), written to a file and played again.
"""
