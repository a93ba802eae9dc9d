"""Matching a table of events with a table of subscriptions: `match` and `MatchJob`.

In: a DataFrame of events and one of subscriptions. Out: a DataFrame of matches, or a folder.

The driver (`job`) has the subscriptions compiled, as one file for every executor or, if they are
too many for that, in shards (`tamis.spark.shards`), and sends events to the workers. The workers
(`worker`) match record batches. `match_counts` counts events and matches on the way, and
`output_folder` writes everything to a folder, or nothing.
"""
