"""Random calls of functions, their values compared with those that Spark computes.

A *term* is a value as a filter writes it: attributes, constants, calls of calls. Spark computes a
few hundred of them over all events in one job. Values and types must agree: null with null, nan
with nan, decimals with their digits and scale.

``python tests/function_differences.py --terms 5000 --seed 7`` looks further than the suite does.
"""

import argparse
import math
import random
from collections.abc import Iterator
from typing import Any

from strategies import INTS, NAMES, SCHEMA, STRINGS, delicate_rows
from tamis import TypeMismatch
from tamis.language.evaluation import compile_value
from tamis.language.literals import string_text
from tamis.language.parser import Parser
from tamis.language.tokens import tokenize
from tamis.language.typing_rules import TypingRules
from tamis.timestamps import FIRST, LAST
from tamis.types import Kind, Type

TERMS_PER_JOB = 200

NUMERALS = ["1", " 12 ", "-3", "+7", "1.5", "-0.25", ".5", "5.", ".", "+.", "1e3", "1e400",
"-1E-400",
            "99999999999", "2147483648", "-2147483648", "9223372036854775807",
            "9223372036854775808", "0x10", "0x1p3", "12d", "3f", "NaN", "nan", "inf", "-Infinity",
            "+inf", "1 2", "- 1", "--1", "1_000", "true", "T", " no ", "off", "y", "\t7\n",
            "0.005", "1.005", "123456789.987654321", "1e-7", "\u0661"]  # fmt: skip

MOMENT_TEXTS = [
    "2024-02-29", "2023-02-29", " 2024-1-3 ", "2024", "2024-7", "20240101",
    "-0044-03-15", "+12024-01-31", "2024-01-31T", "2024-01-31 xyz", "2024-01-31 12",
    "2024-01-31 12:30", "2024-01-31 12:30Z", "2024-01-31 12:30:00.",
    "2024-01-31T12:30:59.1234567", "2024-01-31 12:30:00+01:00",
    "2024-01-31 12:30:00 -7:30", "2024-01-31 12:30:00.5 UTC",
    "2024-01-31 12:30:00UTC+3", "2024-01-31 12:30:00 GMT-0130",
    "2024-01-31 12:30:00+18:01", "2024-01-31 12:30:00+1:2",
    "2024-01-31 12:30:00+01:02:03", "2024-01-31 24:00:00", "2024-01-31 12:60:00",
    "2024-01-31 12:30:60", "2024-13-01", "2024-00-10", "2024-1-32", "24-01-31",
    "2024/01/31", "1582-10-10", "0001-01-01", "0000-02-29", "9999-12-31",
    "294247-01-10 04:00:54.775807", "294247-01-10 04:00:54.775808", "2024-01-31 ",
    "2024-01-31 12:30:00 z", "2024-01-31 1:2:3", "-2024", "2024-", "x",
    "2024-01-31-", "2024-01-31 12:30:00 UT", "2024-01-31 12:30:00+0100",
]  # fmt: skip
_MONTHS = [
    "INTERVAL 1 MONTH",
    "INTERVAL '-13' MONTHS",
    "INTERVAL 2 YEARS",
    "INTERVAL -1 YEAR 1 MONTH",
]
_DAYS = ["INTERVAL 1 DAY", "INTERVAL '-31' DAYS", "INTERVAL 2 WEEKS", "INTERVAL 1 WEEK '3' DAYS"]
_TIMES = ["INTERVAL 1 HOUR", "INTERVAL '2' HOURS", "INTERVAL 36 HOURS 5 MINUTES",
          "INTERVAL 1.5 SECONDS", "INTERVAL -3 MILLISECONDS", "INTERVAL 0 SECONDS",
          "INTERVAL '-0.000001' SECOND", "INTERVAL 1 DAY 2 HOURS", "INTERVAL 7 MICROSECONDS",
          "INTERVAL 100000 DAYS 1 MINUTE"]  # fmt: skip
INTERVALS = {
    "interval": _MONTHS + _DAYS + _TIMES, "clock": _TIMES, "long": _MONTHS + _DAYS,
}  # fmt: skip
UNITS = ["YEAR", "yyyy", "yy", "Quarter", "month", "MM", "mon", "week", "WEEK", "DAY", "dd", "HOUR",
         "minute", "SECOND", "millisecond", "MICROSECOND"]  # fmt: skip

