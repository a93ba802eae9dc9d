"""Tables of subscriptions: which are refused, and how rows are divided among tasks."""

import pytest

from cases import each
from tamis import OptionError
from tamis.spark.tables import subscription_table
from tamis.spark.tables.subscription_table import (
    FILTERS_PER_TASK,
    MOST_TASKS,
    CompileSize,
    SubscriptionTable,
)

pytestmark = pytest.mark.spark


@each(
    ("rows", "tasks"),
    [(0, 1), (1, 1), (FILTERS_PER_TASK, 2), (10 * FILTERS_PER_TASK, 11), (10**9, MOST_TASKS)],
)
def test_tasks_for_many_rows(rows, tasks):
    assert CompileSize(rows, 0).tasks == tasks


@pytest.mark.parametrize(
    ("columns", "order", "said"),
    [
        ("1 id", None, "need exactly one column 'filter'; they have id"),
        ("1 id, 'a' filter, 2 id", None, "need exactly one column 'id'; they have id, filter, id"),
        ("1 id, 'a' filter", "at", "need exactly one column 'at'; they have id, filter"),
        ("1.5D id, 'a' filter", None, "strings or integers, not double"),
        ("true id, 'a' filter", None, "strings or integers, not boolean"),
        ("1 id, 2 filter", None, "filters are strings, but the column filter has the type int"),
    ],
)
def test_tables_that_hold_no_subscriptions(spark, columns, order, said):
    with pytest.raises(OptionError, match=said):
        SubscriptionTable(spark.sql(f"SELECT {columns}"), order)


def test_rows_are_spread_by_id_in_their_order(spark, monkeypatch):
    monkeypatch.setattr(subscription_table, "FILTERS_PER_TASK", 13)
    frame = spark.createDataFrame(
        [(n % 5, f"i > {n}", None if n % 7 == 0 else (n * 37) % 20) for n in range(40)],
        "id tinyint, filter string, `a ``b.` int",
    ).repartition(3)
    subscriptions = SubscriptionTable(frame, "a `b.")
    assert subscriptions.id_type == "bigint"
    assert subscriptions.size == CompileSize(40, sum(len(f"i > {n}") for n in range(40)))
    spread = subscriptions.spread()
    found = [list(part) for part in spread.rdd.glom().collect()]
    assert len(found) == 4
    assert sorted(row.filter for part in found for row in part) == sorted(
        f"i > {n}" for n in range(40)
    )
    homes = {}
    for number, part in enumerate(found):
        numbers = [int(row.filter[4:]) for row in part]
        later = [(n % 7 != 0, (n * 37) % 20 if n % 7 else 0) for n in numbers]
        assert later == sorted(later)  # nulls come first
        for row in part:
            homes.setdefault(row.id, set()).add(number)
    assert all(len(places) == 1 for places in homes.values())
    assert spread.dtypes == [("id", "bigint"), ("filter", "string"), ("row", "bigint")]


def test_a_sample_is_from_all_over_the_table(spark):
    rows = [(n, None if n % 3 == 0 else f"i > {n}") for n in range(3000)]
    table = SubscriptionTable(spark.createDataFrame(rows, "id int, filter string").repartition(3))
    assert sorted(table.sample(3000)) == sorted(text for _, text in rows if text is not None)
    some = table.sample(200)
    assert 150 < len(some) <= 200
    assert max(int(text[4:]) for text in some) > 1500
