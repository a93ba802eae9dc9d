"""Joins written by hand: which columns the tables have, what must be equal, what is tested.

*Plain* is what one writes first: two columns of bounds for each attribute, every subscription
beside every event; alerts are joined by their symbol. *Tuned* knows the one workload:

* Domains of few values become bits. A subscription has the bits of the values that it does not
  allow, an event those of its values, and they match if they have no bit in common: two words
  instead of thirty comparisons for w4.
* Where filters are selective, each is filed under one of its predicates, the narrowest, once for
  each value (or, if they are many, each of 16 ranges of values) that it allows; an event looks
  under its own values.
* The filters of the tree workload nearly always test the first attributes, so they are filed under
  their tests of six of these; an event looks under all combinations of its values and no test.
* Alerts are filed under their symbol and each price range of 10 that they touch.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rivals.base import LeftOut, total
from rivals.columns import (
    Alerts,
    Bounds,
    Domain,
    bounds_of,
    domains_of,
    read_alerts,
    read_atoms,
    values_of,
)
from rivals.keys import Keys, NarrowKeys, Patterns, WideKeys, spread
from rivals.masks import event_masks, filter_masks
from tamis.workloads import Workload

Array = np.ndarray[Any, Any]
Columns = dict[str, Any]

FEW = 64  # values of a domain that become bits, or keys of their own
PRICES = 10.0  # in one range


class Test(NamedTuple):
    """``event op subscription`` for two columns; ``&`` is true if no bit is set in both."""

    event: str
    op: str  # >= <= <> &
    subscription: str


@dataclass(frozen=True)
class Plan:
    """A join of subscriptions with events."""

    subscriptions: pa.Table  # with a column `id`
    events: Callable[[pa.Table], pa.Table]  # with a column `event`
    keys: tuple[str, ...]  # columns of both; without any, all pairs are tested
    tests: tuple[Test, ...]


def plain_plan(source: Workload, filters: pa.ChunkedArray) -> Plan:
    """Bounds, and no key except the symbol."""
    if source.name == "stock":
        return _alerts(read_alerts(filters))
    _conjunctions_only(source)
    domains = domains_of(source.schema)
    bounds = bounds_of(read_atoms(filters), domains)
    columns, tests = _bounds(bounds, domains, np.arange(bounds.low.shape[1]))

    def events(table: pa.Table) -> pa.Table:
        values = values_of(table, domains)
        return _numbered(_values(values, domains), np.arange(table.num_rows))

    return Plan(pa.table(columns), _checked(events), (), tests)


def tuned_plan(source: Workload, filters: pa.ChunkedArray) -> Plan:
    """The best we know for the workload."""
    if source.name == "stock":
        return _filed_alerts(read_alerts(filters))
    _conjunctions_only(source)
    domains = domains_of(source.schema)
    bounds = bounds_of(read_atoms(filters), domains)
    if max(domain.size for domain in domains) > FEW:
        return _filed(bounds, domains, WideKeys(domains), masked=False)
    if source.name.startswith("w"):
        return _masked(bounds, domains)
    if source.name == "tree":
        return _filed(bounds, domains, Patterns(domains), masked=True)
    return _filed(bounds, domains, NarrowKeys(domains), masked=True)


def _conjunctions_only(source: Workload) -> None:
    if source.name == "bdd" or source.name.startswith("shapes"):
        raise LeftOut("a join has one condition; these filters are formulas, no two alike")


# --- conjunctions


def _masked(bounds: Bounds, domains: list[Domain]) -> Plan:
    masks = filter_masks(bounds, domains)
    columns = {"id": np.arange(len(masks), dtype=np.int32), **_words("n", masks)}

    def events(table: pa.Table) -> pa.Table:
        seen = event_masks(values_of(table, domains), domains)
        return _numbered(_words("m", seen), np.arange(len(seen)))

    return Plan(pa.table(columns), _checked(events), (), _mask_tests(masks.shape[1]))


def _filed(bounds: Bounds, domains: list[Domain], keys: Keys, *, masked: bool) -> Plan:
    """Filters under keys, with masks or with bounds for the rest of what they say."""
    key, filter_ = keys.of_filters(bounds)
    if masked:
        masks = filter_masks(bounds, domains)[filter_]
        columns = {"id": filter_.astype(np.int32), **_words("n", masks)}
        tests = _mask_tests(masks.shape[1])
    else:
        columns, tests = _bounds(bounds, domains, filter_)

    def events(table: pa.Table) -> pa.Table:
        values = values_of(table, domains)
        asked = keys.of_events(values)
        event = np.repeat(np.arange(len(asked)), asked.shape[1])
        if masked:
            rest = _words("m", event_masks(values, domains)[event])
        else:
            rest = _values(values[:, event], domains)
        return _numbered({"key": np.ascontiguousarray(asked).ravel(), **rest}, event)

    return Plan(pa.table({"key": key, **columns}), _checked(events), ("key",), tests)


def _bounds(
    bounds: Bounds, domains: list[Domain], filter_: Array
) -> tuple[Columns, tuple[Test, ...]]:
    """Columns of bounds for rows of filters, those that say something, and their tests."""
    columns: Columns = {"id": filter_.astype(np.int32)}
    tests = []
    for n, domain in enumerate(domains):
        low, high, other = (part[n][filter_].astype(_whole(domain)) for part in bounds)
        columns |= {f"l{n}": low, f"h{n}": high}
        tests += [Test(f"a{n}", ">=", f"l{n}"), Test(f"a{n}", "<=", f"h{n}")]
        if (other >= domain.low).any():
            columns[f"x{n}"] = other
            tests.append(Test(f"a{n}", "<>", f"x{n}"))
    return columns, tuple(tests)


def _values(values: Array, domains: list[Domain]) -> Columns:
    return {f"a{n}": values[n].astype(_whole(domain)) for n, domain in enumerate(domains)}


def _whole(domain: Domain) -> Any:
    """The smallest signed type that also holds the numbers beside a domain."""
    return np.promote_types(np.min_scalar_type(-domain.high - 2), np.int8)


def _numbered(columns: Columns, event: Array) -> pa.Table:
    return pa.table({"event": event.astype(np.int32), **columns})


def _checked(events: Callable[[pa.Table], pa.Table]) -> Callable[[pa.Table], pa.Table]:
    def checked(table: pa.Table) -> pa.Table:
        total(table)
        return events(table)

    return checked


def _words(prefix: str, masks: Array) -> Columns:
    return {f"{prefix}{w}": np.ascontiguousarray(masks[:, w]) for w in range(masks.shape[1])}


def _mask_tests(words: int) -> tuple[Test, ...]:
    return tuple(Test(f"m{w}", "&", f"n{w}") for w in range(words))


# --- alerts

_ALERT_TESTS = (Test("price", ">=", "low"), Test("price", "<=", "high"),
                Test("volume", ">=", "least"))  # fmt: skip


def _alerts(alerts: Alerts) -> Plan:
    every = np.arange(len(alerts.low))
    return Plan(pa.table(_alert_columns(alerts, every)), _ticks, ("symbol",), _ALERT_TESTS)


def _filed_alerts(alerts: Alerts) -> Plan:
    first, last = (_price_range(ends) for ends in (alerts.low, alerts.high))
    alert, range_ = spread(first, last)
    table = pa.table({"range": range_.astype(np.int32), **_alert_columns(alerts, alert)})

    def events(ticks: pa.Table) -> pa.Table:
        seen = _ticks(ticks)
        range_ = _price_range(np.asarray(seen["price"])).astype(np.int32)
        return seen.append_column("range", pa.array(range_))

    return Plan(table, events, ("symbol", "range"), _ALERT_TESTS)


def _alert_columns(alerts: Alerts, alert: Array) -> Columns:
    return {
        "id": alert.astype(np.int32), "symbol": alerts.symbol.take(pa.array(alert)),
        "low": alerts.low[alert], "high": alerts.high[alert],
        "least": alerts.least[alert].astype(np.int32),
    }  # fmt: skip


def _price_range(price: Array) -> Array:
    found: Array = (price // PRICES).astype(np.int64)
    return found


def _ticks(table: pa.Table) -> pa.Table:
    total(table)
    event = pa.array(np.arange(table.num_rows, dtype=np.int32))
    return table.set_column(2, "volume", table["volume"].cast(pa.int32())).add_column(
        0, "event", event
    )
