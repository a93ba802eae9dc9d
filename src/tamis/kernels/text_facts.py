"""Which of many tests are true of a string, by the texts that are found in it.

A test depends on one *fact* about a string in UTF-8: that a text is somewhere in it, begins it or
ends it, or that the string itself is a part, the beginning or the end of a constant. Facts have
numbers, and each is found once, however many tests depend on it:

* The texts are the paths through a trie from its three roots, the nodes ANYWHERE, START and END;
  those that end a string are written backwards. ends[node] is the fact of the text that ends at a
  node, or NONE. The edges are a hash table: edges[slot] is 256 * node + byte, or NONE where the
  slot is free, and children[slot] is the node to which the edge leads. Below ANYWHERE, nodes and
  edges are an automaton of Aho and Corasick, which looks at every byte of a string once: from a
  node without an edge for the next byte it goes on at fails[node], the node with the longest path
  that is an end of the path to this node. On the way from a node along `fails`, reports[node] is
  the next one where a text ends, or NONE.
* A string is a part of a constant if a suffix of the constant begins with it. Constant c is
  data[offsets[c]:offsets[c + 1]]; suffix k belongs to constant owners[k] and begins at suffixes[k].
  Suffixes are in order, so those that begin with the same string are neighbours; heads[suffix] is
  a number that has its first bytes as digits (`head_of`). The facts of constant c are
  first_part + 3 * c and the two after it, in the order of the roots.

The tests of fact f are numbers[starts[f]:starts[f + 1]], and kinds[*] says which kind each has. A
string without the fact fails a PLAIN test and passes a NEGATED one; with the fact it is the other
way round. An OPEN test is decided like this only if the string does not have the fact.
"""

from typing import Any, NamedTuple

import numpy as np

from tamis.kernels.comparisons import first_at_least
from tamis.kernels.jit import Number, inner, jit
from tamis.kernels.records import record

Array = np.ndarray[Any, Any]

ANYWHERE, START, END = range(3)  # the roots
ROOTS = 3
NONE = -1
PLAIN, NEGATED, OPEN = 0, 1, 2  # kinds of tests; one that is both NEGATED and OPEN has their sum
HEAD, DIGITS = 7, 257  # so many digits of so many values fit in 64 bits


@record
class TextFacts(NamedTuple):
    """The facts, and the tests that depend on them; the names are those of the module's text."""

    edges: Array  # int64[slot]; a power of two, not all in use
    children: Array  # int32[slot]
    firsts: Array  # uint8[256]: whether a text that may be anywhere begins with a byte
    ends: Array  # int32[node]
    fails: Array  # int32[node]
    reports: Array  # int32[node]
    data: Array  # uint8[*]
    offsets: Array  # int64[constant + 1]
    heads: Array  # int64[suffix]
    suffixes: Array  # int32[suffix]
    owners: Array  # int32[suffix]
    longest: int  # bytes of a constant
    first_part: int
    starts: Array  # int64[fact + 1]
    numbers: Array  # int32[*]
    kinds: Array  # uint8[*]


@record
class FactScratch(NamedTuple):
    """Scratch memory of one thread."""

    marks: Array  # int64[fact + 1]: the last string with the fact; at the end, the last string
    found: Array  # int32[fact]


@inner
def _slot(node: Number, byte: Number, edges: Array) -> Number:
    """The slot of an edge, or the free one where it would be."""
    key = np.int64(node) * 256 + byte
    mixed = np.int64(node) * 0x5F356495 + np.int64(byte) * 0x1B873593
    slot = (mixed ^ mixed >> 15) & (edges.size - 1)
    while edges[slot] != key and edges[slot] != NONE:
        slot = (slot + 1) & (edges.size - 1)
    return slot


@record
class NewNodes(NamedTuple):
    """The nodes of a trie while it is made; a root is its own parent."""

    ends: Array  # int32[node], NONE before
    parents: Array  # int32[node]
    bytes: Array  # uint8[node]: the byte of the edge from the parent
    depths: Array  # int32[node], 0 before


