"""Brokers that route events to subscribers, as pure logic: messages in, messages out.

`router.py` is one broker and the tour of this package; `simulation/` plays networks of them.
"""
