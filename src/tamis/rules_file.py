"""The file ``rules.tamis``: subscriptions, compiled, in one file that is mapped into memory."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.container import Container, open_container, text_array, write
from tamis.engines import compiled_filters
from tamis.engines.auto import AutoEngine
from tamis.engines.compiled_filters import CompiledFilters, SectionSource, compiling
from tamis.errors import FileError, OptionError, TamisError, choose
from tamis.events.event_reader import UNKNOWN_CHOICES
from tamis.events.values import MapValue
from tamis.language.expression import Expression
from tamis.schema import Schema
from tamis.semantics import NAMES, Semantics
from tamis.subscriptions.subscriptions import Subscriptions
from tamis.types import Kind, Type

KIND = "tamis rules"


class RulesHeader(NamedTuple):
    """The settings of the matcher that a file was saved from."""

    schema: Schema
    engine: str
    semantics: str
    defaults: tuple[Any, ...]  # by attribute, as `Semantics` keeps them
    unknown: str


class RulesContent(NamedTuple):
    """The subscriptions of a file, and their compiled filters."""

    subscriptions: Subscriptions
    filters: CompiledFilters


def save(
    path: str | Path, engine: Any, subscriptions: Subscriptions, meaning: Semantics, unknown: str
) -> None:
    """Write all subscriptions of an engine; the caller makes sure that none comes or goes."""
    compiling(engine)  # refuses an engine that cannot be saved, before anything is done
    stored = subscriptions.to_sections()
    segment, sections = compiled_filters.to_sections(
        engine, stored.handles, subscriptions.expression, meaning
    )
    meta: dict[str, Any] = {
        "kind": KIND,
        "schema": {a.name: str(a) for a in meaning.schema.attributes},
        "semantics": meaning.name,
        "defaults": [str(v) if isinstance(v, Decimal) else v for v in meaning.defaults],
        "unknown": unknown,
        "engine": "auto" if isinstance(engine, AutoEngine) else "sliced",
        "subscriptions": stored.meta,
        "segment": segment,
    }
    if Schema(meta["schema"]) != meaning.schema:
        raise FileError(f"{path} cannot be written: the schema cannot be written as text")
    write(path, meta, stored.sections | sections)


class RulesFile:
    """An open rules file."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._container: Container = open_container(path)
        meta = self._container.meta
        if meta.get("kind") != KIND:
            found = meta.get("kind", "something else")
            raise FileError(f"{path} does not hold tamis rules, but {found}")
        with self._reading():
            schema = Schema(meta["schema"])
            self.header = RulesHeader(
                schema, choose("engine", meta["engine"], ("auto", "sliced")),
                choose("semantics", meta["semantics"], NAMES), _defaults(meta["defaults"], schema),
                choose("unknown", meta["unknown"], UNKNOWN_CHOICES),
            )  # fmt: skip

    def fill(
        self, engine: Any, meaning: Semantics, parse: Callable[[str], Expression]
    ) -> Subscriptions:
        """Add the filters of the file to a new engine, and return the subscriptions."""
        subscriptions, filters = self.read(meaning, parse)
        with self._reading():
            compiled_filters.hold(engine, filters)
        return subscriptions

    def read_for(
        self, meaning: Semantics, engine: Any, parse: Callable[[str], Expression]
    ) -> RulesContent:
        """What `read` gives, for an engine whose schema may have more attributes."""
        self._check_like(meaning)
        of = self.header
        if of.schema == meaning.schema:
            return self.read(meaning, parse)
        own = Semantics(of.semantics, of.schema, dict.fromkeys(of.schema) if of.defaults else None)
        own.defaults = of.defaults
        subscriptions, filters = self.read(own, parse)
        with self._reading():
            wider = compiled_filters.in_schema(engine, filters, of.schema, meaning.schema)
        return RulesContent(subscriptions, wider)

    def _check_like(self, meaning: Semantics) -> None:
        """Refuse a file whose filters mean something else than those of a matcher."""
        of = self.header
        if of.semantics != meaning.name:
            raise OptionError(
                f"{self._path} was saved with the semantics {of.semantics}, and this matcher has "
                f"{meaning.name}"
            )
        for position, attribute in enumerate(of.schema.attributes):
            known = meaning.schema.find(attribute.path)
            if known is None:
                raise OptionError(
                    f"{self._path} was saved with the attribute {attribute.name}, which this "
                    "matcher does not have; with_attributes adds attributes to a matcher"
                )
            if known != attribute:
                raise OptionError(
                    f"{self._path} was saved with {attribute.name} as {attribute}, and this "
                    f"matcher has it as {known}"
                )
            if of.defaults:
                # By their texts: a default may be NaN, which is not equal to itself.
                here = meaning.defaults[meaning.schema.positions[attribute.path]]
                if repr(of.defaults[position]) != repr(here):
                    raise OptionError(
                        f"{self._path} was saved with {of.defaults[position]!r} as the default of "
                        f"{attribute.name}, and this matcher has {here!r}"
                    )

    def read(self, meaning: Semantics, parse: Callable[[str], Expression]) -> RulesContent:
        """The subscriptions and filters of the file, under handles from 0 on."""
        with self._reading():
            return self._read(meaning, parse)

    def _read(self, meaning: Semantics, parse: Callable[[str], Expression]) -> RulesContent:
        meta, get, is_trusted = (
            self._container.meta, self._container.array, self._container.is_trusted
        )  # fmt: skip

        @cache
        def texts() -> pa.Array:
            with self._reading():
                found = text_array(get, "subscriptions.filters", count)
                if not is_trusted:
                    found.validate(full=True)
                return found

        def expression_of(row: int) -> Expression:
            """A filter as it was saved, even if the subscription has changed since."""
            return parse(texts()[row].as_py())

        subscriptions = Subscriptions.from_sections(
            meta["subscriptions"], get, texts, parse, is_trusted=is_trusted
        )
        count = len(subscriptions)
        source = SectionSource(get, count, expression_of, self._reading, is_trusted)
        filters = compiled_filters.from_sections(meta["segment"], source, meaning)
        if len(filters) != count:
            raise ValueError("the numbers of subscriptions differ")
        return RulesContent(subscriptions, filters)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Name the file in every error."""
        try:
            yield
        except FileError as error:
            text = str(error)
            raise FileError(text if str(self._path) in text else f"{self._path}: {text}") from None
        except (AttributeError, KeyError, TypeError, ValueError, IndexError, TamisError) as error:
            raise FileError(f"{self._path} is damaged, or of another version: {error}") from None


def absorb(engine: Any, subscriptions: Subscriptions, content: RulesContent) -> None:
    """Add the content of a file to an engine; subscriptions with the same ids are replaced.

    The caller makes sure that nothing else changes meanwhile.
    """
    first = subscriptions.next_handle
    columns = content.subscriptions.columns()
    if columns is None:
        return
    known = subscriptions.split(columns.ids).handles
    compiled_filters.hold(engine, content.filters.moved(first), known.tolist())
    subscriptions.remove_handles(known)
    subscriptions.add_page(columns.ids, columns.texts)


def _defaults(stored: Sequence[Any], schema: Schema) -> tuple[Any, ...]:
    """Defaults as `Semantics` keeps them, from those that JSON has: lists, texts of decimals."""

    def restored(value: Any, of: Type) -> Any:
        if value is None:
            return None
        if of.kind is Kind.DECIMAL:
            return Decimal(value)
        if of.kind is Kind.MAP:
            return MapValue(value)
        return tuple(value) if of.kind is Kind.ARRAY else value

    if not stored:
        return ()
    pairs = zip(stored, schema.attributes, strict=True)
    return tuple([restored(value, attribute.type) for value, attribute in pairs])
