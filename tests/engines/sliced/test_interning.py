"""What segments are compiled from: each predicate once, and filters that still mean the same."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interned import interned as made
from interned import leaves
from stocks import SMALL
from strategies import SCHEMA, filters
from tamis import CapacityError
from tamis.engines.sliced import segment_predicates as predicates_module
from tamis.engines.sliced.combination import combine
from tamis.engines.sliced.interning import intern_filters, sets_of
from tamis.engines.sliced.leaves import (
    ABSENT,
    LEAF_KINDS,
    NONE_OF,
    ONE_OF,
    PRESENT,
    TEST,
    leaf_of,
)
from tamis.engines.sliced.segment_predicates import SegmentPredicates, Texts
from tamis.engines.sliced.shape_steps import is_conjunction, shape_steps
from tamis.kernels import value_classes as references
from tamis.kernels.value_classes import REF_KINDS
from tamis.predicates.computed_values import ComputedAttributes, term_of
from tamis.predicates.keys import Keys

POSITIONS = {name: place for place, name in enumerate(SMALL)}


# --- what interned says


def cut_list(cuts):
    """The cuts of an attribute: keys or strings."""
    if isinstance(cuts, Texts):
        return [text.decode() for text in cuts.to_arrow().to_pylist()]
    return cuts.tolist()


def members(predicates, sets, place):
    """The attribute and the members of a set."""
    attribute = int(sets.attributes[place])
    numbers = sets.members[sets.at[place] : sets.at[place + 1]]
    known = cut_list(predicates.cuts[attribute])
    first = int(predicates.starts[attribute]) + 1
    return home(attribute, predicates), tuple(known[number - first] for number in numbers.tolist())


def home(attribute, predicates):
    """An attribute of the schema, or the term that it stands for."""
    first = len(predicates.cuts) - len(predicates.terms)
    return attribute if attribute < first else predicates.terms[attribute - first]


def read_reference(ref, predicates):
    """What a reference stands for."""
    number, kind = divmod(int(ref), REF_KINDS)
    if number >= predicates.base:
        place = number - predicates.base
        if place < predicates.first_test:
            return "in", *members(predicates, predicates.in_sets, place)
        if place < predicates.first_out:
            return "test", predicates.tests[place - predicates.first_test]
        return "not in", *members(predicates, predicates.out_sets, place - predicates.first_out)
    attribute = int(np.searchsorted(predicates.starts, number, side="right")) - 1
    tested = home(attribute, predicates)
    if number == predicates.starts[attribute]:
        return {references.PRESENT: "present", references.ABSENT: "absent"}[kind], tested
    cut = number - int(predicates.starts[attribute]) - 1
    return kind, tested, cut_list(predicates.cuts[attribute])[cut]


def read(interned):
    """The steps of each handle, none for a conjunction, and its leaves."""
    found = {}
    for width, table in interned.tables.items():
        assert table.handles.dtype == np.int64
        assert table.refs.dtype == np.int32
        assert table.refs.shape == (len(table.handles), width)
        for handle, refs in zip(table.handles.tolist(), table.refs, strict=True):
            assert handle not in found
            found[handle] = (), tuple(read_reference(r, interned.predicates) for r in refs)
    formulas = interned.formulas
    for handle, first, end in zip(
        formulas.handles.tolist(), formulas.at[:-1], formulas.at[1:], strict=True
    ):
        assert handle not in found
        targets = tuple(formulas.targets[first:end].tolist())
        operands = formulas.operands[first:end].reshape(-1).tolist()
        found[handle] = (
            targets,
            tuple(read_reference(o, interned.predicates) if o >= 0 else o for o in operands),
        )
    return found


def expected(some, schema=SMALL):
    """The same of leaves."""

    def constants(attribute, values, keys):
        return keys.many(attribute, values).tolist() if keys.has(attribute) else list(values)

    def leaf(code, constant):
        computed, term = ComputedAttributes(schema, []), None
        if code % LEAF_KINDS == TEST:
            term = term_of(constant)
            computed = ComputedAttributes(schema, [] if term is None else [term])
            written = leaf_of(computed.test(constant), computed.schema)
            if written[0] % LEAF_KINDS == TEST:
                return "test", constant
            code, constant = written
        attribute, kind = divmod(code, LEAF_KINDS)
        keys, tested = Keys(computed.schema), attribute if term is None else term
        if kind in {PRESENT, ABSENT}:
            return "present" if kind == PRESENT else "absent", tested
        if kind in {ONE_OF, NONE_OF}:
            name = "in" if kind == ONE_OF else "not in"
            return name, tested, tuple(sorted(constants(attribute, constant, keys)))
        return kind, tested, constants(attribute, [constant], keys)[0]

    found = {}
    for handle, one in some:
        parts = tuple(map(leaf, one.codes, one.constants))
        if is_conjunction(one.shape):
            found[handle] = (), parts
        else:
            operands, targets = shape_steps(one.shape)
            found[handle] = targets, tuple(parts[o] if o >= 0 else o for o in operands)
    return found


def check(interned):
    """Everything in order, nothing twice, and nothing that nobody uses."""
    of = interned.predicates
    known = read(interned)
    used = {leaf for _, parts in known.values() for leaf in parts if leaf.__class__ is tuple}
    for attribute, cuts in enumerate(of.cuts):
        values = cut_list(cuts)
        assert all(one < other for one, other in pairwise(values))
        mine = home(attribute, of)
        asked = {leaf[2] for leaf in used if leaf[0] not in {"in", "not in", "test"}
                 and len(leaf) > 2 and leaf[1] == mine}  # fmt: skip
        asked |= {v for leaf in used if leaf[0] in {"in", "not in"} and leaf[1] == mine
                  for v in leaf[2]}  # fmt: skip
        assert set(values) == asked
        assert of.starts[attribute + 1] > of.starts[attribute] + len(values)
        numbers = np.arange(of.starts[attribute], of.starts[attribute + 1]) * REF_KINDS
        assert set(of.attributes_of(numbers).tolist()) == {attribute}
    for name, sets in (("in", of.in_sets), ("not in", of.out_sets)):
        found = [(name, *members(of, sets, place)) for place in range(len(sets.attributes))]
        assert len(set(found)) == len(found)
        assert set(found) == {leaf for leaf in used if leaf[0] == name}
        assert all(list(held) == sorted(set(held)) for *_, held in found)
    assert (np.diff(of.out_sets.attributes) >= 0).all()
    assert len(set(of.tests)) == len(of.tests) == len(of.test_attributes)
    assert set(of.tests) == {leaf[1] for leaf in used if leaf[0] == "test"}
    assert of.listed == len(of.in_sets.attributes) + len(of.tests) + len(of.out_sets.attributes)
    assert of.size == of.base + of.listed
    assert (of.attributes_of(np.arange(of.base, of.size) * REF_KINDS) == -1).all()


def sizes(interned):
    of = interned.predicates
    return (
        [len(cuts) for cuts in of.cuts],
        len(of.in_sets.attributes),
        len(of.tests),
        len(of.out_sets.attributes),
    )


# --- from leaves


@pytest.mark.long
@given(st.lists(filters(), min_size=1, max_size=12))
@settings(max_examples=35)
def test_any_filters(texts):
    some = leaves(texts, SCHEMA)
    if some:
        interned = intern_filters(some, Keys(SCHEMA))
        assert read(interned) == expected(some, SCHEMA)
        check(interned)


def test_the_same_predicate_is_held_once():
    interned = made(["x > 3 AND s = 'a'", "x > 3", "s = 'a' OR x <= 3", "NOT x <= 3", "s < 'a'"])
    assert sizes(interned) == ([0, 1, 1, 0, 0], 0, 0, 0)
    check(interned)


def test_sets_are_held_once():
    interned = made([
        "i IN (1, 2)", "i IN (2, 1, 1)", "NOT i IN (1, 2)", "x IN (1, 2)", "i IN (1, 2, 3)",
        "s IN ('a', 'b')", "i NOT IN (2, 1) AND x > 2", "i = 1 OR i = 2",
    ])  # fmt: skip
    counts, inside, tests, outside = sizes(interned)
    assert counts == [3, 2, 2, 0, 0]
    assert (inside, tests, outside) == (4, 0, 1)
    check(interned)


def test_doubles_that_are_equal_are_one():
    interned = made(["x = 0.0D", "x < -0.0D", "x IN (0, -0.0D, 5)", "x > 0"])
    assert sizes(interned)[0] == [0, 2, 0, 0, 0]
    check(interned)


def test_tests_are_held_once_and_with_their_attribute():
    interned = made(["s LIKE 'a%'", "s LIKE 'a%' AND i > 1", "NOT s LIKE 'a%'", "x > i", "i < x",
                     "s RLIKE 'a'", "side LIKE 'b%'"])  # fmt: skip
    of = interned.predicates
    homes = dict(zip(map(str, of.tests), of.test_attributes, strict=True))
    assert len(homes) == len(of.tests)
    assert sorted(homes.values()).count(POSITIONS["s"]) == 3
    assert len(of.terms) == 2  # tests of several attributes
    check(interned)


def test_sets_that_exclude_come_by_attribute():
    texts = [f"{name} NOT IN ({one}, {two})" for one, two in (("1", "2"), ("3", "1"), ("0", "1"))
             for name in ("x", "i")]  # fmt: skip
    texts = ["s NOT IN ('b', 'a')", *texts, "side NOT IN ('buy', 'sell') OR i > 0"]
    some = leaves(texts)
    interned = intern_filters(some, Keys(SMALL))
    attributes = interned.predicates.out_sets.attributes.tolist()
    assert attributes == sorted(attributes)
    assert read(interned) == expected(some)
    check(interned)
    numbering = interned.predicates.numbering(np.zeros(len(SMALL), np.int64))
    of = interned.predicates
    for attribute in range(len(SMALL)):
        first, end = numbering.absent_from[attribute : attribute + 2] - of.first_out
        assert set(attributes[first:end]) <= {attribute}
    assert numbering.absent_from[0] == of.first_out
    assert numbering.absent_from[-1] == of.listed


def test_presence_needs_no_cut():
    interned = made(["i IS NULL", "s IS NOT NULL", "b IS NULL AND side IS NULL"])
    assert sizes(interned) == ([0] * 5, 0, 0, 0)
    check(interned)


def test_members_of_sets_lead_to_their_sets():
    interned = made(["i IN (1, 2)", "i IN (2, 3)", "i NOT IN (2, 9)", "s IN ('a', 'b')"])
    of = interned.predicates
    numbering = of.numbering(np.zeros(len(SMALL), np.int64))
    found = {}
    for place, cut in enumerate(numbering.set_cuts.tolist()):
        found[cut] = numbering.set_numbers[
            numbering.set_at[place] : numbering.set_at[place + 1]
        ].tolist()
    first = int(of.starts[0]) + 1
    assert {cut - first: len(sets) for cut, sets in found.items() if cut < of.starts[1]} == {
        0: 1, 1: 3, 2: 1, 3: 1,
    }  # fmt: skip
    assert (np.diff(numbering.set_cuts) > 0).all()


# --- from segments


@given(st.lists(st.lists(filters(depth=2), min_size=1, max_size=6), min_size=1, max_size=4))
@settings(max_examples=35)
def test_any_parts_together(several):
    some, parts = [], []
    for number, texts in enumerate(several):
        mine = leaves(texts, SCHEMA, first=100 * number)
        if mine:
            some += mine
            parts.append(intern_filters(mine, Keys(SCHEMA)))
    if not parts:
        return
    together = combine(parts)
    assert read(together) == expected(some, SCHEMA)
    check(together)
    again = combine([together])
    assert read(again) == read(together)
    check(again)


def test_the_same_predicates_of_several_parts_are_one():
    texts = ["i > 3 AND s = 'a'", "x IN (1, 2)", "s LIKE 'a%'", "i NOT IN (1, 2)", "x > i"]
    one, other = made(texts), made(texts, first=10)
    together = combine([one, other])
    assert sizes(together) == sizes(one)
    assert read(together) == read(one) | read(other)
    check(together)


def test_predicates_that_nobody_uses_are_dropped():
    texts = [f"i > {n} AND s = 'T{n}' AND x IN ({n}, {n + 1})" for n in range(20)]
    texts += [f"s LIKE '%{n}' OR i NOT IN ({n}, 99)" for n in range(20)]
    interned = made(texts)
    tables = {
        width: table._replace(handles=table.handles[:2], refs=table.refs[:2])
        for width, table in interned.tables.items()
    }
    formulas = interned.formulas.taken(np.arange(2))
    for parts in ([], [made(["i > 50"], first=50)]):
        less = combine([interned._replace(tables=tables, formulas=formulas), *parts])
        check(less)
        kept = [0, 1, 20, 21]
        known = read(interned)
        assert {h: known[h] for h in kept}.items() <= read(less).items()
        assert sizes(less)[1:] == (2, 2, 2)


def test_sets_of_several_parts():
    """Numbers of members differ from part to part; the sets are the same."""
    one = made(["i IN (5, 7)", "i NOT IN (5, 7)", "s IN ('b', 'd')"])
    other = made(["i IN (5, 7) AND i > 1", "i NOT IN (5, 7) AND i < 6", "s IN ('b', 'd')",
                  "s > 'a' OR s NOT IN ('c', 'b')"], first=10)  # fmt: skip
    together = combine([one, other])
    assert sizes(together)[1:] == (2, 0, 2)
    assert read(together) == read(one) | read(other)
    check(together)


def test_excluding_sets_of_several_parts_come_by_attribute():
    parts = [
        made([f"{name} NOT IN (1, {n})"], first=n)
        for n, name in enumerate(["x", "i", "x", "i", "i"], start=5)
    ]
    together = combine(parts)
    assert together.predicates.out_sets.attributes.tolist() == [0, 0, 0, 1, 1]
    assert read(together) == {h: leaf for part in parts for h, leaf in read(part).items()}
    check(together)


def test_strings_are_in_the_order_of_their_bytes():
    """Of UTF-8, which is that of code points."""
    words = ["\uffff", "😀", "é", "a", "", "b", "a\x00", "\ue000", "ab"]
    one, other = (made([f"s = '{w}'" for w in part], first=f)
                  for part, f in ((words[:5], 0), (words[3:], 10)))  # fmt: skip
    for interned in (one, other, combine([one, other])):
        values = cut_list(interned.predicates.cuts[POSITIONS["s"]])
        assert values == sorted(values)
        check(interned)


def test_parts_without_strings():
    together = combine([made(["i > 1"]), made(["s > 'a'"], first=5), made(["s IS NULL"], first=9)])
    assert cut_list(together.predicates.cuts[POSITIONS["s"]]) == ["a"]
    check(together)


@pytest.mark.parametrize("homes", [1, 4, 64, 4096])
def test_numbers_find_their_attribute(monkeypatch, homes):
    monkeypatch.setattr(predicates_module, "HOMES", homes)
    one = made([f"i > {n} AND x < {n % 7} AND s <> 'T{n % 5}'" for n in range(90)])
    other = made([f"i > {n} AND b AND i IN ({n}, 3)" for n in range(50, 99)], first=200)
    for interned in (one, other, combine([one, other])):
        check(interned)
        assert (interned.predicates.starts % (1 << interned.predicates.shift) == 0).all()
        assert len(interned.predicates.number_owners.attributes) <= 2 * homes + 5
    assert read(combine([one, other])) == read(one) | read(other)


def test_too_many_constants(monkeypatch):
    monkeypatch.setattr(predicates_module, "MOST_CUTS", 20)
    texts = [f"i > {n}" for n in range(13)]
    made(texts)
    with pytest.raises(CapacityError, match="up to 20 distinct constants"):
        made([*texts, "x IN (1, 2, 3)"])
    with pytest.raises(CapacityError):
        combine([made(texts[:8]), made(["x > 1", "x > 2"], first=20), made(texts[6:], first=30)])


def test_bytes_are_counted():
    few, many = (made([f"i > {n} AND s = 'T{n}'" for n in range(size)]) for size in (5, 500))
    assert 0 < few.predicates.nbytes() < many.predicates.nbytes()
    assert many.predicates.nbytes() < 500 * 100


def test_no_sets():
    sets = sets_of([])
    assert [part.tolist() for part in sets] == [[], [0], []]
    nothing = SegmentPredicates.of([np.empty(0, np.int64)], sets, [], sets, [])
    assert (nothing.base, nothing.listed, nothing.size) == (1, 0, 1)
