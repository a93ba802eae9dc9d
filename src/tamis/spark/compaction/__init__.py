"""A smaller table of subscriptions that leads to the same matches: `compact` and `CompactJob`.

In: a table of subscriptions. Out: the compacted table, a mapping from it to the originals, and the
matches of the originals from those of the compacted table (`restoration`).

The workers read filters, find their canonical forms (`filter_forms`), and reduce those that a task
has (`worker`). The driver (`job`) divides filters among tasks such that a filter and those that it
covers meet in one task, and counts. `output_folder` writes everything to a folder, or nothing.
"""
