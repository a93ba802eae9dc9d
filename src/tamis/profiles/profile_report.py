"""The report of a profile: a text for people, or a dict for JSON."""

import math
from collections.abc import Iterable
from decimal import Decimal
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.errors import counted
from tamis.profiles.sketches import MINIMA
from tamis.schema import Attribute
from tamis.timestamps import timestamp_text
from tamis.types import Kind
from tamis.visible_text import visible

if TYPE_CHECKING:
    from tamis.profiles.profile import FrequentValue, Profile

Array = np.ndarray[Any, Any]

BARS = 16  # of a histogram
BLOCKS = " ▁▂▃▄▅▆▇█"
SHOWN = 3  # frequent values per line,
LEAST = 0.001  # if they have at least this share of the events
WIDEST = 24  # characters of a value
PAIRS = 5  # lines about attributes that occur together
COMPARED = 64  # attributes whose pairs are compared, those that occur most often


# --- text


def report_text(profile: "Profile") -> str:
    """The report as a text."""
    attributes = profile.schema.attributes
    refused = f", {profile.refused:,} refused" if profile.refused else ""
    head = f"{counted(profile.events, 'event')}{refused}; {counted(len(attributes), 'attribute')}"
    table = [["attribute", "type", "present", "distinct", "range", "histogram", "most frequent"]]
    table += [_line(profile, attribute) for attribute in attributes]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if place in {2, 3} else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in table
    ]
    return "\n".join([head, *(["", *lines] if attributes else []), *_company(profile)])


def _line(profile: "Profile", attribute: Attribute) -> list[str]:
    name = attribute.name
    low, high = profile.range(name)
    distinct = profile.distinct(name)
    return [
        _cut(name),
        str(attribute.type),
        _percent(1 - profile.missing(name)) if profile.events else "-",
        f"{'' if distinct < MINIMA else '~'}{distinct:,}",
        "" if low is None else f"{_shown(attribute, low)} … {_shown(attribute, high)}",
        _bars(profile, attribute),
        ", ".join(
            _often(profile, attribute, frequent)
            for frequent in profile.frequent(name, SHOWN)
            if frequent.low >= LEAST * profile.events
        ),
    ]


def _often(profile: "Profile", attribute: Attribute, frequent: "FrequentValue") -> str:
    low, high = (_percent(count / profile.events) for count in frequent[1:])
    share = low if low == high else f"{low.removesuffix(' %')}–{high}"
    return f"{_shown(attribute, frequent.value)} {share}"


def _company(profile: "Profile") -> list[str]:
    """Lines about attributes that are sometimes missing, and mostly in the same events."""
    some = [
        a.name for a in profile.schema.attributes if 0 < profile.present(a.name) < profile.events
    ]
    some = sorted(some, key=profile.present, reverse=True)[:COMPARED]
    found = []
    for name, other in combinations(some, 2):
        both = profile.together(name, other)
        either = sum(1 - profile.missing(n) for n in (name, other)) - both
        found.append((both / either if either > 0 else 0.0, both, name, other))
    found.sort(key=lambda pair: (-pair[0], pair[2:]))
    lines = [
        f"  {_cut(name)} and {_cut(other)}: {_percent(both)} of the events have both, "
        f"{_percent(share)} of those that have either"
        for share, both, name, other in found[:PAIRS]
    ]
    return ["", "most often together:", *lines] if lines else []


def _bars(profile: "Profile", attribute: Attribute) -> str:
    """A histogram of the sample's numbers, without the lowest and the highest hundredth."""
    if attribute.type.kind not in {Kind.INT, Kind.DOUBLE, Kind.DECIMAL, Kind.TIMESTAMP}:
        return ""
    numbers = np.array(profile.drawn_values(attribute.name), np.float64)
    numbers = np.sort(numbers[np.isfinite(numbers)]) / 4  # so that differences cannot overflow
    if not len(numbers):
        return ""
    low, high = (numbers[round(part * (len(numbers) - 1))] for part in (0.01, 0.99))
    if low == high:
        return ""
    inside = numbers[(numbers >= low) & (numbers <= high)]
    places = np.minimum((inside - low) / (high - low) * BARS, BARS - 1).astype(np.int64)
    counts = np.bincount(places, minlength=BARS)
    heights = np.ceil(counts / counts.max() * (len(BLOCKS) - 1)).astype(np.int64)
    return "".join(BLOCKS[height] for height in heights)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _shown(attribute: Attribute, value: Any) -> str:
    if attribute.type.kind is Kind.TIMESTAMP:
        return timestamp_text(value)
    if isinstance(value, str):
        return _cut(repr(value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _cut(text: str) -> str:
    text = visible(text)
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"


# --- JSON


def report_dict(profile: "Profile") -> dict[str, Any]:
    """The content of the report, with more values.

    NaN, infinities, decimals and timestamps are texts.
    """
    return {
        "events": profile.events,
        "refused": profile.refused,
        "sampled": profile.drawn.num_rows,
        "deviation": profile.deviation,
        "attributes": {
            attribute.name: _entry(profile, attribute) for attribute in profile.schema.attributes
        },
        "pairs": profile.pairs.tolist(),
    }


def _entry(profile: "Profile", attribute: Attribute) -> dict[str, Any]:
    name = attribute.name
    low, high = _plain(attribute, profile.range(name))
    frequent = profile.frequent(name)
    values = _plain(attribute, (f.value for f in frequent))
    return {
        "type": str(attribute),
        "present": profile.present(name),
        "missing": profile.missing(name),
        "distinct": profile.distinct(name),
        "low": low,
        "high": high,
        "edges": _plain(attribute, profile.edges(name)),
        "frequent": [
            {"value": value, "low": f.low, "high": f.high}
            for value, f in zip(values, frequent, strict=True)
        ],
    }


def _plain(attribute: Attribute, values: Iterable[Any]) -> list[Any]:
    def one(value: Any) -> Any:
        if value is not None and attribute.type.kind is Kind.TIMESTAMP:
            return timestamp_text(value)
        if isinstance(value, float) and not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        if isinstance(value, Decimal):
            return format(value, "f")
        return value

    return [one(value) for value in values]
