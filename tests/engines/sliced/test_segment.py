"""Compiled segments: how filters are laid out, what is left of them, and who is gone."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from interned import interned
from stocks import SMALL, stock_filters
from strategies import SCHEMA, filters
from tamis import parse
from tamis.engines import make_engine
from tamis.engines.sliced import layout, segment
from tamis.engines.sliced.combination import combine
from tamis.engines.sliced.expected_shares import ExpectedShares
from tamis.engines.sliced.interning import intern_filters
from tamis.engines.sliced.layout import column_places, distinct_up_to, lay_out, table_of
from tamis.engines.sliced.leaves import leaves_of
from tamis.engines.sliced.segment import Segment
from tamis.engines.sliced.segment_merges import merged_with_new
from tamis.engines.sliced.segment_predicates import Texts
from tamis.kernels.formula_steps import ENOUGH, NO_GATE, TRACKS
from tamis.kernels.programs import ALIVE, FORMULAS, MIXED
from tamis.kernels.simd_rows import LANES
from tamis.kernels.value_classes import REF_KINDS
from tamis.predicates.keys import Keys
from tamis.semantics import Semantics

POSITIONS = {name: place for place, name in enumerate(SMALL)}


def compiled(texts, **how):
    return Segment.compile(interned(texts, **how))


def cut_of(number, of):
    """The attribute or term of a number, and its cut; none where it stands for presence."""
    attribute = int(np.searchsorted(of.starts, number, side="right")) - 1
    cuts, place = of.cuts[attribute], number - int(of.starts[attribute]) - 1
    first = len(of.cuts) - len(of.terms)
    if attribute >= first:
        attribute = repr(of.terms[attribute - first])
    if place < 0:
        return attribute, None
    known = cuts.to_arrow() if isinstance(cuts, Texts) else cuts
    return attribute, known[place].as_py() if isinstance(cuts, Texts) else int(known[place])


def said(ref, of):
    """What a reference stands for, whatever its number."""
    number, kind = divmod(int(ref), REF_KINDS)
    if number < of.base:
        return kind, *cut_of(number, of)
    place = number - of.base
    for sets, first in ((of.in_sets, 0), (of.out_sets, of.first_out)):
        if first <= place < first + len(sets.attributes):
            start, end = sets.at[place - first : place - first + 2]
            members = [cut_of(int(member), of) for member in sets.members[start:end]]
            return "in" if first == 0 else "not in", *members
    return "test", str(of.tests[place - of.first_test])


def meaning(some):
    """Filters, conjunctions up to the order of their predicates, which a layout may change."""
    found = {}
    for table in some.tables.values():
        for handle, refs in zip(table.handles.tolist(), table.refs.tolist(), strict=True):
            assert handle not in found
            found[handle] = sorted([said(ref, some.predicates) for ref in refs], key=repr)
    of = some.formulas
    for handle, first, end in zip(of.handles.tolist(), of.at[:-1], of.at[1:], strict=True):
        assert handle not in found
        operands = of.operands[first:end].reshape(-1).tolist()
        parts = [said(o, some.predicates) if o >= 0 else o for o in operands]
        found[handle] = of.targets[first:end].tolist(), parts
    return found


def chunks_of(made):
    """Each chunk of conjunctions: its shape, its group, and its references by member."""
    programs = made.programs
    for number in range(len(made.widths)):
        table = table_of(programs, number, made.handles)
        bounds = programs.chunk_bounds[number].tolist()
        assert bounds == sorted(bounds)
        first = int(programs.subs[number])
        for chunk in range(bounds[0], bounds[3]):
            start, end = (int(n) - first for n in programs.chunk_subs[chunk : chunk + 2])
            group = sum(chunk >= bound for bound in bounds[1:3])
            yield number, group, chunk, table.refs[start:end]


def check(made, source):
    """The order of evaluation is what it says."""
    programs, predicates = made.programs, source.predicates
    shares = ExpectedShares(source)
    known = sorted(meaning(source))
    assert made.handles.tolist() == known
    assert sorted(programs.slots.tolist()) == list(range(len(known)))
    assert meaning(made.filters()) == meaning(source)
    assert programs.subs[-1] == programs.chunk_subs[-1] == len(known)
    assert (np.diff(programs.chunk_subs) > 0).all()
    assert (np.diff(programs.chunk_subs) <= LANES).all()
    assert len(programs.refs) == sum(t.refs.size for t in source.tables.values()) + LANES
    by_access, signed, groups = {}, {}, {}
    for number, group, chunk, refs in chunks_of(made):
        expected = shares.of(refs)  # the most selective one leads
        assert (expected[:, 0] == expected.min(axis=1)).all()
        access = (shares.of(refs[:, 0]) < layout.SELECTIVE) & shares.findable(refs[:, 0])
        assert (access == (group == 0)).all()
        if group < 2:
            (first,) = set(refs[:, 0].tolist())
            by_access.setdefault((first, number, group), []).append(chunk)
        for ref in refs[:, 0].tolist():
            groups.setdefault((ref, number), []).append(group)
        codes = predicates.attributes_of(refs).astype(np.int64) * REF_KINDS + refs % REF_KINDS
        alike = (codes == codes[0]).all() and (codes[0] >= 0).all()
        assert (programs.signatures[chunk] != MIXED) == alike
        if alike:
            mine = signed.setdefault(int(programs.signatures[chunk]), (number, *codes[0].tolist()))
            assert mine == (number, *codes[0].tolist())
    assert len(set(signed.values())) == len(signed)
    for found in groups.values():  # all of a first predicate, or none
        assert len(set(found)) == 1
        if found[0]:
            assert (found[0] == 1) == (len(found) >= layout.COMMON)
    for (_, _, group), chunks in by_access.items():
        assert chunks == list(range(chunks[0], chunks[-1] + 1))
        assert group == 0 or sum(np.diff(programs.chunk_subs)[chunks]) >= layout.COMMON
    if source.formulas.size:
        by_access |= check_formulas(made, source, shares)
    listed = zip(programs.access.tolist(), programs.access_shapes.tolist(),
                 programs.access_chunks.tolist(), strict=True)  # fmt: skip
    assert sorted(listed) == sorted(
        (ref, number, chunks[0]) for (ref, number, group), chunks in by_access.items() if group == 0
    )
    assert programs.access.tolist() == sorted(programs.access.tolist())
    distinct = {ref for table in source.tables.values() for ref in table.refs.ravel().tolist()}
    often = sum(  # references that every event needs
        int(programs.chunk_subs[end] - programs.chunk_subs[first]) * int(width)
        for (_, first, _, end), width in zip(programs.chunk_bounds, programs.widths, strict=True)
    )
    are_named = len(distinct) <= min(layout.NAMED, often)
    assert programs.named.tolist() == (sorted(distinct) if are_named else [])


def check_formulas(made, source, shares):
    """The chunks of formulas are ordered by their gates; returns the clusters by access."""
    programs, steps, by_access = made.programs, made.steps, {}
    assert programs.widths[-1] == FORMULAS
    shape = len(programs.widths) - 1
    bounds = programs.chunk_bounds[shape].tolist()
    assert len(steps.gates) == bounds[3] - bounds[0]
    assert steps.tested.tolist() == sorted({*source.formulas.references().tolist()})
    assert len(steps.steps_at) == TRACKS * len(steps.gates) + 1
    assert (np.diff(steps.steps_at) >= 0).all()
    for place, gate in enumerate(steps.gates.tolist()):
        group = sum(bounds[0] + place >= bound for bound in bounds[1:3])
        assert (gate == NO_GATE) == (group == 2)
        if gate != NO_GATE:
            ref = steps.tested[[gate // 2]]
            rare = (shares.of(ref) < layout.SELECTIVE) & shares.findable(ref)
            assert (group == 0) == bool(rare[0] and gate % 2 != ENOUGH)
            key = int(ref[0]), shape, group if gate % 2 != ENOUGH else "enough"
            by_access.setdefault(key, []).append(bounds[0] + place)
    for (_, _, group), chunks in by_access.items():
        assert chunks == list(range(chunks[0], chunks[-1] + 1))
        assert group == 0 or sum(np.diff(programs.chunk_subs)[chunks]) >= layout.COMMON
    return by_access


# --- layout


@pytest.mark.long
@given(st.lists(filters(), min_size=1, max_size=25), st.sampled_from([0, 5, 4096]))
@settings(max_examples=30)
def test_any_filters(texts, named):
    source = interned(texts, SCHEMA, step=3)
    if source is None:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "NAMED", named)
        patch.setattr(layout, "COMMON", 3)
        patch.setattr(layout, "SELECTIVE", 0.3)
        check(Segment.compile(source), source)


@each("size", [1, 2, 15, 16, 17, 63, 64, 65, 129, 400])
@each(
    "text",
    ["i = {} AND x > {}", "side = 'buy' AND i < {}", "x > {} AND i < {}", "i < {} OR x > {}",
     "s LIKE '%{}' AND b", "b AND (i < {} OR s = '{}')"],
)  # fmt: skip
def test_as_many_of_a_shape_as_fill_chunks(size, text):
    for distinct in (3, 1000):
        source = interned([text.format(n % distinct, n % 7) for n in range(size)], step=2)
        check(Segment.compile(source), source)


def test_stock_filters():
    source = interned(stock_filters(1, 600))
    made = Segment.compile(source)
    check(made, source)
    assert len(made.programs.access) > 10
    again = Segment.compile(made.filters())
    assert meaning(again.filters()) == meaning(source)
    for one, other in zip(made.programs, again.programs, strict=True):
        assert one.dtype == other.dtype


def test_the_most_selective_predicate_leads():
    texts = [f"x > 1 AND b AND s = 'T{n % 40}' AND i <> 3" for n in range(80)]
    made = compiled(texts)
    assert len(made.programs.access) == 40
    assert made.programs.chunk_bounds.tolist() == [[0, 40, 40, 40]]
    assert np.diff(made.programs.chunk_subs).tolist() == [2] * 40


def test_the_kinds_that_are_used():
    source = interned(["i = 1", "i > 2", "x < 3 AND s IS NULL", "b NOT IN (TRUE, FALSE)"])
    made = Segment.compile(source)
    masks = {name: int(made.masks[place]) for name, place in POSITIONS.items()}
    assert masks["side"] == 0
    assert all(masks[name] for name in ("i", "x", "s"))
    assert POSITIONS["side"] not in made.used.tolist()
    sets = compiled(["side IN ('buy', 'sell')", "x NOT IN (1, 2)"])
    assert sets.used.tolist() == [POSITIONS["x"], POSITIONS["side"]]


def test_columns_of_chunks():
    places = column_places(np.array([0, 3]), np.array([3, 2]), 2)
    assert places.tolist() == [[0, 3], [1, 4], [2, 5], [6, 8], [7, 9]]
    assert sorted(places.ravel().tolist()) == list(range(10))


@each("size", [0, 1, 3, 1 << 16, (1 << 16) + 1, 200_000])
def test_distinct_numbers_up_to_some(size):
    numbers = (np.arange(size, dtype=np.int32) * 7) % 50
    assert distinct_up_to(numbers, 50).tolist() == sorted(set(numbers.tolist()))
    assert distinct_up_to(np.arange(size, dtype=np.int32), 4).tolist() == (
        list(range(size)) if size <= 4 else []
    )
    assert distinct_up_to(numbers, 50).dtype == np.int32
    assert distinct_up_to(numbers, 0).tolist() == []


# --- handles


@each(
    ("first", "step", "kind", "gapless"),
    [(0, 1, np.int32, True), (7, 1, np.int32, True), (0, 2, np.int32, False),
     (2**31 - 9, 1, np.int32, True), (2**31 - 8, 1, np.int64, False), (2**40, 3, np.int64, False)],
)  # fmt: skip
def test_handles_of_32_bits_where_they_fit(first, step, kind, gapless):
    made = compiled([f"i > {n}" for n in range(9)], first=first, step=step)
    assert made.handles.dtype == kind
    assert made.is_gapless == gapless
    assert made.handles.tolist() == [first + step * n for n in range(9)]
    for slot, handle in enumerate(made.handles.tolist()):
        assert made.find(handle) == slot
    for handle in (-1, first - 1, first + 9 * step, 2**31, 2**40 - 1, 2**63 - 1, 0, 2**31 - 1):
        expected = (handle - first) // step if handle in made.handles.tolist() else -1
        assert made.find(handle) == expected


def test_handles_come_in_any_order():
    meaning_, keys = Semantics("sql", SMALL), Keys(SMALL)
    texts = ["i > 1 AND x > 1", "i > 2", "i > 3 OR b", "i > 4 AND x > 4"]
    some = [(h, leaves_of(parse(t, SMALL), meaning_)) for h, t in zip([9, 2, 7, 4], texts,
                                                                       strict=True)]  # fmt: skip
    source = intern_filters(some, keys)
    made = Segment.compile(source)
    assert made.handles.tolist() == [2, 4, 7, 9]
    check(made, source)


# --- who is gone


def test_nobody_is_gone_at_first():
    made = compiled([f"i > {n}" for n in range(100)])
    assert (made.dead, len(made), made.died.nbytes) == (0, 100, 0)


def test_the_time_of_death_is_kept():
    made = compiled([f"i > {n} AND x < {n}" for n in range(100)], step=3)
    for time, slot in enumerate([5, 99, 0], start=10):
        made.kill(slot, time)
        assert made.find(3 * slot) == -1
    assert (made.dead, len(made)) == (3, 97)
    assert made.died[[5, 99, 0, 1]].tolist() == [10, 11, 12, ALIVE]
    for now, gone in ((9, []), (10, [15]), (11, [15, 297]), (12, [15, 297, 0]), (99, [15, 297, 0])):
        left = {3 * n for n in range(100)} - set(gone)
        assert set(meaning(made.filters(now))) == left
    assert len(meaning(made.filters())) == 97


def test_a_shape_of_which_all_are_gone_is_left_out():
    made = compiled(["i > 1", "i > 2 AND b", "i > 3 OR b", "i > 4"])
    made.kill(1, 5)
    assert (len(made.filters(4).tables), made.filters(4).formulas.size) == (2, 1)
    assert (len(made.filters(5).tables), made.filters(5).formulas.size) == (1, 1)
    for slot in (0, 2, 3):
        made.kill(slot, 6)
    assert made.filters().tables == {}
    assert made.filters().size == 0
    assert len(made) == 0


@given(texts=st.lists(filters(depth=2), min_size=1, max_size=12), data=st.data())
@settings(max_examples=30)
def test_there_and_back_again(texts, data):
    """Compiled, partly gone, compiled again alone and with others: filters mean the same."""
    source = interned(texts, SCHEMA)
    if source is None:
        return
    known = meaning(source)
    made = Segment.compile(source)
    gone = data.draw(st.lists(st.sampled_from(sorted(known)), unique=True))
    for time, handle in enumerate(gone):
        made.kill(made.find(handle), time)
    left = {handle: filter_ for handle, filter_ in known.items() if handle not in gone}
    assert meaning(made.filters()) == left
    if left:
        alone = Segment.compile(made.filters())
        assert meaning(alone.filters()) == left
        other = interned(["i > 1 AND s = 'q'", "x IN (3, 4)"], SCHEMA, first=1000)
        united = combine([made.filters(), other])
        both = Segment.compile(united)
        check(both, united)
        assert meaning(both.filters()) == left | meaning(other)


# --- the order of events


def test_the_attribute_whose_value_most_filters_ask_for():
    by_ticker = [f"s = 'T{n % 40}' AND x > {n}" for n in range(80)]
    by_number = [f"i = {n % 40} AND x > {n}" for n in range(80)]
    assert compiled(by_ticker).sorted_by == POSITIONS["s"]
    assert compiled([*by_ticker, *by_number[:60]]).sorted_by == POSITIONS["s"]
    assert compiled([*by_ticker[:60], *by_number]).sorted_by == POSITIONS["i"]
    assert compiled([f"i > {n}" for n in range(80)]).sorted_by is None
    assert compiled(["s = 'a'", "s = 'b'"]).sorted_by is None  # not selective
    ranges = [f"i > {n} AND x < {n}" for n in range(300)]
    assert compiled([*by_ticker, *ranges]).sorted_by is None
    assert compiled([f"s LIKE '%{n}'" for n in range(80)]).sorted_by is None


@pytest.mark.parametrize("named", [0, 4096])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_the_share_from_which_events_are_sorted(monkeypatch, named, share):
    monkeypatch.setattr(layout, "NAMED", named)
    monkeypatch.setattr(segment, "SORTED", share)
    texts = [f"s = 'T{n % 40}'" for n in range(60)] + [f"i > {n}" for n in range(40)]
    assert compiled(texts).sorted_by == (POSITIONS["s"] if share < 0.6 else None)


# --- sizes


def test_bytes_are_counted():
    small, large = (compiled([f"i > {n} AND s = 'T{n}'" for n in range(size)]) for size in (9, 900))
    assert 0 < small.nbytes() < large.nbytes() < 900 * 120
    before = large.nbytes()
    large.kill(0, 1)
    assert large.nbytes() == before + 8 * 900


def test_room_for_the_deepest_and_widest():
    made = compiled(["i > 1", "i > 1 AND x > 2", "i > 1 AND (x > 1 OR (b AND s = 'a'))"])
    assert made.widest == 2
    assert made.values == len(made.steps.tested) + LANES + 1  # one register, on the first track
    assert compiled(["i > 1 AND x > 2 AND b"]).values == LANES


def test_chunks_follow_each_other():
    source = interned(stock_filters(5, 300))
    programs, _, handles, masks = lay_out(source)
    assert all(one[3] == other[0] for one, other in pairwise(programs.chunk_bounds.tolist()))
    assert (np.diff(handles) > 0).all()
    assert len(masks) == len(SMALL) + len(source.predicates.terms)


# --- which become one


@each(
    ("sizes", "new", "merged"),
    [([], 1, 0), ([1], 1, 1), ([4], 1, 0), ([3], 1, 1), ([100, 20, 3], 1, 1), ([100, 20, 4], 1, 0),
     ([100, 25, 5], 2, 3), ([1000, 100, 10], 300, 3), ([2000, 100, 10], 300, 2), ([5], 0, 0)],
)  # fmt: skip
def test_which_segments_are_merged_with_new_ones(sizes, new, merged):
    segments = [range(size) for size in sizes]
    assert merged_with_new(segments, new) == segments[len(segments) - merged :]


@each("one_by_one", [True, False])
@each("sizes", [[1], [7], [1, *[10] * 80], [3, *[40] * 80], [20, 1, 5] * 30])
def test_however_they_come_segments_are_few(sizes, one_by_one):
    tested = make_engine("sliced", Semantics("sql", SMALL), {"threads": 1})
    ready = tested.prepare(parse("i > 0 AND x > 0", SMALL))
    held = 0
    for size in sizes:
        bulk = tested.bulk(size)
        for handle in range(held, held + size):
            (tested.add if one_by_one else bulk.put)(handle, ready)
        bulk.commit([])
        held += size
        assert len(tested.match((1, 1.0, None, None, None))) == held
        assert len(tested.segments) <= 2 + np.log2(held)
