"""Processes in virtual time: nothing waits, and what has ended does nothing any more."""

import asyncio

from tamis.broker.simulation.virtual_time import VirtualTime


def never():
    return False


def test_sleeping_takes_no_time():
    time, found = VirtualTime(), []

    async def sleep(seconds):
        await asyncio.sleep(seconds)
        found.append((seconds, round(asyncio.get_running_loop().time(), 2)))

    process = time.process("one")
    for seconds in (1000.0, 5.0, 70.0):
        process.create_task(sleep(seconds))
    assert not time.run(never, 500.0)
    assert found == [(5.0, 5.0), (70.0, 70.0)]
    assert time.run(lambda: len(found) == 3, 5000.0)
    assert time.now < 1001.0
    assert not time.run(never, 9000.0)
    assert time.now == 9000.0  # nobody has anything to do


def test_a_process_that_ends_does_nothing_any_more():
    time, found = VirtualTime(), []

    async def count():
        try:
            while True:
                await asyncio.sleep(1.0)
                found.append(asyncio.get_running_loop().name)
        finally:
            await asyncio.sleep(0)
            found.append("cleaned up")

    one, two = time.process("one"), time.process("two")
    one.create_task(count())
    two.create_task(count())
    told = []
    one.when_ended(lambda: told.append("one"))
    two.when_ended(lambda: told.append("two"))()
    time.run(never, 2.5)
    one.end()
    two.call_later(1.0, two.end)
    time.run(never, 9.0)
    assert found == ["one", "two", "one", "two", "two"]
    assert told == ["one"]
    assert one.problems == two.problems == []


def test_a_stalled_process_goes_on_with_what_was_to_be_done():
    time, found = VirtualTime(), []
    process = time.process("one")
    process.call_later(1.0, found.append, "due")
    process.call_later(2.0, found.append, "cancelled").cancel()
    process.stall()
    time.run(never, 10.0)
    assert found == []
    process.go_on()
    time.run(never, 11.0)
    assert found == ["due"]


def test_what_nobody_handles_is_a_problem():
    time = VirtualTime()
    process = time.process("one")
    process.call_soon(lambda: 1 / 0)
    time.run(never, 1.0)
    (problem,) = process.problems
    assert isinstance(problem["exception"], ZeroDivisionError)
