"""The streams that are open over HTTP: all of them end when the broker stops."""

import asyncio

from tamis.broker.attachment import Attachment


class OpenStreams:
    """The attachments of all connections that listen."""

    def __init__(self) -> None:
        self.stopping = False
        self._open: set[Attachment] = set()

    def add(self, attachment: Attachment) -> None:
        """Add one that listens."""
        self._open.add(attachment)

    def remove(self, attachment: Attachment) -> None:
        """Forget one that listens no more."""
        self._open.discard(attachment)

    async def end(self) -> None:
        """Let nobody listen any more; clients may come back when the broker does."""
        self.stopping = True
        await asyncio.gather(*(attachment.close() for attachment in list(self._open)))
