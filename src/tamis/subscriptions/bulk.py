"""Many subscriptions at once: their ids and filters, row by row, and which rows are bad."""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.errors import BulkError, ExpressionError, OptionError, SubscriptionError, TamisError
from tamis.language.expression import Expression
from tamis.language.parameters import FilledFilter, fill
from tamis.types import INT64_MAX, INT64_MIN

Id = str | int
Progress = Callable[[int], object]

STEP = 10_000  # filters between two calls of `progress`


class BulkRows(NamedTuple):
    """Subscriptions as they came: the ids and filters of all rows."""

    ids: list[Any]
    filters: list[Any]
    failures: dict[int, tuple[Any, TamisError]]  # bad rows: the id, and what is wrong
    filled: dict[int, FilledFilter]  # rows whose filters had parameters


def rows_of(subscriptions: Any) -> BulkRows:
    """The rows of anything that `subscribe_many` takes."""
    if isinstance(subscriptions, Mapping):
        return BulkRows(list(subscriptions), list(subscriptions.values()), {}, {})
    if not isinstance(subscriptions, list | tuple | Iterator):
        from tamis.events.columns import as_table

        table = as_table(subscriptions)
        if table is not None:
            return _rows_of_table(table)
        if not isinstance(subscriptions, Iterable) or isinstance(subscriptions, str | bytes):
            raise OptionError(
                "subscribe_many takes (id, filter) pairs, a mapping or a table, not "
                f"{type(subscriptions).__name__}"
            )
    rows = BulkRows([], [], {}, {})
    for row, pair in enumerate(subscriptions):
        subscription = text = parameters = None
        if isinstance(pair, Mapping) and "id" in pair and "filter" in pair:
            subscription, text = pair["id"], pair["filter"]
            parameters = pair.get("parameters")
        elif isinstance(pair, list | tuple) and len(pair) == 2:
            subscription, text = pair
        elif _is_triple(pair):
            subscription, text, parameters = pair
        else:
            what = f"expected (id, filter), perhaps with parameters, got {type(pair).__name__}"
            rows.failures[row] = None, SubscriptionError(what)
        rows.ids.append(subscription)
        rows.filters.append(text)
        if parameters is not None:
            _fill(rows, row, parameters)
    return rows


def _is_triple(row: Any) -> bool:
    """Whether a row is an id, a filter and parameters."""
    return (
        isinstance(row, list | tuple)
        and len(row) == 3
        and (row[2] is None or isinstance(row[2], Mapping))
    )


def _fill(rows: BulkRows, row: int, parameters: Any) -> None:
    """Write the values of parameters into the filter of a row."""
    text = rows.filters[row]
    try:
        if isinstance(text, Expression):
            raise SubscriptionError("an expression has no parameters; give them to parse")
        filled = fill(text, parameters)
    except TamisError as error:
        rows.failures[row] = rows.ids[row], error
    else:
        rows.filters[row], rows.filled[row] = filled.text, filled


def _rows_of_table(table: pa.Table) -> BulkRows:
    for name in ("id", "filter"):
        if table.column_names.count(name) != 1:
            raise OptionError(
                f"the table of subscriptions needs exactly one column {name!r}; "
                f"it has {', '.join(table.column_names)}"
            )
    ids, no_ids = _values(table["id"])
    filters, no_filters = _values(table["filter"])
    failures: dict[int, tuple[Any, TamisError]] = {
        row: (ids[row], SubscriptionError(f"the filter is not valid UTF-8: {reason}"))
        for row, reason in no_filters.items()
    }
    for row, reason in no_ids.items():
        failures[row] = None, SubscriptionError(f"the id is not valid UTF-8: {reason}")
    return BulkRows(ids, filters, failures, {})


