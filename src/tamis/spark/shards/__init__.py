"""Subscriptions that are too many for one executor: compiled in shards, to which events are sent.

In: a table of subscriptions, and events. Out: the matches, the same as with one file.

Compiling: each task reads some filters, all rows of an id in the same task, and says in which
shards they are (`placement`). A shuffle brings those of a shard together; they are compiled, and
the compiled shards stay on the disks of the executors, as rows of bytes. The driver gets only
numbers.

Matching: a shard takes the same way as its events, a shuffle. Rows are sorted so that the bytes of
a shard come first and become a matcher; its events follow. A shard that many events meet is given
to several tasks, each with some of the events (`copies`).

The driver plans the shards from a sample of the filters (`compilation`, `plan`), and looks at some
events to decide on copies (`job`). `worker` has what the tasks do.

Subscriptions of a stream change: a few changes go with the tasks, which make them in the matchers
of their shards before they match.
"""
