"""Clients of a broker: publish events, subscribe with filters, receive what matches.

`connection` is the tour: a `Connection` of asyncio sends its requests through a `BrokerSession`,
which tries again and turns refusals into errors; it makes the bodies of publications in
`publications`, and receives through a `Subscription`, which reads server-sent events
(`event_stream`) and comes back after a lost connection. `blocking` is the same for programs without
asyncio: it runs the asyncio client in a thread and has no logic of its own.
"""
