import pytest

from cases import each
from tamis.errors import OptionError
from tamis.relations.merging.policies import (
    NEVER,
    AnyOf,
    MeanOutputs,
    Periodic,
    Statistics,
    TableSize,
    read_policy,
)


@each(
    ("text", "policy"),
    [
        ("every 10s", Periodic(10)),
        ("every 500ms", Periodic(0.5)),
        ("every 1.5 m", Periodic(90)),
        ("Every 2h", Periodic(7200)),
        ("size 1000", TableSize(1000)),
        ("outputs 2.5", MeanOutputs(2.5)),
        ("never", NEVER),
        (" every 10s , size 5 ", AnyOf((Periodic(10), TableSize(5)))),
    ],
)
def test_reading(text, policy):
    assert read_policy(text) == policy
    assert read_policy(str(policy)) == policy


@each("text", ["", "every", "every 10", "size -1", "size x", "outputs", "x 1"])
def test_texts_that_are_not_policies(text):
    with pytest.raises(OptionError, match="write 'every 10s'"):
        read_policy(text)


@each("text", ["every 0s", "size 0", "outputs 0.5"])
def test_policies_that_would_merge_all_the_time(text):
    with pytest.raises(OptionError):
        read_policy(text)


def test_a_period_begins_with_the_last_time():
    policy = Periodic(10)
    assert policy.due(0, Statistics())
    assert not policy.due(14.9, Statistics(merged_at=5))
    assert policy.due(15, Statistics(merged_at=5))
    assert policy.next_time(Statistics(merged_at=5)) == 15


def test_a_size_counts_what_came_since():
    policy = TableSize(100)
    assert not policy.due(0, Statistics(size=99))
    assert policy.due(0, Statistics(size=100))
    assert not policy.due(0, Statistics(size=100, merged_size=90))
    assert policy.due(0, Statistics(size=190, merged_size=90))
    assert policy.next_time(Statistics()) is None


def test_a_mean_of_output_nodes():
    policy = MeanOutputs(3)
    assert not policy.due(0, Statistics(size=10, diagrams=4, outputs=11))
    assert policy.due(0, Statistics(size=10, diagrams=4, outputs=12))
    # Nothing came since: what could not be merged then cannot be merged now.
    assert not policy.due(0, Statistics(size=10, merged_size=10, diagrams=4, outputs=12))
    assert not policy.due(0, Statistics())
    assert policy.next_time(Statistics()) is None


def test_one_of_several():
    policy = read_policy("every 10s, size 5")
    assert policy.due(10, Statistics(merged_at=0))
    assert policy.due(1, Statistics(size=5, merged_at=0))
    assert not policy.due(1, Statistics(size=4, merged_at=0))
    assert policy.next_time(Statistics(merged_at=3)) == 13


def test_never():
    assert not NEVER.due(1e9, Statistics(size=10**6))
    assert NEVER.next_time(Statistics()) is None
