"""The tables of a job: events and subscriptions that come in, matches that go out.

In: the DataFrames of a user. Out: the columns that workers need of them, and the schema of matches.

* On the driver, `event_table` and `subscription_table` check the columns and select from them, and
  `match_schema` says which columns matches have.
* In the workers, `arrow_batches` and `event_chunks` read what Spark brings, and `match_batches`
  makes the matches of some events ready for Spark.
"""
