"""What one subscriber gets next: state machines without clocks, tasks and files.

`window.py` is the machine of a durable subscription, `buffer.py` that of the others; both have
`waiting_deliveries.py`. `progress.py` is what is stored of a durable one.
"""
