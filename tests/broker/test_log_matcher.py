"""now() in filters of a broker: the time at which an event was stored, whoever reads it when."""

import asyncio
import json
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest

from brokers import Clock, open_broker, settled, taken
from tamis import Matcher, Schema, parse
from tamis.broker.accounts import Account, new_token, token_hash
from tamis.broker.grants import Grants
from tamis.broker.log.chunk import Chunk
from tamis.broker.log_matcher import LogMatcher
from tamis.broker.records import DeliveryOptions, NewEvent, Record
from tamis.errors import Forbidden

SCHEMA = "at timestamp, n int"
START = 1_704_196_800.0  # noon of 2024-01-02
HOUR = 3600.0
FRESH = "at > now() - INTERVAL 2 HOURS"
FILTERS = [FRESH, "n = 1 AND to_date(at) < current_date", "now() < TIMESTAMP '2024-01-02 15:00:00'",
           "n = 2", "NOT at < now()"]  # fmt: skip


def events(*hours, n=1):
    """Events that happened some hours after the start."""
    times = [datetime.fromtimestamp(START + HOUR * h, UTC).isoformat() for h in hours]
    return [NewEvent(json.dumps({"at": at, "n": n}).encode()) for at in times]


def offsets(records):
    return [record.offset for record in records]


def expected(text, stored):
    """Which events match, by the hours at which they happened and at which they were stored."""
    holds = {
        FILTERS[0]: lambda at, _n, now: at > now - 2,
        FILTERS[1]: lambda at, n, now: n == 1 and (at + 12) // 24 < (now + 12) // 24,
        FILTERS[2]: lambda _at, _n, now: now < 3,
        FILTERS[3]: lambda _at, n, _now: n == 2,
        FILTERS[4]: lambda at, _n, now: at >= now,
    }[text]
    return [offset for offset, one in enumerate(stored) if holds(*one)]


def run(folder, use, **settings):
    async def main():
        clock = Clock()
        clock.seconds = START
        broker = await open_broker(folder, clock, **settings)
        try:
            await use(broker, clock)
        finally:
            await broker.close()

    asyncio.run(main())


async def publish_all(broker, guest, clock):
    """Several batches, hours apart; what was stored as (hour of the event, n, hour of storing)."""
    stored = []
    for now in (0, 1, 1, 5, 13):
        clock.seconds = START + HOUR * now
        for n in (1, 2):
            await broker.publish(guest, "t", events(now - 3, now - 1, now, now + 1, n=n))
            stored += [(now + h, n, now) for h in (-3, -1, 0, 1)]
    return stored


@pytest.mark.parametrize("text", FILTERS)
def test_live_lagging_reading_and_explaining_agree(tmp_path, text):
    async def use(broker, clock):
        guest = broker.accounts.guest
        await broker.create_topic(guest, "t", SCHEMA)
        await broker.put_subscription(guest, "t", "late", text)
        await broker.put_subscription(guest, "t", "all", "TRUE")  # beside it, in the same sweep
        live = await broker.attach_filter(guest, "t", text)
        stored = await publish_all(broker, guest, clock)
        wanted = expected(text, stored)
        assert 0 < len(wanted) < len(stored)
        clock.seconds = START + 1000 * HOUR  # long after
        assert [offset for offset, _ in await taken(broker, live)] == wanted
        lagging = await broker.attach(guest, "t", "late")
        whole = await broker.attach(guest, "t", "all")
        assert [offset for offset, _ in await taken(broker, lagging)] == wanted
        assert len(await taken(broker, whole)) == len(stored)
        assert offsets(await broker.read(guest, "t", text, most=1000)) == wanted
        for offset in range(len(stored)):
            found = await broker.why(guest, "t", filter=text, offset=offset)
            assert found.matched == (offset in wanted)

    run(tmp_path, use)


