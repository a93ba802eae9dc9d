"""Parts of the tree's kernels that have a simple model: edges, groups, facts, keys of doubles."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from kernel_calls import from_python
from tamis import Matcher, parse
from tamis.engines.tree import elements, growing_tree
from tamis.engines.tree.descriptions import describe, extent, ordinal
from tamis.engines.tree.distinct_conjunctions import ConjunctionStore
from tamis.engines.tree.elements import DistinctElements
from tamis.kernels import growing_tree as t
from tamis.kernels.static_tree import find_child
from tamis.kernels.tree_conjunctions import YOUNG
from tamis.kernels.tree_match import order_doubles
from tamis.language.arithmetic import order_key
from tamis.language.normal_form import normalize
from tamis.predicates.implication import implies
from tamis.predicates.index import PredicateIndex
from tamis.schema import Schema

find_child = from_python(find_child)
child_of, follows = from_python(t.child_of), from_python(t.follows)

pytestmark = pytest.mark.uncompiled

SCHEMA = Schema({"i": "int", "x": "double", "at": "timestamp"})
DOUBLES = st.floats(width=64) | st.sampled_from([0.0, -0.0, math.inf, -math.inf, 5e-324])


@given(st.lists(DOUBLES, min_size=2, max_size=10))
def test_ordinals_are_in_the_order_of_doubles(values):
    doubles = np.array(values)
    ordinals = doubles.view(np.int64)
    order_doubles(ordinals, doubles, np.arange(len(values), dtype=np.int32))
    for value, place in zip(values, ordinals.tolist(), strict=True):
        if not math.isnan(value):
            assert place == ordinal(value)
        for other, other_place in zip(values, ordinals.tolist(), strict=True):
            assert (place < other_place) == (order_key(value) < order_key(other))


PREDICATES = [
    *(f"i {op} {c}" for op in ("=", "<>", "<=", ">=") for c in (-(2**63), -1, 0, 1, 2**63 - 1)),
    *(f"x {op} {c}D" for op in ("=", "<>", "<", "<=", ">", ">=") for c in ("-0.5", "0.0", "1e300")),
    *(f"at {op} TIMESTAMP '2024-01-0{n}'" for op in ("<", ">=", "=") for n in (1, 2)),
    "i IS NULL", "i IS NOT NULL", "x IS NULL", "x IS NOT NULL",
]  # fmt: skip


def canonical(texts):
    nodes = [normalize(parse(text, SCHEMA).tree) for text in texts]
    return [node for node in nodes if describe(node).kind != t.K_OTHER]


def test_what_intervals_say_is_what_the_facts_say():
    """Every implication between numbers, decided by the kernel and by `implication`."""
    index = PredicateIndex(SCHEMA)
    held = DistinctElements(index)
    known = {}
    for node in dict.fromkeys(canonical(PREDICATES)):
        (known[node],) = held.sequence(np.array([index.intern(node)], np.int32)).tolist()
    assert len(known) > 30
    for u, source in known.items():
        for v, target in known.items():
            answer = follows(held.arrays, source, target)
            assert answer != t.ASK
            if describe(v).kind == t.K_EXAMINE or u == v:
                continue  # a result of "examine" is not a separate test
            assert answer == implies(u, v), (u, v)


def test_an_interval_of_nothing_is_followed_by_nothing():
    below_all = describe(normalize(parse("at < TIMESTAMP '2024-01-01'", SCHEMA).tree))
    low, high, form = extent(below_all._replace(constant=-(2**63)))
    assert (low > high, form) == (True, t.F_INTERVAL)


def new_tree(size):
    state = np.zeros(t.STATE_PLACES, np.int64)
    state[t.FREE], state[t.LIMIT] = t.NONE, size
    table = np.full((2 * size, 2), t.NONE, np.int32)
    nodes = np.zeros((size, t.NODE_COLUMNS), np.int32)
    return nodes, table, np.full(1, t.NONE, np.int32), state


@settings(max_examples=50)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=80))
def test_edges_come_and_go(changes):
    """One node with many children, against a dict."""
    rows = np.zeros((31, t.ELEMENT_COLUMNS), np.int64)
    rows[:, t.KIND] = t.K_EXAMINE
    tests = rows, np.zeros(0, np.int64), np.full(1, t.NONE, np.int64)
    tree = new_tree(64)
    model = {}
    for come, label in changes:
        if come:
            leaf = t.process_sub(tree, tests, np.array([label], np.int32), 0, False)
            assert model.setdefault(label, leaf) == leaf
        elif label in model:
            t.remove_leaf(tree, tests, model.pop(label), True)
        assert tree[3][t.NODES] == (len(model) + 1 if model else 0)
        root = tree[2][0]
        assert (root >= 0) == bool(model)
        for wanted in range(31):
            if model:
                assert child_of(tree[0], tree[1], root, wanted) == model.get(wanted, t.NONE)


def test_a_kernel_without_room_changes_nothing():
    rows = np.zeros((4, t.ELEMENT_COLUMNS), np.int64)
    rows[:, t.KIND], rows[:, t.ATTRIBUTE] = t.K_EXAMINE, range(4)
    tests = rows, np.zeros(0, np.int64), np.full(1, t.NONE, np.int64)
    sequence = np.arange(4, dtype=np.int32)
    for nodes, table, limit, answer in [
        (3, 64, 64, t.NO_NODES), (8, 1, 64, t.NO_TABLE), (8, 64, 4, t.FULL),
    ]:  # fmt: skip
        tree = new_tree(nodes)
        tree = (tree[0], np.full((table, 2), t.NONE, np.int32), *tree[2:])
        tree[3][t.LIMIT] = limit
        assert t.process_sub(tree, tests, sequence, 0, False) == answer
        assert t.process_sub_levels(tree, tests, sequence, 0, sequence) == answer
        assert tree[3][t.NEEDED] == 5
        assert tree[3][t.NODES] == 0
        assert tree[2][0] == t.NONE


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.booleans(), st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True)),
        max_size=150,
    )
)
def test_groups_come_and_go(changes):
    """Conjunctions and their slots, against a dict; the pool is compacted on the way."""
    schema = Schema({f"a{n}": "int" for n in range(6)})
    index = PredicateIndex(schema)
    predicates = [index.intern(normalize(parse(f"a{n} = 1", schema).tree)) for n in range(6)]
    held = DistinctElements(index)
    store = ConjunctionStore(held)
    model, slot_of, number = {}, {}, 0
    for come, parts in changes:
        key = tuple(sorted(parts))
        sequence = held.sequence(np.array([predicates[n] for n in parts], np.int32)).copy()
        group = store.find(sequence)
        assert (group >= 0) == (key in model)
        if come:
            if group < 0:
                group = store.add(sequence, YOUNG)
            store.join(number, group)
            slot_of[number] = key
            model.setdefault(key, []).append(number)
            number += 1
        elif key in model:
            slot = model[key].pop(len(model[key]) // 2)
            emptied = store.leave(slot)
            assert (emptied >= 0) == (not model[key])
            if emptied >= 0:
                del model[key]
                store.drop(emptied)
        held.collect()
        if key in model:
            found = store.find(sequence)
            assert sorted(store.slots_of(found)) == sorted(model[key])
        assert len(store) == len(model)


@each("count", [1, 8, 9, 100])
def test_children_are_found_by_their_labels(count):
    nodes = np.zeros((count + 1, 8), np.int32)
    nodes[1:, 0] = range(0, 3 * count, 3)
    nodes[0, 2], nodes[0, 3] = 1, count
    for label in range(-1, 3 * count + 1):
        exists = 0 <= label < 3 * count and label % 3 == 0
        assert find_child(nodes, 0, label, 0) == (1 + label // 3 if exists else -1)


@pytest.mark.parametrize(("most", "asked"), [(0, 64), (3, 64), (2**20, 2), (2**20, 64)])
def test_facts_that_do_not_fit_are_not_looked_for(monkeypatch, most, asked):
    monkeypatch.setattr(elements, "MOST_FACTS", most)
    monkeypatch.setattr(growing_tree, "MOST_LOOKED_UP", asked)
    texts = [f"s LIKE '{'a' * n}%'" for n in range(1, 12)] + ["s IN ('a', 'aaaaa', 'b')"]
    m = Matcher(Schema({"s": "string"}), engine="tree")
    m.subscribe_many(enumerate(texts))
    assert m.match({"s": "aaaaa"}) == [0, 1, 2, 3, 4, 11]


def test_facts_about_what_went_are_forgotten(monkeypatch):
    monkeypatch.setattr(elements, "MOST_QUARANTINED", 2)
    m = Matcher(Schema({"s": "string"}), engine="tree")
    for start in range(6):
        m.subscribe_many((n, f"s LIKE '{'ab'[n % 2] * (n + 1)}%'") for n in range(6))
        assert m.match({"s": "aaa"}) == [0, 2]
        for n in range(start, 6):
            m.unsubscribe(n)
    assert m._held.engine._elements.size < 40
