"""Dead letters on their way into their topics."""

import asyncio
import logging

from tamis.broker.attachment import Attachment
from tamis.broker.dead_letter import dead_letter
from tamis.broker.event_rows import PublishRequirements
from tamis.broker.records import Delivery
from tamis.broker.topic import Topic
from tamis.broker.topics import Topics
from tamis.errors import TamisError

RETRY = 1.0  # seconds until a dead letter that could not be written is tried again

logger = logging.getLogger("tamis.broker")


class DeadLetterWriter:
    """Writes dead letters; `topics` has to be set before anything is delivered."""

    topics: Topics

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[None]] = set()

    def bury(self, topic: Topic, one: Attachment, delivery: Delivery) -> None:
        """Write a dead letter soon; the attachment is told when it is safe."""
        task = asyncio.create_task(self._write(topic, one, delivery))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _write(self, topic: Topic, one: Attachment, delivery: Delivery) -> None:
        offset = delivery.record.offset
        try:
            dead = await self.topics.dead_letters_of(topic)
            letter = dead_letter(topic.name, one.interest, delivery)
            answer = await dead.topic.publish([letter], PublishRequirements())
        except TamisError as error:
            logger.warning("a dead letter of topic %r has to wait: %s", topic.name, error)
            topic.host.later(RETRY, lambda: topic.bury_again(one, offset))
            return
        if answer.refused:
            logger.error("a dead letter of %r is refused: %s", topic.name, answer.refused[0].reason)
        topic.was_buried(one, offset)
