"""Matching a stream of events with subscriptions that change meanwhile: `match_stream`.

In: a streaming DataFrame of events, and a changelog of subscriptions. Out: a folder of matches for
each micro-batch, or a call of a function with them.

Spark calls the driver (`query`) once for each micro-batch. The driver reads new changes
(`changelogs`, `changes`, `new_changes`), makes a version of the subscriptions out of them
(`versions`), pins the micro-batch to it (`pinned_versions`), and has the workers match. Few changes
are sent to the workers, which make them in their own matchers; many are read by the workers first
(`worker`) and become a new base, a compiled file (`base_files`) or shards (`base_shards`).

What filters can test belongs to the checkpoint (`stream_schema`), like the columns that events had
(`event_columns`). `query_start` starts the query, `file_sink` writes, and `metrics` tells how it
goes.
"""
