"""Segments as named arrays and back."""

import json
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from stocks import SMALL, stock_filters, stock_rows
from strategies import SCHEMA, delicate_rows, filters, rows
from tamis import ExpressionError, FileError, parse
from tamis.engines import make_engine
from tamis.engines.sliced import segment_sections
from tamis.engines.sliced.layout import WidthArrays
from tamis.engines.sliced.leaves import TEST, leaves_of
from tamis.engines.sliced.segment_sections import SectionSource, from_sections, to_sections
from tamis.kernels.value_classes import REF_KINDS
from tamis.predicates.event_batches import batch_of_rows
from tamis.semantics import NAMES, Semantics

MIXED = [*stock_filters(1, 150), "s LIKE 'T1%' AND s RLIKE '7$'", "x > i OR lower(s) = 't3'"]


class Held:
    """An engine of one segment, and the filters by handle."""

    def __init__(self, texts, semantics="sql", schema=SMALL, handles=None, defaults=None):
        self.meaning = Semantics(semantics, schema, defaults)
        self.engine = make_engine("sliced", self.meaning)
        self.expressions = {}
        for handle, text in zip(handles or range(len(texts)), texts, strict=True):
            expression = parse(text, schema)
            self.engine.add(handle, self.engine.prepare(expression))
            self.expressions[handle] = expression
        self.engine.merge_all()

    def drop(self, handles):
        for handle in handles:
            self.engine.remove(handle)
            del self.expressions[handle]
        self.engine.merge_all()
        return self

    @property
    def segment(self):
        return self.engine.whole()[1]

    def stored(self):
        """The sections, under handles from 0 on."""
        segment = self.segment
        handles = np.arange(len(segment.handles), dtype=np.int32)
        return to_sections(segment, handles, self.expressions.__getitem__, self.meaning)

    def expression_of(self, number):
        return self.expressions[int(self.segment.handles[number])]


def loaded(held, stored=None, expression_of=None):
    """The segment that comes back, in an engine of its own."""
    meta, sections = stored or held.stored()
    source = SectionSource(
        sections.__getitem__, len(held.segment.handles), expression_of or held.expression_of,
        nullcontext, is_trusted=False,
    )  # fmt: skip
    segment = from_sections(json.loads(json.dumps(meta)), source, held.meaning)
    engine = make_engine("sliced", held.meaning)
    engine.hold_bulk(segment, {}, ())
    return engine


def check(held, some, stored=None):
    engine, old = loaded(held, stored), held.segment.handles
    asked = [held.meaning.prepare(row) for row in some]
    batch = batch_of_rows(asked, held.meaning.schema)
    always = {h for h, answer in held.engine.whole()[0].items() if answer}
    expected = [
        [handle for handle in held.engine.match(row).tolist() if handle not in always]
        for row in asked
    ]
    for find in (
        lambda: [engine.match(row) for row in asked],
        lambda: engine.match_many(asked),
    ):
        assert [old[found].tolist() for found in find()] == expected
    counts = engine.count_batch(batch)
    assert counts.tolist() == [len(found) for found in expected]
    return engine


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@given(texts=st.lists(filters(), min_size=1, max_size=6), some=st.lists(rows(), max_size=3))
@settings(max_examples=12)
def test_any_filters(name, texts, some):
    taken = []
    for text in texts:
        try:
            leaves_of(parse(text, SCHEMA), Semantics("sql", SCHEMA))
            taken.append(text)
        except ExpressionError:
            continue
    defaults = dict(zip(SCHEMA, delicate_rows()[7], strict=True)) | {"x": None, "at": "2024-01-01"}
    defaults = defaults | {"until": None} if name == "default" else None
    held = Held(taken, name, SCHEMA, defaults=defaults)
    if held.segment is None:
        return
    whole = delicate_rows()[3]
    check(held, [
        tuple(w if v is None and name == "total" else v for v, w in zip(row, whole, strict=True))
        for row in [*some, *delicate_rows()[:5]]
    ])  # fmt: skip


