"""The file ``rules.tamis``: subscriptions, compiled, in one file that is mapped into memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tamis.container import Container, open_container, text_array, write
from tamis.engines.auto import AutoEngine
from tamis.engines.sliced import SlicedEngine, segment_sections
from tamis.engines.sliced.segment import Segment
from tamis.errors import FileError, OptionError, TamisError, choose
from tamis.events import UNKNOWN_CHOICES
from tamis.language.expression import Expression
from tamis.schema import Schema
from tamis.semantics import NAMES, Semantics
from tamis.subscriptions import Subscriptions

KIND = "tamis rules"


class Settings(NamedTuple):
    """What the matcher of a file was made of."""

    schema: Schema
    engine: str
    semantics: str
    defaults: tuple[Any, ...]  # as they are kept
    unknown: str


class Loaded(NamedTuple):
    """What a file holds."""

    held: Subscriptions
    segment: Segment | None
    always: dict[int, bool]  # filters without any predicate, and their answer


def save(
    path: str | Path, engine: Any, held: Subscriptions, meaning: Semantics, unknown: str
) -> None:
    """Write all subscriptions of an engine; the caller sees to it that none comes or goes."""
    compiled = compiling(engine)
    answers, segment = compiled.whole()
    stored = held.to_sections()
    meta: dict[str, Any] = {
        "kind": KIND,
        "schema": {a.name: str(a) for a in meaning.schema.attributes},
        "semantics": meaning.name,
        "defaults": list(meaning.defaults),
        "unknown": unknown,
        "engine": "sliced" if engine is compiled else "auto",
        "subscriptions": stored.meta,
        "segment": None,
    }
    if Schema(meta["schema"]) != meaning.schema:
        raise FileError(f"{path} cannot be written: the schema cannot be written as text")
    sections = dict(stored.sections)
    places = np.searchsorted(stored.handles, np.array(list(answers), np.int64))
    sections["always.handles"] = places.astype(np.int64)
    sections["always.answers"] = np.array(list(answers.values()), np.uint8)
    if segment is not None:
        handles = np.searchsorted(stored.handles, segment.handles).astype(np.int32)
        found = segment_sections.to_sections(segment, handles, held.expression, meaning)
        meta["segment"] = found.meta
        sections |= {f"segment.{name}": array for name, array in found.sections.items()}
    write(path, meta, sections)


class Rules:
    """An open file."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._container: Container = open_container(path)
        meta = self._container.meta
        if meta.get("kind") != KIND:
            raise FileError(f"{path} holds no tamis rules, but {meta.get('kind', 'other things')}")
        with self._reading():
            self.settings = Settings(
                Schema(meta["schema"]), choose("engine", meta["engine"], ("auto", "sliced")),
                choose("semantics", meta["semantics"], NAMES), tuple(meta["defaults"]),
                choose("unknown", meta["unknown"], UNKNOWN_CHOICES),
            )  # fmt: skip

    def fill(
        self, engine: Any, meaning: Semantics, parse: Callable[[str], Expression]
    ) -> Subscriptions:
        """Put what the file holds into a new engine."""
        held, segment, always = self.read(meaning, parse)
        with self._reading():
            compiling(engine).publish(segment, always, ())
        return held

    def check_like(self, meaning: Semantics) -> None:
        """Refuse a file whose filters mean something else than those of a matcher."""
        of = self.settings
        # By their texts: a default may be NaN, which is not equal to itself.
        defaults = repr(of.defaults) == repr(tuple(meaning.defaults))
        if not defaults or (of.schema, of.semantics) != (meaning.schema, meaning.name):
            raise OptionError(
                f"{self._path} was saved with another schema, semantics or defaults than those of "
                "this matcher"
            )

    def read(self, meaning: Semantics, parse: Callable[[str], Expression]) -> Loaded:
        """What the file holds, under handles from 0 on."""
        with self._reading():
            return self._read(meaning, parse)

    def _read(self, meaning: Semantics, parse: Callable[[str], Expression]) -> Loaded:
        meta, get = self._container.meta, self._container.array
        held = Subscriptions.from_sections(meta["subscriptions"], get, parse)
        count = len(held)
        filters = cache(lambda: text_array(get, "subscriptions.filters", count))

        def expression_of(row: int) -> Expression:
            """A filter as it was saved, whatever became of the subscription."""
            return parse(filters()[row].as_py())

        if not isinstance(meta["segment"], dict | type(None)):
            raise TypeError("the segment is no record")
        segment = None
        if meta["segment"] is not None:
            segment = segment_sections.from_sections(
                meta["segment"], lambda name: get(f"segment.{name}"), expression_of, meaning
            )
        answers = get("always.answers").astype(bool).tolist()
        always = dict(zip(get("always.handles").tolist(), answers, strict=True))
        if len(always) + (0 if segment is None else len(segment)) != len(held):
            raise ValueError("the numbers of subscriptions differ")
        return Loaded(held, segment, always)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Errors name the file."""
        try:
            yield
        except FileError as error:
            text = str(error)
            raise FileError(text if str(self._path) in text else f"{self._path}: {text}") from None
        except (AttributeError, KeyError, TypeError, ValueError, IndexError, TamisError) as error:
            raise FileError(f"{self._path} is damaged, or of another version: {error}") from None


def absorb(engine: Any, held: Subscriptions, found: Loaded) -> None:
    """Hold what a file holds beside, or in the place of, what an engine holds.

    The caller sees to it that nothing else changes meanwhile.
    """
    compiled, first = compiling(engine), held.next_handle
    columns = found.held.columns()
    if columns is None:
        return
    known = held.split(columns.ids).handles.tolist()
    segment = None if found.segment is None else found.segment.moved(first)
    compiled.publish(segment, {first + h: answer for h, answer in found.always.items()}, known)
    held.remove_handles(known)
    held.add_page(columns.ids, columns.texts)


def compiling(engine: Any) -> SlicedEngine:
    """The engine whose segments are stored."""
    if isinstance(engine, AutoEngine):
        return engine.compile()
    if isinstance(engine, SlicedEngine):
        return engine
    raise OptionError(
        f"only matchers with the engine auto or sliced have a file, not those with {engine.name}"
    )
