"""A profile: the attributes and values of past events, how often and together with what."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import OptionError, counted, unknown_attribute
from tamis.events.chunks import event_chunks
from tamis.events.columns import as_table
from tamis.events.values import value_reader
from tamis.predicates.keys import Keys, key_values
from tamis.profiles import event_values as source
from tamis.profiles import profile_file, profile_report
from tamis.profiles.hashes import shortened_text
from tamis.profiles.sketches import (
    PRIORITY,
    AttributeSummary,
    deviation,
    distinct_estimate,
    first_by_priority,
    priorities_of,
    summary_of,
    with_priorities,
)
from tamis.schema import Attribute, Schema, as_schema
from tamis.types import Kind

Array = np.ndarray[Any, Any]

TOP, SAMPLE, SEED = 100, 1 << 14, 1
MOST_TOP, MOST_SAMPLE = 10_000, 1 << 20
COUNTERS = 8  # per value of the `top`, for bounds eight times as close as they must be
CELLS = 1 << 21  # values of a sample, so that a sample of many attributes stays small
PAIRED = 256  # attributes up to which pairs are counted in all events


class ShareEstimate(NamedTuple):
    """An estimated share of all events: between `low` and `high`, most likely `likely`."""

    low: float
    likely: float
    high: float


class FrequentValue(NamedTuple):
    """A value that occurs often: in at least `low` and at most `high` events."""

    value: Any
    low: int
    high: int


class ProfileLimits(NamedTuple):
    """How much a profile keeps."""

    top: int
    sample: int
    seed: int

    def checked(self) -> "ProfileLimits":
        """These limits; `OptionError` if one is out of range."""
        for name, value, most in (
            ("top", self.top, MOST_TOP),
            ("sample", self.sample, MOST_SAMPLE),
        ):
            if type(value) is not int or not 1 <= value <= most:
                raise OptionError(f"{name} is a number from 1 to {most:,}, not {value!r}")
        if type(self.seed) is not int:
            raise OptionError(f"seed is a whole number, not {self.seed!r}")
        return self


@dataclass(frozen=True, eq=False, repr=False)
class Profile:
    """What is known of past events: attributes, values, ranges, pairs, and a sample of events.

    `Profile.of` makes one from tables, `tamis.spark.profile` from a DataFrame. Profiles of one
    schema can be merged, saved and loaded; `print` shows a report.
    """

    schema: Schema
    limits: ProfileLimits
    events: int
    refused: int  # events that do not fit the schema; nothing else counts them
    summaries: tuple[AttributeSummary, ...]  # one per attribute
    pairs: Array  # int64[attribute, attribute]: events with both; empty for more than `PAIRED`
    drawn: pa.Table  # the sample: priorities, keys and strings

    # --- making

    @classmethod
    def empty(cls, schema: Schema, limits: ProfileLimits) -> "Profile":
        """A profile of no events."""
        texts = [a.type.kind is Kind.STRING for a in schema.attributes]
        none = [
            pa.array([], pa.large_string()) if text else np.empty(0, np.int64) for text in texts
        ]
        size = len(schema) if len(schema) <= PAIRED else 0
        columns = {str(n): pa.array(values) for n, values in enumerate(none)}
        return cls(
            schema=schema, limits=limits.checked(), events=0, refused=0,
            summaries=tuple(
                summary_of(values, np.empty(0, np.int64), False, 1) for values in none
            ),
            pairs=np.zeros((size, size), np.int64),
            drawn=pa.table({PRIORITY: pa.array([], pa.uint64()), **columns}),
        )  # fmt: skip

    @classmethod
    def of(
        cls, events: Any, schema: Any = None, *, top: int = TOP, sample: int = SAMPLE,
        seed: int = SEED,
    ) -> "Profile":  # fmt: skip
        """The profile of a table, or of an iterable of tables or events, read once.

        Without a schema, it is the schema of the first table without the columns that no filter
        can use. Every value in more than 1 / `top` of the events is sure to be among the frequent
        ones; `sample` events are kept whole.
        """
        if not isinstance(events, Iterator | pa.RecordBatchReader):
            table = as_table(events)
            events = events if table is None else table
        if isinstance(events, Mapping | str | bytes) or not isinstance(events, Iterable | pa.Table):
            raise OptionError(
                "Profile.of takes a table, or an iterable of tables or events, not "
                f"{type(events).__name__}"
            )
        parts: Iterator[Any] = event_chunks(events)
        if schema is None:
            schema, parts = source.schema_of(parts, events)
        return cls.empty(as_schema(schema), ProfileLimits(top, sample, seed)).grown(parts)

    def grown(self, parts: Iterable[Any], part: int = 0) -> "Profile":
        """This profile with the events of tables or lists; `part` numbers parts with one seed."""
        found, row = self, 0
        for columns, size, refused in source.columns_of(parts, self.schema):
            found = found.merge(found._of_part(columns, size, refused, (part, row)))
            row += size
        return found

    def _of_part(
        self, columns: list[source.Values], size: int, refused: int, place: tuple[int, int]
    ) -> "Profile":
        """The profile of a few events, whose sample has only what can stay in that of both."""
        priorities = priorities_of(self.limits.seed, *place, size)
        if self.drawn.num_rows == self.drawable:
            bound = self.drawn[PRIORITY][-1].as_py()
            chosen = np.flatnonzero(priorities < np.uint64(bound))
        else:
            chosen = np.argsort(priorities, kind="stable")[: self.drawable]
        drawn = {PRIORITY: pa.array(priorities[chosen])}
        drawn |= {str(n): column.taken(chosen) for n, column in enumerate(columns)}
        return replace(
            self, events=size, refused=refused,
            summaries=tuple(summary_of(*c.counted(), self.counters) for c in columns),
            pairs=source.together(columns, size) if len(self.pairs) else self.pairs,
            drawn=pa.table(drawn),
        )  # fmt: skip

    def merge(self, other: "Profile") -> "Profile":
        """The profile of the events of both."""
        if self.schema != other.schema or self.limits[:2] != other.limits[:2]:
            raise OptionError("profiles can be merged if they have the same schema, top and sample")
        pairs = zip(self.summaries, other.summaries, strict=True)
        return replace(
            self, events=self.events + other.events, refused=self.refused + other.refused,
            summaries=tuple(a.merge(b, self.counters) for a, b in pairs),
            pairs=self.pairs + other.pairs,
            drawn=first_by_priority(self.drawn, other.drawn, self.drawable),
        )  # fmt: skip

    def weighted(self, factor: float) -> "Profile":
        """The profile if there had been `factor` times as many events of each sort.

        So old events count less than new ones, and a sample of events counts for all of them; such
        profiles can be merged, too.
        """
        return replace(
            self, events=round(self.events * factor), refused=round(self.refused * factor),
            summaries=tuple(one.weighted(factor) for one in self.summaries),
            pairs=np.round(self.pairs * factor).astype(np.int64),
            drawn=with_priorities(self.drawn, factor),
        )  # fmt: skip

    @property
    def counters(self) -> int:
        """How many values of an attribute are counted at most."""
        return self.limits.top * COUNTERS

    @property
    def drawable(self) -> int:
        """How many events the sample has at most."""
        return max(1, min(self.limits.sample, CELLS // max(1, len(self.schema))))

    # --- reading

    def present(self, name: str) -> int:
        """How many events have an attribute."""
        return self._find(name)[2].present

    def missing(self, name: str) -> float:
        """The share of events that lack an attribute."""
        return 1 - self.present(name) / self.events if self.events else 0.0

    def distinct(self, name: str) -> int:
        """About how many distinct values an attribute has.

        It is exact below 1,024, else with a standard error of 3.1 %.
        """
        return distinct_estimate(self._find(name)[2].minima)

    def range(self, name: str) -> tuple[Any, Any]:
        """The smallest and the largest value, ignoring NaN; None and None if there is none."""
        _, attribute, summary = self._find(name)
        if summary.low is None:
            return None, None
        low, high = _python(attribute, [summary.low, summary.high])
        return low, high

    def frequent(self, name: str, most: int | None = None) -> list[FrequentValue]:
        """The values that occur most often, the most frequent first.

        Without `most` there are `top` of them, and more if more may have 1 / `top` of the events.
        """
        _, attribute, summary = self._find(name)
        values, counts, error = summary.counters
        if most is None:
            top = self.limits.top
            most = max(top, int(((counts + error) * top > self.events).sum()))
        some = slice(most)
        found = (
            values[some].tolist() if isinstance(values, np.ndarray) else values[some].to_pylist()
        )
        return [
            FrequentValue(value, count, min(count + error, summary.present))
            for value, count in zip(_python(attribute, found), counts[some].tolist(), strict=True)
        ]

    def frequency(self, name: str, value: Any) -> ShareEstimate:
        """The share of events with a value; for None, of events without the attribute.

        The bounds are certain; between them, the sample says what is likely.
        """
        position, attribute, summary = self._find(name)
        if value is None:
            return ShareEstimate(*[self.missing(name)] * 3)
        key = self._key(position, attribute, value)
        values, counts, error = summary.counters
        if isinstance(values, np.ndarray):
            places = np.flatnonzero(values == key)
        else:
            places = np.flatnonzero(np.asarray(pc.equal(values, key)))
        count = int(counts[places[0]]) if len(places) else 0
        low, high = (n / max(1, self.events) for n in (count, min(count + error, summary.present)))
        return ShareEstimate(low, min(max(low, self._drawn_share(position, key, key)), high), high)

    def between(self, name: str, low: Any = None, high: Any = None) -> ShareEstimate:
        """The share of events with a value from `low` to `high`, both included; None is unbounded.

        The bounds are right 99 times in a hundred; they are exact if the sample has all events.
        """
        position, attribute, _ = self._find(name)
        bounds = [None if v is None else self._key(position, attribute, v) for v in (low, high)]
        likely = self._drawn_share(position, *bounds)
        error = self.deviation
        return ShareEstimate(max(0.0, likely - error), likely, min(1.0, likely + error))

    def edges(self, name: str, parts: int = 16) -> list[Any]:
        """Values that divide those of an attribute into parts with about as many events each.

        The first edge is the smallest value of the sample, the last one the largest. The parts are
        equal in the sample; in all events an edge is off by at most `deviation`, 99 times in a
        hundred.
        """
        position, attribute, _ = self._find(name)
        column = self.drawn[str(position)].drop_null()
        places = np.linspace(0, len(column) - 1, parts + 1).round().astype(np.int64)
        if not len(column):
            return []
        ordered = column.take(pc.sort_indices(column)).take(pa.array(places))
        return _python(attribute, ordered.to_pylist())

    @property
    def deviation(self) -> float:
        """How far a share of the sample may be from that of all events, 99 times in a hundred."""
        return deviation(self.events, self.drawn.num_rows)

    def together(self, name: str, other: str) -> float:
        """The share of events that have both attributes."""
        first, second = self._find(name)[0], self._find(other)[0]
        if len(self.pairs):
            return int(self.pairs[first, second]) / max(1, self.events)
        both = pc.and_(*(self.drawn[str(n)].is_valid() for n in (first, second)))
        return (pc.sum(both).as_py() or 0) / max(1, len(both))

    @property
    def sample(self) -> pa.Table:
        """Some whole events, drawn uniformly; paths become records again."""
        values = {
            attribute.path: source.restored(self.drawn[str(n)].combine_chunks(), attribute)
            for n, attribute in enumerate(self.schema.attributes)
        }
        return source.nested(values, self.drawn.num_rows)

    def drawn_values(self, name: str) -> list[Any]:
        """The values of an attribute in the sample; timestamps are in microseconds."""
        position, attribute, _ = self._find(name)
        return _python(attribute, self.drawn[str(position)].drop_null().to_pylist())

    def _find(self, name: str) -> tuple[int, Attribute, AttributeSummary]:
        attribute = self.schema.get(name)
        if attribute is None:
            raise OptionError(unknown_attribute(name, self.schema))
        position = self.schema.positions[attribute.path]
        return position, attribute, self.summaries[position]

    def _key(self, position: int, attribute: Attribute, value: Any) -> Any:
        read = value_reader(Attribute(attribute.path, attribute.type))(value)
        if attribute.type.kind is Kind.STRING:
            return shortened_text(read)
        if attribute.type.is_nested:
            return len(read)
        keys = Keys(self.schema)
        if attribute.type.kind is Kind.DECIMAL:
            return keys.of_one(position)(read)
        return keys.key(position, read)

    def _drawn_share(self, position: int, low: Any, high: Any) -> float:
        column = self.drawn[str(position)]
        inside = column.is_valid()
        if low is not None:
            inside = pc.and_kleene(inside, pc.greater_equal(column, low))
        if high is not None:
            inside = pc.and_kleene(inside, pc.less_equal(column, high))
        return (pc.sum(inside).as_py() or 0) / max(1, len(column))

    # --- reports and files

    def report(self) -> str:
        """A readable text: one line per attribute, then attributes that occur together."""
        return profile_report.report_text(self)

    def __str__(self) -> str:
        return self.report()

    def __repr__(self) -> str:
        return f"<Profile of {counted(self.events, 'event')}>"

    def to_dict(self) -> dict[str, Any]:
        """The profile as a dict for JSON."""
        return profile_report.report_dict(self)

    def save(self, path: str | Path) -> None:
        """Write the profile to a file; an existing file is replaced in one step."""
        profile_file.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> "Profile":
        """The profile in a file that `save` has written."""
        with profile_file.opened(path) as (schema, limits, content):
            return profile_file.filled(cls.empty(schema, ProfileLimits(*limits)), content)

    def to_bytes(self) -> bytes:
        """Everything except schema and limits, to send to another process."""
        return profile_file.packed(self)

    def with_bytes(self, packed: bytes) -> "Profile":
        """This profile merged with one that `to_bytes` packed, of the same schema and limits."""
        return self.merge(
            profile_file.filled(self.empty(self.schema, self.limits), profile_file.unpacked(packed))
        )


def _python(attribute: Attribute, values: list[Any]) -> list[Any]:
    """The values of keys; strings are their own keys."""
    if attribute.type.kind is Kind.STRING:
        return values
    return key_values(attribute, np.array(values, np.int64))
