"""Compiled segments against reading each shape, letter by letter, for all events at once.

Here the truth of a predicate in a block is a Python integer of 512 bits.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.engines.sliced.segment import Item, Segment
from tamis.kernels.programs import (
    CHUNK,
    PLANES,
    SOME,
    Block,
    Comparisons,
    Event,
    Results,
    run,
    run_one,
)
from tamis.kernels.slices import EMPTY, EVENTS, WORDS, Axes, Touched

PREDICATES = 12


def evaluated(item, truths):
    """The 512 bits of a subscription."""
    stack, leaves = [], iter(item.predicates)
    for sign in item.shape:
        if sign == "a":
            stack.append(truths[next(leaves)])
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(left & right if sign == "&" else left | right)
    (answer,) = stack
    return answer


# --- running


def words_of(number):
    return np.frombuffer(number.to_bytes(EVENTS // 8, "little"), np.uint64)


def rows_of(truths):
    """Rows and row_of; what is true of no event has the empty row."""
    rows, row_of = [np.zeros(WORDS, np.uint64)], []
    for number in truths:
        row_of.append(len(rows) if number else EMPTY)
        if number:
            rows.append(words_of(number))
    return np.array(rows), np.array(row_of, np.int32)


def results(*, counts=False, slots=0, most=0):
    return Results(
        counts=np.zeros(EVENTS if counts else 0, np.int64),
        matrix=np.zeros((slots, WORDS), np.uint64),
        slots=np.empty(most, np.int32),
        words=np.empty(most, np.int8),
        bits=np.empty(most, np.uint64),
        size=np.zeros(2, np.int64),
        planes=np.zeros((PLANES, WORDS), np.uint64),
        local=np.full((CHUNK + SOME, WORDS), 7, np.uint64),
        live=np.full(CHUNK + SOME, -7, np.int64),
    )


def no_comparisons(size):
    return Comparisons(np.full(size, -1, np.int32), np.zeros(size, np.int64))


def touched_of(ids):
    return Touched(np.array([*ids, -1], np.int32), np.array([len(ids)], np.int64))


def run_block(segment, truths, out):
    rows, row_of = rows_of(truths)
    axes = Axes(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, EVENTS), np.int64))
    touched = touched_of([p for p, number in enumerate(truths) if number])
    stack = np.full((segment.depth + 1, SOME, WORDS), 9, np.uint64)
    block = Block(rows, row_of, axes, touched, segment.alive, stack)
    run(segment.programs, no_comparisons(len(truths)), block, out)


def matrix_of(segment, truths):
    """The bits of each handle, from the matrix and from the lists."""
    size = len(segment.handles)
    out = results(slots=size)
    run_block(segment, truths, out)
    found = [int.from_bytes(row.tobytes(), "little") for row in out.matrix]
    out = results(most=WORDS * size + 1)
    run_block(segment, truths, out)
    listed = [0] * size
    for k in range(int(out.size[0])):
        assert out.bits[k]
        listed[out.slots[k]] |= int(out.bits[k]) << (64 * int(out.words[k]))
    assert listed == found
    return dict(zip(segment.handles.tolist(), found, strict=True))


def counts_of(segment, truths):
    out = results(counts=True)
    run_block(segment, truths, out)
    return out.counts.tolist()


def matched_one(segment, truths, event):
    """The handles of one event, whose predicates are all known; whether it says so or not."""
    truth = np.array([number >> event & 1 for number in truths], np.int8)
    answers = []
    for complete in (False, True):
        one = Event(
            keys=np.zeros(0, np.int64), present=np.zeros(0, np.uint8), truth=truth.copy(),
            complete=complete, touched=touched_of(np.flatnonzero(truth)),
        )  # fmt: skip
        found = np.empty(len(segment.handles) + 1, np.int32)
        stack = np.full(segment.depth + 1, 1, np.int8)
        count = run_one(
            segment.programs, no_comparisons(len(truths)), one, segment.alive, stack, found
        )
        answers.append(segment.handles[np.sort(found[:count])].tolist())
    assert answers[0] == answers[1]
    return answers[0]


def check(segment, items, truths, gone=()):
    """Everything that a segment says, against its items."""
    held = {item.handle: item for item in items if item.handle not in gone}
    expected = {item.handle: evaluated(item, truths) for item in held.values()}
    found = matrix_of(segment, truths)
    assert {handle: bits for handle, bits in found.items() if bits} == {
        handle: bits for handle, bits in expected.items() if bits
    }
    counts = np.zeros(EVENTS, np.int64)
    for bits in expected.values():
        counts += np.unpackbits(words_of(bits).view(np.uint8), bitorder="little")
    assert counts_of(segment, truths) == counts.tolist()
    for event in (0, 63, 64, 200, 511):
        assert matched_one(segment, truths, event) == [
            handle for handle in sorted(expected) if expected[handle] >> event & 1
        ]


def meaning(item):
    """An item up to the order of a conjunction, which a segment may change."""
    ids = item.predicates if "|" in item.shape else tuple(sorted(item.predicates))
    return item.handle, item.shape, ids


def check_items(segment, items, gone=()):
    left = [item for item in items if item.handle not in gone]
    assert len(segment) == len(left)
    assert sorted(map(meaning, segment.living())) == sorted(map(meaning, left))
    for item in items:
        slot = segment.find(item.handle)
        if item.handle in gone:
            assert slot == -1
        else:
            assert segment.handles[slot] == item.handle
            assert meaning(segment.item(slot)) == meaning(item)
    known = {item.handle for item in items}
    for handle in (-1, 0, 1, 5, 2**40, 2**63 - 1, *(handle + 1 for handle in known)):
        if handle not in known:
            assert segment.find(handle) == -1


# --- random items


@st.composite
def shapes(draw, depth=3, sign=None):
    """Formulas in postfix order, AND below OR and OR below AND, in any order of their parts."""
    if depth == 0 or (sign and draw(st.integers(0, 2)) == 0):
        return "a"
    mine = {"&": "|", "|": "&"}.get(sign) or draw(st.sampled_from("&|"))
    parts = draw(st.lists(shapes(depth - 1, mine), min_size=1 + bool(sign), max_size=4))
    return parts[0] + "".join(part + mine for part in parts[1:])


@st.composite
def items_of(draw, most=60):
    kinds = draw(
        st.lists(shapes() | st.sampled_from(["a", "aa&", "aa&a&"]), min_size=1, max_size=4)
    )
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=most))
    steps = draw(st.sampled_from([[1], [1, 2, 1000], [2**33]]))
    handle, made = draw(st.sampled_from([0, 3, 2**40])), []
    predicate = st.integers(0, PREDICATES - 1)
    for shape in chosen:
        size = shape.count("a")
        ids = draw(st.lists(predicate, min_size=size, max_size=size, unique="|" not in shape))
        made.append(Item(handle, shape, tuple(ids)))
        handle += draw(st.sampled_from(steps))
    return draw(st.permutations(made))


BITS = st.sampled_from([0, 1, 1 << 511, 2**512 - 1, 2**64 - 1, (2**512 - 1) // 3]) | st.integers(
    0, 2**512 - 1
)
TRUTHS = st.lists(BITS, min_size=PREDICATES, max_size=PREDICATES)
SHARES = st.lists(
    st.sampled_from([0.01, 0.1, 0.19, 0.2, 0.5, 0.95]), min_size=PREDICATES, max_size=PREDICATES
)


@given(items_of(), TRUTHS, SHARES, st.data())
@settings(max_examples=80)
def test_any_segment(items, truths, shares, data):
    segment = Segment(items, np.array(shares).__getitem__)
    check_items(segment, items)
    check(segment, items, truths)
    gone = set()
    for item in data.draw(st.lists(st.sampled_from(items), unique=True, max_size=len(items))):
        segment.kill(segment.find(item.handle))
        gone.add(item.handle)
    check_items(segment, items, gone)
    check(segment, items, truths, gone)


@pytest.mark.parametrize("size", [1, 2, 31, 32, 33, 255, 256, 257, 287, 288, 289, 700])
@pytest.mark.parametrize("shape", ["a", "aa&", "aa|", "aaa|&", "aa&aa&|"])
def test_as_many_of_a_shape_as_fill_the_scratch(shape, size):
    chance = np.random.default_rng(size)
    width = shape.count("a")
    items = [
        Item(3 * n, shape, tuple(chance.permutation(PREDICATES)[:width].tolist()))
        for n in range(size)
    ]
    truths = [int.from_bytes(chance.bytes(64), "little") for _ in range(PREDICATES)]
    segment = Segment(items, np.linspace(0.05, 0.9, PREDICATES).__getitem__)
    check(segment, items, truths)
    gone = {item.handle for item in items[::3]}
    for handle in gone:
        segment.kill(segment.find(handle))
    check(segment, items, truths, gone)
    check_items(segment, items, gone)
    check(segment, items, [2**512 - 1] * PREDICATES, gone)
    check(segment, items, [0] * PREDICATES, gone)


def test_a_segment_of_nothing():
    segment = Segment([], np.zeros(1).__getitem__)
    assert len(segment) == 0
    assert list(segment.living()) == []
    assert segment.find(0) == -1
    assert counts_of(segment, []) == [0] * EVENTS
    assert matched_one(segment, [], 0) == []


def test_a_segment_that_is_all_gone():
    items = [Item(n, "a", (n,)) for n in range(3)]
    segment = Segment(items, np.full(3, 0.5).__getitem__)
    for n in (1, 0, 2):
        segment.kill(segment.find(n))
    check_items(segment, items, {0, 1, 2})
    check(segment, items, [2**512 - 1] * 3, {0, 1, 2})


def test_a_segment_may_be_built_of_what_is_left():
    items = [Item(n, shape, (n, n + 1)) for n, shape in enumerate(["aa&", "aa|", "aa&", "aa|"])]
    shares = np.linspace(0.9, 0.1, PREDICATES).__getitem__
    first = Segment(items, shares)
    first.kill(1)
    second = Segment([*first.living(), Item(1, "a", (7,))], shares)
    truths = [(2**512 - 1) // (p + 2) for p in range(PREDICATES)]
    check(second, [items[0], items[2], items[3], Item(1, "a", (7,))], truths)


def test_a_deep_formula():
    """Each chain ends in the next, so the stack is as high as the formula is deep."""
    shape = "a"
    for n in range(60):
        shape = "a" + shape + "&|"[n % 2]
    item = Item(0, shape, tuple(n % PREDICATES for n in range(61)))
    truths = [(2**512 - 1) // (p + 3) for p in range(PREDICATES)]
    segment = Segment([item], np.full(PREDICATES, 0.5).__getitem__)
    check(segment, [item], truths)
    check_items(segment, [item])


def test_clusters_are_led_by_the_most_selective_member():
    shares = np.array([0.5, 0.1, 0.9, 0.05])
    items = [Item(0, "aa&", (0, 1)), Item(1, "aa&", (2, 1)), Item(2, "aa&", (2, 0)),
             Item(3, "aa&a&", (0, 1, 3))]  # fmt: skip
    programs = Segment(items, shares.__getitem__).programs
    assert programs.access.tolist() == [1, 3]
    assert len(programs.plain) == 1
    assert len(programs.cluster_shapes) == 3
