"""`Acknowledgements`: what a subscriber has acknowledged, on its way to the broker."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from tamis.errors import TamisError

BEFORE_ALL = -(1 << 62)  # an offset; those below 0 came with a subscription from another broker

logger = logging.getLogger(__name__)


class Acknowledgements:
    """Acknowledgements on their way: the newest replaces those that are not sent yet."""

    def __init__(self, send: Callable[[int], Coroutine[Any, Any, None]]) -> None:
        self.wanted = BEFORE_ALL
        self._sent = BEFORE_ALL
        self._send = send
        self._lock = threading.Lock()
        self._is_woken = False
        self._changed = asyncio.Condition()
        self._loop = asyncio.get_running_loop()
        self._error: TamisError | None = None
        self._task: asyncio.Task[None] | None = None

    def up_to(self, offset: int) -> None:
        """Send this acknowledgement soon; from any thread."""
        with self._lock:
            if offset <= self.wanted:
                return
            self.wanted = offset
            if self._is_woken:
                return
            self._is_woken = True
        self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if self._task is None or self._task.done():
            self._task = self._loop.create_task(self._send_all())

    async def _send_all(self) -> None:
        while True:
            with self._lock:
                offset = self.wanted
                if offset <= self._sent:
                    self._is_woken = False
                    return
            try:
                await self._send(offset)
            except TamisError as error:
                logger.warning("offset %s could not be acknowledged: %s", offset, error)
                self._error = error
                with self._lock:
                    self._is_woken = False
                return
            else:
                self._sent = offset
            finally:
                async with self._changed:
                    self._changed.notify_all()

    async def sent_up_to(self, offset: int) -> None:
        """Wait until the broker has this acknowledgement; raises an error if it refuses it."""
        self._error = None
        async with self._changed:
            await self._changed.wait_for(lambda: self._sent >= offset or self._error is not None)
        if self._error is not None:
            raise self._error

    async def close(self) -> None:
        """Send what is not sent yet."""
        if self.wanted > self._sent:
            self._wake()
        if self._task is not None:
            await self._task
