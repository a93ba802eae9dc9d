"""Hashes of values in 64 bits, the same in every process and on every machine.

Nothing here loops over values in Python, but for strings beyond `LONGEST`.
"""

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.container import text_buffers

Array = np.ndarray[Any, Any]

LONGEST = 128  # bytes of a string that is kept as it is
_AT_ONCE = 1 << 13  # strings, because each byte of them becomes several words


def mixed(numbers: Array) -> Array:
    """Whole numbers spread over 64 bits, no two to the same: the end of SplitMix64."""
    spread = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    spread ^= spread >> np.uint64(30)
    spread *= np.uint64(0xBF58476D1CE4E5B9)
    spread ^= spread >> np.uint64(27)
    spread *= np.uint64(0x94D049BB133111EB)
    found: Array = spread ^ (spread >> np.uint64(31))
    return found


_FACTORS = mixed(np.arange(LONGEST)) | np.uint64(1)


def hashes_of(values: Any) -> Array:
    """Of keys in numpy, or of strings in Arrow that `shortened` gave."""
    if isinstance(values, np.ndarray):
        return mixed(values)
    parts = [
        _text_hashes(values.slice(start, _AT_ONCE)) for start in range(0, len(values), _AT_ONCE)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


def _text_hashes(texts: pa.Array) -> Array:
    """The sum of the bytes, each times a factor of its place."""
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
    """Distinct strings; long ones as `standing_for` has them."""
    is_long = pc.greater(pc.binary_length(texts), LONGEST)
    if not pc.any(is_long).as_py():
        return texts
    short = [standing_for(text) for text in texts.filter(is_long).to_pylist()]
    return pc.replace_with_mask(texts, is_long, pa.array(short, texts.type))


def standing_for(text: str) -> str:
    """A string, or the beginning of a long one with a hash that tells it from all others.

    >>> standing_for("short"), standing_for("ab" * 500)[-20:]
    ('short', 'aba…d8b00abc0c085406')
    """
    whole = text.encode()
    if len(whole) <= LONGEST:
        return text
    end = f"…{hashlib.blake2b(whole, digest_size=8).hexdigest()}"
    return whole[: LONGEST - len(end.encode())].decode(errors="ignore") + end
