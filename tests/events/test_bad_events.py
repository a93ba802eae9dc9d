"""Which rows are not events: asked row by row, matching refuses exactly these."""

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from tamis import EventError, Matcher, Schema
from tamis.events.bad_events import faults_of
from tamis.semantics import NAMES, Semantics

SCHEMA = Schema(
    {
        "level": "int(1, 250)", "side": "enum('buy', 'sell', 'é')", "s": "string",
        "x": "double", "day": "timestamp", "r.k": "int(-1, 1)", "lacking": "bool",
    }
)  # fmt: skip
DEFAULTS = {
    "level": 7, "side": "buy", "s": None, "x": math.nan, "day": None, "r.k": 0, "lacking": True,
}  # fmt: skip


def texts(values):
    """A column of strings that need not be UTF-8, as Spark may send them."""
    return pa.array(values, pa.binary()).view(pa.string())


def table_of(rows, chunks=1):
    columns = list(zip(*rows, strict=True)) if rows else [()] * 6
    made = pa.table(
        {
            "level": pa.array(columns[0], pa.int32()),
            "side": texts(columns[1]),
            "s": texts(columns[2]),
            "x": pa.array(columns[3], pa.float32(), from_pandas=False),
            "day": pa.array(columns[4], pa.date32()),
            "r": pa.array([None if k == 9 else {"k": k} for k in columns[5]],
                          pa.struct([("k", pa.int8())])),
        }
    )  # fmt: skip
    step = max(1, len(rows) // chunks)
    return pa.concat_tables([made.slice(n, step) for n in range(0, len(rows), step)] or [made])


BYTES = [b"buy", b"sell", "é".encode(), b"", b"\xff", b"a\x80", b"\xed\xa0\x80", None]
ROWS = st.tuples(
    st.sampled_from([1, 250, 7, 7, 7, 0, 251, -(2**31), None]),
    st.sampled_from([b"buy", b"sell", *BYTES]),
    st.sampled_from([b"buy", b"sell", *BYTES]),
    st.sampled_from([0.0, math.nan, math.inf, None]),
    st.sampled_from([0, 19_000, 2**31 - 1, -(2**31), None]),  # microseconds do not reach the ends
    st.sampled_from([-1, 0, 1, 1, 2, None, 9]),
)


def semantics_of(name, schema=SCHEMA):
    return Semantics(name, schema, DEFAULTS if name == "default" else None)


def refused(table, schema, name):
    """What matching says about each row that it refuses."""
    matcher = Matcher(schema, semantics=name, defaults=DEFAULTS if name == "default" else None)
    found = {}
    for row in range(table.num_rows):
        try:
            matcher.match_batch(table.slice(row, 1))
        except EventError as error:
            found[row] = error.problem
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20)
@given(rows=st.lists(ROWS, max_size=12), chunks=st.integers(1, 4))
def test_matching_refuses_these_rows_and_no_others(name, rows, chunks):
    table = table_of(rows, chunks)
    if name == "total":
        table = table.append_column("lacking", pa.array([len(rows) % 2 == 0] * len(rows)))
    found = faults_of(table, semantics_of(name))
    expected = refused(table, SCHEMA, name)
    assert list(found) == list(expected)
    # A row may have several faults; the one that is named is one that it has.
    alone = [
        refused(table, Schema({attribute.name: str(attribute)}), "sql")
        for attribute in SCHEMA.attributes
    ]
    for row, reason in found.items():
        known = {problems.get(row) for problems in alone}
        assert reason in known or "the event lacks" in reason
        if len(known - {None}) < 2 and (name != "total" or known == {None}):
            assert reason == expected[row]
    good = [row for row in range(len(rows)) if row not in found]
    assert refused(table.take(pa.array(good, pa.int64())), SCHEMA, name) == {}


@given(rows=st.lists(ROWS, max_size=8))
def test_one_by_one_events_are_refused_for_the_same_reasons(rows):
    """The reader of single events is the oracle for what Python can hold."""
    table = table_of(
        [(row[0], row[1] if row[1] != b"\xff" else b"no", b"s", row[3], 0, row[5]) for row in rows
         if row[1] not in {b"a\x80", b"\xed\xa0\x80"}]
    ).drop_columns(["x", "day"])  # fmt: skip
    schema = Schema({name: str(SCHEMA[name]) for name in ("level", "side", "s", "r.k")})
    matcher, expected = Matcher(schema), {}
    for row, event in enumerate(table.to_pylist()):
        try:
            matcher.match(event)
        except EventError as error:
            expected[row] = error.problem
    assert faults_of(table, Semantics("sql", schema)) == expected


def test_the_reasons():
    table = table_of(
        [(0, b"buy", b"", 0.0, 0, 0), (1, b"bye", b"", 0.0, 0, 0), (1, b"buy", b"\xff", 0, 0, 0),
         (1, b"\xff", b"", 0.0, 0, 0), (1, b"buy", b"", 0.0, 2**31 - 1, 0), (1, None, b"", 0, 0, 0),
         (1, b"buy", b"", 0.0, 0, 9)]
    )  # fmt: skip
    found = faults_of(table, semantics_of("sql"))
    assert list(found) == [0, 1, 2, 3, 4]
    assert found[0] == "attribute level: 0 (int) lies outside the domain int(1, 250)"
    assert found[1].endswith("the domain enum('buy', 'sell', 'é'); did you mean 'buy'?")
    assert found[2] == "column s holds invalid UTF-8: invalid start byte"
    assert found[3] == "column side holds invalid UTF-8: invalid start byte"
    assert "out of bounds" in found[4]
    total = faults_of(table, semantics_of("total"))
    assert list(total) == list(range(7))
    assert total[0] == found[0]
    assert total[5] == (
        'the event lacks side, lacking, and semantics="total" allows no missing attribute'
    )
    assert total[6].startswith("the event lacks r.k, lacking")


@each("name", NAMES)
def test_no_rows_have_no_faults(name):
    assert faults_of(table_of([]), semantics_of(name)) == {}


def test_a_column_of_another_type_is_the_fault_of_every_row():
    table = pa.table({"level": ["a", "b"]})
    found = faults_of(table, Semantics("sql", Schema({"level": "int"})))
    assert found == dict.fromkeys(range(2), "column level has the type string, expected int")


def test_few_among_many_rows():
    """Halving finds them all, wherever they are."""
    values = [b"fine"] * 5000
    bad = [0, 1, 2499, 2500, 4998, 4999]
    for row in bad:
        values[row] = b"\xff"
    found = faults_of(pa.table({"s": texts(values)}), Semantics("sql", Schema({"s": "string"})))
    assert list(found) == bad
