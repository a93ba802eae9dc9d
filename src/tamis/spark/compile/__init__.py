"""Subscriptions of a DataFrame, compiled by the executors and sent to them as one file.

In: a table of subscriptions. Out: a file of compiled rules that every worker can open.

Reading the filters takes most of the time, so each task (`worker`) reads and compiles some of them,
all rows of an id in the same task, where the last one counts (`last_rows`). It sends its file and a
report to the driver (`task_reports`). The driver (`job`) joins the files, which is quick, and sends
one file (`sent_rules`): Spark brings it to every executor that runs a task. So no shared folder is
needed, and no broadcast variable, which Spark Connect does not have. Workers map the file into
memory and keep it open. They are sent the compiled kernels in the same way (`sent_code`).
"""
