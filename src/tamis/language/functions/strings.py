"""Functions of strings. Characters are code points, and positions count from 1."""

from collections.abc import Callable, Sequence

from tamis.language import ast
from tamis.language.arithmetic import wrap
from tamis.language.ast import Node
from tamis.language.functions.function import (
    Function,
    Nulls,
    RefusedArguments,
    TooLarge,
    Typed,
    always,
)
from tamis.language.functions.signatures import MANY, count, fixed, of_type
from tamis.language.limits import MAX_JOINED, MAX_PADDED, MAX_REPLACED
from tamis.types import BOOL, INT32, INT32_MAX, INT32_MIN, STRING

_CASE_FUNCTIONS = {"lower", "upper"}


def _one_case(arguments: Sequence[Node]) -> Typed:
    """``lower(upper(s)) -> lower(s)``, as Spark's optimizer does; it makes a difference for ß."""
    (argument,), result = fixed([STRING], STRING)(arguments)
    while isinstance(argument, ast.Call) and argument.name in _CASE_FUNCTIONS:
        if not ast.attributes(argument):
            break
        argument = argument.arguments[0]
    return Typed((argument,), result)


def _strings(arguments: Sequence[Node]) -> Typed:
    count(arguments, 0, MANY)
    if sum(map(_occurrences, arguments)) > MAX_JOINED:
        raise TooLarge(f"joins more than {MAX_JOINED:,} attributes")
    return Typed(tuple(of_type(a, n, STRING) for n, a in enumerate(arguments)), STRING)


def _occurrences(node: Node) -> int:
    """How often at most the string of an attribute occurs in a string."""
    if node.type != STRING or isinstance(node, ast.Literal):
        return 0
    if isinstance(node, ast.Attribute):
        return 1
    parts = map(_occurrences, ast.children(node))
    is_joined = isinstance(node, ast.Call) and node.name == "concat"
    return sum(parts) if is_joined else max(parts, default=0)


def _joined(*parts: str) -> str:
    return "".join(parts)


def substring(text: str, position: int, length: int = INT32_MAX) -> str:
    """The characters from a position; a negative one counts from the end, 0 is the first."""
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = max(INT32_MIN, min(start + length, INT32_MAX))
    return text[max(start, 0) : end] if end > max(start, 0) else ""


def _right(text: str, length: int) -> str:
    return substring(text, wrap(-length, INT32)) if length > 0 else ""


def _replaced(text: str, part: str, by: str = "") -> str | None:
    """Null if it is too long: nested, each `replace` may make it a thousand times longer."""
    if not part:
        return text
    if len(by) > len(part) and len(text) + text.count(part) * (len(by) - len(part)) > MAX_REPLACED:
        return None
    return text.replace(part, by)


def _trimmed(arguments: Sequence[Node]) -> Typed:
    """``trim(s)``, or the characters first: ``trim('xy', s)``."""
    count(arguments, 1, 2)
    return Typed(tuple(of_type(a, n, STRING) for n, a in enumerate(arguments)), STRING)


def _trim(strip: Callable[[str, str], str], *arguments: str) -> str:
    """A string without some characters, or spaces, at its ends; the string comes last."""
    characters, text = arguments if len(arguments) == 2 else (" ", *arguments)
    return strip(text, characters) if characters else text


def _located(part: str | None, text: str | None, start: int | None = 1) -> int | None:
    """Where a part is in a text, from a place on; 0 if it is nowhere, or the place is null."""
    if start is None:
        return 0
    if part is None or text is None:
        return None
    if start < 1:
        return 0
    return 1 if not part else text.find(part, start - 1) + 1


def _padded(arguments: Sequence[Node]) -> Typed:
    typed = fixed([STRING, INT32, STRING], STRING, optional=1)(arguments)
    length = ast.without_cast(arguments[1])
    if not isinstance(length, ast.Literal):
        raise RefusedArguments("needs a constant length", 1)
    if isinstance(length.value, int) and length.value > MAX_PADDED:
        raise TooLarge(f"makes at most {MAX_PADDED:,} characters")
    return typed


def _padding(text: str, length: int, pad: str) -> str:
    """What a text lacks of a length, made of another one."""
    lacking = max(0, length - len(text))
    return (pad * (lacking // max(1, len(pad)) + 1))[:lacking]


def _left_padded(text: str, length: int, pad: str = " ") -> str:
    return (_padding(text, length, pad) + text)[: max(0, length)]


def _right_padded(text: str, length: int, pad: str = " ") -> str:
    return (text + _padding(text, length, pad))[: max(0, length)]


def _part_typed(arguments: Sequence[Node]) -> Typed:
    typed = fixed([STRING, STRING, INT32], STRING)(arguments)
    number = ast.without_cast(arguments[2])
    if not isinstance(number, ast.Literal) or number.value == 0:
        raise RefusedArguments("needs a constant other than 0 as the number of the part", 2)
    return typed


def _part(text: str, separator: str, number: int) -> str:
    """A part of what is between separators; a negative number counts from the end."""
    parts = text.split(separator) if separator else [text]
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


STRINGS = (
    Function(
        "length", fixed([STRING], INT32), lambda _: len,
        ("char_length", "character_length", "len"),
    ),
    Function("lower", _one_case, lambda _: str.lower, ("lcase",)),
    Function("upper", _one_case, lambda _: str.upper, ("ucase",)),
    Function("concat", _strings, lambda _: _joined),
    Function("trim", _trimmed, lambda _: lambda *s: _trim(str.strip, *s)),
    Function("ltrim", _trimmed, lambda _: lambda *s: _trim(str.lstrip, *s)),
    Function("rtrim", _trimmed, lambda _: lambda *s: _trim(str.rstrip, *s)),
    Function(
        "btrim", fixed([STRING, STRING], STRING, optional=1),
        lambda _: lambda s, *characters: _trim(str.strip, *characters, s),
    ),
    Function("instr", fixed([STRING, STRING], INT32), lambda _: lambda s, part: s.find(part) + 1),
    Function(
        "locate", fixed([STRING, STRING, INT32], INT32, optional=1), lambda _: _located,
        ("position",),
        nulls=lambda call: Nulls.OWN if len(call.arguments) > 2 else Nulls.STRICT,
    ),
    Function("lpad", _padded, lambda _: _left_padded),
    Function("rpad", _padded, lambda _: _right_padded),
    Function("split_part", _part_typed, lambda _: _part),
    Function(
        "substring", fixed([STRING, INT32, INT32], STRING, optional=1), lambda _: substring,
        ("substr",),
    ),
    Function(
        "left", fixed([STRING, INT32], STRING),
        lambda _: lambda text, length: substring(text, 1, length),
    ),
    Function("right", fixed([STRING, INT32], STRING), lambda _: _right),
    Function(
        "replace", fixed([STRING, STRING, STRING], STRING, optional=1), lambda _: _replaced,
        nulls=always(Nulls.PROPAGATED),
    ),
    Function("reverse", fixed([STRING], STRING), lambda _: lambda s: s[::-1]),
    Function(
        "contains", fixed([STRING, STRING], BOOL), lambda _: lambda s, part: part in s, is_test=True
    ),
    Function("startswith", fixed([STRING, STRING], BOOL), lambda _: str.startswith, is_test=True),
    Function("endswith", fixed([STRING, STRING], BOOL), lambda _: str.endswith, is_test=True),
)  # fmt: skip