def _values(column: pa.ChunkedArray) -> tuple[list[Any], dict[int, str]]:
    """The values of a column, and the rows whose bytes are not text, with the reasons."""
    try:
        return column.to_pylist(), {}
    except UnicodeDecodeError:
        values, bad = [], {}
        for row, value in enumerate(column):
            try:
                values.append(value.as_py())
            except UnicodeDecodeError as error:
                values.append(None)
                bad[row] = error.reason
        return values, bad


def ids_of(subscriptions: Any) -> list[Any]:
    """The ids of anything that `unsubscribe_many` takes."""
    if isinstance(subscriptions, str | bytes) or not isinstance(subscriptions, Iterable):
        raise OptionError(
            f"unsubscribe_many takes a list or a column of ids, not {subscriptions!r}; "
            "unsubscribe takes one id"
        )
    if isinstance(subscriptions, pa.Array | pa.ChunkedArray):
        listed: list[Any] = subscriptions.to_pylist()
        return listed
    return list(subscriptions)


def plain_id(subscription: object) -> Id | None:
    """An id in the type that tamis keeps; None for what cannot be an id."""
    if type(subscription) is str or type(subscription) is int:
        return subscription
    if isinstance(subscription, str):
        return str(subscription)
    if type(subscription) is not bool and isinstance(subscription, Integral):
        return int(subscription)  # of numpy, for example
    return None


def checked_id(subscription: Any, kind: type | None) -> Id:
    """An id as tamis keeps it; refuses other types, and a string among integers or vice versa."""
    kept = plain_id(subscription)
    if kept is None:
        raise SubscriptionError(
            f"a subscription id is a string or an integer, not {type(subscription).__name__}"
        )
    if isinstance(kept, int):
        if not INT64_MIN <= kept <= INT64_MAX:
            raise SubscriptionError("the subscription id does not fit in 64 bits")
    else:
        try:
            kept.encode()
        except UnicodeEncodeError:
            raise SubscriptionError("a subscription id is not valid Unicode text") from None
    if kind is not None and type(kept) is not kind:
        words = {str: "strings", int: "integers"}
        raise SubscriptionError(f"the ids of this matcher are {words[kind]}, and {kept!r} is not")
    return kept


def check_ids(rows: BulkRows, kind: type | None) -> None:
    """Turn the ids into those that tamis keeps, in place; note the bad ones as failures."""
    for row, subscription in enumerate(rows.ids):
        if row in rows.failures:
            continue
        if kind is int and type(subscription) is int and INT64_MIN <= subscription <= INT64_MAX:
            continue
        try:
            rows.ids[row] = checked_id(subscription, kind)
            kind = type(rows.ids[row])
        except SubscriptionError as error:
            rows.failures[row] = subscription, error


def read_all(rows: BulkRows, read: Callable[[int, Any], None], progress: Progress | None) -> None:
    """Call ``read(row, filter)`` for every good row; a BulkError names all bad ones."""
    done = 0
    for row, text in enumerate(rows.filters):
        if row not in rows.failures:
            try:
                read(row, text)
            except SubscriptionError as error:
                rows.failures[row] = rows.ids[row], error
            except ExpressionError as error:
                given = rows.filled.get(row)
                seen = error if given is None else given.in_original(error)
                rows.failures[row] = rows.ids[row], seen
        if progress is not None and row + 1 - done >= STEP:
            progress(row + 1 - done)
            done = row + 1
    if progress is not None and len(rows.filters) > done:
        progress(len(rows.filters) - done)
    if rows.failures:
        found = [(row, *rows.failures[row]) for row in sorted(rows.failures)]
        raise BulkError(found, len(rows.filters))


def text_column(filters: list[Any]) -> pa.Array:
    """The texts of filters, as a column."""
    texts = [str(one) if isinstance(one, Expression) else one for one in filters]
    return pa.array(texts, pa.large_string() if sum(map(len, texts)) > 2**30 else pa.string())


def id_column(ids: list[Any]) -> pa.Array:
    """Checked ids, as a column."""
    return pa.array(ids, pa.int64() if ids and type(ids[0]) is int else pa.string())


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector, which would walk millions of living objects in vain."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
