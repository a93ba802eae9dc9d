"""What both engines that hold diagrams do: the same answers with all options, and limits."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from diagram_engines import BACKWARDS, EXPONENTIAL, PAIRS, SMALL, add, diagram_engine
from strategies import SCHEMA, delicate_rows, filters, rows
from tamis import CapacityError, LimitError, TypeMismatch, parse
from tamis.engines import bdd, make_engine, mbd
from tamis.semantics import NAMES, Semantics

CHOICES = {
    "bdd": [
        *({"order": order, "restriction": restriction}
          for order in bdd.ORDERS for restriction in bdd.RESTRICTIONS),
        {"profile": BACKWARDS},
    ],
    "mbd": [
        *({"order": order} for order in mbd.ORDERS), {"profile": BACKWARDS}, {"within": "random"},
    ],
}  # fmt: skip
DEFAULTS = dict(zip(SCHEMA, delicate_rows()[7], strict=True)) | {
    "x": None, "s": "", "b": None, "at": "2024-01-01", "until": None,
}  # fmt: skip


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("semantics", NAMES)
@given(texts=st.lists(filters(), min_size=1, max_size=6), some_rows=st.lists(rows(), max_size=5))
@settings(max_examples=16)
def test_all_options_give_the_same_answers(name, semantics, texts, some_rows):
    meaning = Semantics(semantics, SCHEMA, DEFAULTS if semantics == "default" else None)
    tested = [make_engine(name, meaning, options) for options in CHOICES[name]]
    oracle = make_engine("naive", meaning)
    for handle, text in enumerate(texts):
        try:
            expression = parse(text, SCHEMA)
        except (TypeMismatch, LimitError):
            continue
        oracle.add(handle, expression)
        for engine in tested:
            engine.add(handle, engine.prepare(expression))
    full = delicate_rows()[3]
    for row in [*some_rows, *delicate_rows()[:5]]:
        filled = tuple(f if v is None else v for v, f in zip(row, full, strict=True))
        asked = meaning.prepare(filled if semantics == "total" else row)
        wanted = oracle.match(asked).tolist()
        assert all(engine.match(asked).tolist() == wanted for engine in tested)


@each("name", CHOICES)
def test_a_filter_whose_diagram_is_exponential(name):
    engine = diagram_engine(name, PAIRS)
    add(engine, 0, "a1 = 1", PAIRS)
    before = engine.statistics()
    with pytest.raises(CapacityError, match="one filter would have more than 200,000 nodes"):
        add(engine, 1, EXPONENTIAL, PAIRS)
    assert engine.statistics() == before
    assert engine.match((1,) * 80).tolist() == [0]


@each("name", CHOICES)
def test_an_engine_that_could_not_hold_its_first_filter_is_empty(name):
    engine = diagram_engine(name, PAIRS, max_nodes=1000)
    empty = engine.statistics()
    with pytest.raises(CapacityError, match="more than max_nodes, 1,000, nodes"):
        add(engine, 0, EXPONENTIAL, PAIRS)
    assert engine.statistics() == empty
    assert set(empty.values()) == {0}


@each("name, options, count", [("bdd", {"restriction": "none"}, 400), ("mbd", {}, 600)])
def test_a_full_engine_changes_nothing_and_goes_on(name, options, count):
    engine = diagram_engine(name, max_nodes=1000, **options)
    empty = engine.statistics()
    held, refused = {}, 0
    for n in range(count):
        text = f"(i > {n} AND j < {n * 7 % 50}) OR (k = {n} AND s = '{n % 9}')"
        try:
            add(engine, n, text)
            held[n] = text
        except CapacityError:
            refused += 1
            assert engine.statistics()["subscriptions"] == len(held)
            if n % 3 == 0:  # room for others
                gone = next(iter(held))
                engine.remove(gone)
                del held[gone]
    assert refused > 30
    assert len(held) > 100
    assert engine.statistics()["nodes"] <= 1000
    oracle = make_engine("naive", Semantics("sql", SMALL))
    for handle, text in held.items():
        oracle.add(handle, parse(text, SMALL))
    for row in [(200, 3, 350, "8"), (0, 0, 10, "1"), (399, 49, 300, "3"), (None, 1, 20, None)]:
        assert engine.match(row).tolist() == oracle.match(row).tolist()
    for handle in held:
        engine.remove(handle)
    assert engine.statistics() == empty
    add(engine, 0, "i = 1")
    assert engine.match((1, None, None, None)).tolist() == [0]
