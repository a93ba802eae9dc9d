"""The matching tree to which conjunctions are added one by one (TREE, appendices A and B).

TREE is short for Aguilera, Strom, Sturman, Astley and Chandra, "Matching events in a content-based
subscription system" (PODC 1999).

Legend, used by all kernels of the tree:

* n is a node, by its id; ids are used again
* e is an element, one result of one elementary test: ``a = 5`` of the test "examine a", or "true"
  of a test that has no other result, such as ``a < 5``; see `ATTRIBUTE` and the columns after it
* g is a group of equal conjunctions, each a sequence of elements in the fixed order
* r is a root; there is one per subtree

A *tree* is ``(nodes[n, 8], table[*, 2], roots[r], state[*])``, *elements* are
``(rows[e, 11], facts[*], fallen[1])``. Along every path the tests come in the fixed order. So the
nodes joined by *-edges are a sorted list, and the shape of a tree does not depend on the order in
which its conjunctions were added (except for implied edges, which depend on what was there before).
"""

from typing import Any

import numpy as np

from tamis.kernels.jit import inner, jit

Array = np.ndarray[Any, Any]
Tree = tuple[Array, Array, Array, Array]
Elements = tuple[Array, Array, Array]

NONE = -1

# Columns of nodes. TEST is an attribute to examine, LEAF, or BOOLEAN - e. PARENT of root r is
# -1 - r. The edge from the parent is labelled LABEL. One of the result edges of a node is kept in
# the node itself: FIRST is its label and CHILD its end; the others are in the table. A boolean node
# has only one. CHILD of a leaf is the first of its CHILDREN groups; STAR of a free node is the next
# free node. A row is half a cache line.
TEST, STAR, PARENT, LABEL, CHILDREN, CHILD, FIRST = range(7)
NODE_COLUMNS = 8
LEAF = -1
BOOLEAN = -2
STAR_EDGE = -1

# Places of the state of a tree: how many ids were ever used, the first free one, nodes and table
# entries in use, the most nodes allowed, and what a kernel that changed nothing needs.
USED, FREE, NODES, HASHED, LIMIT, NEEDED, ASK_SOURCE, ASK_TARGET = range(8)
STATE_PLACES = 8

# Columns of elements. The first four are the fixed order. LOW and HIGH bound the values that
# satisfy the element, where numbers can express them; FORM says how to find what implies it. USES
# counts the conjunctions and nodes that use it; LINK joins unused elements into a list.
ATTRIBUTE, KIND, KEY, SUBKEY, LOW, HIGH, FORM, USES, PREDICATE, OTHER, LINK = range(11)
ELEMENT_COLUMNS = 11

# Kinds, weak tests first: a test may be implied by later ones, and implied edges lead to it.
(
    K_PRESENT, K_NULL, K_DIFFERS, K_ABSENT, K_UPPER, K_LOWER, K_RANGE, K_MEMBER, K_TEXT, K_OTHER,
    K_EXAMINE,
) = range(11)  # fmt: skip

# What satisfies an element, and so what implies it: a missing value (nothing else implies it); the
# values of an interval; all values except the point KEY; or something that numbers cannot express.
# Then nothing else implies it (F_NEVER), or the table of facts says what does (F_ASK).
F_NULL, F_NEVER, F_INTERVAL, F_POINT, F_ASK = range(5)

# What `process_sub` returns instead of a leaf, having changed nothing: it lacks nodes, lacks places
# in the table, needs a fact, or would pass the limit.
NO_NODES, NO_TABLE, ASK, FULL = -1, -2, -3, -4

_MASK = 0xFFFFFFFF


@inner
def mix(a: int, b: int) -> int:
    """A hash of two small numbers, in 31 bits; none of its steps overflows."""
    h = (np.int64(a) * 0x9E3779B1) & _MASK
    h = (((h ^ (h >> 15)) & 0x7FFFFFFF) + np.int64(b)) * 0x45D9F3B & _MASK
    h = ((h ^ (h >> 16)) & 0x7FFFFFFF) * 0x45D9F3B & _MASK
    return int((h ^ (h >> 16)) & 0x7FFFFFFF)


# --- the fixed order, and implications


@inner
def element_order(rows: Array, a: int, b: int) -> int:
    """Negative if element a comes before b, positive if after it, 0 if they are the same."""
    for column in range(SUBKEY + 1):
        if rows[a, column] != rows[b, column]:
            return -1 if rows[a, column] < rows[b, column] else 1
    return a - b


