"""The table of all functions and operators, by their names.

A new function is one entry in one of the modules named here; nothing else has to know about it.
Functions that are replaced when they are read are in `abbreviations`.
"""

from tamis.language import ast
from tamis.language.functions.arrays import ARRAYS
from tamis.language.functions.casts import CASTS
from tamis.language.functions.clock import CLOCK
from tamis.language.functions.conditionals import CONDITIONALS
from tamis.language.functions.dates import DATES
from tamis.language.functions.function import Function, Nulls
from tamis.language.functions.numbers import NUMBERS
from tamis.language.functions.operators import OPERATORS
from tamis.language.functions.strings import STRINGS

FUNCTIONS: dict[str, Function] = {
    entry.name: entry
    for entry in (
        *OPERATORS,
        *NUMBERS,
        *STRINGS,
        *CONDITIONALS,
        *CASTS,
        *DATES,
        *ARRAYS,
        *CLOCK,
    )
}

# What a filter may write before a parenthesis, in lower case.
BY_SPELLING: dict[str, Function] = {
    spelling: entry
    for entry in FUNCTIONS.values()
    for spelling in (entry.name, *entry.spellings)
    if spelling.isidentifier() and spelling.islower()
}


def nulls_of(call: ast.Call) -> Nulls:
    """When a call is null."""
    return FUNCTIONS[call.name].nulls(call)


def is_value(node: ast.Node) -> bool:
    """Whether a node is a call that is a value, not a test."""
    return isinstance(node, ast.Call) and not FUNCTIONS[node.name].is_test
