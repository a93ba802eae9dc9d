"""Matching inside a database (COUNT, section 4): DuckDB, embedded and in memory.

``sql-scan`` is the paper's sequential search, ``subs(sid, attr, op, val)``: one row for every
predicate of every conjunction. ``sql-grouped`` is its predicate grouping, ``subs(sid, cnt)``,
``preds(pid, attr, op, val)``, ``subs_preds(sid, pid)``: each distinct predicate is compared once.

Events arrive as parameters and subscriptions as columns; no text of a user is ever part of a query.
The database compares attributes with constants. Predicates that its tables cannot express (sets,
presence, patterns, computed values) are evaluated outside, once per event, and the ids of those
that are true are one more parameter.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.engines.base import Options
from tamis.engines.conjunction_engine import ConjunctionEngine
from tamis.errors import MissingDependency
from tamis.events.event_reader import Row
from tamis.kernels.comparisons import OPERATORS
from tamis.language import ast
from tamis.predicates.classification import Comparison, classify
from tamis.predicates.comparison_index import Ids
from tamis.predicates.computed_values import term_of
from tamis.predicates.keys import decimal_key
from tamis.semantics import Semantics
from tamis.types import Kind, Type

EVENTS_AT_ONCE = 100
OTHER = len(OPERATORS)  # the operator of predicates that are evaluated outside

# A value is in the column of its type, and the other two are null: a comparison with null is not
# true.
_VALUES = "ival BIGINT, dval DOUBLE, sval VARCHAR"
_EVENT = """
    SELECT unnest($event::INTEGER[]) AS event, unnest($attr::INTEGER[]) AS attr,
           unnest($ival::BIGINT[]) AS ival, unnest($dval::DOUBLE[]) AS dval,
           unnest($sval::VARCHAR[]) AS sval"""
_OTHERS = "SELECT unnest($other_event::INTEGER[]) AS event, unnest($other_pid::INTEGER[]) AS pid"


def _compared(left: str, right: str) -> str:
    """The SQL condition that a comparison with a constant is true of an event's value."""
    tests = []
    for number, op in enumerate(OPERATORS):
        same = " OR ".join(f"{left}.{c} {op} {right}.{c}" for c in ("ival", "dval", "sval"))
        tests.append(f"({right}.op = {number} AND ({same}))")
    return "(" + " OR ".join(tests) + ")"


