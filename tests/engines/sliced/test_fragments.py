"""An atom of a known shape has the fragment that its normal form has, whatever its constants."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from strategies import STRINGS
from tamis import Schema
from tamis.engines.sliced.fragments import Fragments
from tamis.language.shape_cache import ShapeCache
from tamis.semantics import NAMES, Semantics

SCHEMA = Schema(
    {
        "n": "int",
        "level": "int(1, 250)",
        "x": "double",
        "s": "string",
        "side": "enum('a', 'b', 'c')",
    }
)
MEANINGS = {
    name: Semantics(name, SCHEMA, dict.fromkeys(SCHEMA) if name == "default" else None)
    for name in NAMES
}
CACHE = ShapeCache(SCHEMA)

WHOLE = st.integers(0, 2**31 - 1).map(str)
WIDE = st.integers(2**31 + 1, 10**18 - 1).map(str)
DIGITS = st.text("0123456789", min_size=1, max_size=9)
DECIMAL = st.tuples(DIGITS, DIGITS).map(".".join)
PLAIN = st.sampled_from([text for text in STRINGS if not {*text} & {*"'\\"}]) | st.text(
    "ab é%_", max_size=4
)
QUOTED = PLAIN.map("'{}'".format)
# The classes of constants that atoms of each attribute may have.
CLASSES = {
    "n": [WHOLE, WIDE, WHOLE.map("-{}".format), WIDE.map("-{}".format)],
    "level": [st.integers(1, 9).map(str)],
    "x": [WHOLE, WIDE, DECIMAL, WHOLE.map("-{}".format), DECIMAL.map("-{}".format)],
    "s": [QUOTED],
    "side": [st.sampled_from(["'a'", "'b'", "'c'"])],
}


STRING_TESTS = [
    "s LIKE {}", "s NOT LIKE {}", "NOT like(s, {})", "contains(s, {})", "contains({}, s)",
    "startswith(s, {})", "startswith({}, s)", "endswith(s, {})", "NOT endswith({}, s)",
    "{} SUBSTRING OF s", "s SUBSTRING OF {}", "NOT s SUBSTRING OF {}",
]  # fmt: skip


@st.composite
def atoms(draw):
    """The text of an atom with places for constants, and two choices of these."""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(STRING_TESTS)), [(draw(QUOTED),) for _ in range(2)]
    name = draw(st.sampled_from(list(CLASSES)))
    kind = draw(st.sampled_from(["compare", "between", "in"]))
    negation = draw(st.sampled_from(["", "NOT "]))
    count = {"compare": 1, "between": 2}.get(kind) or draw(st.integers(1, 5))
    classes = [draw(st.sampled_from(CLASSES[name])) for _ in range(count)]
    if kind == "compare":
        op = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>", "!="]))
        text = f"{negation}{name} {op} {{}}"
    elif kind == "between":
        text = f"{name} {negation}BETWEEN {{}} AND {{}}"
    else:
        text = f"{name} {negation}IN ({', '.join(['{}'] * count)})"
    return text, [tuple(map(draw, classes)) for _ in range(2)]


@given(atoms(), st.sampled_from(NAMES), st.booleans())
@example(("n IN ({}, {})", [("3", "3"), ("3", "4")]), "sql", True)
@example(("x IN ({}, {})", [("-1.5", "2"), ("-0.0", "0")]), "sql", False)
@example(("n NOT BETWEEN {} AND {}", [("5", "5"), ("9", "1")]), "default", True)
@example(("s LIKE {}", [("'ab%'",), ("'%ab'",)]), "default", True)
@example(("s NOT LIKE {}", [("'ab'",), ("'%'",)]), "total", False)
@example(("contains({}, s)", [("'ab'",), ("''",)]), "sql", True)
@settings(max_examples=150)
def test_other_constants_give_the_same_leaves(case, name, negated):
    text, (first, second) = case
    fragments = Fragments(MEANINGS[name], negated=negated)
    known, other = (CACHE.parse(text.format(*chosen)).atoms for chosen in (first, second))
    (one,), (another,) = known, other
    assert one.shape is another.shape is not None
    assert fragments[one] == fragments.normalized(one)
    # repr tells 1 from 1.0 and 0.0 from -0.0
    assert repr(fragments[another]) == repr(fragments.normalized(another))
    assert list(fragments._rules) == [one.shape]
