"""Seeded subscriptions and events like those of the papers' experiments, and seven of our own.

>>> from tamis.workloads import workload
>>> w4 = workload("w4")
>>> w4.subscriptions(100_000, seed=1).column_names
['id', 'filter']

Each workload is a small file in ``configs/``: its kind, and the numbers of the paper.
`read_workload` reads such a file that you have written.
"""

from tamis.workloads.workload import BLOCK, NAMES, Workload, read_workload, workload

__all__ = ["BLOCK", "NAMES", "Workload", "read_workload", "workload"]