def test_redelivery_and_another_run_of_the_broker_give_the_same(tmp_path):
    stored = []

    async def first(broker, clock):
        guest = broker.accounts.guest
        await broker.create_topic(guest, "t", SCHEMA)
        options = DeliveryOptions(ack_timeout=10)
        await broker.put_subscription(guest, "t", "a", FRESH, options=options)
        stored.extend(await publish_all(broker, guest, clock))
        one = await broker.attach(guest, "t", "a")
        assert [offset for offset, _ in await taken(broker, one)] == expected(FRESH, stored)
        clock.seconds += 11  # nothing was acknowledged: it comes again
        broker._topics.get("t").topic.tick()
        again = await taken(broker, one)
        assert again == [(offset, 2) for offset in expected(FRESH, stored)]

    async def second(broker, clock):
        clock.seconds = START + 1000 * HOUR
        guest = broker.accounts.guest
        one = await broker.attach(guest, "t", "a")
        assert [offset for offset, _ in await taken(broker, one)] == expected(FRESH, stored)
        # Another filter, for what was sent and not acknowledged.
        await broker.put_subscription(guest, "t", "a", FILTERS[4])
        await settled(broker)
        await one.close()
        one = await broker.attach(guest, "t", "a")
        assert [offset for offset, _ in await taken(broker, one)] == expected(FILTERS[4], stored)

    run(tmp_path, first)
    run(tmp_path, second)


def test_more_attributes_and_an_event_that_is_not_stored(tmp_path):
    async def use(broker, clock):
        guest = broker.accounts.guest
        await broker.create_topic(guest, "t", SCHEMA)
        await broker.put_subscription(guest, "t", "a", FRESH)
        stored = await publish_all(broker, guest, clock)
        await broker.create_topic(guest, "t", SCHEMA + ", k int")
        await broker.put_subscription(guest, "t", "b", FRESH + " AND k IS NULL")
        assert offsets(await broker.read(guest, "t", FRESH + " AND k IS NULL", most=1000)) == (
            expected(FRESH, stored)
        )
        one = await broker.attach(guest, "t", "a")
        assert [offset for offset, _ in await taken(broker, one)] == expected(FRESH, stored)
        event = json.loads(events(12)[0].body)  # it would be stored at 13
        assert (await broker.why(guest, "t", subscription="a", event=event)).matched
        clock.seconds += 2 * HOUR
        assert not (await broker.why(guest, "t", subscription="a", event=event)).matched

    run(tmp_path, use)


def test_a_grant_has_no_clock(tmp_path):
    grants = Grants({"t": "at > now()"})
    tokens = frozenset([token_hash(new_token())])
    desk = Account("desk", tokens=tokens, publish=grants, subscribe=grants)

    async def use(broker, _):
        await broker.create_topic(broker.accounts.guest, "t", SCHEMA)
        for call in (
            broker.publish(desk, "t", events(0)), broker.put_subscription(desk, "t", "a", "n = 1"),
        ):  # fmt: skip
            with pytest.raises(Forbidden, match="filters cannot use the clock here: now"):
                await call

    run(tmp_path, use)


def test_publishers_are_told_a_filter_that_holds_at_any_time(tmp_path):
    async def use(broker, _):
        guest = broker.accounts.guest
        await broker.create_topic(guest, "t", SCHEMA)
        await broker.put_subscription(guest, "t", "a", "n = 5 AND " + FRESH)
        assert (await broker.wanted(guest, "t")).filter == "n = 5"
        told = await broker.quench(guest, "t", "p", None, 0.0)
        assert told.filter == "n = 5"
        await broker.put_subscription(guest, "t", "b", "n = 7 AND at < now()")
        assert (await broker.quench(guest, "t", "p", None, 0.0)).filter == "n = 5 OR n = 7"

    run(tmp_path, use)


def test_filters_with_and_without_the_time_together():
    schema = Schema({"at": "timestamp", "n": "int"})
    matcher = LogMatcher(lambda: Matcher(schema))
    matcher.subscribe(1, parse("n >= 0", schema))
    matcher.subscribe(2, parse("at > now() - INTERVAL 1 HOURS", schema))
    stored = [0, 0, 3, 3, 3, 9]  # hours
    hour = 3_600_000_000  # microseconds
    start = 1_704_196_800_000_000
    records = [
        Record(10 + n, start + h * hour, "", b"", b"") for n, h in enumerate(stored)
    ]  # fmt: skip
    happened = pa.array([start, start - hour, start, start + 3 * hour, start + 2 * hour + 1, start])
    table = pa.table({"at": happened.cast(pa.timestamp("us", "UTC")), "n": range(6)})
    chunk = Chunk(np.arange(10, 16), table, 16, lambda rows: [records[row] for row in rows])
    for count in range(7):
        events, keys = matcher.match(chunk, count)
        pairs = sorted(zip(keys.tolist(), events.tolist(), strict=True))
        assert pairs == [(1, n) for n in range(count)] + [(2, n) for n in (0, 3, 4) if n < count]
