"""Random filters over arrays and maps, and events for them.

As in `strategies`, filters are text and all of them well typed. Arrays are missing, empty, have
nulls and the delicate values of their types; constants come from the same few values, so that many
filters find something.
"""

import math
from functools import cache

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from strategies import one_of_these
from tamis import Schema
from tamis.events.values import MapValue
from tamis.language.literals import string_text
from tamis.timestamps import timestamp_text

ARRAYS = Schema(
    {
        "i": "int", "s": "string", "x": "double", "tags": "array<string>", "more": "array<string>",
        "ns": "array<int>", "xs": "array<double>", "bs": "array<bool>", "ts": "array<timestamp>",
        "r.words": "array<string>", "props": "map<string, int>", "names": "map<string, string>",
        "rates": "map<string, double>",
    }
)  # fmt: skip

TEXTS = ["", "a", "b", "ab", "A", "é", "it's", "a%", "\x00", "日本", "k", "null"]
WHOLE = [0, 1, -1, 2, 5, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]
DOUBLES = [0.0, -0.0, 1.0, 1.5, -1.0, 5e-324, 1e300, math.inf, -math.inf, math.nan]
MOMENTS = [0, -1, 1_704_067_200_000_000, -62_135_596_800_000_000]

VALUES = {
    "string": TEXTS, "int": WHOLE, "double": DOUBLES, "bool": [True, False], "timestamp": MOMENTS,
}  # fmt: skip
NAMES = {
    "string": ["tags", "more", "r.words", "map_keys(props)", "map_values(names)"],
    "int": ["ns", "map_values(props)"], "double": ["xs", "map_values(rates)"], "bool": ["bs"],
    "timestamp": ["ts"],
}  # fmt: skip
SCALARS = {
    "string": ["s", "tags[0]", "element_at(more, -1)", "names['a']", "element_at(names, s)",
               "array_max(tags)", "array_min(map_values(names))"],
    "int": ["i", "size(tags)", "ns[1]", "props['k']", "props[s]", "array_size(ns)", "ns[i]",
            "array_position(tags, s)", "array_max(ns)", "array_position(ns, i)"],
    "double": ["x", "xs[0]", "element_at(xs, 2)", "rates['a']", "array_min(xs)", "array_max(xs)"],
    "bool": ["bs[0]", "map_contains_key(props, s)", "array_min(bs)"],
    "timestamp": ["ts[0]", "array_max(ts)"],
}  # fmt: skip


def values(kind: str) -> SearchStrategy[object]:
    """Values of one type, None for a missing one."""
    if kind.startswith("array"):
        inner = kind[6:-1]
        arrays = st.lists(element(inner), max_size=4).map(tuple)
        return st.one_of(st.none(), arrays, arrays, arrays)
    if kind.startswith("map"):
        inner = kind[len("map<string, ") : -1]
        maps = st.dictionaries(one_of_these(TEXTS), element(inner), max_size=4).map(MapValue)
        return st.one_of(st.none(), maps, maps, maps)
    return element(kind)


def element(kind: str) -> SearchStrategy[object]:
    """Values of a scalar type, None for a missing one."""
    some = one_of_these(VALUES[kind])
    return st.one_of(st.none(), some, some, some)


def array_rows() -> SearchStrategy[tuple[object, ...]]:
    """Events as rows, in the order of the schema."""
    return st.tuples(*(values(str(attribute.type)) for attribute in ARRAYS.attributes))


def literal(kind: str) -> SearchStrategy[str]:
    """Constants of one type, as text."""
    match kind:
        case "string":
            return st.sampled_from(TEXTS).map(string_text)
        case "int":
            return st.sampled_from(WHOLE).map(str)
        case "double":
            finite = [repr(value) for value in DOUBLES if math.isfinite(value)]
            texts = [text if "e" in text else f"{text}D" for text in finite]
            return st.sampled_from([*texts, "1.5", "1", "CAST('nan' AS DOUBLE)"])
        case "bool":
            return st.sampled_from(["TRUE", "FALSE"])
        case _:
            return st.sampled_from(MOMENTS).map(lambda m: f"TIMESTAMP '{timestamp_text(m)}'")