@each("handles", [range(152), range(7, 159), range(0, 304, 2), [2**40 + 3 * n for n in range(152)]])
def test_handles_are_given_anew(handles):
    held = Held(MIXED, handles=list(handles))
    engine = check(held, stock_rows(1, 40))
    assert engine.segments[0].handles.tolist() == list(range(152))
    assert engine.segments[0].handles.dtype == np.int32


def test_nothing_but_what_a_file_can_hold():
    meta, sections = Held(MIXED).stored()
    assert json.loads(json.dumps(meta)) == meta
    assert meta["layout"] == segment_sections.LAYOUT
    for array in sections.values():
        assert isinstance(array, np.ndarray)
        assert array.dtype.str[1:] in {"u1", "i1", "i2", "i4", "i8", "u8"}


def test_the_arrays_are_used_where_they_lie():
    held = Held(MIXED)
    stored = held.stored()
    engine = check(held, stock_rows(1, 5), stored)
    segment = engine.segments[0]
    for name, array in segment.programs._asdict().items():
        if name in WidthArrays._fields:
            continue
        assert np.shares_memory(array, stored.sections[f"programs.{name}"]) or not array.size
    for name, array in segment.steps._asdict().items():
        assert np.shares_memory(array, stored.sections[f"steps.{name}"])
    for name, array in segment.predicates.flat._asdict().items():
        assert np.shares_memory(array, stored.sections[f"cuts.{name}"]) or not array.size
    assert segment.handles is stored.sections["handles"]


def test_the_arrays_are_not_written_to():
    held = Held(MIXED)
    stored = held.stored()
    before = {name: array.copy() for name, array in stored.sections.items()}
    engine = check(held, stock_rows(1, 600), stored)
    for handle in range(100):
        engine.remove(handle)
        engine.match(stock_rows(1, 1)[0])
    engine.merge_all()
    for name, array in stored.sections.items():
        assert np.array_equal(array, before[name]), name


def test_what_is_stored_again_is_the_same():
    held = Held(MIXED)
    meta, sections = held.stored()
    segment = loaded(held, (meta, sections)).segments[0]
    handles = segment.handles.astype(np.int32)
    again = to_sections(segment, handles, held.expression_of, held.meaning)
    assert again.meta == meta
    assert again.sections.keys() == sections.keys()
    for name, array in again.sections.items():
        assert np.array_equal(array, sections[name]), name


# --- tests


def test_tests_are_made_when_they_are_needed():
    held = Held(["i > 5", "s LIKE 'T1%'", "i > 6", "s LIKE 'T1%' AND i > 7", "x > i"])
    asked = []
    engine = loaded(held, expression_of=lambda n: asked.append(n) or held.expression_of(n))
    assert asked == []
    engine.match(stock_rows(1, 1)[0])
    engine.match(stock_rows(2, 1)[0])
    assert len(asked) == 2
    assert set(asked) <= {1, 3, 4}


def test_sources_lead_to_their_tests():
    held = Held(MIXED)
    _, sections = held.stored()
    predicates = held.segment.predicates
    sources = sections["tests.sources"].reshape(-1, 2).tolist()
    assert len(sources) == len(predicates.tests) == len(sections["tests.attributes"])
    assert predicates.tests
    for (number, place), test in zip(sources, predicates.tests, strict=True):
        leaves = leaves_of(held.expression_of(number), held.meaning)
        assert leaves.constants[place] == test
        assert leaves.codes[place] % 16 == TEST


def test_no_tests_at_all():
    held = Held(["i > 5", "s = 'a'", "i IN (1, 2)"])
    _, sections = held.stored()
    assert sections["tests.sources"].shape == (0,)
    check(held, stock_rows(1, 20))


def test_tests_of_filters_that_are_gone():
    held = Held(["i > 0", "s LIKE 'T1%'", "s LIKE 'T2%' AND i > 0"]).drop([1])
    check(held, stock_rows(1, 20))


