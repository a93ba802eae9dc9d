"""Memory of results: used again when nothing refers to it, and never before."""

import threading

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis import memory
from tamis.memory import SMALLEST, ResultMemory, block_size

MEGABYTE = 1 << 20


def address(array):
    return array.__array_interface__["data"][0]


@given(st.integers(1, 1 << 40))
def test_blocks_have_few_sizes_and_waste_little(needed):
    size = block_size(needed)
    assert needed <= size <= needed * 5 / 4 + 1
    assert block_size(size) == size


def test_a_block_is_used_again_when_its_array_has_gone():
    blocks = ResultMemory(8 * MEGABYTE)
    first = blocks.take(MEGABYTE, np.int32)
    place = address(first)
    assert blocks.free() == 0
    second = blocks.take(MEGABYTE, np.int32)
    assert address(second) != place
    del first
    assert blocks.free() == 4 * MEGABYTE
    third = blocks.take(900_000, np.int32)  # a little smaller
    assert (address(third), len(third), third.flags.writeable) == (place, 900_000, True)
    assert address(blocks.take(100_000, np.int32)) != place


def _table(codes):
    dictionary = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(["x"]), safe=False)
    return pa.table({"subscription": dictionary})


@each(
    "refer",
    [
        lambda array: array[10:20],
        lambda array: array.view(np.int64)[3:4],
        memoryview,
        pa.array,
        lambda array: pa.array(array).slice(5, 7),
        lambda array: pa.chunked_array([pa.array(array)]).chunk(0),
        lambda array: _table(array).slice(1, 2).to_batches(),
        lambda array: _table(array)["subscription"].chunk(0).indices,
        lambda array: pa.array(array).buffers()[1],
        lambda array: np.asarray(pa.array(array)),
    ],
)
def test_whatever_refers_to_a_block_keeps_it(refer):
    blocks = ResultMemory(8 * MEGABYTE)
    array = blocks.take(MEGABYTE, np.int32)
    array[:] = 0
    reference = refer(array)
    del array
    assert blocks.free() == 0
    blocks.take(MEGABYTE, np.int32)[:] = 7
    del reference
    assert blocks.free() == 8 * MEGABYTE


def test_small_arrays_are_not_kept():
    blocks = ResultMemory(MEGABYTE)
    blocks.take(SMALLEST // 4 - 1, np.int32)
    blocks.take(0, np.int64)
    assert blocks.free() == 0


def test_what_is_free_is_bounded():
    blocks = ResultMemory(3 * MEGABYTE)
    held = [blocks.take(MEGABYTE, np.uint8) for _ in range(5)]
    places = [address(one) for one in held]
    while held:
        held.pop(0)
    assert blocks.free() == 3 * MEGABYTE
    again = [address(one) for one in [blocks.take(MEGABYTE, np.uint8) for _ in range(3)]]
    assert sorted(again) == sorted(places[2:])
    blocks.take(4 * MEGABYTE, np.uint8)  # larger than all that may be free
    assert blocks.free() <= 3 * MEGABYTE


def test_what_is_not_used_for_long_is_given_back(monkeypatch):
    monkeypatch.setattr(memory, "IDLE", 10)
    blocks = ResultMemory(8 * MEGABYTE)
    blocks.take(4 * MEGABYTE, np.uint8)
    for _ in range(9):
        blocks.take(MEGABYTE, np.uint8)
    assert blocks.free() == 5 * MEGABYTE
    for _ in range(2):
        blocks.take(MEGABYTE, np.uint8)
    assert blocks.free() == MEGABYTE


def test_threads_never_share_a_block():
    blocks, shared = ResultMemory(64 * MEGABYTE), []

    def work(number):
        for turn in range(300):
            array = blocks.take(SMALLEST + 1000 * (turn % 7), np.uint8)
            array[:] = number
            other = pa.array(array[: len(array) // 2])
            del array
            if (np.asarray(other) != number).any():
                shared.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not shared
