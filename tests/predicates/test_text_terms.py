"""Terms of one string: what is remembered is what they mean."""

import numpy as np
import pytest

from tamis import Matcher, Schema
from tamis.language.parser import parse_tree
from tamis.predicates import text_terms as module
from tamis.predicates.computed_values import ComputedAttributes, term_of
from tamis.predicates.event_batches import batch_of_rows, slice_of
from tamis.predicates.text_terms import FEWEST_TERMS, text_terms

SCHEMA = Schema({"s": "string", "e": "enum('low', 'high')", "n": "int"})
TEXTS = [None, "", "a", "ab", "Ba", "ß", "12", "-3.5", "a" * 40, "x y", "12"]
RULES = [
    *(f"instr(lower(s), '{part}') > {n}" for n, part in enumerate(["a", "b", "ab", "ß", "y"])),
    *(f"length(replace(s, 'a', '{'b' * n}')) < {n}" for n in range(2, 7)),
    "TRY_CAST(s AS DOUBLE) > -5", "TRY_CAST(s AS BIGINT) * 0 = 0", "reverse(s) = upper(s)",
    *(f"instr(e, '{part}') = 1" for part in ["l", "h", "o", "lo", "hi", "low", "high", "x", "gh"]),
    "length(s) + n > 3", "s || e = 'alow'", "lower(s) = 'ba'",
]  # fmt: skip
EVENTS = [{"s": text, "e": ["low", "high", None][n % 3], "n": n} for n, text in enumerate(TEXTS)]


def terms():
    found = [term_of(parse_tree(rule, SCHEMA)) for rule in RULES]
    return list(dict.fromkeys(term for term in found if term is not None))


def test_which_terms_are_remembered():
    found = text_terms(terms(), SCHEMA, others={0})
    assert set(found) == {0, 1}
    assert 0 not in found[0].numbers
    assert not text_terms(terms()[: FEWEST_TERMS - 1], SCHEMA, others=())


@pytest.mark.parametrize("remembered", [0, 5_000, 64_000_000])
def test_matches_are_those_of_naive(monkeypatch, remembered):
    monkeypatch.setattr(module, "MOST_REMEMBERED", remembered)
    naive, sliced = Matcher(SCHEMA, "naive"), Matcher(SCHEMA, "sliced")
    for matcher in (naive, sliced):
        matcher.subscribe_many(dict(enumerate(RULES)))
    expected = [naive.match(event) for event in EVENTS]
    assert any(expected)
    for some in (EVENTS, EVENTS[:3], EVENTS, []):  # new strings, a few, and known ones
        lists = [[] for _ in some]
        table = sliced.match_batch(some)
        for event, rule in zip(
            *(table[name].to_pylist() for name in table.column_names), strict=True
        ):
            lists[event].append(rule)
        assert lists == expected[: len(some)]
    for _ in range(2):
        assert [sliced.match(event) for event in EVENTS] == expected


def test_a_string_is_computed_once(monkeypatch):
    computed = ComputedAttributes(SCHEMA, terms())
    rows = [(event["s"], event["e"], event["n"]) for event in EVENTS]
    batch = batch_of_rows(rows, SCHEMA)
    whole = computed.batch(batch)
    monkeypatch.setattr(module, "TermColumns", None)  # which would compute
    monkeypatch.setattr(module.TextTerms, "_learn_one", None)
    part = computed.batch(slice_of(batch, 2, 5))
    for place in computed.keyed:
        assert whole.columns[place].keys[2:5].tolist() == part.columns[place].keys.tolist()
    for event, row in enumerate(rows):
        size = len(computed.schema)
        keys, present = np.zeros(size, np.int64), np.zeros(size, np.uint8)
        computed.write_keys(row, keys, present)
        for place in computed.keyed:
            column = whole.columns[place]
            assert (keys[place], present[place]) == (column.keys[event], column.present[event])
