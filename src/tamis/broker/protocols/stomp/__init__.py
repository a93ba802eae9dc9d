"""STOMP 1.2, and 1.1 and 1.0 where clients ask for them.

`frames` cuts bytes into frames, `session` turns the frames of one client into requests, `messages`
writes deliveries, `header_events` makes events of headers.
"""