# What may be written for each kind of argument. A kind names values of one type, or those that a
# function takes at one place.
CALLS: dict[str, list[tuple[str, ...]]] = {
    "int": [
        ("length({})", "string"), ("char_length({})", "string"), ("abs({})", "int"), ("-({})",
        "int"),
        ("({} + {})", "int", "int"), ("({} - {})", "int", "int"), ("({} * {})", "int", "int"),
        ("({} % {})", "int", "int"), ("mod({}, {})", "int", "int"), ("({} DIV {})", "int", "int"),
        ("floor({})", "double"), ("ceil({})", "double"), ("floor({})", "int"), ("ceiling({})",
        "int"),
        ("round({}, {})", "int", "places"), ("CAST({} AS BIGINT)", "scalar"),
        ("instr({}, {})", "string", "string"), ("locate({}, {})", "string", "string"),
        ("position({}, {}, {})", "string", "string", "place"),
        ("CAST({} AS INT)", "scalar"), ("TRY_CAST({} AS INT)", "scalar"),
        ("TRY_CAST({} AS BIGINT)", "scalar"), ("CAST({} AS INT)", "numeral"),
        ("year({})", "day"), ("quarter({})", "day"), ("month({})", "day"), ("day({})", "day"),
        ("dayofmonth({})", "day"), ("dayofweek({})", "day"), ("weekday({})", "day"),
        ("dayofyear({})", "day"), ("weekofyear({})", "day"), ("hour({})", "day"),
        ("minute({})", "day"), ("second({})", "day"), ("datediff({}, {})", "day", "day"),
        ("date_diff({}, {})", "day", "day"), ("CAST({} AS BIGINT)", "timestamp"),
        ("CAST({} AS INT)", "timestamp"), ("TRY_CAST({} AS INT)", "timestamp"),
        ("CAST({} AS BIGINT)", "numeral"), ("TRY_CAST({} AS BIGINT)", "numeral"),
        ("int({})", "numeral"), ("bigint({})", "scalar"), ("unix_seconds({})", "timestamp"),
        ("unix_millis({})", "timestamp"), ("unix_micros({})", "timestamp"),
        ("extract(YEAR FROM {})", "day"), ("extract(week FROM {})", "day"),
        ("date_part('DOW', {})", "day"), ("extract(HOUR FROM {})", "timestamp"),
    ],
    "double": [
        ("abs({})", "double"), ("-({})", "double"), ("({} + {})", "number", "number"),
        ("({} - {})", "number", "number"), ("({} * {})", "number", "number"),
        ("({} / {})", "number", "number"), ("({} % {})", "number", "number"),
        ("sqrt({})", "number"), ("round({}, {})", "double", "places"),
        ("round({})", "double"), ("CAST({} AS DOUBLE)", "scalar"), ("CAST({} AS DOUBLE)",
        "numeral"),
        ("TRY_CAST({} AS DOUBLE)", "numeral"), ("CAST({} AS DOUBLE)", "timestamp"),
        ("sign({})", "number"), ("signum({})", "decimal"), ("double({})", "numeral"),
    ],
    "decimal": [
        ("({} + {})", "decimal", "whole"), ("({} * {})", "decimal", "whole"),
        ("({} / {})", "decimal", "whole"), ("({} - {})", "int", "decimal"), ("abs({})", "decimal"),
        ("-({})", "decimal"), ("floor({})", "decimal"), ("ceil({})", "decimal"),
        ("round({}, {})", "decimal", "places"), ("CAST({} AS DECIMAL(12, 3))", "scalar"),
        ("CAST({} AS DECIMAL(5, 2))", "numeral"), ("TRY_CAST({} AS DECIMAL(20, 4))", "numeral"),
        ("CAST({} AS DECIMAL(38, 10))", "scalar"), ("CAST({} AS DECIMAL(18, 3))", "timestamp"),
    ],
    "string": [
        ("lower({})", "string"), ("upper({})", "string"), ("concat({}, {})", "string", "string"),
        ("({} || {})", "string", "string"), ("concat({}, {}, {})", "string", "string", "string"),
        ("trim({})", "string"), ("ltrim({})", "string"), ("rtrim({})", "string"),
        ("substring({}, {})", "string", "place"), ("substring({}, {}, {})", "string", "place",
        "place"),
        ("left({}, {})", "string", "place"), ("right({}, {})", "string", "place"),
        ("replace({}, {})", "string", "string"), ("replace({}, {}, {})", "string", "string",
        "string"),
        ("reverse({})", "string"), ("CAST({} AS STRING)", "texted"),
        ("string({})", "texted"),
        ("TRIM({} FROM {})", "string", "string"), ("ltrim({}, {})", "string", "string"),
        ("TRIM(TRAILING {} FROM {})", "string", "string"), ("btrim({}, {})", "string", "string"),
        ("btrim({})", "string"), ("substring({} FROM {} FOR {})", "string", "place", "place"),
        ("lpad({}, 4, {})", "string", "string"), ("rpad({}, 3, {})", "string", "string"),
        ("lpad({}, 3)", "string"), ("rpad({}, -1, {})", "string", "string"),
        ("split_part({}, {}, 2)", "string", "string"),
        ("split_part({}, {}, -1)", "string", "string"),
    ],
    "bool": [
        ("contains({}, {})", "string", "string"), ("startswith({}, {})", "string", "string"),
        ("endswith({}, {})", "string", "string"), ("({} < {})", "number", "number"),
        ("({} = {})", "string", "string"), ("({} IS NULL)", "scalar"), ("(NOT {})", "bool"),
        ("({} AND {})", "bool", "bool"), ("({} OR {})", "bool", "bool"), ("({} <=> {})", "int",
        "int"),
        ("CAST({} AS BOOLEAN)", "scalar"), ("CAST({} AS BOOLEAN)", "numeral"),
        ("isnull({})", "scalar"), ("isnotnull({})", "string"), ("isnan({})", "number"),
        ("boolean({})", "numeral"),
        ("TRY_CAST({} AS BOOLEAN)", "numeral"), ("({} BETWEEN {} AND {})", "int", "int", "number"),
        ("({} IN ({}, {}))", "int", "int", "int"), ("({} ILIKE 'A%')", "string"),
        ("({} NOT ILIKE '%É_')", "string"), ("({} LIKE ANY ('a%', '%b', '_'))", "string"),
        ("({} NOT LIKE ALL ('a%', '%B'))", "string"), ("({} NOT ILIKE ANY ('A%', '%b'))", "string"),
        ("ilike({}, '%ß%')", "string"), ("regexp_like({}, '[aA]b?')", "string"),
        ("like({}, 'a/%', '/')", "string"),
        ("({} < {})", "day", "day"),
        ("({} - {} < {})", "day", "day", "clock"), ("({} - {} >= {})", "date", "date", "clock"),
        ("({} - {} BETWEEN {} AND {})", "timestamp", "day", "clock", "clock"),
        ("(coalesce({} - {}, {}) <> {})", "timestamp", "day", "clock", "clock"),
        ("({} - {} + {} > {})", "timestamp", "day", "clock", "clock"),
        ("({} = {})", "date", "day"), ("({} BETWEEN {} AND {})", "day", "day", "day"),
        ("({} IN ({}, {}))", "day", "day", "day"), ("CAST({} AS BOOLEAN)", "timestamp"),
    ],
    "timestamp": [
        ("date_trunc('{}', {})", "unit", "timestamp"), ("CAST({} AS TIMESTAMP)", "timed"),
        ("CAST({} AS TIMESTAMP)", "moment"), ("to_timestamp({})", "moment"),
        ("to_timestamp({})", "date"), ("TRY_CAST({} AS TIMESTAMP)", "moment"),
        ("TRY_CAST({} AS TIMESTAMP)", "number"), ("({} + {})", "timestamp", "interval"),
        ("({} - {})", "timestamp", "interval"), ("({} + {})", "interval", "timestamp"),
        ("({} + {})", "date", "clock"), ("({} - {})", "date", "clock"),
    ],
    "date": [
        ("to_date({})", "timestamp"), ("to_date({})", "moment"), ("CAST({} AS DATE)", "timestamp"),
        ("CAST({} AS DATE)", "moment"), ("date_add({}, {})", "day", "days"),
        ("date_sub({}, {})", "day", "days"), ("trunc({}, '{}')", "day", "period"),
        ("add_months({}, {})", "day", "days"), ("last_day({})", "day"),
        ("({} + {})", "date", "long"), ("({} - {})", "date", "long"), ("({} + {})", "date", "days"),
        ("({} + {})", "long", "date"), ("({} - {})", "date", "days"),
    ],
}  # fmt: skip
# Functions of values of any one type.
ANY = ["coalesce({0}, {0})", "coalesce({0}, {0}, {0})", "ifnull({0}, {0})", "nvl({0}, {0})",
       "nvl2({string}, {0}, {0})", "nullif({0}, {0})", "greatest({0}, {0})",
       "least({0}, {0}, {0})", "if({bool}, {0}, {0})",
       "CASE WHEN {bool} THEN {0} WHEN {bool} THEN {0} ELSE {0} END",
       "CASE WHEN {bool} THEN {0} END", "CASE {int} WHEN {int} THEN {0} WHEN {int} THEN {0} END",
       "CASE {string} WHEN {string} THEN {0} ELSE {0} END"]  # fmt: skip