@inner
def _node_order(nodes: Array, rows: Array, v: int, e: int) -> int:
    """Negative if the test of a node comes before that of an element, 0 if they are the same."""
    test = nodes[v, TEST]
    if test < 0:
        return element_order(rows, BOOLEAN - test, e)
    if test != rows[e, ATTRIBUTE]:
        return -1 if test < rows[e, ATTRIBUTE] else 1
    return 0 if rows[e, KIND] == K_EXAMINE else 1


@jit
def fact_place(facts: Array, source: int, target: int) -> int:
    """The place of the fact about two elements, or for it; facts[*] is 2 * pair + truth, or -1."""
    pair = (np.int64(source) << 31) | np.int64(target)
    mask = facts.size - 1
    i = mix(source, target) & mask
    while facts[i] >= 0 and facts[i] >> 1 != pair:
        i = (i + 1) & mask
    return i


@inner
def follows(elements: Elements, source: int, target: int) -> int:
    """Whether one element implies another: 1, 0, or `ASK` if that is not known yet."""
    rows, facts, _ = elements
    if rows[source, ATTRIBUTE] != rows[target, ATTRIBUTE] or rows[source, KIND] == K_NULL:
        return 0
    form = rows[target, FORM]
    low, high = rows[source, LOW], rows[source, HIGH]
    if form == F_INTERVAL:
        return 1 if rows[target, LOW] <= low and high <= rows[target, HIGH] else 0
    if form == F_POINT:
        point = rows[target, KEY]
        return 1 if point < low or high < point else 0
    if form != F_ASK or facts.size == 0:
        return 0
    known = facts[fact_place(facts, source, target)]
    return int(known & 1) if known >= 0 else ASK


# --- edges


@inner
def child_of(nodes: Array, table: Array, v: int, label: int) -> int:
    """The child of a node along the edge of a result, or NONE."""
    if nodes[v, FIRST] == label:
        return int(nodes[v, CHILD])
    if nodes[v, CHILDREN] == 0 or (nodes[v, CHILDREN] == 1 and nodes[v, CHILD] >= 0):
        return NONE
    h = mix(v, label)
    mask = table.shape[0] - 1
    i = h & mask
    while table[i, 1] >= 0:
        c = table[i, 1]
        if table[i, 0] == h and nodes[c, PARENT] == v and nodes[c, LABEL] == label:
            return int(c)
        i = (i + 1) & mask
    return NONE


@inner
def _enter(table: Array, h: int, child: int) -> None:
    """Put a child under its hash into the table."""
    mask = table.shape[0] - 1
    i = h & mask
    while table[i, 1] >= 0:
        i = (i + 1) & mask
    table[i, 0] = h
    table[i, 1] = child


@inner
def _place(table: Array, h: int, child: int) -> int:
    """Where a child is in the table."""
    mask = table.shape[0] - 1
    i = h & mask
    while table[i, 1] != child:
        i = (i + 1) & mask
    return int(i)


@inner
def _erase(table: Array, h: int, child: int) -> None:
    """Remove an entry, and move the entries after it that could not be found any more."""
    mask = table.shape[0] - 1
    hole = _place(table, h, child)
    i = hole
    while True:
        i = (i + 1) & mask
        if table[i, 1] < 0:
            break
        if ((i - table[i, 0]) & mask) >= ((i - hole) & mask):
            table[hole, 0] = table[i, 0]
            table[hole, 1] = table[i, 1]
            hole = i
    table[hole, 1] = NONE


@jit
def rehash(old: Array, new: Array) -> None:
    """Enter the entries of a table into a larger one, which is empty."""
    for i in range(old.shape[0]):
        if old[i, 1] >= 0:
            _enter(new, old[i, 0], old[i, 1])


@inner
def _attach(tree: Tree, parent: int, label: int, child: int) -> None:
    """Add the edge to a node that has no parent."""
    nodes, table, roots, state = tree
    nodes[child, PARENT] = parent
    nodes[child, LABEL] = label
    if parent < 0:
        roots[-1 - parent] = child
    elif label == STAR_EDGE:
        nodes[parent, STAR] = child
    else:
        nodes[parent, CHILDREN] += 1
        if nodes[parent, CHILD] >= 0:
            _enter(table, mix(parent, label), child)
            state[HASHED] += 1
        else:
            nodes[parent, CHILD] = child
            nodes[parent, FIRST] = label


