"""What a topic needs of its broker: clocks, threads, the catalogue, a place to count."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tamis.broker.group_commit import GroupCommit
from tamis.broker.metrics import Metrics
from tamis.broker.other_brokers import NoOtherBrokers, OtherBrokers
from tamis.broker.quenching import Quenching
from tamis.broker.workers import Workers

if TYPE_CHECKING:
    from tamis.broker.attachment import Attachment
    from tamis.broker.records import Delivery
    from tamis.broker.topic import Topic


@dataclass(frozen=True)
class Host:
    """What a topic needs of its broker."""

    workers: Workers
    commits: GroupCommit
    metrics: Metrics
    # Writes a dead letter: a delivery of a topic that was attempted often enough.
    bury: "Callable[[Topic, Attachment, Delivery], None]"
    clock: Callable[[], float] = time.time  # seconds since 1970: when an event arrived
    monotonic: Callable[[], float] = time.monotonic  # seconds: deadlines
    network: OtherBrokers = field(default_factory=NoOtherBrokers)
    quenching: Quenching = field(default_factory=lambda: Quenching(()))
    sync: bool = True  # publishers are answered when their events are safe on disk, else earlier

    def later(self, seconds: float, function: Callable[[], object]) -> None:
        """Call a function after some time."""
        asyncio.get_running_loop().call_later(seconds, function)
