"""Random subscriptions that cover each other often, and what must be true of a table of them."""

from functools import cache

from hypothesis import strategies as st

from tamis import Schema, parse
from tamis.predicates.event_space import EventSpace, form_of
from tamis.relations.entailment.decision import Answer, entails
from tamis.semantics import Semantics

SCHEMA = Schema(
    {
        "i": "int", "n": "int(0, 6)", "x": "double", "s": "string", "side": "enum('buy', 'sell')",
        "b": "bool",
    }
)  # fmt: skip
DEFAULTS = {"i": 0, "n": None, "x": 1.5, "s": "a", "side": None, "b": None}


def semantics_of(name, schema=SCHEMA):
    return Semantics(name, schema, DEFAULTS if name == "default" else None)


SEMANTICS = ("sql", "strict", "default", "total")

_OPS = st.sampled_from(["=", "<", "<=", ">", ">=", "<>"])
_INTS = st.integers(0, 6)
_DOUBLES = st.sampled_from(["-0.0D", "0.0D", "0.5D", "1.5D", "2.5D"])
_TEXTS = st.sampled_from(["", "a", "ab", "abc", "b", "ba"])

_comparisons = st.one_of(
    st.builds("{} {} {}".format, st.sampled_from(["i", "n"]), _OPS, _INTS),
    st.builds("x {} {}".format, _OPS, _DOUBLES),
    st.builds("s {} '{}'".format, _OPS, _TEXTS),
    st.builds(
        "side {} '{}'".format, st.sampled_from(["=", "<>"]), st.sampled_from(["buy", "sell"])
    ),
)
_ranges = st.builds("{} BETWEEN {} AND {}".format, st.sampled_from(["i", "n"]), _INTS, _INTS)
_sets = st.builds(
    "{} {} ({})".format, st.sampled_from(["i", "n"]), st.sampled_from(["IN", "NOT IN"]),
    st.lists(_INTS, min_size=1, max_size=4).map(lambda items: ", ".join(map(str, items))),
)  # fmt: skip
_texts = st.builds(
    "s {} ({})".format, st.sampled_from(["IN", "NOT IN"]),
    st.lists(_TEXTS, min_size=1, max_size=3).map(lambda t: ", ".join(f"'{one}'" for one in t)),
)  # fmt: skip
_others = st.sampled_from(
    ["i IS NULL", "s IS NOT NULL", "n IS NOT NULL", "b", "NOT b", "b IS NULL", "side IS NOT NULL"]
)
_alternatives = st.builds(
    "({} OR {})".format, st.builds("i < {}".format, _INTS), st.builds("i > {}".format, _INTS)
)
with_value_sets = st.one_of(
    _comparisons, _comparisons, _ranges, _sets, _texts, _others, _alternatives
)
tests_of_strings = st.one_of(
    st.builds(
        "{}(s, '{}')".format, st.sampled_from(["startswith", "endswith", "contains"]), _TEXTS
    ),
    st.builds("NOT startswith(s, '{}')".format, _TEXTS),
    st.sampled_from(["s LIKE 'a%b'", "s LIKE '_b%'", "s RLIKE '^a+$'", "s LIKE '%'"]),
)


def boxes(conditions=with_value_sets):
    """Conjunctions of conditions of one attribute each, as text."""
    return st.lists(conditions, min_size=1, max_size=4).map(" AND ".join)


any_boxes = boxes(st.one_of(with_value_sets, with_value_sets, tests_of_strings))
generals = st.one_of(
    st.builds("({}) OR ({})".format, any_boxes, any_boxes),
    st.builds("i > n AND {}".format, with_value_sets),
    st.builds("({} OR {}) AND {}".format, with_value_sets, with_value_sets, with_value_sets),
)
subscriptions = st.one_of(any_boxes, any_boxes, generals)


def read(text, schema=SCHEMA):
    return parse(text, schema)


class Oracle:
    """Covering by entailment of whole forms, pair by pair."""

    def __init__(self, semantics):
        self.semantics = semantics
        self.space = EventSpace.of(semantics)
        # The same pairs are asked for again and again.
        self._form = cache(lambda text: form_of(read(text), semantics))
        self._answer = cache(
            lambda narrow, wide: entails(self._form(narrow), self._form(wide), self.space)
        )

    def covers(self, wide, narrow):
        return self._answer(narrow, wide) is Answer.YES

    def never(self, text):
        return self.covers("1 = 2", text)


def check_table(table, texts, oracle):
    """The invariants of a table that holds texts under keys."""
    assert len(table) == len(texts)
    roots = table.roots
    assert [key for key in texts if table.is_root(key)] == [
        key for key in texts if key in set(roots)
    ]
    for key, text in texts.items():
        cover = table.cover_of(key)
        assert (cover is None) == (key in set(roots) or oracle.never(text))
        if cover is not None:
            assert cover in set(roots)
            assert key in table.covered_by(cover)
            assert oracle.covers(texts[cover], text)
    for one in roots:
        assert not oracle.never(texts[one])
        for other in roots:
            assert one == other or not oracle.covers(texts[one], texts[other]), (
                texts[one], texts[other],
            )  # fmt: skip
