"""The second stage of counting: from satisfied predicates to conjunctions (COUNT, section 3.3).

``hits[c]`` counts the satisfied predicates of a conjunction, ``needed[c]`` is how many it has; it
matches when the two are equal. The association of predicates with conjunctions has three forms:
lists, a matrix of bits, a matrix of bytes. A kernel leaves ``hit_vector`` all zero.
"""

from typing import Any

import numpy as np

from tamis.kernels.jit import jit

Array = np.ndarray[Any, Any]

DENSE = 16  # sweeping a conjunction costs about as much as a sixteenth of counting one


@jit
def count_lists(
    satisfied: Array, start: Array, length: Array, pool: Array, hit_vector: Array,
    count_vector: Array, touched: Array,
) -> Array:  # fmt: skip
    """satisfied[s], start[p], length[p], pool[*] of slots, hits[c], needed[c], touched[c].

    Where the lists are long, counting without remembering what was touched and comparing all
    conjunctions at the end is faster: neither has a branch.
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
    return touched[:found].copy()


@jit
def count_bits(
    satisfied: Array,
    matrix: Array,
    words: int,
    hit_vector: Array,
    count_vector: Array,
    found: Array,
) -> Array:
    """satisfied[s], matrix[p, word] of 64 conjunctions each, hits[c], needed[c], found[c]."""
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
) -> Array:
    """satisfied[s], matrix[p, c], hits[c], needed[c], found[c]."""
    for s in range(satisfied.size):
        p = satisfied[s]
        for c in range(size):
            hit_vector[c] += matrix[p, c]
    return _equal(size, hit_vector, count_vector, found)


@jit
def _equal(size: int, hit_vector: Array, count_vector: Array, found: Array) -> Array:
    count = 0
    for c in range(size):
        # Written always and kept only if it counts: nothing for the processor to guess.
        found[count] = c
        count += (hit_vector[c] == count_vector[c]) & (count_vector[c] > 0)
        hit_vector[c] = 0
    return found[:count].copy()


@jit
def link(
    predicates: Array, slot: int, start: Array, length: Array, capacity: Array, pool: Array,
    used: int,
) -> int:  # fmt: skip
    """Append a slot to the list of each predicate; a full list moves to the end of the pool.

    Returns how much of the pool is used now, or -1, having changed nothing, if it is too small.
    """
    need = 0
    for k in range(predicates.size):
        p = predicates[k]
        if length[p] == capacity[p]:
            need += max(4, 2 * capacity[p])
    if used + need > pool.size:
        return -1
    for k in range(predicates.size):
        p = predicates[k]
        if length[p] == capacity[p]:
            for j in range(length[p]):
                pool[used + j] = pool[start[p] + j]
            start[p] = used
            capacity[p] = max(4, 2 * capacity[p])
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
