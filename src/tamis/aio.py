"""The client of a broker for asyncio: ``async with tamis.aio.connect(url) as broker``."""

from tamis.client.connection import Connection, connect
from tamis.client.delivery import Delivery
from tamis.client.subscription import Subscription

__all__ = ["Connection", "Delivery", "Subscription", "connect"]
