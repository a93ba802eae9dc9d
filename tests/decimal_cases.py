"""Random conditions on decimals, and events, to be compared with what Spark says.

Events have decimals of many digits and scales, whole numbers and doubles; conditions compare,
compute and convert them in all ways.
"""

import random
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa

from spark_answers import Events
from tamis import ExpressionError, Schema, parse

TYPES = {
    "d": (10, 2), "e": (9, 4), "f": (18, 0), "g": (38, 18), "h": (38, 0), "k": (38, 38),
    "l": (25, 6), "m": (3, 1),
}  # fmt: skip
SCHEMA = Schema(
    {name: f"decimal({p}, {s})" for name, (p, s) in TYPES.items()}
    | {"n": "int", "i": "int", "x": "double"}
)
CONSTANTS = ["0", "1", "-1", "3", "10", "99", "2147483648", "9223372036854775807", "0.1", "0.10",
             "0.3", "-0.05", "0.125", "12.345", "99.995", ".5", "7.", "1BD", "0.0001", "-99.9999",
             "1e-1", "0.1D", "2.5e0", "1e20", "1e300", "0.30000000000000004",
             "12345678901234567890.5", "99999999999999999999999999999999999999",
             "0.00000000000000000000000000000000000001", "-1234567890123456789012345678.9012345678",
             "0.999999999999999999", "1.0000000000000000001"]  # fmt: skip


def events(seed: int, count: int) -> list[tuple[object, ...]]:
    """Rows of values at the ends of their types, near constants, and anywhere.

    Whole numbers are never missing: Spark answers ``n < 12345678901234567890.5`` without looking.
    """
    chance = random.Random(seed)  # noqa: S311 - for tests
    return [
        tuple(
            _value(name, chance) if name in {"n", "i"} or chance.random() > 0.1 else None
            for name in SCHEMA
        )
        for _ in range(count)
    ]


def _value(name: str, chance: random.Random) -> object:
    if name == "x":
        return chance.choice(
            [0.0, -0.0, 0.1, 0.3, 1.0, 2.5, -99.99, 1e20, 1e300, float("nan"), float("inf"),
             0.1 + 0.2, chance.uniform(-10, 10), float(chance.randrange(-5, 6))]
        )  # fmt: skip
    if name in {"n", "i"}:
        return chance.choice([0, 1, 2, 3, -1, 10, 33, 2**53 + 1, 2**63 - 1, -(2**63)])
    digits, scale = TYPES[name]
    most = 10**digits - 1
    near = chance.choice([0, 1, 3, 10, 12, 30, 99, 100, 125, 9999])
    number = chance.choice(
        [0, most, -most, near, -near, near * 10**scale, chance.randint(-most, most),
         chance.randint(-(10 ** (digits // 2)), 10 ** (digits // 2)),
         near * 10 ** max(0, scale - 2)]
    )  # fmt: skip
    number = max(-most, min(number, most))
    sign = "-" if number < 0 else ""
    return Decimal(f"{sign}{abs(number)}E-{scale}")


def table_of(rows: list[tuple[object, ...]]) -> pa.Table:
    """The rows as a table, with their numbers."""
    kinds = {name: pa.decimal128(*size) for name, size in TYPES.items()}
    kinds |= {"n": pa.int64(), "i": pa.int64(), "x": pa.float64()}
    columns = zip(*rows, strict=True)
    arrays = {
        name: pa.array(values, kinds[name], from_pandas=False)
        for name, values in zip(SCHEMA, columns, strict=True)
    }
    return pa.table({"row": pa.array(range(len(rows)), pa.int64()), **arrays})


class Conditions:
    """Random conditions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - for tests

    def value(self, depth: int) -> str:
        choose = self.random.choice
        if depth <= 0 or self.random.random() < 0.25:
            if self.random.random() < 0.3:
                return choose(CONSTANTS)
            return choose(list(SCHEMA))
        a, b = self.value(depth - 1), self.value(depth - 1)
        return choose(
            [
                f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} / {b})", f"({a} % {b})",
                f"({a} + {b})", f"({a} * {b})", f"-({a})", f"abs({a})",
                f"round({a}, {choose([0, 1, 2, 3, -1, -2, 7])})", f"round({a})", f"floor({a})",
                f"ceil({a})", f"coalesce({a}, {b})", f"nullif({a}, {b})", f"greatest({a}, {b})",
                f"least({a}, {b})", f"if({self.condition(0)}, {a}, {b})",
                f"CASE {a} WHEN {b} THEN {a} ELSE {b} END", f"sqrt({a})",
                f"CASE WHEN {self.condition(0)} THEN {a} ELSE {b} END",
                f"CAST({a} AS DECIMAL({choose(['5, 2', '10', '38, 10', '38, 0', '20, 19'])}))",
                f"CAST({a} AS {choose(['INT', 'BIGINT', 'DOUBLE', 'BOOLEAN'])})"
                + choose(["", " + 0"]),
                f"TRY_CAST({a} AS {choose(['INT', 'BIGINT', 'DECIMAL(6, 3)'])})",
            ]
        )  # fmt: skip

    def condition(self, depth: int) -> str:
        choose = self.random.choice
        if depth > 1 and self.random.random() < 0.2:
            a, b = self.condition(depth - 1), self.condition(depth - 1)
            return choose([f"({a}) AND ({b})", f"({a}) OR ({b})", f"NOT ({a})"])
        a = self.value(depth)
        form = self.random.random()
        if form < 0.15:
            items = ", ".join(self.value(depth - 1) for _ in range(self.random.randint(1, 4)))
            return f"{a} {choose(['', 'NOT '])}IN ({items})"
        if form < 0.3:
            low, high = self.value(depth - 1), self.value(depth - 1)
            return f"{a} {choose(['', 'NOT '])}BETWEEN {low} AND {high}"
        if form < 0.35:
            return f"{a} IS {choose(['', 'NOT '])}NULL"
        op = choose(["=", "<>", "<", "<=", ">", ">=", "<=>", "=", "<", ">="])
        return f"{a} {op} {self.value(depth - 1)}"


def accepted(count: int, seed: int, depth: int = 2) -> Iterator[str]:
    """Conditions that tamis accepts."""
    made = Conditions(seed)
    found = 0
    while found < count:
        text = made.condition(made.random.randint(0, depth))
        try:
            parse(text, SCHEMA)
        except ExpressionError:
            continue
        found += 1
        yield text


def drawn(filters: int, count: int, seed: int) -> tuple[list[str], Events]:
    """Conditions that tamis accepts, and events."""
    rows = events(seed, count)
    return list(accepted(filters, seed)), Events(SCHEMA, rows, table_of(rows), "row")
