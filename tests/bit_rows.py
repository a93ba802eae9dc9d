"""Rows of bits, as tests read them."""

import numpy as np

EVERY_BIT = 2**64 - 1


def digits(words):
    """words[..., word] as bits[..., event], the lowest bit first."""
    found = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=-1, bitorder="little")
    return found.astype(bool)