@jit
def insert_texts(
    starts: Array, bytes_: Array, roots: Array, edges: Array, children: Array, nodes: NewNodes
) -> int:
    """Make the trie of the texts bytes_[starts[f]:starts[f + 1]]; returns how many nodes it has.

    edges[slot] is NONE before.
    """
    for root in range(ROOTS):
        nodes.parents[root] = root
    count = ROOTS
    for f in range(starts.size - 1):
        node = np.int64(roots[f])
        for k in range(starts[f], starts[f + 1]):
            slot = _slot(node, bytes_[k], edges)
            if edges[slot] == NONE:
                edges[slot], children[slot] = node * 256 + bytes_[k], count
                nodes.parents[count], nodes.bytes[count] = node, bytes_[k]
                nodes.depths[count] = nodes.depths[node] + 1
                count += 1
            node = np.int64(children[slot])
        nodes.ends[node] = f
    return count


@jit
def link_nodes(
    order: Array, nodes: NewNodes, edges: Array, children: Array, fails: Array, reports: Array
) -> None:
    """Write fails[node] and reports[node]; `order` has the nodes by ascending depth."""
    for n in order:
        node, parent = np.int64(n), np.int64(nodes.parents[n])
        if nodes.depths[node] < 2:  # a root, or below it
            fails[node] = parent
        else:
            at, byte = np.int64(fails[parent]), nodes.bytes[node]
            slot = _slot(at, byte, edges)
            while edges[slot] == NONE and nodes.depths[at] > 0:
                at = np.int64(fails[at])
                slot = _slot(at, byte, edges)
            fails[node] = at if edges[slot] == NONE else children[slot]
        at = np.int64(fails[node])
        if at == node:
            reports[node] = NONE
        else:
            reports[node] = reports[at] if nodes.ends[at] == NONE else at


@record
class ListedTests(NamedTuple):
    """The tests whose facts strings have, in lists: those of string s are [at[s]:at[s + 1]]."""

    passed_at: Array  # int64[string + 1]
    passed: Array  # int32[*]
    failed_at: Array  # int64[string + 1]
    failed: Array  # int32[*]: of those that are NEGATED
    open_at: Array  # int64[string + 1]
    left_open: Array  # int32[*]


@jit
def count_tests(
    starts: Array, bytes_: Array, facts: TextFacts, scratch: FactScratch, lists: ListedTests
) -> None:
    """Write where the lists of each string begin and end, not the lists themselves."""
    passed = failed = opened = np.int64(0)
    for s in range(starts.size - 1):
        for k in range(_find_facts(bytes_[starts[s] : starts[s + 1]], facts, scratch)):
            fact = scratch.found[k]
            for j in range(facts.starts[fact], facts.starts[fact + 1]):
                kind = facts.kinds[j]
                passed += kind == PLAIN
                failed += kind == NEGATED
                opened += kind >= OPEN
        lists.passed_at[s + 1], lists.failed_at[s + 1] = passed, failed
        lists.open_at[s + 1] = opened


@jit
def find_tests(
    starts: Array, bytes_: Array, facts: TextFacts, scratch: FactScratch, lists: ListedTests
) -> None:
    """Write the lists of the strings bytes_[starts[s]:starts[s + 1]].

    One place after the last test of each list may be overwritten.
    """
    passed = failed = opened = np.int64(0)
    for s in range(starts.size - 1):
        for k in range(_find_facts(bytes_[starts[s] : starts[s + 1]], facts, scratch)):
            fact = scratch.found[k]
            for j in range(facts.starts[fact], facts.starts[fact + 1]):
                kind, number = facts.kinds[j], facts.numbers[j]
                lists.passed[passed] = lists.failed[failed] = lists.left_open[opened] = number
                passed += kind == PLAIN
                failed += kind == NEGATED
                opened += kind >= OPEN
        lists.passed_at[s + 1], lists.failed_at[s + 1] = passed, failed
        lists.open_at[s + 1] = opened


@inner
def _find_facts(text: Array, facts: TextFacts, scratch: FactScratch) -> Number:
    """Write the facts of a string to scratch.found, and mark them; returns how many."""
    marks, found = scratch.marks, scratch.found
    marks[found.size] += 1
    count, size = np.int64(0), text.size
    for root in range(ROOTS):  # an empty text
        count = _note(facts.ends[root], scratch, count)
    if size > 0:
        count = _walk(text, 0, size, 1, START, facts, scratch, count)
        count = _walk(text, size - 1, -1, -1, END, facts, scratch, count)
    count = _find_texts(text, facts, scratch, count)
    if size == 0:
        for fact in range(facts.first_part, found.size):
            count = _note(fact, scratch, count)
    elif size <= facts.longest:
        count = _find_constants(text, facts, scratch, count)
    return count


