"""``format("tamis")``: the papers' workloads as tables and streams of Spark, of any size and rate.

In: options of a reader. Out: rows of events or of subscriptions.

Spark's planner asks `data_source` for the schema and for ranges of rows; the workers generate the
rows of a range (`generated_table`), which are the same whichever worker makes them.
"""
