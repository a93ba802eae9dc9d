"""A profile as named arrays: in a file, or as bytes for another process."""

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.container import (
    Get,
    checked_array,
    misfit,
    open_container,
    text_array,
    text_sections,
    write,
)
from tamis.errors import FileError, TamisError
from tamis.profiles.sketches import MINIMA, PRIORITY, AttributeSummary, FrequencyCounters
from tamis.schema import Schema

if TYPE_CHECKING:
    from tamis.profiles.profile import Profile

Array = np.ndarray[Any, Any]

KIND = "tamis profile"


class Content(NamedTuple):
    """The JSON part of a profile, and a function that returns its arrays."""

    meta: Mapping[str, Any]
    get: Get


# --- files


def save(profile: "Profile", path: str | Path) -> None:
    """Write a profile to a file."""
    schema = {attribute.name: str(attribute) for attribute in profile.schema.attributes}
    if Schema(schema) != profile.schema:
        raise FileError(f"{path} cannot be written: the schema cannot be written as text")
    about = {"kind": KIND, "schema": schema, "limits": list(profile.limits)}
    write(path, about | _meta(profile), _sections(profile))


@contextmanager
def opened(path: str | Path) -> Iterator[tuple[Schema, list[int], Content]]:
    """The schema, limits and content of a file; errors in the block mean that it is damaged."""
    container = open_container(path)
    meta = container.meta
    if meta.get("kind") != KIND:
        raise FileError(f"{path} is not a tamis profile, but {meta.get('kind', 'something else')}")
    try:
        yield Schema(meta["schema"]), meta["limits"], Content(meta, container.array)
    except FileError as error:
        text = str(error)
        raise FileError(text if str(path) in text else f"{path}: {text}") from None
    except (
        AttributeError, KeyError, TypeError, ValueError, IndexError, TamisError, pa.ArrowException,
    ) as error:  # fmt: skip
        raise FileError(f"{path} is damaged, or of another version: {error}") from None


# --- bytes


def packed(profile: "Profile") -> bytes:
    """Everything of a profile except its schema and limits."""
    file = io.BytesIO()
    meta = np.frombuffer(json.dumps(_meta(profile)).encode(), np.uint8)
    np.savez(file, allow_pickle=False, meta=meta, **_sections(profile))
    return file.getvalue()


def unpacked(content: bytes) -> Content:
    """The content that `packed` has packed."""
    arrays = np.load(io.BytesIO(content), allow_pickle=False)
    return Content(json.loads(arrays["meta"].tobytes()), arrays.__getitem__)


# --- arrays


def _meta(profile: "Profile") -> dict[str, Any]:
    return {
        "events": profile.events,
        "refused": profile.refused,
        "attributes": [
            {
                "present": summary.present, "error": summary.counters.error,
                "low": summary.low, "high": summary.high,
            }
            for summary in profile.summaries
        ],
    }  # fmt: skip


def _sections(profile: "Profile") -> dict[str, Array]:
    found = {"pairs": profile.pairs, "sample": np.asarray(profile.drawn[PRIORITY])}
    for position, summary in enumerate(profile.summaries):
        values, counts, _ = summary.counters
        name = f"{position}.values"
        found |= {name: values} if isinstance(values, np.ndarray) else text_sections(name, values)
        found |= {f"{position}.counts": counts, f"{position}.minima": summary.minima}
        found |= _drawn_sections(f"{position}.sample", profile.drawn[str(position)])
    return found


def _drawn_sections(name: str, column: pa.ChunkedArray) -> dict[str, Array]:
    """Distinct values, and for each event which of them it has; -1 for none."""
    encoded = column.combine_chunks().dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(-1)).astype(np.int32)
    distinct = f"{name}.values"
    if pa.types.is_large_string(column.type):
        return {name: codes, **text_sections(distinct, encoded.dictionary)}
    return {name: codes, distinct: np.asarray(encoded.dictionary)}


def filled(empty: "Profile", content: Content) -> "Profile":
    """An empty profile, filled with stored content."""
    meta, get = content
    events, refused = int(meta["events"]), int(meta["refused"])
    priorities = checked_array(get, "sample", ("u8",))
    if refused < 0 or len(priorities) > events:
        raise misfit("events")
    drawn = {PRIORITY: pa.array(priorities)}
    summaries = []
    if len(meta["attributes"]) != len(empty.schema) or get("pairs").shape != empty.pairs.shape:
        raise misfit("schema")
    for position, known in enumerate(meta["attributes"]):
        is_text = not isinstance(empty.summaries[position].counters.values, np.ndarray)
        counts = checked_array(get, f"{position}.counts", ("i8",))
        values = _values(get, f"{position}.values", len(counts), is_text)
        minima = checked_array(get, f"{position}.minima", ("u8",))
        if len(minima) > MINIMA or not all(
            isinstance(known[bound], str if is_text else int) or known[bound] is None
            for bound in ("low", "high")
        ):
            raise misfit(f"{position}")
        present, error = int(known["present"]), int(known["error"])
        if not 0 <= present <= events or error < 0 or not _fit(counts, present):
            raise misfit(f"{position}")
        counters = FrequencyCounters(values, counts, error)
        summaries.append(AttributeSummary(present, counters, minima, known["low"], known["high"]))
        drawn[str(position)] = _drawn(get, f"{position}.sample", len(priorities), is_text)
    return replace(
        empty, events=events, refused=refused, pairs=get("pairs"), summaries=tuple(summaries),
        drawn=pa.table(drawn),
    )  # fmt: skip


def _fit(counts: Array, present: int) -> bool:
    """Whether `present` events can have values with these counts."""
    return bool(((counts > 0) & (counts <= present)).all())


def _drawn(get: Get, name: str, size: int, is_text: bool) -> pa.Array:
    codes = checked_array(get, name, ("i4",), size)
    distinct = f"{name}.values"
    count = len(get(f"{distinct}.offsets")) - 1 if is_text else len(get(distinct))
    values = pa.array(_values(get, distinct, count, is_text))
    return values.take(pa.array(codes, mask=codes < 0))


def _values(get: Get, name: str, count: int, is_text: bool) -> Any:
    """Keys or strings, from their arrays."""
    if not is_text:
        return checked_array(get, name, ("i8",), count)
    found = text_array(get, name, count)
    found.validate(full=True)
    return found
