"""Functions that are short for something else: ``isnull(x)`` is ``x IS NULL``.

They are replaced when they are read, so nothing after the parser knows of them.
"""

from collections.abc import Callable, Sequence

from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.functions.casts import TYPE_NAMES, cast
from tamis.language.functions.dates import PART_NAMES
from tamis.language.functions.function import RefusedArguments
from tamis.language.functions.signatures import count, of_type
from tamis.language.functions.table import BY_SPELLING, FUNCTIONS
from tamis.types import DOUBLE, STRING, Type, decimal_type

Replacement = Callable[[Sequence[Node]], Node]


def _is_null(arguments: Sequence[Node]) -> Node:
    count(arguments, 1)
    return ast.IsNull(arguments[0])


def _is_not_null(arguments: Sequence[Node]) -> Node:
    return ast.Not(_is_null(arguments))


def _is_nan(arguments: Sequence[Node]) -> Node:
    """Never null, unlike ``x = CAST('NaN' AS DOUBLE)``."""
    count(arguments, 1)
    nan = ast.Call("cast", (ast.Literal("NaN", STRING),), DOUBLE)
    return ast.Compare("<=>", of_type(arguments[0], 0, DOUBLE), nan)


def _by_presence(arguments: Sequence[Node]) -> Node:
    """``nvl2(x, a, b) -> if(x IS NOT NULL, a, b)``."""
    count(arguments, 3)
    return ast.Call("if", *FUNCTIONS["if"].typed([_is_not_null(arguments[:1]), *arguments[1:]]))


def _cast_to(wanted: Type) -> Replacement:
    """``bigint(x) -> CAST(x AS BIGINT)``."""

    def replacement(arguments: Sequence[Node]) -> Node:
        count(arguments, 1)
        try:
            return cast("cast", arguments[0], wanted)
        except RefusedArguments:
            raise RefusedArguments(f"does not convert {arguments[0].type}", 0) from None

    return replacement


def _part_of_time(arguments: Sequence[Node]) -> Node:
    """``extract(YEAR FROM x)`` and ``date_part('YEAR', x)`` -> ``year(x)``."""
    count(arguments, 2)
    part, of = arguments
    if not isinstance(part, ast.Literal) or not isinstance(part.value, str):
        raise RefusedArguments("needs a constant here that names a part, such as 'YEAR'", 0)
    word = part.value.upper()
    if word == "SECOND":
        raise RefusedArguments("would give seconds with their fraction", 0, "write second(x)")
    name = PART_NAMES.get(word)
    if name is None:
        hint = f"expected one of {', '.join(PART_NAMES)}"
        raise RefusedArguments(f"does not know the part {part.value!r}", 0, hint)
    return ast.Call(name, *FUNCTIONS[name].typed([of]))


EXTRACT = "extract"

ABBREVIATIONS: dict[str, Replacement] = {
    "isnull": _is_null,
    "isnotnull": _is_not_null,
    "isnan": _is_nan,
    "nvl2": _by_presence,
    EXTRACT: _part_of_time,
    "date_part": _part_of_time,
    "datepart": _part_of_time,
    "decimal": _cast_to(decimal_type(10, 0)),
} | {
    name: _cast_to(TYPE_NAMES[name.upper()])
    for name in ("int", "bigint", "double", "string", "boolean", "date", "timestamp")
}

# All that a filter may write before a parenthesis, in lower case.
FUNCTION_NAMES = frozenset(BY_SPELLING) | frozenset(ABBREVIATIONS)

# What to write instead of functions that others have.
OTHER_FUNCTIONS = {
    "any": "write array_contains(a, x)",
    "any_match": "write exists(a, t -> condition)",
    "all_match": "write forall(a, t -> condition)",
    "filter": "write exists(a, t -> condition)",
    "transform": "write exists(a, t -> condition)",
    "array_join": "write exists(a, t -> condition)",
    "float": "write CAST(x AS DOUBLE)",
    "split": "write split_part(s, ',', 1) for one of the parts",
    "regexp_extract": "write s RLIKE r'...' to test what a string contains",
    "date_format": "write year(x), month(x) and so on, or compare with date_trunc('MONTH', x)",
    "getdate": "write now()",
    "sysdate": "write now()",
    "xor": "write <> between two conditions in parentheses",
}