@inner
def _detach(tree: Tree, child: int) -> None:
    """Remove the edge to a node."""
    nodes, table, roots, state = tree
    parent, label = nodes[child, PARENT], nodes[child, LABEL]
    if parent < 0:
        roots[-1 - parent] = NONE
    elif label == STAR_EDGE:
        nodes[parent, STAR] = NONE
    else:
        nodes[parent, CHILDREN] -= 1
        if nodes[parent, CHILD] == child:
            nodes[parent, CHILD] = nodes[parent, FIRST] = NONE
        else:
            _erase(table, mix(parent, label), child)
            state[HASHED] -= 1


@inner
def _replace(tree: Tree, old: int, new: int) -> None:
    """Make the edge to one node lead to another."""
    nodes, table, roots, _ = tree
    parent, label = nodes[old, PARENT], nodes[old, LABEL]
    nodes[new, PARENT] = parent
    nodes[new, LABEL] = label
    if parent < 0:
        roots[-1 - parent] = new
    elif label == STAR_EDGE:
        nodes[parent, STAR] = new
    elif nodes[parent, CHILD] == old:
        nodes[parent, CHILD] = new
    else:
        table[_place(table, mix(parent, label), old), 1] = new


# --- adding a conjunction


@inner
def _new_node(tree: Tree, test: int) -> int:
    """A node without edges that holds a test."""
    nodes, _, _, state = tree
    v = state[FREE]
    if v >= 0:
        state[FREE] = nodes[v, STAR]
    else:
        v = state[USED]
        state[USED] += 1
    state[NODES] += 1
    nodes[v, TEST] = test
    nodes[v, STAR] = nodes[v, CHILD] = nodes[v, FIRST] = NONE
    nodes[v, CHILDREN] = 0
    return int(v)


@inner
def _new_test(tree: Tree, rows: Array, e: int) -> int:
    """A node without edges that holds the test of an element."""
    if rows[e, KIND] == K_EXAMINE:
        return _new_node(tree, rows[e, ATTRIBUTE])
    rows[e, USES] += 1
    return _new_node(tree, BOOLEAN - e)


@inner
def _walk(
    tree: Tree, elements: Elements, sequence: Array, root: int, implied_edges: bool
) -> tuple[int, int, int, int, bool]:
    """Lines 11 to 25 of Fig. 8: how much of a sequence is in the tree already, and where it ends.

    Returns i, parent, label, v and `here`. The first i elements are in the tree. The others belong
    below the edge from `parent` that now leads to v (or nowhere), or, if `here`, below v itself,
    which has the test of the next element. `i` is `ASK` if a fact is needed.
    """
    nodes, table, roots, state = tree
    rows = elements[0]
    parent, label, v = -1 - root, STAR_EDGE, roots[root]
    i = 0
    while v >= 0 and nodes[v, TEST] != LEAF:
        if i < sequence.size:
            e = sequence[i]
            order = _node_order(nodes, rows, v, e)
            if order > 0:
                break
            test = nodes[v, TEST]
            if order == 0:
                child = nodes[v, CHILD] if test < 0 else child_of(nodes, table, v, e)
                if child < 0:
                    return i, parent, label, v, True
                parent, label, v = v, e, child
                i += 1
                continue
            if implied_edges and test < 0:
                answer = follows(elements, e, BOOLEAN - test)
                if answer == ASK:
                    state[ASK_SOURCE] = e
                    state[ASK_TARGET] = BOOLEAN - test
                    return ASK, parent, label, v, False
                if answer:
                    parent, label, v = v, BOOLEAN - test, nodes[v, CHILD]
                    continue
        parent, label, v = v, STAR_EDGE, nodes[v, STAR]
    return i, parent, label, v, False


@inner
def lacks_room(tree: Tree, needed: int) -> int:
    """`FULL`, `NO_NODES` or `NO_TABLE` if `needed` more nodes do not fit, else 0."""
    nodes, table, _, state = tree
    state[NEEDED] = needed
    if state[NODES] + needed > state[LIMIT]:
        return FULL
    if state[NODES] + needed > nodes.shape[0]:
        return NO_NODES
    return NO_TABLE if 2 * (state[HASHED] + needed) > table.shape[0] else 0


