"""Engines beside `naive`, their oracle: what one answers must be what the other answers."""

from decimal import Decimal

import numpy as np
import pyarrow as pa

from stocks import SMALL
from strategies import DECIMALS, LONG_DECIMALS, SCHEMA, delicate_rows
from tamis import ExpressionError, parse
from tamis.engines import make_engine
from tamis.events.column_values import plain_type
from tamis.events.values import MapValue
from tamis.predicates.event_batches import batch_of_rows, batch_of_table
from tamis.predicates.keys import decimal_key, double_key
from tamis.semantics import Semantics
from tamis.types import Kind

# What stands for a missing attribute of SCHEMA where semantics is "default".
DEFAULTS = dict(zip(SCHEMA, delicate_rows()[7], strict=True)) | {
    "x": None, "s": "", "b": None, "at": "2024-01-01", "until": None,
}  # fmt: skip
PRESENT = {
    "int": 1, "double": 2.5, "string": "T1", "bool": True, "timestamp": 0,
    "decimal(9, 2)": DECIMALS[3], "decimal(38, 10)": LONG_DECIMALS[-1],
}  # fmt: skip


def whole(row, schema=SCHEMA):
    """A row without missing values, for the semantics that allows none."""
    fill = [
        attribute.domain.values[0] if attribute.domain else present(attribute.type)
        for attribute in schema.attributes
    ]
    return tuple(f if v is None else v for v, f in zip(row, fill, strict=True))


def present(kind):
    """A value of a type."""
    if not kind.is_nested:
        return PRESENT[str(kind)]
    one = PRESENT[str(kind.element)]
    return (one,) if kind.kind is Kind.ARRAY else MapValue(k=one)


def accepted(texts, schema=SCHEMA):
    """Those of some random filters that tamis takes; a few exceed a limit of decimals."""
    found = []
    for text in texts:
        try:
            parse(text, schema)
        except ExpressionError:
            continue
        found.append(text)
    return found


def expected_key(value, of):
    """The key of a value of a type, which is not None."""
    if isinstance(value, Decimal):
        return decimal_key(value, of)
    return double_key(value) if isinstance(value, float) else int(value)


def some_of(pool, size, seed=0):
    """Events drawn from a few rows."""
    places = np.random.default_rng(seed).integers(0, len(pool), size)
    return [pool[place] for place in places]


def table_of(some, schema):
    """Rows as a table; a timestamp is a number of microseconds in a row."""
    columns = {}
    for n, attribute in enumerate(schema.attributes):
        column = pa.array([row[n] for row in some], plain_type(attribute))
        if str(attribute.type) == "timestamp":
            column = column.cast(pa.timestamp("us", "UTC"))
        elif str(attribute.type) == "array<timestamp>":
            column = column.cast(pa.large_list(pa.timestamp("us", "UTC")))
        columns[".".join(attribute.path)] = column
    return pa.table(columns)


def listed(pieces):
    """The handles of each event, from the pieces of an answer about a batch."""
    found = []
    for counts, handles in pieces:
        assert counts.dtype == np.int64
        assert counts.sum() == len(handles)
        ends = np.cumsum(counts).tolist()
        parts = zip(counts.tolist(), ends, strict=True)
        found += [handles[end - count : end].tolist() for count, end in parts]
    return found


class Both:
    """An engine and the oracle, which hold the same filters by the same handles."""

    def __init__(self, engine, schema=SMALL, semantics="sql", defaults=None, **options):
        self.schema = schema
        self.meaning = Semantics(semantics, schema, defaults)
        self.tested = make_engine(engine, self.meaning, options)
        self.oracle = make_engine("naive", self.meaning)
        self.kinds = {np.dtype(np.int64)} | ({np.dtype(np.int32)} if engine == "auto" else set())
        self.held = set()
        self._known = {}  # filters that are read already

    def expression(self, text):
        if text not in self._known:
            self._known[text] = parse(text, self.schema)
        return self._known[text]

    def put_one(self, handle, text):
        """A filter that comes, or replaces the one with its handle."""
        expression = self.expression(text)
        if handle in self.held:
            self.drop_one(handle)
        self.tested.add(handle, self.tested.prepare(expression))
        self.oracle.add(handle, expression)
        self.held.add(handle)

    def put(self, texts, first=0, step=1):
        for number, text in enumerate(texts):
            self.put_one(first + step * number, text)
        return self

    def put_many(self, texts):
        """All at once: texts by handle."""
        bulk = self.tested.bulk(len(texts))
        ready = {handle: self.expression(text) for handle, text in texts.items()}
        for handle, expression in ready.items():
            bulk.put(handle, self.tested.prepare(expression))
        bulk.finish()
        replaced = sorted(self.held & texts.keys())
        bulk.commit(replaced)
        for handle in replaced:
            self.oracle.remove(handle)
        for handle, expression in ready.items():
            self.oracle.add(handle, expression)
        self.held |= texts.keys()
        return self

    def drop_one(self, handle):
        self.tested.remove(handle)
        self.oracle.remove(handle)
        self.held.remove(handle)

    def drop(self, handles):
        """Those of them that are held."""
        for handle in handles:
            if handle in self.held:
                self.drop_one(handle)
        return self

    def expected(self, some):
        """What the oracle says, which is asked about each distinct row once."""
        known = {}
        for row in some:
            if row not in known:
                known[row] = self.oracle.match(row).tolist()
        return [known[row] for row in some]

    def check(self, some, singles=5):
        """What is asked most: some events one by one, and all of them as a batch."""
        expected = self.expected(some)
        for row, found in list(zip(some, expected, strict=True))[:singles]:
            assert self.tested.match(row).tolist() == found
        self._check_batch(batch_of_rows(some, self.schema), None, expected)
        assert self.tested.statistics()["subscriptions"] == len(self.held)
        return self

    def check_all(self, some, singles=30):
        """Every question that an engine answers, about rows and about tables."""
        if self.meaning.name == "total":
            some = [whole(row, self.schema) for row in some]
        ready = [self.meaning.prepare(row) for row in some]
        expected = self.expected(ready)
        for row, found in list(zip(ready, expected, strict=True))[:singles]:
            one = self.tested.match(row)
            assert one.dtype in self.kinds
            assert one.tolist() == found
        several = list(self.tested.match_many(ready))
        assert [found.tolist() for found in several] == expected
        assert {found.dtype for found in several} <= self.kinds
        by_rows = batch_of_rows(ready, self.schema)
        self._check_batch(by_rows, None, expected)
        self._check_batch(by_rows, ready, expected)
        table = table_of(some, self.schema)
        by_table = batch_of_table(table, self.meaning, refuse_unknown=True)
        self._check_batch(by_table, None, expected)
        assert self.tested.statistics()["subscriptions"] == len(self.held)
        return self

    def _check_batch(self, batch, rows, expected):
        assert listed(self.tested.match_batch(batch, rows)) == expected
        counts = self.tested.count_batch(batch, rows)
        assert counts.dtype == np.int64
        assert counts.tolist() == [len(found) for found in expected]
