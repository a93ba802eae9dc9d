"""The attributes of a stream: they belong to its checkpoint, whatever columns events have today.

A stream is started again and again, and its events change meanwhile:

* What was an attribute stays one, with its type: subscriptions may test it. If the events have no
  such column any more, it is missing in all of them.
* A new column is ignored until somebody asks for it. Then it becomes an attribute. The setting
  ``schema`` asks for the columns that it names, and a filter for those that it tests.

Each version of the subscriptions has its schema, so that a micro-batch that is repeated is matched
as before.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tamis.errors import ExpressionError, OptionError
from tamis.language.expression import parse
from tamis.matcher_settings import MatcherSettings
from tamis.names import path_text
from tamis.schema import Attribute, IntRange, Schema

SHOWN = 10  # columns in a message


@dataclass(frozen=True)
class StreamSchema:
    """What filters can test, now and later."""

    schema: Schema  # of the next version, unless its changes ask for more
    columns: tuple[Attribute, ...] = ()  # of the events, that are attributes as soon as asked for

    @property
    def whole(self) -> Schema:
        """All that filters can test, now and later."""
        return self.grown({column.name for column in self.columns})

    def grown(self, asked: Collection[str]) -> Schema:
        """The schema with those of the columns whose names are asked for."""
        more = [column for column in self.columns if column.name in asked]
        return Schema.of_attributes([*self.schema.attributes, *more]) if more else self.schema

    def named(self, filters: Iterable[str | None]) -> set[str]:
        """The names of the columns that good filters test."""
        names = {column.name for column in self.columns}
        whole = self.whole
        parts = [column.path[-1].replace("`", "``") for column in self.columns]
        mentioned = re.compile("|".join(map(re.escape, parts)))
        found: set[str] = set()
        for text in filters if names else ():
            try:
                if text is not None and mentioned.search(text):  # most filters need no reading
                    found.update(
                        names & {path_text(path) for path in parse(text, whole).attributes}
                    )
            except ExpressionError:
                continue  # a dead letter will say why
        return found


def merged(known: Schema, given: Schema) -> Schema:
    """The schema of a checkpoint, and the attributes of the setting that it does not have."""
    attributes = {a.path: a for a in known.attributes}
    for attribute in given.attributes:
        old = attributes.get(attribute.path, attribute)
        if not is_wider(attribute, old):
            raise OptionError(
                f"the attribute {attribute.name} is {old} in the checkpoint, and {attribute} in "
                "the schema that is given; attributes keep their types, so leave this one out, or "
                "start with a new checkpoint and a new output folder"
            )
        attributes[attribute.path] = attribute
    return Schema.of_attributes(attributes.values())


def is_wider(new: Attribute, old: Attribute) -> bool:
    """Whether an attribute allows all values of another one, so that its filters stay good."""
    if new.type != old.type:
        return False
    mine, other = new.domain, old.domain
    if mine is None or mine == other:
        return True
    if isinstance(mine, IntRange) and isinstance(other, IntRange):
        return mine.low <= other.low and other.high <= mine.high
    if isinstance(mine, IntRange) or other is None or isinstance(other, IntRange):
        return False
    return set(other.values) <= set(mine.values)


def differences(known: Schema, now: StreamSchema, missing: Iterable[Attribute]) -> list[str]:
    """What is not as it was when the stream was last started, for people.

    `known` is the schema of the checkpoint, and `missing` are attributes that no column has.
    """
    said = []
    if now.columns:
        said.append(
            f"the events have columns that are not attributes: {listed(now.columns)}; each of "
            "them is ignored until the filter of a change, or the schema that is given, names it"
        )
    new = [a for a in now.schema.attributes if a.path not in known.positions]
    if new:
        said.append(f"new attributes: {listed(new)}")
    for attribute in now.schema.attributes:
        old = known.find(attribute.path)
        if old is not None and old != attribute:
            said.append(f"the attribute {attribute.name} was {old} and is {attribute}")
    gone = listed(missing)
    if gone:
        said.append(f"the events have no column for the attributes {gone}: they lack them")
    return said


def listed(attributes: Iterable[Attribute]) -> str:
    """Names and types of some attributes."""
    texts = [f"{a.name} ({a})" for a in attributes]
    return ", ".join(texts[:SHOWN]) + (f" and {len(texts) - SHOWN} more" if texts[SHOWN:] else "")


def as_texts(schema: Schema) -> dict[str, str]:
    """A schema that JSON can hold."""
    return {a.name: str(a) for a in schema.attributes}


def settings_for(settings: MatcherSettings, schema: Schema) -> MatcherSettings:
    """The settings with another schema; defaults are those of its attributes."""
    defaults: Mapping[str, Any] | None = settings.defaults
    if defaults is not None:
        defaults = {name: value for name, value in defaults.items() if name in schema}
    return replace(settings, schema=schema, defaults=defaults)
