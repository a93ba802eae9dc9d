"""Filters of clients on their way into the network: many at once, and the latest of each id."""

import asyncio

import pytest

from tamis.broker.network.own_filters import AT_ONCE, OwnFilters
from tamis.errors import ExpressionError
from tamis.language.expression import parse
from tamis.schema import Schema

SCHEMA = Schema({"price": "int"})


class Recorder:
    """Routes that note what they are told, and answer when they are told to."""

    def __init__(self):
        self.told = []

    def want(self, id_, text):
        self.told.append((id_, text))

    def unwant(self, id_):
        self.told.append((id_, None))


def filter_of(number):
    return parse(f"price < {number}", SCHEMA)


async def turns(count=3):
    for _ in range(count):
        await asyncio.sleep(0)


def test_many_are_passed_on_together_and_others_have_their_turn():
    async def run():
        told = []
        routes = Recorder()
        own = OwnFilters(lambda: told.append(len(routes.told)))
        own.use(routes)
        tasks = [asyncio.create_task(own.want(str(n), filter_of(n))) for n in range(250)]
        await turns(6)
        assert told == [AT_ONCE, 2 * AT_ONCE, 250]
        assert routes.told[7] == ("7", "price < 7")
        assert not any(task.done() for task in tasks)
        for n in range(250):
            own.established(str(n))
        await asyncio.gather(*tasks)

    asyncio.run(run())


def test_only_the_latest_of_an_id_counts():
    async def run():
        routes = Recorder()
        own = OwnFilters(lambda: None)
        own.use(routes)
        first = asyncio.create_task(own.want("a", filter_of(1)))
        await turns(1)
        second = asyncio.create_task(own.want("a", filter_of(2)))
        await turns(1)
        own.established("a")  # the answer to an earlier one
        await turns()
        assert first.done()
        assert not second.done()
        assert routes.told[-1] == ("a", "price < 2")
        own.established("a")
        await second

    asyncio.run(run())


def test_what_is_gone_is_not_waited_for():
    async def run():
        routes = Recorder()
        own = OwnFilters(lambda: None)
        own.use(routes)
        own.unwant("nobody")
        task = asyncio.create_task(own.want("a", filter_of(1)))
        await turns()
        own.unwant("a")
        await task
        await turns()
        assert routes.told == [("a", "price < 1"), ("a", None)]
        later = Recorder()
        own.use(later)
        assert later.told == []

    asyncio.run(run())


def test_other_routes_get_what_was_passed_on():
    async def run():
        own, later = OwnFilters(lambda: None), Recorder()
        own.use(Recorder())
        own.load("a", "price < 1")
        own.use(later)
        assert later.told == [("a", "price < 1")]

    asyncio.run(run())


def test_whoever_waits_is_told_of_an_error():
    class Refusing(Recorder):
        def want(self, id_, text):  # noqa: ARG002 - as its base
            raise ExpressionError("too large", text, 0, 0)

    async def run():
        own = OwnFilters(lambda: None)
        own.use(Refusing())
        with pytest.raises(ExpressionError):
            await own.want("a", filter_of(1))

    asyncio.run(run())
