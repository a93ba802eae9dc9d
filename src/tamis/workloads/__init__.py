"""Seeded subscriptions and events with the shape of the papers' workloads, and two beyond them.

>>> from tamis.workloads import workload
>>> w4 = workload("w4")
>>> w4.subscriptions(100_000, seed=1).column_names
['id', 'filter']

Each workload is a small file in ``configs/``: its kind of recipe and the numbers of the paper.
`read_workload` reads such a file of one's own.
"""

from tamis.workloads.workload import BLOCK, NAMES, Workload, read_workload, workload

__all__ = ["BLOCK", "NAMES", "Workload", "read_workload", "workload"]
