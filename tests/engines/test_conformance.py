"""Every engine, every semantics: always the answers of `naive`.

Run one engine alone with ``pytest tests/engines --engine counting-list``.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from strategies import SCHEMA, delicate_rows, filters, rows
from tamis import LimitError, Schema, TypeMismatch, parse
from tamis.engines import ENGINES, make_engine
from tamis.engines.conjunction_engine import ConjunctionEngine
from tamis.semantics import NAMES, Semantics

DEFAULTS = dict(zip(SCHEMA, delicate_rows()[7], strict=True)) | {
    "x": None, "s": "", "b": None, "at": "2024-01-01", "until": None,
}  # fmt: skip


def semantics_of(name):
    return Semantics(name, SCHEMA, DEFAULTS if name == "default" else None)


def engines_under_test(config):
    wanted = config.getoption("--engine")
    return [wanted] if wanted else [name for name in ENGINES if name != "naive"]


def pytest_generate_tests(metafunc):
    if "engine" in metafunc.fixturenames:
        metafunc.parametrize("engine", engines_under_test(metafunc.config))
    if "semantics" in metafunc.fixturenames:
        metafunc.parametrize("semantics", NAMES)


def total(row):
    """A row without missing values, for the semantics that allows none."""
    return tuple(d if v is None else v for v, d in zip(row, delicate_rows()[3], strict=True))


def prepared(engine, texts):
    """Expressions that tamis takes and the engine can hold."""
    for text in texts:
        try:
            expression = parse(text, SCHEMA)
            yield expression, engine.prepare(expression)
        except (TypeMismatch, LimitError):
            continue


@given(texts=st.lists(filters(), min_size=1, max_size=8), some_rows=st.lists(rows(), max_size=6))
@settings(max_examples=40)
def test_answers(engine, semantics, texts, some_rows):
    meaning = semantics_of(semantics)
    tested, oracle = make_engine(engine, meaning), make_engine("naive", meaning)
    for handle, (expression, ready) in enumerate(prepared(tested, texts)):
        tested.add(handle, ready)
        oracle.add(handle, expression)
    all_rows = [*some_rows, *delicate_rows()[:8]]
    asked = [meaning.prepare(total(row) if semantics == "total" else row) for row in all_rows]
    expected = [oracle.match(row).tolist() for row in asked]
    assert [tested.match(row).tolist() for row in asked] == expected
    assert [found.tolist() for found in tested.match_many(asked)] == expected


FINITE = Schema({"level": "int(1, 5)", "side": "enum('sell', 'buy')", "n": "int(-3, 3)"})
FINITE_ATOMS = [
    *(f"level {op} {c}" for op in ("=", "<>", "<", "<=", ">", ">=") for c in (1, 3, 5)),
    *(f"side {op} 'buy'" for op in ("=", "<>", "<", ">=")),
    *(f"n {op} {c}" for op in ("<", ">=") for c in (-3, 0, 3)),
    "level IN (1, 5)", "NOT level IN (2, 3)", "side IS NULL", "n BETWEEN -1 AND 1",
    "side LIKE 'other'", "NOT side LIKE 'other'", "side LIKE 'b%'",
]  # fmt: skip


@given(
    texts=st.lists(
        st.lists(st.sampled_from(FINITE_ATOMS), min_size=1, max_size=4).map(" AND ".join),
        min_size=1, max_size=20,
    )
)  # fmt: skip
@settings(max_examples=40)
@pytest.mark.uncompiled
def test_finite_domains(engine, texts):
    meaning = Semantics("sql", FINITE)
    tested, oracle = make_engine(engine, meaning), make_engine("naive", meaning)
    for handle, text in enumerate(texts):
        expression = parse(text, FINITE)
        tested.add(handle, tested.prepare(expression))
        oracle.add(handle, expression)
    asked = [
        (level, side, None if level is None else level - 3)
        for level in (None, 1, 2, 3, 4, 5)
        for side in (None, "buy", "sell")
    ]
    expected = [oracle.match(row).tolist() for row in asked]
    assert [tested.match(row).tolist() for row in asked] == expected
    assert [found.tolist() for found in tested.match_many(asked)] == expected


@pytest.mark.parametrize("members", ["1, 1e308 * 10D", "1e308 * 10D - 1e308 * 10D, 2"])
def test_members_that_cannot_be_written(engine, members):
    meaning = semantics_of("sql")
    tested, oracle = make_engine(engine, meaning), make_engine("naive", meaning)
    for handle, text in enumerate([f"x IN ({members})", f"NOT x IN ({members})"]):
        expression = parse(text, SCHEMA)
        tested.add(handle, tested.prepare(expression))
        oracle.add(handle, expression)
    for row in delicate_rows():
        assert tested.match(row).tolist() == oracle.match(row).tolist()


def life_of(engine_name, semantics_name):
    """A machine that adds, replaces, removes and matches, and compares all the time."""

    class Life(RuleBasedStateMachine):
        @initialize()
        def start(self):
            self.meaning = semantics_of(semantics_name)
            self.tested = make_engine(engine_name, self.meaning)
            self.oracle = make_engine("naive", self.meaning)
            self.held = set()

        @rule(handle=st.integers(0, 12), text=filters())
        def put(self, handle, text):
            for expression, ready in prepared(self.tested, [text]):
                if handle in self.held:
                    self.tested.remove(handle)
                    self.oracle.remove(handle)
                self.tested.add(handle, ready)
                self.oracle.add(handle, expression)
                self.held.add(handle)

        @rule(handle=st.integers(0, 12))
        def drop(self, handle):
            if handle in self.held:
                self.tested.remove(handle)
                self.oracle.remove(handle)
                self.held.remove(handle)

        @rule(row=rows())
        def match(self, row):
            asked = self.meaning.prepare(total(row) if semantics_name == "total" else row)
            assert self.tested.match(asked).tolist() == self.oracle.match(asked).tolist()

        @invariant()
        def nothing_is_left_of_what_went(self):
            if not getattr(self, "held", True):
                statistics = self.tested.statistics()
                assert statistics == dict.fromkeys(statistics, 0)

    return Life


def test_a_long_life(engine, semantics):
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        life_of(engine, semantics), settings=settings(max_examples=10, stateful_step_count=30)
    )


def test_a_filter_of_too_many_disjuncts_is_held_or_meets_a_limit(engine):
    text = " AND ".join(f"(i <> {n} OR j <> {n})" for n in range(12))
    tested = make_engine(engine, semantics_of("sql"))
    if isinstance(tested, ConjunctionEngine):
        with pytest.raises(LimitError, match="more than 1,000 disjuncts"):
            tested.prepare(parse(text, SCHEMA))
        return
    tested.add(0, tested.prepare(parse(text, SCHEMA)))
    row = dict.fromkeys(SCHEMA)
    assert tested.match(tuple((row | {"i": 5, "j": 5}).values())).tolist() == []
    assert tested.match(tuple((row | {"i": 5, "j": 6}).values())).tolist() == [0]
