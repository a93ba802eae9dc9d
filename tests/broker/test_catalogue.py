"""Topics and subscriptions on disk: damage is found when a row is read, and said."""

import asyncio
import sqlite3

import pytest

from brokers import QUOTES, open_broker, prices, taken, with_broker
from tamis.broker.catalogue import (
    Catalogue,
    SubscriptionRow,
    TopicRow,
    drop_subscription,
    drop_topic,
    put_subscription,
    put_topic,
    store_progress,
)
from tamis.broker.delivery.progress import Progress, starting_at
from tamis.broker.records import DeliveryOptions, Retention
from tamis.broker.storage import LocalStorage
from tamis.errors import Conflict, FileError

TOPIC = TopicRow(1, "a", {"price": "double"}, "default", {"price": 1.5}, Retention(max_events=5))
ALICE = SubscriptionRow(1, "guest", "alice", "price > 1", DeliveryOptions(window=7), starting_at(3))


@pytest.fixture
def catalogue(tmp_path):
    made = Catalogue(tmp_path / "catalogue.sqlite")
    yield made
    made.close()


def test_only_the_owner_reads_the_catalogue(tmp_path):
    path = tmp_path / "catalogue.sqlite"
    path.touch(0o644)
    storage = LocalStorage(tmp_path)
    catalogue = storage.open_catalogue()
    catalogue.commit([put_topic(TOPIC)])
    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.glob(f"{path.name}*")}
    assert len(modes) == 3  # with what is written ahead
    assert set(modes.values()) == {0o600}, modes
    catalogue.close()
    storage.release()


def test_a_catalogue_that_cannot_be_opened_is_said(tmp_path):
    with pytest.raises(FileError, match="cannot be used: unable to open"):
        Catalogue(tmp_path)


def change(path, statement):
    tables = sqlite3.connect(path)
    tables.execute(statement)
    tables.commit()
    tables.close()


def test_rows_come_back_as_they_were(catalogue):
    further = ALICE._replace(progress=Progress(9, 12, {4: 1, 7: 3}), attached=True, expired=2)
    catalogue.commit([put_topic(TOPIC), put_subscription(ALICE)])
    assert catalogue.topics() == [TOPIC]
    assert catalogue.subscription(1, "guest", "alice") == ALICE
    assert catalogue.subscription(1, "other", "alice") is None
    catalogue.commit([store_progress(further)])
    assert catalogue.subscriptions(1, "guest", None, 10) == [further]
    assert catalogue.attached(1) == [further]
    assert catalogue.counts() == [(1, "guest", 1)]
    assert catalogue.counts_of(1) == {"guest": 1}
    assert catalogue.counts_of(2) == {}
    catalogue.commit([drop_subscription(1, "guest", "alice")])
    assert catalogue.counts_of(1) == {"guest": 0}
    catalogue.commit([*drop_topic(1)])
    assert catalogue.counts() == []
    assert catalogue.topics() == []


def test_those_asleep_are_found_by_how_far_they_have_come(catalogue):
    rows = [
        ALICE._replace(id="last", progress=starting_at(9)),
        ALICE._replace(id="awake", progress=starting_at(0), attached=True),
        ALICE._replace(id="first", progress=Progress(4, 4, {2: 1})),
        ALICE._replace(id="second", progress=starting_at(5)),
    ]
    catalogue.commit([put_topic(TOPIC), *map(put_subscription, rows)])
    assert list(catalogue.sleeping(1, 2)) == [("guest", "first", 2), ("guest", "second", 5)]
    plan = catalogue.rows(
        "EXPLAIN QUERY PLAN SELECT id FROM subscriptions "
        "WHERE topic = 1 AND attached = 0 ORDER BY position LIMIT 5"
    )
    assert "sleeping_subscriptions" in str(plan)  # whoever asks does not look at all of them


def test_a_change_that_fails_changes_nothing(catalogue):
    with pytest.raises(sqlite3.Error):
        catalogue.commit([put_topic(TOPIC), put_topic(TOPIC)._replace(statement="nonsense")])
    assert catalogue.topics() == []


def test_a_damaged_row_is_named_and_the_others_are_there(tmp_path, caplog):
    path = tmp_path / "catalogue.sqlite"

    async def use(broker, guest):
        await broker.create_topic(guest, "other", "price double")
        for id_ in ("a", "b"):
            await broker.put_subscription(guest, "other", id_, "price > 1")
        await broker.put_subscription(guest, "quotes", "c", None)
        await broker.publish(guest, "quotes", prices(1))

    with_broker(tmp_path, use)
    change(path, "UPDATE topics SET description = replace(description, 'symbol', 'sym') "
                 "WHERE name = 'quotes'")  # fmt: skip
    change(path, "UPDATE subscriptions SET filter = 'price > 9' WHERE id = 'a'")

    async def after() -> None:
        broker = await open_broker(tmp_path)
        guest = broker.accounts.guest
        said = " ".join(map(str, broker.damage))
        assert "the row of topic 'quotes' is damaged" in said
        assert [info.name for info in broker.topics(guest)] == ["other"]
        for asked in (broker.attach, broker.put_subscription):
            with pytest.raises(Conflict, match="the row of subscription 'a' of account 'guest'"):
                await asked(guest, "other", "a")
        assert [info.id for info in broker.subscriptions(guest, "other")] == ["b"]
        assert "the row of subscription 'a'" in caplog.text
        await broker.delete_subscription(guest, "other", "a")
        one = await broker.attach(guest, "other", "b")
        await broker.publish(guest, "other", prices(1, 2))
        assert await taken(broker, one) == [(1, 1)]
        await broker.create_topic(guest, "quotes", QUOTES)
        assert len(await broker.read(guest, "quotes")) == 1
        assert broker.subscription(guest, "quotes", "c").filter == "TRUE"
        await broker.close()

    asyncio.run(after())


def test_a_file_that_is_not_a_catalogue_is_refused_with_the_way_out(tmp_path):
    path = tmp_path / "catalogue.sqlite"
    path.write_bytes(b"nothing that SQLite would know" * 100)
    with pytest.raises(FileError, match="cannot be used: file is not a database; restore it"):
        Catalogue(path)
    path.unlink()
    Catalogue(path).close()
    change(path, "PRAGMA user_version = 9")
    with pytest.raises(FileError, match="version 9 of the catalogue"):
        Catalogue(path)


def test_events_without_a_row_in_the_catalogue_are_named(tmp_path):
    async def use(broker, guest):
        await broker.publish(guest, "quotes", prices(1, 2))

    with_broker(tmp_path, use)
    for file in tmp_path.glob("catalogue.sqlite*"):
        file.unlink()

    async def after() -> None:
        broker = await open_broker(tmp_path)
        guest = broker.accounts.guest
        assert [str(one) for one in broker.damage] == [
            "quotes: the catalogue has no such topic; create it again to read its events"
        ]
        await broker.create_topic(guest, "quotes", QUOTES)
        assert len(await broker.read(guest, "quotes")) == 2
        await broker.close()

    asyncio.run(after())
