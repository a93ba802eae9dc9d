"""A working Spark session, and Spark's errors in one sentence.

In: a master and settings, or nothing. Out: a `SparkSession`.

All of it runs on the driver. `session` is the front door; `java` finds a Java, `settings` has
tamis' own settings for what the user did not set, `gateway` starts the JVM quietly,
`given_session` looks after sessions that users have started themselves, `failures` turns errors of
Spark into errors of tamis, and `cluster` says how many tasks run at once.
"""
