"""What accounts with grants get from a broker, whichever way they ask."""

import asyncio

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coverings
from brokers import open_broker, settled
from coverings import DEFAULTS, SEMANTICS, semantics_of
from tamis.broker.accounts import Account, free_account, new_token, token_hash
from tamis.broker.grants import Grants
from tamis.broker.records import NewEvent
from tamis.errors import Forbidden, OptionError, UnknownSubscription, UnknownTopic
from tamis.relations.covering import event_of

VALUES = [range(-1, 8), range(7), [-0.0, 0.5, 1.5, 2.5], ["", "a", "ab", "b"], ["buy", "sell"],
          [True, False]]  # fmt: skip


def account(grant, name="desk", **more):
    grants = Grants({"t": grant})
    tokens = frozenset([token_hash(new_token())])
    return Account(name, tokens=tokens, publish=grants, subscribe=grants, **more)


def rows(semantics, chance):
    lists = [values if semantics == "total" else [None, *values] for values in VALUES]
    return [tuple(chance.choice(values) for values in lists) for _ in range(30)]


@pytest.mark.long
@pytest.mark.parametrize("semantics", SEMANTICS)
@settings(max_examples=8)
@given(
    grant=coverings.subscriptions, asked=st.lists(coverings.subscriptions, min_size=2, max_size=2),
    chance=st.randoms(use_true_random=False),
)  # fmt: skip
def test_nobody_gets_or_publishes_what_is_outside_the_grant(
    tmp_path_factory, semantics, grant, asked, chance
):
    asyncio.run(trial(tmp_path_factory.mktemp("data"), semantics, grant, asked, chance))


async def trial(folder, semantics, grant, asked, chance):
    desk, operator = account(grant), free_account("operator")
    defaults = DEFAULTS if semantics == "default" else None
    schema = {a.name: str(a) for a in coverings.SCHEMA.attributes}
    broker = await open_broker(folder, accounts=(desk,))
    await broker.create_topic(operator, "t", schema, semantics=semantics, defaults=defaults)
    meaning = semantics_of(semantics)
    given_rows = rows(semantics, chance)
    events = [NewEvent(msgspec.json.encode(event_of(row, coverings.SCHEMA))) for row in given_rows]
    live = await broker.attach_filter(desk, "t", asked[0])
    await broker.put_subscription(desk, "t", "kept", asked[0])
    await broker.publish(operator, "t", events)
    await settled(broker)
    # Changed while it sleeps, and attached with a backlog.
    await broker.put_subscription(desk, "t", "kept", asked[1])
    kept = await broker.attach(desk, "t", "kept")
    await settled(broker)
    got = {
        "live": [one.record.offset for one in live.take_nowait(100)],
        "kept": [one.record.offset for one in kept.take_nowait(100)],
        "read": [one.offset for one in await broker.read(desk, "t", asked[0])],
        "all": [one.offset for one in await broker.read(desk, "t")],
    }
    wanted = {"live": asked[0], "kept": asked[1], "read": asked[0], "all": "TRUE"}
    for name, text in wanted.items():
        assert got[name] == matching(meaning, [text, grant], given_rows), name
    allowed = matching(meaning, [grant], given_rows)
    for offset in range(0, 30, 7):
        try:
            await broker.why(desk, "t", filter="TRUE", offset=offset)
        except OptionError as error:
            assert offset not in allowed
            assert f"no event with offset {offset} " in str(error)  # noqa: PT017 - it need not be raised
        else:
            assert offset in allowed
    answer = await broker.publish(desk, "t", events)
    assert answer.accepted == len(allowed)
    assert [refusal.row for refusal in answer.refused] == [
        row for row in range(30) if row not in allowed
    ]
    await broker.close()


def matching(meaning, texts, given_rows):
    """The numbers of the rows that match all filters, by their definition."""
    tests = [meaning.condition(coverings.read(text)) for text in texts]
    prepared = (meaning.prepare(row) for row in given_rows)
    return [number for number, row in enumerate(prepared) if all(test(row) for test in tests)]


def test_accounts_do_not_see_each_other(tmp_path):
    async def run():
        desk, other = account("TRUE"), account("TRUE", "other")
        nobody = Account("nobody", tokens=frozenset([token_hash(new_token())]))
        broker = await open_broker(tmp_path, accounts=(desk, other, nobody))
        await broker.create_topic(free_account("operator"), "t", "price double")
        await broker.put_subscription(desk, "t", "mine", "price < 10")
        with pytest.raises(UnknownSubscription):
            broker.subscription(other, "t", "mine")
        assert broker.subscriptions(other, "t") == []
        with pytest.raises(UnknownSubscription):
            await broker.why(other, "t", subscription="mine", event={"price": 1})
        with pytest.raises(UnknownSubscription):
            await broker.attach(other, "t", "mine")
        await broker.put_subscription(other, "t", "mine", "price > 10")  # another one
        assert broker.subscription(desk, "t", "mine").filter == "price < 10"
        # Whether there is a topic is not told to those who have no grant.
        with pytest.raises(UnknownTopic) as real:
            broker.topic(nobody, "t")
        with pytest.raises(UnknownTopic) as unreal:
            broker.topic(nobody, "u")
        assert str(real.value).replace("'t'", "'u'") == str(unreal.value)
        await broker.close()

    asyncio.run(run())


def test_an_account_that_refuses_what_is_wider_reads_what_it_may(tmp_path):
    async def run():
        desk = account("price < 10", wider="refuse")
        broker = await open_broker(tmp_path, accounts=(desk,))
        operator = free_account("operator")
        await broker.create_topic(operator, "t", "price double")
        await broker.publish(operator, "t", [NewEvent(b'{"price": 50}'), NewEvent(b'{"price": 5}')])
        with pytest.raises(Forbidden, match="wider than what account 'desk' may receive"):
            await broker.put_subscription(desk, "t", "wide", "price < 20")
        with pytest.raises(Forbidden):
            await broker.attach_filter(desk, "t", "price < 20")
        assert [one.offset for one in await broker.read(desk, "t")] == [1]
        assert (await broker.why(desk, "t", filter="price < 3", offset=1)).matched is False
        await broker.close()

    asyncio.run(run())
