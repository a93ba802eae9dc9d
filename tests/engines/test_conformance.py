"""Every engine, every semantics: always the answers of `naive`.

All engines are asked about the same filters and events, which are drawn once. Run one engine alone
with ``pytest tests/engines --engine counting-list``.
"""

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from array_strategies import ARRAYS, array_filters, array_rows
from cases import each
from oracles import DEFAULTS, listed, table_of, whole
from strategies import SCHEMA, delicate_rows, filters, rows
from tamis import LimitError, Schema, TypeMismatch, parse
from tamis.engines import ENGINES, make_engine
from tamis.engines.conjunction_engine import ConjunctionEngine
from tamis.engines.database import DatabaseEngine
from tamis.predicates.event_batches import batch_of_rows, batch_of_table
from tamis.semantics import NAMES, Semantics


@pytest.fixture(scope="session")
def engines(request):
    """The names of the engines to compare with the oracle."""
    wanted = request.config.getoption("--engine")
    if wanted:
        return [wanted]
    # A database has no kernels of its own: without the compiler it would find the same again.
    left_out = "sql-" if os.environ.get("NUMBA_DISABLE_JIT") == "1" else "naive"
    return [name for name in ENGINES if name != "naive" and not name.startswith(left_out)]


def semantics_of(name):
    return Semantics(name, SCHEMA, DEFAULTS if name == "default" else None)


def accepted(texts):
    """The expressions of those filters that tamis takes."""
    for text in texts:
        try:
            yield parse(text, SCHEMA)
        except (TypeMismatch, LimitError):
            continue


class Compared:
    """Engines that hold the same filters as the oracle, but for those beyond their limits."""

    def __init__(self, engines, meaning):
        self.meaning = meaning
        self.oracle = make_engine("naive", meaning)
        self.tested = {name: make_engine(name, meaning) for name in engines}
        self.held = {name: set() for name in engines}

    def put(self, handle, expression):
        self.drop(handle)
        self.oracle.add(handle, expression)
        for name, engine in self.tested.items():
            try:
                ready = engine.prepare(expression)
            except LimitError:
                continue
            engine.add(handle, ready)
            self.held[name].add(handle)

    def drop(self, handle):
        if handle in self.oracle:
            self.oracle.remove(handle)
        for name, engine in self.tested.items():
            if handle in self.held[name]:
                engine.remove(handle)
                self.held[name].remove(handle)

    def answers(self, asked):
        """By engine: the engine, and the handles that it has to find for each event."""
        found = [self.oracle.match(row).tolist() for row in asked]
        for name, engine in self.tested.items():
            held = self.held[name]
            yield name, engine, [[handle for handle in one if handle in held] for one in found]

    def check(self, some):
        """Every question that an engine answers, about rows and about tables."""
        schema = self.meaning.schema
        some = [whole(row, schema) for row in some] if self.meaning.name == "total" else some
        asked = [self.meaning.prepare(row) for row in some]
        by_table = batch_of_table(table_of(some, schema), self.meaning, refuse_unknown=True)
        by_rows = batch_of_rows(asked, schema)
        for name, engine, expected in self.answers(asked):
            singles = list(zip(asked, expected, strict=True))
            if isinstance(engine, DatabaseEngine):  # a query takes as long as all other engines
                singles = [singles[0], singles[-1]]
            for row, found in singles:
                assert engine.match(row).tolist() == found, name
            assert [found.tolist() for found in engine.match_many(asked)] == expected, name
            if hasattr(engine, "match_batch"):
                for batch, given_rows in ((by_table, None), (by_rows, None), (by_rows, asked)):
                    assert listed(engine.match_batch(batch, given_rows)) == expected, name
                    counts = engine.count_batch(batch, given_rows).tolist()
                    assert counts == [len(found) for found in expected], name


@pytest.mark.long
@pytest.mark.parametrize("semantics", NAMES)
@given(texts=st.lists(filters(), min_size=1, max_size=8), some=st.lists(rows(), max_size=6))
@settings(max_examples=20)
def test_answers(engines, semantics, texts, some):
    compared = Compared(engines, semantics_of(semantics))
    for handle, expression in enumerate(accepted(texts)):
        compared.put(handle, expression)
    compared.check([*some, *delicate_rows()[:8], (None,) * len(SCHEMA)])


