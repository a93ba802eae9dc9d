"""What a reader makes of filters, against what `naive` says of them."""

import operator

from strategies import SCHEMA, delicate_rows
from tamis import Schema
from tamis.engines import make_engine
from tamis.engines.sliced.formulas import ALWAYS, NEVER
from tamis.engines.sliced.leaves import (
    ABSENT,
    LEAF_KINDS,
    NONE_OF,
    ONE_OF,
    PRESENT,
    TEST,
    leaves_of,
)
from tamis.language.arithmetic import order_key
from tamis.language.evaluation import compile_tree
from tamis.semantics import Semantics

STOCK = Schema(
    {"n": "int", "m": "int", "level": "int(1, 250)", "x": "double", "s": "string",
     "side": "enum('sell', 'buy', 'hold')", "b": "bool", "at": "timestamp",
     "big": "int(-5, 9999999999)"}
)  # fmt: skip
STOCK_ROW = (5, 6, 7, 1.5, "a", "buy", True, 0, 8)
TYPED_DEFAULTS = dict(zip(SCHEMA, delicate_rows()[7], strict=True)) | {
    "x": None, "s": "", "b": None, "at": "2024-01-01", "until": None,
}  # fmt: skip
STOCK_DEFAULTS = dict(zip(STOCK, STOCK_ROW, strict=True)) | {
    "m": None, "x": None, "at": "2024-01-01", "side": None,
}  # fmt: skip


def semantics_of(name, schema=STOCK):
    defaults = STOCK_DEFAULTS if schema is STOCK else TYPED_DEFAULTS
    return Semantics(name, schema, defaults if name == "default" else None)


COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


def ordered(value):
    return order_key(value) if isinstance(value, float) else value


def leaf_holds(code, constant, row, schema):
    position, kind = divmod(code, LEAF_KINDS)
    value = row[position] if position < len(schema) else "of no attribute"
    if value is None or kind in {PRESENT, ABSENT}:
        return (value is None) is (kind == ABSENT)
    if kind == TEST:
        return compile_tree(constant, schema)(row) is True
    if kind in {ONE_OF, NONE_OF}:
        return (ordered(value) in map(ordered, constant)) is (kind == ONE_OF)
    return COMPARISONS[kind](ordered(value), ordered(constant))


def evaluated(leaves, row, schema):
    """Leaves by the book: a stack of truth values."""
    if leaves.shape in {ALWAYS, NEVER}:
        assert leaves.codes == leaves.constants == ()
        return leaves.shape == ALWAYS
    pairs = zip(leaves.codes, leaves.constants, strict=True)
    return truth_of_shape(leaves.shape, [leaf_holds(*pair, row, schema) for pair in pairs])


def truth_of_shape(shape, truths):
    rest, stack = iter(truths), []
    for sign in shape:
        if sign == "a":
            stack.append(next(rest))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(left and right if sign == "&" else left or right)
    assert next(rest, None) is None
    (answer,) = stack
    return answer


def assert_same_meaning(expression, reader, meaning, some_rows):
    """The leaves of both ways and `naive` agree; fast leaves are slow ones, perhaps twice."""
    schema = meaning.schema
    fast, slow = reader.leaves(expression), leaves_of(expression, meaning)
    assert type(fast) is type(slow)
    naive = make_engine("naive", meaning)
    naive.add(0, expression)
    for row in some_rows:
        expected = bool(len(naive.match(row)))
        assert evaluated(slow, row, schema) is expected
        assert evaluated(fast, row, schema) is expected
    fast_leaves, slow_leaves = as_set(fast), as_set(slow)
    assert fast_leaves == slow_leaves
    if "|" not in fast.shape and fast.shape not in {ALWAYS, NEVER}:
        assert fast.shape == "a" + "a&" * (len(fast.codes) - 1)


def as_set(leaves):
    # repr tells 1 from 1.0 and 0.0 from -0.0.
    return {(c, repr(k)) for c, k in zip(leaves.codes, leaves.constants, strict=True)}


def prepared(meaning, some, whole):
    """Rows that filters may be asked about."""
    if meaning.name == "total":
        some = [tuple(w if v is None else v for v, w in zip(r, whole, strict=True)) for r in some]
    return [meaning.prepare(row) for row in some]
