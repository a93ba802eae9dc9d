"""``tamis demo``: generated events, matched by a batch job and by a stream, and compared.

In: a session and sizes. Out: a `Demonstration` with times, counts and any disagreements.

All of it runs on the driver, by way of the other packages. `demonstration` does the steps, and
`agreement` compares the matches of the stream with those of batch jobs.
"""
