"""From bits to lists: the matches of each event, in ascending order of their slots.

`programs` finds the matches of a block of events as words: bit b of word w of a slot says whether
event 64 * w + b matches. They are either listed, as slot, word and bits, or in a matrix.
"""

from typing import Any

import numpy as np

from tamis.kernels.bits import count_ones, first_one, smaller
from tamis.kernels.jit import Number, inner, jit
from tamis.kernels.simd_rows import WORDS, write_bit_places

Array = np.ndarray[Any, Any]

NEAR = 4096  # slots of a matrix that stay in the cache while it is transposed
DIGIT = 11  # bits of a slot by which one pass sorts
FEW = 5  # bits of a word up to which writing them one by one is faster

# DIGITS[byte] has the places of the bits that are set in a byte, the lowest first, and then 0.
DIGITS: Array = np.zeros((256, 8), np.uint8)
for _byte in range(256):
    _set = [_place for _place in range(8) if _byte >> _place & 1]
    DIGITS[_byte, : len(_set)] = _set


@jit
def count_listed(words: Array, bits: Array, size: int, counts: Array) -> None:
    """Add the matches of the listed words to counts[event]."""
    for k in range(size):
        left = bits[k]
        base = np.int64(words[k]) * 64
        while left != 0:
            counts[base + first_one(left)] += 1
            left &= left - np.uint64(1)


@jit
def write_listed(
    slots: Array, words: Array, bits: Array, names: Array, places: Array, found: Array
) -> None:
    """Write names[slot] of every listed match to found[*], from places[event] on for each event."""
    size = slots.size
    for k in range(size):
        left = bits[k]
        base = np.int64(words[k]) * 64
        while left != 0:
            e = base + first_one(left)
            found[places[e]] = names[slots[k]]
            places[e] += 1
            left &= left - np.uint64(1)


def sort_unless_rising(found: Array, starts: Array) -> int:
    """Sort found[starts[e]:starts[e + 1]] where it is not ascending; returns how many were not."""
    events = np.empty(len(starts) - 1, np.int64)
    size = _find_unsorted(found, starts, events)
    for e in events[:size].tolist():
        found[starts[e] : starts[e + 1]].sort()
    return size


@jit
def _find_unsorted(found: Array, starts: Array, events: Array) -> int:
    """Write the events whose found[starts[e]:starts[e + 1]] is not ascending; returns how many."""
    size = 0
    for e in range(starts.size - 1):
        for k in range(starts[e] + 1, starts[e + 1]):
            if found[k - 1] > found[k]:
                events[size] = e
                size += 1
                break
    return size


def sort_listed(slots: Array, words: Array, bits: Array, most: int) -> None:
    """Sort the listed words by their slots, which are below `most`."""
    others = np.empty_like(slots), np.empty_like(words), np.empty_like(bits)
    _sort_listed(slots, words, bits, most, *others, np.empty((1 << DIGIT) + 1, np.int64))


@jit
def _sort_listed(
    slots: Array, words: Array, bits: Array, most: Number, other_slots: Array, other_words: Array,
    other_bits: Array, counts: Array,
) -> None:  # fmt: skip
    """A radix sort, the lowest digit first: each pass keeps the order of the one before."""
    size = slots.size
    shift = 0
    while most >> shift:
        for digit in range(counts.size):
            counts[digit] = 0
        for k in range(size):
            counts[1 + ((slots[k] >> shift) & ((1 << DIGIT) - 1))] += 1
        for digit in range(1 << DIGIT):
            counts[digit + 1] += counts[digit]
        for k in range(size):
            digit = (slots[k] >> shift) & ((1 << DIGIT) - 1)
            place = counts[digit]
            counts[digit] += 1
            other_slots[place], other_words[place] = slots[k], words[k]
            other_bits[place] = bits[k]
        for k in range(size):
            slots[k], words[k], bits[k] = other_slots[k], other_words[k], other_bits[k]
        shift += DIGIT


@inner
def transpose_square(block: Array) -> None:
    """Transpose a square of 64 words of 64 bits, in place."""
    width = 32
    mask = np.uint64(0x00000000FFFFFFFF)
    while width:
        shift = np.uint64(width)
        k = 0
        while k < 64:
            swap = ((block[k] >> shift) ^ block[k + width]) & mask
            block[k + width] ^= swap
            block[k] ^= swap << shift
            k = (k + width + 1) & ~width
        width >>= 1
        mask ^= mask << np.uint64(width) if width else np.uint64(0)


def transpose_matrix(matrix: Array, transposed: Array) -> None:
    """Write the bits of matrix[slot, word] to transposed[event, slot // 64].

    Writing matches slot by slot would write to 512 places at a time, and wait for memory.
    """
    _transpose_matrix(matrix, transposed, np.empty(64, np.uint64))


@jit
def _transpose_matrix(matrix: Array, transposed: Array, block: Array) -> None:
    """`transpose_matrix`, with scratch for a square."""
    slots = matrix.shape[0]
    for near in range(0, slots, NEAR):
        for w in range(WORDS):
            for start in range(near, smaller(near + NEAR, slots), 64):
                _load_square(matrix, start, w, block)
                transpose_square(block)
                for b in range(64):
                    transposed[w * 64 + b, start >> 6] = block[b]


@jit
def write_transposed(
    transposed: Array, begin: Number, first: Number, starts: Array, digits: Array, found: Array
) -> None:
    """Write first + slot for each bit of transposed[begin + event, *] to found[starts[event]:].

    Where there are many, eight slots are written at a time without a branch, and the next ones
    overwrite those that do not match; digits is DIGITS.
    """
    for e in range(starts.size - 1):
        place, end = starts[e], starts[e + 1]
        row = transposed[begin + e]
        for n in range(row.size):
            left = row[n]
            if left == 0:
                continue
            base = first + 64 * n
            if place + 64 <= end and count_ones(left) > FEW:
                for k in range(8):
                    byte = (left >> np.uint64(8 * k)) & np.uint64(255)
                    write_bit_places(found, place, byte, digits, base + 8 * k)
                    place += count_ones(byte)
            else:
                while left != 0:
                    found[place] = base + first_one(left)
                    place += 1
                    left &= left - np.uint64(1)


@jit
def write_numbers(numbers: Array, counts: Array, found: Array) -> None:
    """Write numbers[event] to found[*] as often as counts[event] says, one after the other."""
    place = 0
    for e in range(counts.size):
        end = place + counts[e]
        found[place:end] = numbers[e]  # a slice, which the compiler writes eight at a time
        place = end


@inner
def _load_square(matrix: Array, start: int, word: int, block: Array) -> None:
    """Copy matrix[start:start + 64, word] to block[*], with zeros after the last slot."""
    size = smaller(64, matrix.shape[0] - start)
    for k in range(size):
        block[k] = matrix[start + k, word]
    for k in range(size, 64):
        block[k] = 0