ALIASES = {
    "number": ["int", "double", "double"], "whole": ["int", "decimal"],
    "scalar": ["int", "double", "decimal", "bool"],
    "texted": ["int", "bool", "date", "timestamp"],
    "day": ["timestamp", "timestamp", "date"],
    "timed": ["int", "double", "decimal", "bool", "date"],
}  # fmt: skip


class Terms:
    """Random terms, by the generator that they are made with."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - for tests

    def term(self, kind: str, depth: int) -> str:
        """A term of a kind."""
        choose = self.random.choice
        if kind in ALIASES:
            return self.term(choose(ALIASES[kind]), depth)
        if kind == "places":
            return str(choose([0, 1, 2, 3, -1, -2, 5, 20, -25]))
        if kind == "place":
            return choose(
                ["0", "1", "2", "3", "-1", "-2", "-9", "9", "i", "2147483647", "-2147483648"]
            )
        if kind == "numeral":
            return choose([string_text(choose(NUMERALS)), "s", "t", f"concat(s, {choose('12')})"])
        if kind == "moment":
            return choose([string_text(choose(MOMENT_TEXTS)), "s", "t"])
        if kind == "days":
            return choose(["0", "1", "-1", "28", "31", "-366", "100000", "CAST(i % 99 AS INT)"])
        if kind in INTERVALS:
            return choose(INTERVALS[kind])
        if kind in {"unit", "period"}:
            return choose(UNITS if kind == "unit" else UNITS[:9])
        if kind == "small":
            return choose(["x", "y", "i % 5", "2", "0.5", "-1", "3"])
        if depth <= 0 or self.random.random() < 0.2:
            return self.leaf(kind)
        if self.random.random() < 0.3:
            return self.any_of(choose(ANY), kind, depth)
        if not CALLS[kind]:
            return self.leaf(kind)
        text, *kinds = choose(CALLS[kind])
        return text.format(*(self.term(one, depth - 1) for one in kinds))

    def any_of(self, pattern: str, kind: str, depth: int) -> str:
        """A function of several values of one kind."""
        found = pattern
        for name in (kind, "bool", "int", "string"):
            mark = "{0}" if name == kind else "{" + name + "}"
            while mark in found:
                found = found.replace(mark, self.term(name, depth - 1), 1)
            if name == kind and "{" + name + "}" in found:
                while "{" + name + "}" in found:
                    found = found.replace("{" + name + "}", self.term(name, depth - 1), 1)
        return found

    def leaf(self, kind: str) -> str:
        """An attribute or a constant."""
        choose = self.random.choice
        if kind in NAMES and self.random.random() < 0.7:
            return choose(NAMES[kind])
        if self.random.random() < 0.1:
            typed = {"decimal": "CAST(NULL AS DECIMAL(4, 1))", "bool": "CAST(NULL AS BOOLEAN)"}
            return typed.get(kind, "NULL")
        match kind:
            case "int":
                return str(choose(INTS + list(range(-5, 6))))
            case "double":
                return choose(["0.5D", "2.5e0", "-1e0", "1e300", "0D", "1.005D", "2.675D", "3D"])
            case "decimal":
                return choose(
                    ["0.5", "2.50", "-0.1", "99.995", "12345678901234567890.5", "7BD", "0.00"]
                )
            case "string":
                return string_text(choose(STRINGS))
            case "bool":
                return choose(["TRUE", "FALSE"])
            case "date":
                return choose(
                    ["DATE '2024-02-29'", "DATE '1582-10-10'", "DATE '-0044-03-15'", "to_date(at)",
                     "CAST(until AS DATE)", "DATE '+12024-12-31'", "DATE '1969-12-31'"]
                )  # fmt: skip
            case _:
                return choose(["TIMESTAMP '2024-01-31 12:30:00'", "at"])


def accepted(count: int, seed: int, depth: int = 3) -> Iterator[tuple[str, Any]]:
    """Terms that tamis accepts, with their trees."""
    terms = Terms(seed)
    kinds = [*CALLS, "string", "double", "decimal", "int"]
    found = 0
    while found < count:
        text = terms.term(terms.random.choice(kinds), depth)
        try:
            tree = value_tree(text)
        except TypeMismatch:
            continue
        found += 1
        yield text, tree


def value_tree(text: str) -> Any:
    """The tree of a value."""
    return Parser(tokenize(text), TypingRules(SCHEMA, text), text).expression(0).node


def events(seed: int) -> list[tuple[object, ...]]:
    """Rows with delicate values, and some with numerals."""
    found = delicate_rows()
    chance = random.Random(seed)  # noqa: S311 - for tests
    for place, text in enumerate(NUMERALS + MOMENT_TEXTS):
        row = list(found[place % len(found)])
        names = list(SCHEMA)
        row[names.index("s")], row[names.index("x")] = (
            text,
            chance.choice([0.125, 2.675, -1.5, 1e15]),
        )
        row[names.index("at")] = chance.randrange(FIRST, LAST)
        row[names.index("until")] = chance.randrange(10**15) + chance.choice([0, 10**15])
        row[names.index("i")] = chance.choice([None, *range(-3, 12), 10**12 + 55])
        if chance.random() < 0.3:
            row[chance.randrange(len(row))] = None
        found.append(tuple(row))
    return found


def same(ours: Any, sparks: Any) -> bool:
    """Whether two values are the same, nan and both zeros included."""
    if isinstance(ours, float) and isinstance(sparks, float):
        return ours == sparks or (math.isnan(ours) and math.isnan(sparks))
    return type(ours) is type(sparks) and ours == sparks


def spark_type(of: Type) -> str:
    """The name that Spark has for a type."""
    if of.kind is Kind.DECIMAL:
        return f"decimal({of.digits},{of.scale})"
    return {"int32": "int", "int": "bigint", "bool": "boolean", "null": "void"}.get(
        of.kind.value, of.kind.value
    )


def answered(
    frame: Any, terms: list[tuple[str, Any]]
) -> Iterator[tuple[list[tuple[str, Any]], Any, Any]]:
    """Terms that Spark can compute, some at a time, and the table with a column for each."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import AnalysisException, PySparkException

    if len(terms) > TERMS_PER_JOB:
        for start in range(0, len(terms), TERMS_PER_JOB):
            yield from answered(frame, terms[start : start + TERMS_PER_JOB])
        return
    try:
        made = frame.selectExpr("n", *(f"{text} AS c{k}" for k, (text, _) in enumerate(terms)))
        found = made.schema, made.toArrow().sort_by("n")
    except (PySparkException, Py4JJavaError) as problem:  # refused, or a value that is too large
        if len(terms) > 1:
            yield from answered(frame, terms[: len(terms) // 2])
            yield from answered(frame, terms[len(terms) // 2 :])
        elif isinstance(problem, AnalysisException):
            print("Spark refuses", terms[0][0])  # noqa: T201 - for whoever runs it by hand
    else:
        yield terms, *found


def differences(
    frame: Any, rows: list[tuple[object, ...]], terms: list[tuple[str, Any]]
) -> Iterator[Any]:
    """Terms whose types or values differ, each with the first event that shows it."""
    for chunk, schema, answers in answered(frame, terms):
        types = {field.name: field.dataType.simpleString() for field in schema}
        for k, (text, tree) in enumerate(chunk):
            wanted = spark_type(tree.type)
            if types[f"c{k}"] not in {wanted, "void"}:
                yield text, "type", wanted, types[f"c{k}"]
                continue
            column = answers[f"c{k}"]
            if wanted == "timestamp":
                column = column.cast("int64")
            elif wanted == "date":
                column = column.cast("int32")
            compute = compile_value(tree, SCHEMA)
            for row, sparks in zip(rows, column.to_pylist(), strict=True):
                ours = compute(row)
                if not same(ours, sparks):
                    yield text, row, ours, sparks
                    break


def main() -> None:
    """Compare as many terms as asked for."""
    from plain_cases import event_table
    from spark_answers import settings_of_filters
    from tamis.spark import spark_session

    options = argparse.ArgumentParser()
    options.add_argument("--terms", type=int, default=2_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--depth", type=int, default=3)
    chosen = options.parse_args()
    spark = spark_session()
    rows = events(chosen.seed)
    terms = list(accepted(chosen.terms, chosen.seed, chosen.depth))
    with settings_of_filters(spark, is_interpreted=True):
        frame = spark.createDataFrame(event_table(rows)).coalesce(1).cache()
        found = list(differences(frame, rows, terms))
    for one in sorted(found, key=lambda each: len(each[0])):
        print(one)  # noqa: T201 - a program
    values = chosen.terms * len(rows)
    print(f"{chosen.terms:,} terms, {values:,} values, {len(found)} differ")  # noqa: T201 - as above


if __name__ == "__main__":
    main()