class DatabaseEngine(ConjunctionEngine):
    """Conjunctions in tables; changes are gathered and written before the next query."""

    schema_of_tables: str
    query: str

    def __init__(self, semantics: Semantics, options: Options) -> None:
        super().__init__(semantics, options)
        try:
            import duckdb
        except ModuleNotFoundError:
            raise MissingDependency(
                f"the engine {self.name} needs DuckDB: pip install 'tamis[duckdb]'"
            ) from None
        self._database = duckdb.connect(":memory:", config={"threads": 1})
        self._database.execute(self.schema_of_tables)
        self._new: dict[int, Ids] = {}
        self._gone: set[int] = set()

    # --- hooks of conjunctive engines

    def insert(self, slot: int, predicates: Ids) -> None:
        self._new[slot] = predicates

    def delete(self, slot: int, predicates: Ids) -> None:  # noqa: ARG002 - the table knows them
        if self._new.pop(slot, None) is None:
            self._gone.add(slot)

    def complete_rows(self, rows: Sequence[Row]) -> Iterator[Ids]:
        self._write()
        for start in range(0, len(rows), EVENTS_AT_ONCE):
            some = rows[start : start + EVENTS_AT_ONCE]
            answer = self._database.execute(self.query, self._parameters(some)).fetchnumpy()
            events, slots = np.asarray(answer["event"]), np.asarray(answer["sid"])
            order = np.argsort(events, kind="stable")
            events, slots = events[order], slots[order]
            ends = np.searchsorted(events, np.arange(len(some) + 1))
            for number in range(len(some)):
                yield slots[ends[number] : ends[number + 1]]

    def complete(self, satisfied: Ids) -> Ids:  # pragma: no cover - never called
        raise AssertionError(satisfied)

    # --- the database

    @property
    def database_bytes(self) -> int:
        """The bytes of memory that the database holds."""
        self._write()
        answer = self._database.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()")
        return int((answer.fetchone() or (0,))[0])

    def _write(self) -> None:
        if self._gone:
            self.delete_rows(sorted(self._gone))
            self._gone.clear()
        if self._new:
            self.insert_rows(self._new)
            self._new.clear()

    @abstractmethod
    def insert_rows(self, conjunctions: dict[int, Ids]) -> None:
        """Write conjunctions into the tables."""

    @abstractmethod
    def delete_rows(self, slots: list[int]) -> None:
        """Drop conjunctions from the tables."""

    def insert_table(self, name: str, columns: dict[str, pa.Array]) -> None:
        table = pa.table(columns)
        self._database.register("incoming", table)
        self._database.execute(f"INSERT INTO {name} SELECT * FROM incoming")  # noqa: S608 - our own
        self._database.unregister("incoming")

    def predicate_columns(self, predicates: Sequence[int]) -> dict[str, pa.Array]:
        """The columns attr, op and value of predicates."""
        columns: dict[str, list[Any]] = {k: [] for k in ("attr", "op", "ival", "dval", "sval")}
        for predicate in predicates:
            attribute, op, of, value = self._described(predicate)
            columns["attr"].append(attribute)
            columns["op"].append(op)
            _append_value(columns, of, value)
        types = (pa.int32(), pa.int8(), pa.int64(), pa.float64(), pa.string())
        return {k: pa.array(v, t) for (k, v), t in zip(columns.items(), types, strict=True)}

    def _described(self, predicate: int) -> tuple[int, int, Type | None, Any]:
        node = self.predicates.node(predicate)
        match classify(node):
            case Comparison(ast.Attribute(path, of), op, constant) if term_of(node) is None:
                position = self._semantics.schema.positions[path]
                return position, OPERATORS.index(op), of, constant
            case _:
                return -1, OTHER, None, None

    def _parameters(self, rows: Sequence[Row]) -> dict[str, list[Any]]:
        given: dict[str, list[Any]] = {
            k: [] for k in ("event", "attr", "ival", "dval", "sval", "other_event", "other_pid")
        }
        types = [attribute.type for attribute in self._semantics.schema.attributes]
        for number, row in enumerate(rows):
            for position, value in enumerate(row):
                if value is not None:
                    given["event"].append(number)
                    given["attr"].append(position)
                    _append_value(given, types[position], value)
            others = self.predicates.satisfied(row, comparisons=False).tolist()
            given["other_event"] += [number] * len(others)
            given["other_pid"] += others
        return given


def _append_value(columns: dict[str, list[Any]], of: Type | None, value: Any) -> None:
    kind = None if of is None else of.kind
    whole = None
    if of is not None and of.kind is Kind.DECIMAL:
        whole = decimal_key(value, of)
    elif kind in {Kind.INT, Kind.TIMESTAMP, Kind.BOOL}:
        whole = int(value)
    columns["ival"].append(whole)
    columns["dval"].append(value if kind is Kind.DOUBLE else None)
    columns["sval"].append(value if kind is Kind.STRING else None)


