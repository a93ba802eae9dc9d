"""The distinct predicates of a segment, in arrays.

See `tamis.kernels.value_classes` for cuts, numbers and references. After the cuts of all attributes
come the predicates that are listed by value: first IN, then tests, then NOT IN by attribute.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.errors import CapacityError
from tamis.kernels.event_truth import FlatCuts, NumberOwners
from tamis.kernels.predicate_rows import SETS, PredicateNumbering
from tamis.kernels.value_classes import MOST_CUTS, REF_KINDS
from tamis.language.ast import Node

Array = np.ndarray[Any, Any]

HOMES = 4096  # about the number of entries of the table from numbers to attributes


class Texts(NamedTuple):
    """Strings in UTF-8: text k is data[offsets[k]:offsets[k + 1]]."""

    offsets: Array  # int64[*]
    data: Array  # uint8[*]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def to_arrow(self) -> pa.Array:
        """The same bytes, not copied."""
        buffers = [None, pa.py_buffer(self.offsets), pa.py_buffer(self.data)]
        return pa.Array.from_buffers(pa.large_binary(), len(self), buffers)


def texts_of(values: pa.Array) -> Texts:
    """The bytes of an Arrow array of strings or bytes, which has no nulls."""
    values = values.cast(pa.large_binary())
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    offsets = np.frombuffer(values.buffers()[1], np.int64)[values.offset :][: len(values) + 1]
    data = values.buffers()[2]
    whole = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    first = int(offsets[0])
    return Texts(offsets - first, whole[first : int(offsets[-1])])


NO_TEXTS = Texts(np.zeros(1, np.int64), np.empty(0, np.uint8))
Cuts = Array | Texts  # of one attribute: keys or strings, ascending, distinct


def flattened(cuts: Sequence[Cuts]) -> FlatCuts:
    """The cuts of all attributes, one after the other."""
    at: list[int] = []
    keys, offsets, data = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [NO_TEXTS.data]
    used = [0, 0, 0]
    for part in cuts:
        if isinstance(part, Texts):
            at.append(used[1])
            offsets.append(part.offsets + used[2])
            data.append(part.data)
            used[1] += len(part.offsets)
            used[2] += len(part.data)
        else:
            at.append(used[0])
            keys.append(part)
            used[0] += len(part)
    ends = [
        start + (len(part.offsets) if isinstance(part, Texts) else len(part))
        for start, part in zip(at, cuts, strict=True)
    ]
    bounds = np.array([at, ends], np.int64)
    return FlatCuts(bounds, np.concatenate(keys), np.concatenate(offsets), np.concatenate(data))


class Sets(NamedTuple):
    """Sets of constants: set k has members[at[k]:at[k + 1]], which are cuts, ascending."""

    attributes: Array  # int32[set]
    at: Array  # int64[set + 1]
    members: Array  # int32[*]


class SegmentPredicates:
    """Numbers for the cuts, sets and tests of a segment; they never change."""

    def __init__(
        self, flat: FlatCuts, is_text: Sequence[bool], in_sets: Sets, out_sets: Sets,
        test_attributes: Sequence[int], tests: Callable[[], Sequence[Node]],
        terms: Callable[[], Sequence[Node]],
    ) -> None:  # fmt: skip
        """`in_sets` are the sets of IN, `out_sets` those of NOT IN, by ascending attribute.

        Their members are numbers that count from 0 in each attribute. After the attributes of the
        schema come those that stand for terms (`predicates.computed_values`). Tests of several
        attributes have the attribute len(cuts). `tests` and `terms` make the tests and the terms
        when they are needed; tests are written without the attributes that stand for terms.
        """
        self.flat = flat
        self.cuts = tuple(self._part(a, text) for a, text in enumerate(is_text))
        self._make_tests, self._make_terms = tests, terms
        self.test_attributes = tuple(test_attributes)
        self.local_in_sets, self.local_out_sets = in_sets, out_sets
        attributes = len(self.cuts)
        sizes = np.array([len(part) + 1 for part in self.cuts], np.int64)
        self.shift = max(0, int(sizes.sum()).bit_length() - HOMES.bit_length())
        step = 1 << self.shift
        self.starts = np.zeros(attributes + 1, np.int64)
        np.cumsum((sizes + step - 1) // step * step, out=self.starts[1:])
        self.base = int(self.starts[-1])  # the first number after all cuts
        self.in_sets = _numbered(in_sets, self.starts)
        self.out_sets = _numbered(out_sets, self.starts)
        self.first_test = len(in_sets.attributes)
        self.first_out = self.first_test + len(self.test_attributes)
        self.listed = self.first_out + len(out_sets.attributes)
        self.size = self.base + self.listed
        if self.size >= MOST_CUTS:
            raise CapacityError(
                f"the sliced engine holds up to {MOST_CUTS:,} distinct constants in one piece, "
                f"and there are {self.size:,}; use several matchers"
            )
        owners = np.arange(attributes, dtype=np.int32)
        self.number_owners = NumberOwners(
            np.repeat(owners, np.diff(self.starts) >> self.shift), self.shift
        )

    @classmethod
    def of(
        cls, cuts: Sequence[Cuts], in_sets: Sets, tests: Sequence[Node], out_sets: Sets,
        test_attributes: Sequence[int], terms: Sequence[Node] = (),
    ) -> "SegmentPredicates":  # fmt: skip
        """The predicates of the cuts of each attribute, of sets and of tests."""
        is_text = [isinstance(part, Texts) for part in cuts]
        known, of_terms = tuple(tests), tuple(terms)
        return cls(
            flattened(cuts), is_text, in_sets, out_sets, test_attributes, lambda: known,
            lambda: of_terms,
        )  # fmt: skip

    @cached_property
    def tests(self) -> tuple[Node, ...]:
        """The tests, by number."""
        return tuple(self._make_tests())

    @cached_property
    def terms(self) -> tuple[Node, ...]:
        """The terms that the last attributes stand for."""
        return tuple(self._make_terms())

    def _part(self, attribute: int, is_text: bool) -> Cuts:
        """The cuts of an attribute, as a view of the flat ones."""
        start, end = (int(bound) for bound in self.flat.at[:, attribute])
        if is_text:
            return Texts(self.flat.offsets[start:end], self.flat.data)
        return self.flat.keys[start:end]

    def attributes_of(self, refs: Array) -> Array:
        """The attribute of each reference, -1 for those of sets and tests."""
        numbers = refs // REF_KINDS
        found = np.full(refs.shape, -1, np.int32)
        inside = numbers < self.base
        found[inside] = self.number_owners.attributes[numbers[inside] >> self.shift]
        return found

    def numbering(self, masks: Array) -> PredicateNumbering:
        """What kernels need, where `masks` are the kinds that are used of each attribute."""
        members = np.concatenate([self.in_sets.members, self.out_sets.members])
        numbers = np.concatenate(
            [
                np.repeat(np.arange(self.first_test), np.diff(self.in_sets.at)),
                np.repeat(np.arange(self.first_out, self.listed), np.diff(self.out_sets.at)),
            ]
        )
        order = np.argsort(members, kind="stable")
        cuts, firsts = np.unique(members[order], return_index=True)
        masks = masks.copy()
        for attribute in {*self.in_sets.attributes.tolist(), *self.out_sets.attributes.tolist()}:
            masks[attribute] |= SETS
        attributes = np.arange(len(self.cuts) + 1)
        return PredicateNumbering(
            starts=self.starts, masks=masks, set_cuts=cuts.astype(np.int32),
            set_at=np.append(firsts, len(members)).astype(np.int64),
            set_numbers=numbers[order].astype(np.int32),
            absent_from=self.first_out + np.searchsorted(self.out_sets.attributes, attributes),
        )  # fmt: skip

    def nbytes(self) -> int:
        """Bytes of the arrays."""
        arrays = [
            self.starts,
            self.number_owners.attributes,
            *self.in_sets,
            *self.out_sets,
            *self.flat,
        ]
        return sum(array.nbytes for array in arrays)


def _numbered(sets: Sets, starts: Array) -> Sets:
    """The members as numbers of cuts of the segment."""
    owners = np.repeat(sets.attributes, np.diff(sets.at))
    members = (sets.members + starts[owners] + 1 if len(owners) else sets.members).astype(np.int32)
    return Sets(sets.attributes.astype(np.int32), sets.at.astype(np.int64), members)