def test_filters_with_the_same_test_in_other_places():
    texts = [f"i > {n} AND s LIKE 'T{n % 3}%' AND (b OR x > i)" for n in range(20)]
    texts += [f"s LIKE 'T{n % 3}%' OR i = {n}" for n in range(20)]
    texts += ["s LIKE 'T1%' AND s LIKE 'T1%' AND i > 0", "NOT (s LIKE 'T1%' AND s LIKE 'T2%')"]
    check(Held(texts), stock_rows(4, 60))


# --- what does not fit


@each("layout", [None, 0, segment_sections.LAYOUT + 1, "1"])
def test_another_layout(layout):
    held = Held(["i > 0"])
    meta, sections = held.stored()
    for other in ({"layout": layout}, {} if layout is None else {"layout": layout}):
        with pytest.raises(FileError, match="'layout' do not fit together; save the file again"):
            loaded(held, ({"widths": meta["widths"]} | other, sections))


@each(
    ("name", "change"),
    [
        ("programs.slots", lambda a: a[:-1]),
        ("handles", lambda a: a[:-1]),
        ("cuts.at", lambda a: a[:, :-1]),
        ("cuts.at", lambda a: a[:1]),
        ("programs.refs", lambda a: a[:10]),
        ("programs.refs", lambda a: a.astype(np.int64)),
        ("tests.sources", lambda a: a.astype(np.int32)),
        ("tests.sources", lambda a: a.reshape(-1, 2)),
        ("tests.attributes", lambda a: a.astype(np.int64)),
    ],
)
def test_arrays_that_do_not_fit(name, change):
    held = Held(["s LIKE 'T1%' AND i > 0", "i > 5"])
    meta, sections = held.stored()
    sections |= {name: change(sections[name])}
    with pytest.raises(FileError, match="do not fit together"):
        loaded(held, (meta, sections))


@each(
    ("name", "change"),
    [
        ("steps.tested", lambda a: a[::-1]),
        ("steps.tested", lambda a: a + 10_000),
        ("steps.steps_at", lambda a: a[:-1]),
        ("steps.steps_at", lambda a: a + 1),
        ("steps.steps_at", lambda a: a[[0, 3, 2, 1, *range(4, len(a))]]),
        ("steps.gates", lambda a: a[:-1]),
        ("steps.gates", lambda a: a * 0 + 10_000),
        ("steps.gates", lambda a: a * 0),
        ("steps.gates", lambda a: a * 0 + 1),
        ("steps.operands", lambda a: a[:-1]),
        ("steps.operands", lambda a: a[:, :2]),
        ("steps.operands", lambda a: a * 0 - 1),
        ("steps.operands", lambda a: a + 10_000),
        ("steps.operands", lambda a: a * 0 + a.max() + 3),
        ("steps.targets", lambda a: a[:-1]),
        ("steps.targets", lambda a: a * 0 - 1),
        ("steps.targets", lambda a: a * 0),
        ("steps.targets", lambda a: a + 4),
        ("steps.targets", lambda a: a * 0 + 4 * 300),
        ("steps.targets", lambda a: a.astype(np.int32)),
    ],
)
def test_steps_that_do_not_fit(name, change):
    texts = [f"i > {n} AND (x > {n} OR b AND s = 'T{n}' OR b AND s = 'T{n + 1}')" for n in range(9)]
    held = Held([*texts, *(f"b AND (i < {n} OR x < {n})" for n in range(70)), "i > 0"])
    meta, sections = held.stored()
    loaded(held, (meta, sections))
    sections |= {name: change(sections[name])}
    with pytest.raises(FileError, match="do not fit together"):
        loaded(held, (meta, sections))


@each("widths", [None, "1", [0], [1, 1], [-1], [2**31], [1.0]])
def test_widths_that_do_not_fit(widths):
    held = Held(["i > 5"])
    meta, sections = held.stored()
    with pytest.raises(FileError, match="do not fit together"):
        loaded(held, (meta | {"widths": widths}, sections))


def test_references_have_room_after_them():
    """A chunk is read as if it were full."""
    segment = loaded(Held(["i > 5"])).segments[0]
    assert len(segment.programs.refs) > 64
    assert segment.programs.refs[0] // REF_KINDS < segment.predicates.size