class ScanEngine(DatabaseEngine):
    """Sequential search: every predicate of every conjunction is compared."""

    name = "sql-scan"
    schema_of_tables = f"""
        CREATE TABLE subs
            (sid INTEGER, cnt INTEGER, pid INTEGER, attr INTEGER, op TINYINT, {_VALUES})
    """
    query = f"""
        WITH event AS ({_EVENT}), other AS ({_OTHERS}), hit AS (
            SELECT e.event, s.sid, s.cnt FROM subs s JOIN event e ON s.attr = e.attr
            WHERE {_compared("e", "s")}
            UNION ALL
            SELECT o.event, s.sid, s.cnt FROM subs s JOIN other o ON s.pid = o.pid
            WHERE s.op = {OTHER}
        )
        SELECT event, sid FROM hit GROUP BY event, sid, cnt HAVING count(*) = cnt
    """  # noqa: S608 - made of constants of this module

    def insert_rows(self, conjunctions: dict[int, Ids]) -> None:
        sizes = [len(predicates) for predicates in conjunctions.values()]
        pids = np.concatenate(list(conjunctions.values()))
        slots = np.repeat(np.fromiter(conjunctions, np.int32, len(sizes)), sizes)
        counts = np.repeat(np.array(sizes, np.int32), sizes)
        columns = {"sid": pa.array(slots), "cnt": pa.array(counts), "pid": pa.array(pids)}
        self.insert_table("subs", columns | self.predicate_columns(pids.tolist()))

    def delete_rows(self, slots: list[int]) -> None:
        self._database.execute("DELETE FROM subs WHERE sid IN (SELECT unnest($s))", {"s": slots})


class GroupedEngine(DatabaseEngine):
    """Predicate grouping: every distinct predicate is compared once."""

    name = "sql-grouped"
    schema_of_tables = f"""
        CREATE TABLE subs (sid INTEGER, cnt INTEGER);
        CREATE TABLE preds (pid INTEGER, attr INTEGER, op TINYINT, {_VALUES});
        CREATE TABLE subs_preds (sid INTEGER, pid INTEGER)
    """
    query = f"""
        WITH event AS ({_EVENT}), satisfied AS (
            SELECT e.event, p.pid FROM preds p JOIN event e ON p.attr = e.attr
            WHERE {_compared("e", "p")}
            UNION ALL
            {_OTHERS}
        )
        SELECT h.event, h.sid FROM (
            SELECT a.event, sp.sid, count(*) AS hits FROM satisfied a JOIN subs_preds sp USING (pid)
            GROUP BY a.event, sp.sid
        ) h JOIN subs USING (sid) WHERE hits = cnt
    """  # noqa: S608 - made of constants of this module

    def __init__(self, semantics: Semantics, options: Options) -> None:
        super().__init__(semantics, options)
        self._written: dict[int, ast.Node] = {}  # predicates in the table

    def insert_rows(self, conjunctions: dict[int, Ids]) -> None:
        sizes = [len(predicates) for predicates in conjunctions.values()]
        pids = np.concatenate(list(conjunctions.values()))
        slots = np.fromiter(conjunctions, np.int32, len(sizes))
        self._write_predicates(np.unique(pids).tolist())
        self.insert_table("subs", {"sid": pa.array(slots), "cnt": pa.array(sizes, pa.int32())})
        pairs = {"sid": pa.array(np.repeat(slots, sizes)), "pid": pa.array(pids)}
        self.insert_table("subs_preds", pairs)

    def _write_predicates(self, pids: list[int]) -> None:
        """Write new predicates; ids are reused, so an old row of the same id is deleted first."""
        new = [p for p in pids if self._written.get(p) is not self.predicates.node(p)]
        stale = [p for p in new if p in self._written]
        if stale:
            self._database.execute(
                "DELETE FROM preds WHERE pid IN (SELECT unnest($p))", {"p": stale}
            )
        if new:
            columns = {"pid": pa.array(new, pa.int32())} | self.predicate_columns(new)
            self.insert_table("preds", columns)
            self._written.update((p, self.predicates.node(p)) for p in new)

    def delete_rows(self, slots: list[int]) -> None:
        gone = {"s": slots}
        self._database.execute("DELETE FROM subs WHERE sid IN (SELECT unnest($s))", gone)
        self._database.execute("DELETE FROM subs_preds WHERE sid IN (SELECT unnest($s))", gone)
