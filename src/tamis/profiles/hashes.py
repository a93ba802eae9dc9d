"""Hashes of values in 64 bits, the same in every process and on every machine.

Nothing here loops over values in Python, except over strings longer than `LONGEST`.
"""

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.container import text_buffers

Array = np.ndarray[Any, Any]

LONGEST = 128  # bytes of a string that is kept whole
_AT_ONCE = 1 << 13  # strings hashed at once: each of their bytes becomes several words


def mixed(numbers: Array) -> Array:
    """Whole numbers spread over 64 bits, different ones to different numbers, as in SplitMix64."""
    spread = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    spread ^= spread >> np.uint64(30)
    spread *= np.uint64(0xBF58476D1CE4E5B9)
    spread ^= spread >> np.uint64(27)
    spread *= np.uint64(0x94D049BB133111EB)
    found: Array = spread ^ (spread >> np.uint64(31))
    return found


_FACTORS = mixed(np.arange(LONGEST)) | np.uint64(1)


def hashes_of(values: Any) -> Array:
    """The hashes of keys in numpy, or of strings in Arrow from `shortened`."""
    if isinstance(values, np.ndarray):
        return mixed(values)
    parts = [
        _text_hashes(values.slice(start, _AT_ONCE)) for start in range(0, len(values), _AT_ONCE)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def _text_hashes(texts: pa.Array) -> Array:
    """Hashes by the sum of the bytes, each times a factor of its place."""
    offsets, data = text_buffers(texts)
    first = int(offsets[0])
    lengths = np.diff(offsets)
    places = np.arange(int(offsets[-1]) - first) - np.repeat(offsets[:-1] - first, lengths)
    terms = data[first : int(offsets[-1])].astype(np.uint64) * _FACTORS[places]
    sums = np.zeros(len(terms) + 1, np.uint64)
    np.cumsum(terms, out=sums[1:])  # it wraps around, and so do the differences
    found = sums[offsets[1:] - first] - sums[offsets[:-1] - first]
    return mixed(found + mixed(lengths))


def shortened(texts: pa.Array) -> pa.Array:
    """Distinct strings, with long ones shortened by `shortened_text`."""
    is_long = pc.greater(pc.binary_length(texts), LONGEST)
    if not pc.any(is_long).as_py():
        return texts
    short = [shortened_text(text) for text in texts.filter(is_long).to_pylist()]
    return pc.replace_with_mask(texts, is_long, pa.array(short, texts.type))


def shortened_text(text: str) -> str:
    """A string, or the beginning of a long one with a hash that distinguishes it from all others.

    >>> shortened_text("short"), shortened_text("ab" * 500)[-20:]
    ('short', 'aba…d8b00abc0c085406')
    """
    whole = text.encode()
    if len(whole) <= LONGEST:
        return text
    end = f"…{hashlib.blake2b(whole, digest_size=8).hexdigest()}"
    return whole[: LONGEST - len(end.encode())].decode(errors="ignore") + end
