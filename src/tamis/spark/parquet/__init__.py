"""Matches written to Parquet files by the workers that find them.

In: events, and a task that matches them. Out: a folder of files, and how many matches there are.

Matches are many and small. To send them to Spark's JVM, which turns them into rows and back into
columns, takes longer than to find them. So each task (`worker`) writes its own file and sends only
its name and its numbers to the driver.

Spark may run a task several times: after a failure, or because another attempt is slow. So every
attempt writes a file with a name of its own to a folder aside. Spark gives the driver (`job`) the
report of one successful attempt of each task, and the driver moves the files that these reports
name, and no others, to their place. What other attempts have written, or are still writing, is
deleted with the folder aside; they cannot make a file in a folder that is no longer there, and
where folders do not exist on their own, as in object stores, no reader looks into a folder whose
name begins with an underscore.
"""
