"""What holds for every workload: its filters and events can be used, and a seed fixes them."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tamis
from cases import each
from tamis import workloads
from tamis.workloads import BLOCK, NAMES, read_workload, workload
from tamis.workloads.token_texts import ROWS

CONJUNCTIVE = [name for name in NAMES if not name.startswith(("bdd", "shapes"))]
TYPES = {"int": pa.int64(), "double": pa.float64(), "string": pa.string()}


@pytest.fixture(scope="module")
def tables():
    """A thousand subscriptions of each."""
    return {name: workload(name).subscriptions(1000, seed=1) for name in NAMES}


def test_there_is_a_config_for_each_name():
    configs = Path(workloads.__file__).parent / "configs"
    assert {path.stem for path in configs.glob("*.toml")} == set(NAMES)
    assert len(set(NAMES)) == len(NAMES)


def test_an_unknown_name_is_refused():
    with pytest.raises(tamis.OptionError, match="unknown workload 'stocks'; did you mean 'stock'"):
        workload("stocks")


@each("name", NAMES)
def test_it_says_what_it_is(name):
    made = workload(name)
    assert made.name == name
    assert made.about
    assert isinstance(made.schema, tamis.Schema)
    assert made.parameters(1000)["subscriptions"] == 1000


@pytest.mark.parametrize("name", NAMES)
def test_subscriptions_are_a_table_of_ids_and_filters(name, tables):
    table = tables[name]
    assert table.schema == pa.schema({"id": pa.int64(), "filter": pa.string()})
    assert table["id"].to_pylist() == list(range(1000))
    assert table["filter"].null_count == 0
    table.validate(full=True)


@pytest.mark.parametrize("name", NAMES)
def test_every_filter_can_be_parsed(name, tables):
    schema = workload(name).schema
    for text in tables[name]["filter"].to_pylist()[:200]:
        assert str(tamis.parse(text, schema))


@pytest.mark.parametrize("name", NAMES)
def test_a_matcher_takes_subscriptions_and_events(name, tables):
    made = workload(name)
    matcher = tamis.Matcher(made.schema)
    matcher.subscribe_many(tables[name].slice(0, 100))
    for density in (1.0, 0.3):
        events = made.events(5, seed=2, density=density)
        assert matcher.match_batch(events, output="counts").num_rows == 5
    matcher = tamis.Matcher(made.schema, semantics="total")
    matcher.match_batch(made.events(5))


@pytest.mark.parametrize("name", CONJUNCTIVE)
def test_no_attribute_is_tested_twice(name, tables):
    for text in tables[name]["filter"].to_pylist():
        tests = text.replace("BETWEEN", "").split(" AND ")
        names = [test.split()[0] for test in tests if not test[0].isdigit()]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_fixes_everything(name, tables):
    made = workload(name)
    assert made.subscriptions(1000, seed=1) == tables[name]
    assert made.subscriptions(1000, seed=3) != tables[name]
    events = made.events(50, seed=1, density=0.5)
    assert workload(name).events(50, seed=1, density=0.5) == events
    assert made.events(50, seed=2, density=0.5) != events


def test_the_same_on_every_platform():
    assert workload("w4").subscriptions(3, seed=1)["filter"].to_pylist() == [
        "a9 < 4 AND a8 <= 5 AND a4 <= 8",
        "a0 = 2 AND a9 = 4 AND a8 >= 2",
        "a1 > 5 AND a3 >= 10 AND a5 <= 2 AND a4 > 4",
    ]
    assert workload("bdd").subscriptions(2, seed=1)["filter"].to_pylist() == [
        "i0 <> 70 AND i1 <= 30 AND s0 <> 'a' AND (d1 > 30.0 OR s2 SUBSTRING OF 'b') AND i0 <= 70",
        "i0 > 50 OR NOT contains(s3, 'bb') OR NOT i1 = 30 OR d1 > 70.0",
    ]
    assert workload("stock").subscriptions(1, seed=1)["filter"].to_pylist() == [
        "symbol = 'S42' AND price BETWEEN 256.40 AND 290.63 AND volume >= 950464"
    ]
    assert workload("stock").events(2, seed=1).to_pylist() == [
        {"symbol": "S63", "price": 446.61, "volume": 419565},
        {"symbol": "S11", "price": 402.21, "volume": 953098},
    ]
    assert workload("stock").event_block(7, seed=1).slice(0, 1).to_pylist() == [
        {"symbol": "S11", "price": 389.43, "volume": 81328}
    ]
    assert workload("stock").subscription_block(7, 7 * BLOCK + 1)["filter"].to_pylist() == [
        "symbol = 'S361' AND price BETWEEN 124.61 AND 130.50 AND volume >= 731764"
    ]


@each("name", NAMES)
def test_more_than_one_piece(name):
    table = workload(name).subscriptions(ROWS + 2)
    assert table.num_rows == ROWS + 2
    assert table["filter"].num_chunks > 1
    assert len(set(table["filter"].to_pylist())) > ROWS / 50


@each("name", NAMES)
def test_blocks_of_subscriptions_make_up_the_count(name):
    made = workload(name)
    count = BLOCK + 7
    first, second, beyond = (made.subscription_block(k, count, seed=4) for k in range(3))
    assert first["id"].to_pylist() == list(range(BLOCK))
    assert second["id"].to_pylist() == list(range(BLOCK, count))
    assert beyond.num_rows == 0
    assert made.subscription_block(1, count, seed=4) == second
    assert made.subscription_block(1, count, seed=5) != second
    assert first["filter"].slice(0, 7) != second["filter"]


def test_a_block_of_subscriptions_has_the_numbers_of_the_whole_count():
    # The more subscriptions, the more tests each needs for 100 matches altogether.
    made = workload("tree")
    tests = []
    for count in (BLOCK, 100 * BLOCK):
        filters = made.subscription_block(0, count)["filter"]
        tests.append(pc.mean(pc.add(pc.count_substring(filters, " AND "), 1)).as_py())
        assert tests[-1] == pytest.approx(made.parameters(count)["tests"], rel=0.02)
    assert tests[0] < tests[1]


@each("name", NAMES)
def test_blocks_of_events_are_all_different_and_fixed_by_the_seed(name):
    made = workload(name)
    blocks = [made.event_block(k, seed=2, density=0.9) for k in (0, 1, 10**12)]
    assert all(block.num_rows == BLOCK for block in blocks)
    assert blocks[0].column_names == list(made.schema)
    heads = [*(block.slice(0, 30) for block in blocks), made.events(BLOCK, 2, 0.9).slice(0, 30)]
    assert all(a != b for k, a in enumerate(heads) for b in heads[:k])
    assert made.event_block(1, seed=2, density=0.9) == blocks[1]
    assert made.event_block(1, seed=3, density=0.9) != blocks[1]


def test_a_block_is_a_whole_number():
    for call in (lambda w: w.event_block(-1), lambda w: w.subscription_block(1.0, 5)):
        with pytest.raises(tamis.OptionError, match="block must be a whole number from 0 on"):
            call(workload("w4"))


@each("name", NAMES)
def test_none(name):
    made = workload(name)
    if made.least == 0:
        assert made.subscriptions(0).num_rows == 0
    events = made.events(0)
    assert events.num_rows == 0
    assert events.column_names == list(made.schema)


@each("name", NAMES)
def test_events_have_a_typed_column_for_each_attribute(name):
    made = workload(name)
    events = made.events(30)
    assert events.column_names == list(made.schema)
    for attribute in made.schema.attributes:
        assert events[attribute.name].type == TYPES[attribute.type.kind.value]
        assert events[attribute.name].null_count == 0


def test_density_is_the_share_of_present_attributes():
    made = workload("bdd")
    for density in (0.0, 0.077, 0.5):
        events = made.events(4000, density=density)
        for column in events.columns:
            assert 1 - column.null_count / 4000 == pytest.approx(density, abs=0.04)
    present = np.array([column.is_valid().to_pylist() for column in events.columns])
    assert np.corrcoef(present) == pytest.approx(np.eye(10), abs=0.1)


def test_density_changes_no_value():
    made = workload("bdd")
    total, half, third = (made.events(200, seed=5, density=d) for d in (1.0, 0.5, 0.3))
    for name in made.schema:
        kept = half[name].is_valid()
        assert half[name].filter(kept) == total[name].filter(kept)
        assert not pc.any(pc.and_not(third[name].is_valid(), kept)).as_py()


def test_filters_and_events_of_one_seed_are_not_correlated():
    # With one stream for both, the first constants would be the first values.
    made = workload("constants")
    constants = {int(word) for word in made.subscriptions(1)["filter"][0].as_py().split()[2::4]}
    values = {column[0].as_py() for column in made.events(1).columns}
    assert not constants & values


@each("count", [-1, 1.5, "10", True, None])
def test_a_count_is_a_whole_number(count):
    made = workload("w4")
    for call in (made.subscriptions, made.events, made.parameters):
        with pytest.raises(tamis.OptionError, match="count must be a whole number from 0 on"):
            call(count)


def test_a_seed_is_a_whole_number():
    made = workload("w4")
    with pytest.raises(tamis.OptionError, match="seed must be a whole number from 0 on"):
        made.subscriptions(1, seed=-1)
    with pytest.raises(tamis.OptionError, match="seed must be"):
        made.events(1, seed=None)
    assert made.events(np.int64(2), seed=np.int32(7)) == made.events(2, seed=7)


@each("density", [-0.1, 1.1, float("nan"), "1", None])
def test_a_density_is_a_probability(density):
    with pytest.raises(tamis.OptionError, match="density must be a number from 0 to 1"):
        workload("w4").events(1, density=density)


def test_a_config_of_ones_own(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(
        """
        about = "two of four"
        kind = "comparisons"
        attributes = 4
        domains = [[1, 3]]
        operators = ["="]
        predicates = [1, 2]
        pairs = 2
        """
    )
    made = read_workload(str(path))
    assert (made.name, made.about) == ("small", "two of four")
    events = made.events(3000)
    present = np.array([column.is_valid().to_pylist() for column in events.columns])
    assert (present.sum(axis=0) == 2).all()
    assert present.mean(axis=1) == pytest.approx([0.5] * 4, abs=0.04)
    pairs = {tuple(np.flatnonzero(column)) for column in present.T}
    assert len(pairs) == 6