@cache
@st.composite
def array_of(draw: DrawFn, kind: str) -> str:
    """Arrays of one type, as text."""
    if draw(st.integers(0, 3)):
        return draw(one_of_these(NAMES[kind]))
    items = st.one_of(literal(kind), literal(kind), st.just("NULL"), one_of_these(SCALARS[kind]))
    # A literal of the type first: array(NULL) and array(1.5) are arrays of others.
    first = draw(literal(kind).filter(lambda text: text not in {"1.5", "1"} or kind != "double"))
    rest = draw(st.lists(items, max_size=3))
    return f"array({', '.join([first, *rest])})"


@cache
@st.composite
def conditions_on(draw: DrawFn, kind: str, name: str) -> str:
    """Conditions on an element, as text."""
    negation = draw(one_of_these(["", "", "NOT "]))
    op = draw(one_of_these(["=", "<>", "<", ">=", "<=>"]))
    other = draw(st.one_of(literal(kind), one_of_these(SCALARS[kind])))
    forms = [
        f"{name} {op} {other}", f"{name} IS {negation}NULL",
        f"{name} {negation}IN ({draw(literal(kind))}, {other})",
    ]  # fmt: skip
    if kind == "string":
        forms += [f"{name} {negation}LIKE 'a%'", f"length({name}) > i", f"lower({name}) = 'a'"]
        forms += [f"{name} RLIKE '^[ab]'", f"props[{name}] > 0", f"contains({name}, s)"]
    if kind == "int":
        forms += [f"{name} + 1 > i", f"{name} % 2 = 0", f"tags[{name}] = 'a'", f"{name} > 1.5"]
    one = draw(one_of_these(forms))
    if draw(st.integers(0, 3)):
        return one
    word = draw(one_of_these(["AND", "OR"]))
    return f"{one} {word} {draw(one_of_these(forms))}"


@cache
@st.composite
def array_atoms(draw: DrawFn) -> str:
    """One test of arrays or maps, as text."""
    kind = draw(one_of_these(["string", "string", "int", "double", "bool", "timestamp"]))
    array = draw(array_of(kind))
    value = draw(st.one_of(literal(kind), one_of_these(SCALARS[kind])))
    negation = draw(one_of_these(["", "NOT "]))
    many = ["contains"] * 4 + ["overlap", "quantified"] * 3
    match draw(one_of_these([*many, "key", "null", "size", "scalar", "truth"])):
        case "contains":
            return f"array_contains({array}, {value})"
        case "overlap":
            return f"arrays_overlap({array}, {draw(array_of(kind))})"
        case "quantified":
            name = draw(one_of_these(["exists", "forall"]))
            return f"{name}({array}, e -> {draw(conditions_on(kind, 'e'))})"
        case "key":
            key = draw(st.one_of(literal("string"), st.just("s")))
            return f"map_contains_key({draw(one_of_these(['props', 'names']))}, {key})"
        case "null":
            holder = draw(one_of_these([*NAMES[kind], "props", "names"]))
            return f"{holder} IS {negation}NULL"
        case "truth":
            truth = draw(one_of_these(["NULL", "TRUE", "FALSE"]))
            return f"array_contains({array}, {value}) IS {negation}{truth}"
        case "size":
            holder = draw(one_of_these([array, "props", "names"]))
            op = draw(one_of_these(["=", "<", ">="]))
            return f"size({holder}) {op} {draw(st.integers(-1, 3))}"
        case _:
            op = draw(one_of_these(["=", "<>", "<", ">="]))
            return f"{draw(one_of_these(SCALARS[kind]))} {op} {value}"


@cache
@st.composite
def array_filters(draw: DrawFn, depth: int = 2) -> str:
    """Whole filters over arrays and maps, as text."""
    if depth <= 0 or draw(st.integers(0, 2)) == 0:
        return draw(array_atoms())
    choice = draw(st.integers(0, 4))
    if choice == 0:
        return f"NOT ({draw(array_filters(depth - 1))})"
    word = " AND " if choice < 3 else " OR "
    parts = draw(st.lists(array_filters(depth - 1), min_size=2, max_size=3))
    return word.join(f"({part})" for part in parts)