@jit
def process_sub(
    tree: Tree, elements: Elements, sequence: Array, root: int, implied_edges: bool
) -> int:
    """Add a conjunction below a root: process_sub of Fig. 8; returns the leaf that stands for it.

    The result is negative if nodes do not fit or a fact is needed. Fig. 8 puts a test above a leaf;
    here a test is put above every node whose test comes later in the fixed order. So a chain of
    nodes with *-edges alone never arises (section 5).
    """
    nodes = tree[0]
    rows = elements[0]
    i, parent, label, v, here = _walk(tree, elements, sequence, root, implied_edges)
    if i == ASK:
        return ASK
    if i == sequence.size and v >= 0:
        return v
    lack = lacks_room(tree, sequence.size - i + (0 if here else 1))
    if lack:
        return lack
    if here:
        at = v
    elif i == sequence.size:
        at = _new_node(tree, LEAF)
        _attach(tree, parent, label, at)
    else:
        at = _new_test(tree, rows, sequence[i])
        if v >= 0:
            _replace(tree, v, at)
            nodes[at, STAR] = v
            nodes[v, PARENT] = at
            nodes[v, LABEL] = STAR_EDGE
        else:
            _attach(tree, parent, label, at)
    for k in range(i, sequence.size):
        if k + 1 < sequence.size:
            below = _new_test(tree, rows, sequence[k + 1])
        else:
            below = _new_node(tree, LEAF)
        _attach(tree, at, sequence[k], below)
        at = below
    return at


@inner
def _wanted(rows: Array, sequence: Array, i: int, attribute: int) -> int:
    """The label of the edge that a conjunction follows at a node that examines an attribute."""
    if i < sequence.size and rows[sequence[i], ATTRIBUTE] == attribute:
        return int(sequence[i])
    return STAR_EDGE


@jit
def process_sub_levels(
    tree: Tree, elements: Elements, sequence: Array, root: int, levels: Array
) -> int:
    """Add a conjunction of equalities, with a node at every level: process_sub of Fig. 9.

    This is the tree without collapsed chains. levels[*] are the attributes, one per level.
    """
    nodes, table, roots, _ = tree
    rows = elements[0]
    v = roots[root]
    i = level = 0
    while v >= 0 and level < levels.size:
        wanted = _wanted(rows, sequence, i, levels[level])
        w = nodes[v, STAR] if wanted == STAR_EDGE else child_of(nodes, table, v, wanted)
        if w < 0:
            break
        v = w
        level += 1
        i += wanted != STAR_EDGE
    if v >= 0 and level == levels.size:
        return int(v)
    lack = lacks_room(tree, levels.size - level + (1 if v < 0 else 0))
    if lack:
        return lack
    if v < 0:
        v = _new_node(tree, levels[0] if levels.size else LEAF)
        _attach(tree, -1 - root, STAR_EDGE, v)
    while level < levels.size:
        wanted = _wanted(rows, sequence, i, levels[level])
        i += wanted != STAR_EDGE
        level += 1
        below = _new_node(tree, levels[level] if level < levels.size else LEAF)
        _attach(tree, v, wanted, below)
        v = below
    return int(v)


@inner
def _free(tree: Tree, elements: Elements, v: int) -> None:
    """Give the id of a node back."""
    nodes, _, _, state = tree
    if nodes[v, TEST] <= BOOLEAN:
        drop_use(elements, BOOLEAN - nodes[v, TEST])
    nodes[v, STAR] = state[FREE]
    state[FREE] = v
    state[NODES] -= 1


@inner
def drop_use(elements: Elements, e: int) -> None:
    """Count one use of an element less; one without uses is added to the list of unused ones."""
    rows, _, fallen = elements
    rows[e, USES] -= 1
    if rows[e, USES] == 0:
        rows[e, LINK] = fallen[0]
        fallen[0] = e


@jit
def remove_leaf(tree: Tree, elements: Elements, leaf: int, collapse: bool) -> None:
    """Remove a leaf, and every node that leads nowhere without it.

    With `collapse`, a node that is left with only a *-edge is removed as well (section 5).
    """
    nodes = tree[0]
    v = leaf
    while True:
        parent = nodes[v, PARENT]
        _detach(tree, v)
        _free(tree, elements, v)
        if parent < 0:
            return
        if nodes[parent, CHILDREN] or nodes[parent, STAR] >= 0:
            break
        v = parent
    if collapse and nodes[parent, CHILDREN] == 0:
        _replace(tree, parent, nodes[parent, STAR])
        _free(tree, elements, parent)
