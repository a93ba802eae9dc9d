"""The counting algorithm: from satisfied predicates to conjunctions (COUNT, section 3.3).

COUNT is short for Ashayer, Leung and Jacobsen, "Predicate matching and subscription matching in
publish/subscribe systems" (DEBS 2002).

Dimensions: p is a predicate, s one of those that an event satisfies, c a conjunction by its slot.
The hit vector counts the satisfied predicates of each conjunction; the count vector, which the
paper calls the subscription-predicate count vector, says how many predicates it has. A conjunction
matches if the two are equal. The association of predicates with conjunctions has three forms:
lists, a matrix of bits, and a matrix of bytes. Every kernel leaves the hit vector all zero.
"""

from typing import Any

import numpy as np

from tamis.kernels.bits import larger
from tamis.kernels.jit import inner, jit

Array = np.ndarray[Any, Any]

DENSE = 16  # comparing a conjunction at the end costs a sixteenth of counting one predicate of it


@jit
def count_lists(
    satisfied: Array, start: Array, length: Array, pool: Array, hit_vector: Array,
    count_vector: Array, touched: Array,
) -> int:  # fmt: skip
    """Write the conjunctions that match to touched[*], and return how many there are.

    Predicate p is in the list pool[start[p]:start[p] + length[p]]; satisfied[s], hit_vector[c],
    count_vector[c]. Where the lists are long,
    it is faster to count without remembering what was touched, and to compare all conjunctions at
    the end: neither has a branch.
    """
    total = 0
    for s in range(satisfied.size):
        total += length[satisfied[s]]
    if total * DENSE > hit_vector.size:
        for s in range(satisfied.size):
            p = satisfied[s]
            for k in range(start[p], start[p] + length[p]):
                hit_vector[pool[k]] += 1
        return _equal(hit_vector.size, hit_vector, count_vector, touched)
    count = 0
    for s in range(satisfied.size):
        p = satisfied[s]
        for k in range(start[p], start[p] + length[p]):
            c = pool[k]
            if hit_vector[c] == 0:
                touched[count] = c
                count += 1
            hit_vector[c] += 1
    found = 0
    for k in range(count):
        c = touched[k]
        if hit_vector[c] == count_vector[c]:
            touched[found] = c
            found += 1
        hit_vector[c] = 0
    return found


@jit
def mark_bits(predicates: Array, matrix: Array, conjunction: int) -> None:
    """Associate a conjunction with predicates in a matrix of bits."""
    word = conjunction // 64
    bit = np.uint64(1) << np.uint64(conjunction % 64)
    for k in range(predicates.size):
        matrix[predicates[k], word] |= bit


@jit
def mark_bytes(predicates: Array, matrix: Array, conjunction: int) -> None:
    """Associate a conjunction with predicates in a matrix of bytes."""
    for k in range(predicates.size):
        matrix[predicates[k], conjunction] = 1


@jit
def count_bits(
    satisfied: Array,
    matrix: Array,
    words: int,
    hit_vector: Array,
    count_vector: Array,
    found: Array,
) -> int:
    """Write the conjunctions that match to found[*], and return how many there are.

    matrix[p, word] has a bit for each of 64 conjunctions; satisfied[s], hit_vector[c],
    count_vector[c].
    """
    for s in range(satisfied.size):
        p = satisfied[s]
        for w in range(words):
            word = matrix[p, w]
            c = w * 64
            while word:
                # Eight conjunctions at once where none of them has the predicate.
                while word & np.uint64(0xFF) == 0:
                    word >>= np.uint64(8)
                    c += 8
                for bit in range(8):
                    hit_vector[c + bit] += (word >> np.uint64(bit)) & np.uint64(1)
                word >>= np.uint64(8)
                c += 8
    return _equal(words * 64, hit_vector, count_vector, found)


@jit
def count_bytes(
    satisfied: Array, matrix: Array, size: int, hit_vector: Array, count_vector: Array, found: Array
) -> int:
    """Write the conjunctions that match to found[*], and return how many there are.

    matrix[p, c] has a byte for each conjunction, the paper's "regular" form; satisfied[s],
    hit_vector[c], count_vector[c].
    """
    for s in range(satisfied.size):
        p = satisfied[s]
        for c in range(size):
            hit_vector[c] += matrix[p, c]
    return _equal(size, hit_vector, count_vector, found)


@inner
def _equal(size: int, hit_vector: Array, count_vector: Array, found: Array) -> int:
    """Write where the hit vector equals the count vector; clears the hit vector."""
    count = 0
    for c in range(size):
        # Always written, and kept only if it matches: there is no branch to predict.
        found[count] = c
        count += (hit_vector[c] == count_vector[c]) & (count_vector[c] > 0)
        hit_vector[c] = 0
    return count


@jit
def link(
    predicates: Array, slot: int, start: Array, length: Array, capacity: Array, pool: Array,
    used: int,
) -> int:  # fmt: skip
    """Append a slot to the list of each predicate; a full list moves to the end of the pool.

    Returns how much of the pool is used now. If the pool is too small, nothing changes and the
    result is -1.
    """
    need = 0
    for k in range(predicates.size):
        p = predicates[k]
        if length[p] == capacity[p]:
            need += larger(4, 2 * capacity[p])
    if used + need > pool.size:
        return -1
    for k in range(predicates.size):
        p = predicates[k]
        if length[p] == capacity[p]:
            for j in range(length[p]):
                pool[used + j] = pool[start[p] + j]
            start[p] = used
            capacity[p] = larger(4, 2 * capacity[p])
            used += capacity[p]
        pool[start[p] + length[p]] = slot
        length[p] += 1
    return used


@jit
def unlink(predicates: Array, slot: int, start: Array, length: Array, pool: Array) -> None:
    """Take a slot out of the list of each predicate; the last of the list takes its place."""
    for k in range(predicates.size):
        p = predicates[k]
        last = start[p] + length[p] - 1
        for j in range(start[p], last + 1):
            if pool[j] == slot:
                pool[j] = pool[last]
                break
        length[p] -= 1
