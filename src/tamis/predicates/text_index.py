"""An index of tests of one string, which finds by the texts in a string those that may be true.

``s LIKE '%PC%x'`` can be true only of a string that has ``PC`` in it; ``contains(s, 'PC')`` is true
of every such string, and ``contains('a PC', s)`` of every string that is in the text. However many
tests there are, one walk through a string (`tamis.kernels.text_facts`) finds those that it passes,
and those that it passes or fails for reasons other than these texts.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.kernels.records import packed
from tamis.kernels.text_facts import (
    ANYWHERE,
    DIGITS,
    END,
    HEAD,
    NEGATED,
    NONE,
    OPEN,
    PLAIN,
    ROOTS,
    START,
    FactScratch,
    ListedTests,
    NewNodes,
    TextFacts,
    count_tests,
    find_tests,
    insert_texts,
    link_nodes,
)
from tamis.language import ast
from tamis.language.ast import Node
from tamis.memory import RESULTS
from tamis.predicates.classification import PartTest, StringTest, classify
from tamis.predicates.needed_texts import CONTAINS, ENDSWITH, STARTSWITH, needed_text

Array = np.ndarray[Any, Any]

LONGEST_TEXT = 128  # bytes of a text that are looked for; strings with them may not have the rest
LONGEST_CONSTANT = 512  # bytes of a constant whose parts are found
MOST_CONSTANTS = 1 << 23  # bytes of all these constants; the shortest come first
MOST_AT_ONCE = 1 << 22  # tests of strings that are found without counting them before
_NO_TESTS = np.empty(0, np.int32)

_ROOTS = {CONTAINS: ANYWHERE, STARTSWITH: START, ENDSWITH: END}
FactTests = list[tuple[int, int]]  # the numbers and kinds of the tests that depend on a fact


class TextTest(NamedTuple):
    """The text that a test of a string looks for, and where."""

    place: str  # a function: ``contains``, ``startswith`` or ``endswith``
    text: str
    of_constant: bool  # whether the string must be in the text; else the text in the string
    negated: bool  # whether the test is true where that is not so
    decided: bool  # whether that alone decides the test


class FoundTests(NamedTuple):
    """Which tests one string passes. Of tests that are not listed, it passes the negated ones."""

    passed: Array  # those it passes, which are not negated
    failed: Array  # those it fails, which are negated
    left_open: Array  # those it may pass or fail; these must be run


def text_test(predicate: Node) -> TextTest | None:
    """The text that decides a predicate, or is needed by it; None if there is none."""
    match classify(predicate):
        case StringTest(_, place, text, negated):
            return TextTest(place, text, of_constant=False, negated=negated, decided=True)
        case PartTest(_, place, text, negated):
            return TextTest(place, text, of_constant=True, negated=negated, decided=True)
        case _:
            found, negated = needed_text(predicate), isinstance(predicate, ast.Not)
            return found and TextTest(*found, of_constant=False, negated=negated, decided=False)


class TextIndex:
    """Tests by the texts that they look for; an index never changes."""

    def __init__(self, tests: Mapping[int, TextTest]) -> None:
        """`tests` by their numbers; those whose text is too long are in `left_out`."""
        self.left_out: list[int] = []
        texts: dict[tuple[int, bytes], FactTests] = {}
        constants: dict[bytes, tuple[FactTests, ...]] = {}
        for number, test in tests.items():
            data = test.text.encode("utf-8", "surrogatepass")
            root, kind = _ROOTS[test.place], NEGATED * test.negated + OPEN * (not test.decided)
            if test.of_constant:
                if data not in constants:
                    constants[data] = tuple([] for _ in range(ROOTS))
                constants[data][root].append((number, kind))
                continue
            if root == END:
                data = data[::-1]
            if len(data) > LONGEST_TEXT:
                data, kind = data[:LONGEST_TEXT], kind | OPEN
            texts.setdefault((root, data), []).append((number, kind))
        short = self._short_ones(constants)
        by_fact = [*texts.values(), *(own for one in short for own in constants[one])]
        self._facts = packed(_facts_of(list(texts), short, by_fact))
        kinds = [kind for own in by_fact for _, kind in own]
        self._facts_count = len(by_fact)
        self._sizes = (
            kinds.count(PLAIN), kinds.count(NEGATED), sum(kind >= OPEN for kind in kinds)
        )  # fmt: skip
        self._buffers: list[_Buffers] = []  # those not in use

    @property
    def decides_all(self) -> bool:
        """Whether no test is left open."""
        return not self._sizes[2]

    def _short_ones(self, constants: Mapping[bytes, Sequence[FactTests]]) -> list[bytes]:
        """The constants whose parts are found; the tests of all others are `left_out`."""
        kept, held = [], 0
        for constant in sorted(constants, key=len):
            held += len(constant)
            if len(constant) <= LONGEST_CONSTANT and held <= MOST_CONSTANTS:
                kept.append(constant)
            else:
                self.left_out += [number for own in constants[constant] for number, _ in own]
        return kept

    def of_text(self, text: str) -> FoundTests:
        """The tests of one string."""
        buffers = self._take_buffers()
        of_one, data = buffers.of_one, text.encode("utf-8", "surrogatepass")
        buffers.offsets[1] = len(data)
        find_tests(
            buffers.offsets, np.frombuffer(data, np.uint8), self._facts, buffers.scratch,
            buffers.packed_lists,
        )  # fmt: skip
        found = FoundTests(
            of_one.passed[: of_one.passed_at[1]].copy(),
            of_one.failed[: of_one.failed_at[1]].copy(),
            of_one.left_open[: of_one.open_at[1]].copy(),
        )
        self._buffers.append(buffers)
        return found

    def of_texts(self, offsets: Array, data: Array, most: int = MOST_AT_ONCE) -> ListedTests:
        """The tests of many strings in UTF-8: string s is data[offsets[s]:offsets[s + 1]].

        If they could be more than `most` tests together, they are counted first.
        """
        data.setflags(write=False)  # as most arrays here, so that one kernel is compiled for all
        size = len(offsets) - 1
        ends = np.zeros((3, size + 1), np.int64)
        rooms, buffers = [size * most_of_one for most_of_one in self._sizes], self._take_buffers()
        if sum(rooms) > most:
            no_lists = packed(_lists(ends, [_NO_TESTS] * 3))
            count_tests(offsets, data, self._facts, buffers.scratch, no_lists)
            rooms = ends[:, -1].tolist()
        lists = _lists(ends, [RESULTS.take(room + 1, np.int32) for room in rooms])
        find_tests(offsets, data, self._facts, buffers.scratch, packed(lists))
        self._buffers.append(buffers)
        return lists._replace(
            passed=lists.passed[: ends[0, -1]], failed=lists.failed[: ends[1, -1]],
            left_open=lists.left_open[: ends[2, -1]],
        )  # fmt: skip

    def _take_buffers(self) -> "_Buffers":
        try:
            return self._buffers.pop()
        except IndexError:
            return _Buffers(self._facts_count, self._sizes)


class _Buffers:
    """Memory for one thread at a time."""

    def __init__(self, facts: int, sizes: Sequence[int]) -> None:
        marks = np.zeros(facts + 1, np.int64)
        self.scratch = packed(FactScratch(marks, np.empty(facts, np.int32)))
        self.offsets = np.zeros(2, np.int64)  # of a single string
        numbers = [np.empty(size + 1, np.int32) for size in sizes]
        self.of_one = _lists(np.zeros((3, 2), np.int64), numbers)
        self.packed_lists = packed(self.of_one)


def _lists(ends: Array, numbers: Sequence[Array]) -> ListedTests:
    passed, failed, left_open = numbers
    return ListedTests(ends[0], passed, ends[1], failed, ends[2], left_open)


def _flat(texts: Sequence[bytes]) -> tuple[Array, Array]:
    """offsets[text + 1] and the bytes of all texts."""
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return offsets, np.frombuffer(b"".join(texts), np.uint8)


def _facts_of(
    texts: Sequence[tuple[int, bytes]], constants: Sequence[bytes], by_fact: Sequence[FactTests],
) -> TextFacts:  # fmt: skip
    """The facts about texts, then those about constants, and the tests that depend on each."""
    offsets, data = _flat([text for _, text in texts])
    edges = np.full(1 << (3 * len(data) // 2 + 1).bit_length(), NONE, np.int64)
    children = np.empty(len(edges), np.int32)
    roots = np.array([root for root, _ in texts], np.int32)
    ends = np.full(len(data) + ROOTS, NONE, np.int32)
    parents, depths = np.zeros((2, len(ends)), np.int32)
    nodes = NewNodes(ends, parents, np.zeros(len(ends), np.uint8), depths)
    size = insert_texts(offsets, data, roots, edges, children, nodes)
    fails, reports = np.empty((2, size), np.int32)
    order = np.argsort(depths[:size], kind="stable")
    link_nodes(order, nodes, edges, children, fails, reports)
    firsts = np.zeros(256, np.uint8)
    firsts[data[offsets[:-1][(roots == ANYWHERE) & (np.diff(offsets) > 0)]]] = 1
    starts = np.zeros(len(by_fact) + 1, np.int64)
    np.cumsum([len(own) for own in by_fact], out=starts[1:])
    numbers = np.array([number for own in by_fact for number, _ in own], np.int32)
    kinds = np.array([kind for own in by_fact for _, kind in own], np.uint8)
    constant_offsets, constant_data = _flat(constants)
    heads, suffixes, owners = _suffixes(constant_offsets, constant_data, by_fact[len(texts) :])
    return TextFacts(
        edges=edges, children=children, firsts=firsts, ends=ends[:size].copy(), fails=fails,
        reports=reports, data=constant_data, offsets=constant_offsets, heads=heads,
        suffixes=suffixes, owners=owners,
        longest=max(map(len, constants), default=0), first_part=len(texts), starts=starts,
        numbers=numbers, kinds=kinds,
    )  # fmt: skip


def _suffixes(
    offsets: Array, data: Array, by_fact: Sequence[FactTests]
) -> tuple[Array, Array, Array]:
    """The suffixes of constants in order: their heads, where they begin, and whose they are.

    They are ordered by their heads first. Then a suffix is compared by the ranks that its beginning
    and what follows it have in the order found so far, so that twice as many bytes count each time.
    """
    size, constants = len(data), np.arange(len(offsets) - 1)
    owners = np.repeat(constants, np.diff(offsets))
    places = np.arange(size)
    left = offsets[owners + 1] - places  # bytes from here to the end of the constant
    digits = np.append(data.astype(np.int64) + 1, np.zeros(HEAD, np.int64))
    keys = np.zeros(size, np.int64)
    for k in range(HEAD):
        keys = keys * DIGITS + np.where(left > k, digits[k : k + size], 0)
    heads, width, longest = keys, HEAD, int(left.max(initial=0))
    distinct, ranks = np.unique(keys, return_inverse=True)
    while width < longest and len(distinct) < size:
        after = np.append(ranks + 1, np.zeros(width, np.int64))[width:]
        keys = ranks * (size + 1) + np.where(left > width, after[:size], 0)
        distinct, ranks = np.unique(keys, return_inverse=True)
        width *= 2
    # Only suffixes with which a string can begin are kept, those at the first byte of a character;
    # and of constants that are only compared with `startswith`, only the whole constant.
    whole = [
        bool(one or other)
        for one, other in zip(by_fact[ANYWHERE::ROOTS], by_fact[END::ROOTS], strict=True)
    ]
    needed = (data & 0xC0 != 0x80) & np.array(whole, np.bool_)[owners]
    needed |= places == offsets[owners]
    chosen = np.flatnonzero(needed)
    order = chosen[np.argsort(ranks[chosen], kind="stable")]
    return heads[order], order.astype(np.int32), owners[order].astype(np.int32)
