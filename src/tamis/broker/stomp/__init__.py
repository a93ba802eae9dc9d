"""STOMP clients of the broker, whatever carries their bytes.

`service` is what all clients share, `connection` one connection, `client` carries out what its
client asks for, `deliveries` sends what its subscriptions get. `tamis.broker.stomp_server` listens
on TCP; the frames and what they mean are in `tamis.broker.protocols.stomp`.
"""
