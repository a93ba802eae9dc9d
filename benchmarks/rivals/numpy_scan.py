"""numpy, tuned by hand for each workload.

* Conjunctions of comparisons (`bitmaps.Bitmaps`): for each value of each attribute the bits of the
  filters that it does not rule out; the result of an event is the AND of one row per attribute.
* The tree workload (`FiledFilters`): filters sorted by their tests of the first six
  attributes; an event tests the few runs that it can reach.
* Alerts (`SortedAlerts`): sorted by symbol and low price; as no range is wider than the widest, an
  event tests one run of them.
* Boolean queries (`formulas.Formulas`): 64 events per word, filters of one shape side by side.
"""

from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivals.base import total
from rivals.bitmaps import Bitmaps
from rivals.columns import bounds_of, domains_of, read_alerts, read_atoms, values_of
from rivals.formulas import Formulas
from rivals.keys import Patterns, spread
from rivals.masks import event_masks, filter_masks
from tamis.workloads import Workload

Array = np.ndarray[Any, Any]

CANDIDATES = 32_768  # tested at once: what fits the caches
LONG = 300  # candidates of an event from which a loop over events costs less than gathering them
CENTS = 100
BEYOND = 10_000_000  # more cents than any price: symbols are that far apart


class Scan(Protocol):
    """A scan for one family of workloads."""

    def __init__(self, source: Workload, filters: pa.ChunkedArray) -> None:
        """Read the filters into columns."""

    def build(self) -> None:
        """Make the arrays that are scanned."""

    def count(self, events: pa.Table) -> Array:
        """counts[event]."""

    def pairs(self, events: pa.Table) -> tuple[Array, Array]:
        """Numbers of events and of filters."""

    def arrays(self) -> list[Array]:
        """All that is held."""


class NumpyScan:
    """The scan for a workload, as a contestant."""

    def __init__(self, source: Workload) -> None:
        self._source = source
        self._scan: Scan | None = None

    def read(self, subscriptions: pa.Table) -> None:
        kind: dict[str, type[Scan]] = {
            "bdd": Formulas, "shapes": Formulas, "shapes-constants": Formulas,
            "shapes-texts": Formulas, "shapes-wide": Formulas,
            "stock": SortedAlerts, "tree": FiledFilters,
        }  # fmt: skip
        self._scan = kind.get(self._source.name, Bitmaps)(self._source, subscriptions["filter"])

    def build(self) -> None:
        self._made.build()

    def count(self, events: pa.Table) -> Array:
        return self._made.count(events)

    def pairs(self, events: pa.Table) -> pa.Table:
        event, filter_ = self._made.pairs(events)
        return pa.table({"event": event, "subscription": filter_})

    def bytes(self) -> int | None:
        return sum(array.nbytes for array in self._made.arrays())

    def close(self) -> None:
        """Nothing to give back."""

    @property
    def _made(self) -> Scan:
        if self._scan is None:
            raise AssertionError("read comes before build")
        return self._scan


