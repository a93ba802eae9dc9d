"""Random conditions on decimals, their truth compared with what Spark's `filter` finds.

Events have decimals of many digits and scales, whole numbers and doubles; conditions compare,
compute and convert them in all ways. Each condition is answered three times: by Spark, by the
definition of the language, and by a matcher that is given all events as a table.

``python tests/decimal_differences.py --filters 5000 --seed 7`` looks further than the suite does.
"""

import argparse
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tamis import ExpressionError, Matcher, Schema, parse
from tamis.language.evaluation import compile_tree

FILTERS_PER_JOB = 100
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


def answered(frame: Any, texts: list[str]) -> Iterator[tuple[str, list[bool | None]]]:
    """Conditions that Spark takes, and their truth of each event."""
    for start in range(0, len(texts), FILTERS_PER_JOB):
        yield from _answered(frame, texts[start : start + FILTERS_PER_JOB])


def _answered(frame: Any, texts: list[str]) -> Iterator[Any]:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import AnalysisException, ArithmeticException

    try:
        made = frame.selectExpr("row", *(f"({text}) AS c{k}" for k, text in enumerate(texts)))
        found = made.toArrow().sort_by("row")
    except (AnalysisException, ArithmeticException, Py4JJavaError):
        # It fails where the sign of 38 nines is turned: cut to 34 digits, they are rounded up; and
        # where a remainder is what more than 39 digits leave.
        if len(texts) > 1:
            yield from _answered(frame, texts[: len(texts) // 2])
            yield from _answered(frame, texts[len(texts) // 2 :])
        else:
            print("Spark refuses", texts[0])  # noqa: T201 - for whoever runs it by hand
    else:
        for k, text in enumerate(texts):
            yield text, found[f"c{k}"].to_pylist()


def differences(
    frame: Any, rows: list[tuple[object, ...]], texts: list[str]
) -> Iterator[tuple[object, ...]]:
    """Conditions whose truth differs, each with the first event that shows it."""
    matcher = Matcher(SCHEMA, engine="sliced")
    known = list(answered(frame, texts))
    matcher.subscribe_many([(k, text) for k, (text, _) in enumerate(known)])
    matches = matcher.match_batch(table_of(rows)).to_pylist()
    kept = {(one["event"], one["subscription"]) for one in matches}
    for k, (text, truths) in enumerate(known):
        condition = compile_tree(parse(text, SCHEMA).tree, SCHEMA)
        for place, (row, sparks) in enumerate(zip(rows, truths, strict=True)):
            ours = condition(row)
            if ours is not sparks or ((place, k) in kept) is not (sparks is True):
                yield text, dict(zip(SCHEMA, row, strict=True)), ours, (place, k) in kept, sparks
                break


SETTINGS = {
    "spark.sql.ansi.enabled": "false", "spark.sql.subexpressionElimination.enabled": "false",
    "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}  # fmt: skip


def main() -> None:
    """Compare as many conditions as asked for."""
    from tamis.spark import spark_session

    options = argparse.ArgumentParser()
    options.add_argument("--filters", type=int, default=1_000)
    options.add_argument("--events", type=int, default=60)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--depth", type=int, default=2)
    chosen = options.parse_args()
    spark = spark_session()
    for name, setting in SETTINGS.items():
        spark.conf.set(name, setting)
    rows = events(chosen.seed, chosen.events)
    frame = spark.createDataFrame(table_of(rows)).coalesce(1).cache()
    texts = list(accepted(chosen.filters, chosen.seed, chosen.depth))
    found = list(differences(frame, rows, texts))
    for one in sorted(found, key=lambda each: len(str(each[0]))):
        print(one)  # noqa: T201 - a program
    pairs = chosen.filters * len(rows)
    print(f"{chosen.filters:,} filters, {pairs:,} pairs, {len(found)} differ")  # noqa: T201 - as above


if __name__ == "__main__":
    main()