@inner
def _walk(
    text: Array, begin: Number, end: Number, step: Number, root: Number,
    facts: TextFacts, scratch: FactScratch, count: Number,
) -> Number:  # fmt: skip
    """Note the texts that begin or end a string, by the path of its bytes from a root."""
    node = np.int64(root)
    for place in range(begin, end, step):
        slot = _slot(node, text[place], facts.edges)
        if facts.edges[slot] == NONE:
            break
        node = np.int64(facts.children[slot])
        count = _note(facts.ends[node], scratch, count)
    return count


@inner
def _find_texts(text: Array, facts: TextFacts, scratch: FactScratch, count: Number) -> Number:
    """Note the texts that are anywhere in a string."""
    edges, stamp = facts.edges, scratch.marks[scratch.found.size]
    node = np.int64(ANYWHERE)
    for byte in text:
        if node == ANYWHERE and not facts.firsts[byte]:
            continue
        slot = _slot(node, byte, edges)
        while edges[slot] == NONE and node != ANYWHERE:
            node = np.int64(facts.fails[node])
            slot = _slot(node, byte, edges)
        if edges[slot] != NONE:
            node = np.int64(facts.children[slot])
        at = node
        while at != NONE:
            fact = facts.ends[at]
            if fact != NONE and scratch.marks[fact] == stamp:
                break  # those after it were noted with it
            count = _note(fact, scratch, count)
            at = np.int64(facts.reports[at])
    return count


@inner
def _find_constants(text: Array, facts: TextFacts, scratch: FactScratch, count: Number) -> Number:
    """Note the constants of which a string is a part; the string is not empty."""
    head, heads = head_of(text, 0, text.size), facts.heads
    span = np.int64(1)
    for _ in range(text.size, HEAD):
        span *= DIGITS
    low = first_at_least(heads, 0, heads.size, head)
    high = first_at_least(heads, low, heads.size, head + span)
    if text.size > HEAD:
        low = _first_below(text, low, high, 1, facts)
        high = _first_below(text, low, high, 0, facts)
    for k in range(low, high):
        begin, owner = facts.suffixes[k], np.int64(facts.owners[k])
        fact = facts.first_part + ROOTS * owner
        count = _note(fact + ANYWHERE, scratch, count)
        if begin == facts.offsets[owner]:
            count = _note(fact + START, scratch, count)
        if begin + text.size == facts.offsets[owner + 1]:
            count = _note(fact + END, scratch, count)
    return count


@inner
def _first_below(text: Array, low: Number, high: Number, order: Number, facts: TextFacts) -> Number:
    """The first suffix from `low` to `high` whose `_order` is below a number."""
    while low < high:
        middle = (low + high) // 2
        if _order(text, middle, facts) >= order:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def head_of(data: Array, begin: Number, end: Number) -> Number:
    """The first HEAD bytes of data[begin:end], or as many as there are, in one number."""
    head = np.int64(0)
    for place in range(begin, begin + HEAD):
        head = head * DIGITS + (np.int64(data[place]) + 1 if place < end else 0)
    return head


@inner
def _order(text: Array, suffix: Number, facts: TextFacts) -> Number:
    """0 if a suffix begins with a string; else 1 if the string comes after it, -1 if before."""
    begin, end = np.int64(facts.suffixes[suffix]), facts.offsets[facts.owners[suffix] + 1]
    for k in range(text.size):
        if begin + k == end:
            return 1
        if text[k] != facts.data[begin + k]:
            return 1 if text[k] > facts.data[begin + k] else -1
    return 0


@inner
def _note(fact: Number, scratch: FactScratch, count: Number) -> Number:
    """Write a fact after `count` others unless it is NONE or known; returns how many there are."""
    marks, found = scratch.marks, scratch.found
    if fact != NONE and marks[fact] != marks[found.size]:
        marks[fact] = marks[found.size]
        found[count] = fact
        count += 1
    return count