class SortedAlerts:
    """Alerts of a symbol by their low price; prices are whole cents."""

    def __init__(self, source: Workload, filters: pa.ChunkedArray) -> None:  # noqa: ARG002 - a Scan
        self._alerts = read_alerts(filters)
        self._symbols = self._alerts.symbol.unique()

    def build(self) -> None:
        alerts = self._alerts
        low, high = _cents(alerts.low), _cents(alerts.high)
        key = self._codes(alerts.symbol) * BEYOND + low
        order = np.argsort(key, kind="stable")
        self._keys = key[order]
        self._high = high[order].astype(np.int32)
        self._least = alerts.least[order].astype(np.int32)
        self._ids = order.astype(np.int32)
        self._widest = int((high - low).max(initial=0))

    def count(self, events: pa.Table) -> Array:
        starts, ends, price, volume = self._runs(events)
        if self._is_long(starts, ends):
            runs = zip(starts.tolist(), ends.tolist(), price.tolist(), volume.tolist(), strict=True)
            counts = [np.count_nonzero(self._true(slice(a, b), p, v)) for a, b, p, v in runs]
            return np.array(counts, np.int64)
        event, _ = self._gathered(starts, ends, price, volume)
        return np.bincount(event, minlength=len(starts))

    def pairs(self, events: pa.Table) -> tuple[Array, Array]:
        starts, ends, price, volume = self._runs(events)
        if not self._is_long(starts, ends):
            return self._gathered(starts, ends, price, volume)
        found = []
        runs = zip(starts.tolist(), ends.tolist(), price.tolist(), volume.tolist(), strict=True)
        for a, b, p, v in runs:
            found.append(self._ids[a:b][self._true(slice(a, b), p, v)])
        lengths = [len(ids) for ids in found]
        return np.repeat(np.arange(len(found), dtype=np.int32), lengths), np.concatenate(found)

    def arrays(self) -> list[Array]:
        return [self._keys, self._high, self._least, self._ids]

    def _runs(self, events: pa.Table) -> tuple[Array, Array, Array, Array]:
        """The alerts of each event's symbol whose low price is not too far below its price."""
        total(events)
        price = _cents(np.asarray(events["price"]))
        symbol = self._codes(events["symbol"]) * BEYOND
        starts = np.searchsorted(self._keys, symbol + np.maximum(price - self._widest, 0))
        ends = np.searchsorted(self._keys, symbol + price, side="right")
        volume = np.asarray(events["volume"])
        return starts, ends, price.astype(np.int32), volume.astype(np.int32)

    def _codes(self, symbols: Any) -> Array:
        codes = pc.fill_null(pc.index_in(symbols, value_set=self._symbols), len(self._symbols))
        return np.asarray(codes).astype(np.int64)

    def _is_long(self, starts: Array, ends: Array) -> bool:
        return bool((ends - starts).sum() > LONG * len(starts))

    def _true(self, which: Any, price: Any, volume: Any) -> Array:
        true: Array = (self._high[which] >= price) & (self._least[which] <= volume)
        return true

    def _gathered(
        self, starts: Array, ends: Array, price: Array, volume: Array
    ) -> tuple[Array, Array]:
        events, filters = [], []
        for some in _portions(ends - starts):
            event, place = spread(starts[some], ends[some] - 1)
            event += some.start
            true = np.flatnonzero(self._true(place, price[event], volume[event]))
            events.append(event[true].astype(np.int32))
            filters.append(self._ids[place[true]])
        return _joined(events), _joined(filters)


class FiledFilters:
    """Filters sorted by a pattern; masks say the rest."""

    def __init__(self, source: Workload, filters: pa.ChunkedArray) -> None:
        self._domains = domains_of(source.schema)
        self._bounds = bounds_of(read_atoms(filters), self._domains)
        self._patterns = Patterns(self._domains)

    def build(self) -> None:
        keys, _ = self._patterns.of_filters(self._bounds)
        order = np.argsort(keys, kind="stable")
        self._ids = order.astype(np.int32)
        self._masks = filter_masks(self._bounds, self._domains)[order]
        self._starts = np.searchsorted(keys[order], np.arange(self._patterns.count + 1))

    def count(self, events: pa.Table) -> Array:
        event, _ = self.pairs(events)
        return np.bincount(event, minlength=events.num_rows)

    def pairs(self, events: pa.Table) -> tuple[Array, Array]:
        total(events)
        values = values_of(events, self._domains)
        seen = event_masks(values, self._domains)
        keys = self._patterns.of_events(values)
        starts, ends = self._starts[keys], self._starts[keys + 1]
        numbers, filters = [], []
        for some in _portions((ends - starts).sum(axis=1)):
            run, place = spread(starts[some].ravel(), ends[some].ravel() - 1)
            event = run // keys.shape[1] + some.start
            for word in range(seen.shape[1]):
                none = np.flatnonzero((self._masks[place, word] & seen[event, word]) == 0)
                event, place = event[none], place[none]
            numbers.append(event.astype(np.int32))
            filters.append(self._ids[place])
        return _joined(numbers), _joined(filters)

    def arrays(self) -> list[Array]:
        return [self._ids, self._masks, self._starts]


def _cents(prices: Array) -> Array:
    return np.round(prices * CENTS).astype(np.int64)


def _portions(lengths: Array) -> list[slice]:
    """Portions of events with about `CANDIDATES` candidates each."""
    portion = np.cumsum(lengths) // CANDIDATES
    cuts = np.flatnonzero(np.diff(portion)) + 1
    ends = [*cuts.tolist(), len(lengths)]
    return [slice(start, end) for start, end in zip([0, *cuts.tolist()], ends, strict=True)]


def _joined(parts: list[Array]) -> Array:
    return np.concatenate([np.empty(0, np.int32), *parts])
