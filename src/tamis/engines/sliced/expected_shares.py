"""The share of events that a predicate is expected to be true of."""

from typing import Any

import numpy as np

from tamis.engines.sliced.element_sets import element_classes
from tamis.engines.sliced.interning import InternedFilters
from tamis.engines.sliced.segment_predicates import SegmentPredicates
from tamis.engines.sliced.value_classes import classes_of
from tamis.kernels.comparisons import AT_LEAST, BELOW, EQUAL
from tamis.kernels.value_classes import REF_KINDS
from tamis.language import ast
from tamis.predicates.classification import (
    LikeTest,
    OtherTest,
    PairComparison,
    PartTest,
    RegexTest,
    StringTest,
    Test,
    classify,
)
from tamis.predicates.computed_values import ComputedAttributes
from tamis.predicates.event_batches import Batch

Array = np.ndarray[Any, Any]

# The share of events that a predicate is true of, by its kind. That of an equality is divided by
# the number of constants that the attribute is compared with, that of a test by the number of tests
# that are not negated.
EQUALITY, SET, TEST, RANGE, OTHER = 0.5, 0.3, 0.5, 0.5, 0.95
# At least this share of strings has a text of one character: anywhere in it, or at one end. It is
# multiplied by the same number for each further character.
ANYWHERE, AT_END = 0.2, 0.1


class ExpectedShares:
    """The share of events that a predicate is expected to be true of, judged by the filters."""

    def __init__(self, filters: InternedFilters) -> None:
        self._predicates = predicates = filters.predicates
        attributes = len(predicates.cuts)
        self.masks = np.zeros(attributes, np.int64)
        equal = np.zeros(predicates.base, np.bool_)
        for every in filters.references():
            refs = every[every < predicates.base * REF_KINDS]
            kinds = refs % REF_KINDS
            owners = predicates.attributes_of(refs)
            np.bitwise_or.at(self.masks, owners, 1 << kinds.astype(np.int64))
            equal[refs[kinds == EQUAL] // REF_KINDS] = True
        owners = predicates.attributes_of(np.flatnonzero(equal) * REF_KINDS)
        self._constants = np.bincount(owners, minlength=attributes)
        self._listed = np.full(predicates.listed + 1, OTHER)
        sets = predicates.in_sets
        # Where only sets have constants, as for the elements of arrays, these are what counts.
        members = predicates.attributes_of(np.unique(sets.members).astype(np.int64) * REF_KINDS)
        listed = np.bincount(members, minlength=attributes)
        self._constants = np.maximum(np.where(self._constants, self._constants, listed), 1)
        sizes = np.diff(sets.at) * EQUALITY / self._constants[sets.attributes]
        self._listed[: len(sets.attributes)] = np.minimum(SET, sizes)
        self._listed[predicates.first_test : predicates.first_out] = _shares_of_tests(predicates)

    def of(self, refs: Array) -> Array:
        """shares[...]: the expected share of events for each reference."""
        attributes, kinds = self._predicates.attributes_of(refs), refs % REF_KINDS
        found = np.full(refs.shape, OTHER)
        ranges = (kinds >= BELOW) & (kinds <= AT_LEAST)
        found[ranges] = RANGE
        equal = (kinds == EQUAL) & (attributes >= 0)
        found[equal] = EQUALITY / self._constants[attributes[equal]]
        listed = attributes < 0
        found[listed] = self._listed[refs[listed] // REF_KINDS - self._predicates.base]
        return found

    def findable(self, refs: Array) -> Array:
        """Whether an event's values lead to a predicate: equalities, IN and tests."""
        numbers = refs // REF_KINDS
        listed = (numbers >= self._predicates.base) & (
            numbers < self._predicates.base + self._predicates.first_out
        )
        found: Array = listed | ((numbers < self._predicates.base) & (refs % REF_KINDS == EQUAL))
        return found


def _shares_of_tests(predicates: SegmentPredicates) -> Array:
    """shares[test]: the expected share of events for each test."""
    tests = [classify(test) for test in predicates.tests]
    of = np.array(predicates.test_attributes, np.int64)
    plain = of[[not getattr(test, "negated", False) for test in tests]] if tests else of
    alike = np.maximum(np.bincount(plain, minlength=len(predicates.cuts) + 1), 1)
    usual = (TEST / alike[of]).tolist()
    return np.array([_share_of(test, one) for test, one in zip(tests, usual, strict=True)])


def _share_of(test: Test, usual: float) -> float:
    """The expected share of one test; `usual` is that of a test of which no more is known."""
    match test:
        case StringTest(_, place, text, negated=False):
            return max(usual, (ANYWHERE if place == "contains" else AT_END) ** len(text))
        case LikeTest(_, pattern, _, negated=False):
            return max(usual, AT_END ** len(pattern.replace("%", "").replace("_", "")))
        case PairComparison(_, op, _) if op not in {"=", "<>"}:
            return RANGE
        case PairComparison(_, "="):
            return usual
        case PartTest(negated=False) | RegexTest(negated=False) | OtherTest(negated=False):
            return usual
        case _:
            return OTHER


class ProfiledShares(ExpectedShares):
    """The share of events that a predicate is true of, as counted in the events of a profile."""

    def __init__(self, filters: InternedFilters, events: Batch) -> None:
        super().__init__(filters)
        predicates = self._predicates
        used = np.flatnonzero(self.masks | self._with_sets())
        if predicates.terms:
            events = ComputedAttributes(events.schema, predicates.terms).batch(events)
        classes: list[Array] = list(classes_of(events, predicates, used))
        for number, term in enumerate(predicates.terms):
            if isinstance(term, ast.Elements):
                a = len(predicates.cuts) - len(predicates.terms) + number
                first = int(predicates.starts[a]) + 1
                classes[a] = element_classes(events.columns[a], predicates.cuts[a], first)
        classes = [np.sort(line) for line in classes]  # missing values come first
        self._size = max(events.size, 1)
        self._classes = [line[np.searchsorted(line, 0) :] for line in classes]
        sets = predicates.in_sets
        members = self.of((sets.members.astype(np.int64)) * REF_KINDS + EQUAL)
        sums = np.add.reduceat(members, sets.at[:-1]) if len(members) else members
        self._listed[: len(sets.attributes)] = np.minimum(sums, 1.0)

    def of(self, refs: Array) -> Array:
        found = super().of(refs)
        attributes, kinds = self._predicates.attributes_of(refs), refs % REF_KINDS
        for attribute in np.unique(attributes[attributes >= 0]).tolist():
            mine = attributes == attribute
            known = self._classes[attribute]
            here = 2 * (refs[mine] // REF_KINDS) + 1
            below = np.searchsorted(known, here, side="left")
            upto = np.searchsorted(known, here, side="right")
            all_ = np.full(len(here), len(known))
            by_kind = np.array(
                [upto - below, all_ - (upto - below), below, upto, all_ - upto, all_ - below, all_,
                 self._size - all_]
            )  # fmt: skip
            # What was never seen may still come: it counts as half an event.
            counted = by_kind[kinds[mine], np.arange(len(here))] + 0.5
            found[mine] = np.minimum(counted / self._size, 1.0)
        return found

    def _with_sets(self) -> Array:
        flags = np.zeros_like(self.masks)
        flags[self._predicates.in_sets.attributes] = 1
        return flags