ARRAY_DEFAULTS = dict.fromkeys(ARRAYS) | {
    "tags": ["a", None], "ns": [], "props": {"k": 1}, "s": "a", "xs": [0.0],
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("semantics", NAMES)
@given(
    texts=st.lists(array_filters(), min_size=1, max_size=10),
    some=st.lists(array_rows(), max_size=6),
)
@settings(max_examples=15)
def test_answers_about_arrays_and_maps(engines, semantics, texts, some):
    defaults = ARRAY_DEFAULTS if semantics == "default" else None
    compared = Compared(engines, Semantics(semantics, ARRAYS, defaults))
    for handle, text in enumerate(texts):
        compared.put(handle, parse(text, ARRAYS))
    compared.check([*some, (None,) * len(ARRAYS)])


FINITE = Schema({"level": "int(1, 5)", "side": "enum('sell', 'buy')", "n": "int(-3, 3)"})
FINITE_ATOMS = [
    *(f"level {op} {c}" for op in ("=", "<>", "<", "<=", ">", ">=") for c in (1, 3, 5)),
    *(f"side {op} 'buy'" for op in ("=", "<>", "<", ">=")),
    *(f"n {op} {c}" for op in ("<", ">=") for c in (-3, 0, 3)),
    "level IN (1, 5)", "NOT level IN (2, 3)", "side IS NULL", "n BETWEEN -1 AND 1",
    "side LIKE 'other'", "NOT side LIKE 'other'", "side LIKE 'b%'",
]  # fmt: skip


@pytest.mark.long
@pytest.mark.uncompiled
@given(
    texts=st.lists(
        st.lists(st.sampled_from(FINITE_ATOMS), min_size=1, max_size=4).map(" AND ".join),
        min_size=1, max_size=20,
    )
)  # fmt: skip
@settings(max_examples=20)
def test_finite_domains(engines, texts):
    compared = Compared(engines, Semantics("sql", FINITE))
    for handle, text in enumerate(texts):
        compared.put(handle, parse(text, FINITE))
    compared.check(
        [
            (level, side, None if level is None else level - 3)
            for level in (None, 1, 2, 3, 4, 5)
            for side in (None, "buy", "sell")
        ]
    )


@each("members", ["1, 1e308 * 10D", "1e308 * 10D - 1e308 * 10D, 2"])
def test_members_that_cannot_be_written(engines, members):
    compared = Compared(engines, semantics_of("sql"))
    for handle, text in enumerate([f"x IN ({members})", f"NOT x IN ({members})"]):
        compared.put(handle, parse(text, SCHEMA))
    compared.check(delicate_rows())


def life_of(engines, semantics_name):
    """A machine that adds, replaces, removes and matches, and compares all the time."""

    class Life(RuleBasedStateMachine):
        @initialize()
        def start(self):
            self.compared = Compared(engines, semantics_of(semantics_name))

        @rule(handle=st.integers(0, 12), text=filters())
        def put(self, handle, text):
            for expression in accepted([text]):
                self.compared.put(handle, expression)

        @rule(handle=st.integers(0, 12))
        def drop(self, handle):
            self.compared.drop(handle)

        @rule(row=rows())
        def match(self, row):
            row = whole(row) if semantics_name == "total" else row
            asked = self.compared.meaning.prepare(row)
            for name, engine, (expected,) in self.compared.answers([asked]):
                assert engine.match(asked).tolist() == expected, name

        @invariant()
        def nothing_is_left_of_what_went(self):
            if hasattr(self, "compared"):
                for name, engine in self.compared.tested.items():
                    statistics = engine.statistics()
                    held = self.compared.held[name]
                    assert held or statistics == dict.fromkeys(statistics, 0), name

    return Life


@pytest.mark.long
@pytest.mark.parametrize("semantics", NAMES)
def test_a_long_life(engines, semantics):
    run_state_machine_as_test(
        life_of(engines, semantics), settings=settings(max_examples=10, stateful_step_count=30)
    )


def test_a_filter_of_too_many_disjuncts_is_held_or_meets_a_limit(engines):
    text = " AND ".join(f"(i <> {n} OR j <> {n})" for n in range(12))
    row = dict.fromkeys(SCHEMA)
    for name in engines:
        tested = make_engine(name, semantics_of("sql"))
        if isinstance(tested, ConjunctionEngine):
            with pytest.raises(LimitError, match="more than 1,000 disjuncts"):
                tested.prepare(parse(text, SCHEMA))
            continue
        tested.add(0, tested.prepare(parse(text, SCHEMA)))
        assert tested.match(tuple((row | {"i": 5, "j": 5}).values())).tolist() == [], name
        assert tested.match(tuple((row | {"i": 5, "j": 6}).values())).tolist() == [0], name
