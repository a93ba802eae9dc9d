"""Explanations of why an event matches a filter or not: the truth of each part, with values."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from tamis.deep_stack import with_deep_stack
from tamis.events.event_reader import Row, other_case
from tamis.language import ast
from tamis.language.evaluation import compile_tree
from tamis.language.expression import Expression
from tamis.language.printer import print_tree
from tamis.names import Path, path_text
from tamis.semantics import Semantics
from tamis.timestamps import timestamp_text
from tamis.types import TIMESTAMP, Type
from tamis.visible_text import visible

_LONGEST_TEXT = 60  # characters of an atom that is shown on one line


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a filter: its text, whether it is true (None: unknown), and the values it tests."""

    text: str
    truth: bool | None
    values: dict[str, Any]
    parts: tuple["Step", ...] = ()

    @with_deep_stack
    def to_dict(self) -> dict[str, Any]:
        """The step as plain data, for JSON."""
        plain: dict[str, Any] = {"text": self.text, "truth": self.truth}
        if self.parts:
            plain["parts"] = [part.to_dict() for part in self.parts]
        else:
            plain["values"] = {name: _plain(value) for name, value in self.values.items()}
        return plain


def _plain(value: Any) -> Any:
    """A value as JSON can hold it, which has no nan and no infinities."""
    match value:
        case float() if not isfinite(value):
            return repr(value)
        case list():
            return [_plain(one) for one in value]
        case dict():
            return {key: _plain(one) for key, one in value.items()}
        case _:
            return value


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer of `Matcher.why`. ``print`` it, or take its parts."""

    subscription: str | int
    matched: bool
    filter: str
    semantics: str
    notes: tuple[str, ...]
    root: Step

    @with_deep_stack
    def __str__(self) -> str:
        verb = "matches" if self.matched else "does not match"
        lines = [f"{self.subscription!r} {verb}: {_shortened(self.filter)}"]
        lines += [f"  note   {note}" for note in self.notes]
        rows = list(_lines(self.root, 0))
        width = max(len(text) for text, _, _ in rows)
        for text, truth, values in rows:
            word = {True: "true", False: "false", None: "null"}[truth]
            lines.append(f"  {word:<6} {text:<{width}}   {values}".rstrip())
        return "\n".join(map(visible, lines))

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data, for JSON."""
        return {
            "subscription": self.subscription,
            "matched": self.matched,
            "filter": self.filter,
            "semantics": self.semantics,
            "notes": list(self.notes),
            "root": self.root.to_dict(),
        }


@with_deep_stack
def explain_match(
    subscription: str | int, expression: Expression, semantics: Semantics, event: Row,
    given: Mapping[str, Any] | None = None,
) -> Explanation:  # fmt: skip
    """The explanation of why a row, as read from an event, matches an expression or not.

    `given` is the event itself, which may spell an attribute in another way.
    """
    row = semantics.prepare(event)
    return Explanation(
        subscription,
        semantics.condition(expression)(row),
        str(expression),
        semantics.name,
        tuple(_notes(expression, semantics, event, given or {})),
        _step(expression.tree, semantics, row),
    )


def _notes(
    expression: Expression, semantics: Semantics, event: Row, given: Mapping[str, Any]
) -> Iterator[str]:
    for attribute in semantics.schema.attributes:
        position = semantics.schema.positions[attribute.path]
        if attribute.path not in expression.attributes or event[position] is not None:
            continue
        spelt = other_case(given, attribute.path)
        if spelt is not None:
            yield (
                f"the event has {spelt!r}, and names are case-sensitive: did you mean "
                f"{attribute.name}?"
            )
        if semantics.name == "strict":
            yield f"{attribute.name} is missing: no match, whatever the rest says (strict)"
        elif semantics.name == "default":
            default = semantics.defaults[position]
            shown = "the special value ⊥" if default is None else repr(default)
            yield f"{attribute.name} is missing and takes its default, {shown}"


def _step(node: ast.Node, semantics: Semantics, row: Row) -> Step:
    truth = compile_tree(node, semantics.schema, semantics.logic)(row)
    if isinstance(node, ast.CONNECTIVES):
        word = type(node).__name__.upper()
        parts = tuple(_step(part, semantics, row) for part in ast.children(node))
        return Step(word, truth, {}, parts)
    values = {
        path_text(path): _value(semantics, row, path) for path in sorted(ast.attributes(node))
    }
    return Step(print_tree(node), truth, values)


def _value(semantics: Semantics, row: Row, path: Path) -> Any:
    position = semantics.schema.positions[path]
    value, of = row[position], semantics.schema.attributes[position].type
    if of.element is None:
        return _readable(value, of)
    if isinstance(value, Mapping):
        return {key: _readable(one, of.element) for key, one in value.items()}
    return None if value is None else [_readable(one, of.element) for one in value]


def _readable(value: Any, of: Type) -> Any:
    return timestamp_text(value) if value is not None and of == TIMESTAMP else value


def _lines(step: Step, depth: int) -> Iterator[tuple[str, bool | None, str]]:
    values = ", ".join(
        f"{name} is missing" if value is None else f"{name} = {_shown(value)}"
        for name, value in step.values.items()
    )
    yield "  " * depth + _shortened(step.text), step.truth, values
    for part in step.parts:
        yield from _lines(part, depth + 1)


def _shown(value: Any) -> str:
    return _shortened(repr(value))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 3] + "..."
