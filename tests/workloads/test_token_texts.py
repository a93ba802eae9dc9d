"""Texts from tokens."""

import numpy as np
import pyarrow as pa

from tamis.workloads.token_texts import chunks, firsts, join_tokens


def test_tokens_are_joined_row_by_row():
    dictionary = pa.array(["ä", "", "ccc"])
    joined = join_tokens(dictionary, np.array([0, 2, 1, 1, 0]), np.array([2, 1, 0, 2]))
    joined.validate(full=True)
    assert joined.to_pylist() == ["äccc", "", "", "ä"]


def test_no_rows():
    none = np.zeros(0, np.int64)
    assert join_tokens(pa.array(["a"]), none, none).to_pylist() == []


def test_chunks_add_up():
    assert list(chunks(0)) == []
    assert list(chunks(7, 3)) == [3, 3, 1]
    assert list(chunks(6, 3)) == [3, 3]


def test_firsts():
    assert firsts(np.array([2, 1, 3])).tolist() == [0, 2, 3]
