"""Dead letters: rows that cannot be used, each with the reason and the place.

In: tables of events and of subscriptions. Out: a `DeadLetter` for each bad row.

Matching and compiling only count bad rows and leave them out. They are listed in another pass,
without any matching, when there are some: `job` starts it on the driver, `worker` runs in the
workers. Compiling uses `worker.subscribe_good` as well, for the letters about filters.
"""
