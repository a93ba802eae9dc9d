"""How many events have the id of an earlier one, counted in bounded memory."""

import tempfile
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.profiles.hashes import hashes_of, shortened

Array = np.ndarray[Any, Any]

IN_MEMORY = 1 << 23  # hashes
_PARTS = 64  # files, by the first bits of a hash


class RepeatedIds:
    """Counts ids by their hashes of 64 bits; beyond `IN_MEMORY` of them they are kept in files."""

    def __init__(self) -> None:
        self._waiting: list[Array] = []
        self._size = 0
        self._files: list[IO[bytes]] = []

    def add(self, ids: pa.Array) -> None:
        """Count more ids; missing ones do not count."""
        present = ids.drop_null()
        if pa.types.is_integer(present.type):
            found = hashes_of(np.asarray(present.cast(pa.int64())))
        else:
            texts = present.cast(pa.string()) if not pa.types.is_nested(present.type) else (
                pa.array([repr(one) for one in present.to_pylist()], pa.string())
            )  # fmt: skip
            codes = pc.dictionary_encode(texts)
            found = hashes_of(shortened(codes.dictionary))[np.asarray(codes.indices)]
        self._waiting.append(found)
        self._size += len(found)
        if self._size >= IN_MEMORY:
            self._write()

    def _write(self) -> None:
        if not self._files:
            self._files = [tempfile.TemporaryFile() for _ in range(_PARTS)]  # noqa: SIM115 - closed by `count`
        everything = np.concatenate(self._waiting)
        parts = (everything >> np.uint64(58)).astype(np.int64)
        for number, file in enumerate(self._files):
            file.write(everything[parts == number].tobytes())
        self._waiting, self._size = [], 0

    def count(self) -> int:
        """How many ids came again."""
        if not self._files:
            return _repeated(np.concatenate([*self._waiting, np.empty(0, np.uint64)]))
        self._write()
        total = 0
        for file in self._files:
            file.seek(0)
            total += _repeated(np.frombuffer(file.read(), np.uint64))
            file.close()
        return total


def _repeated(hashes: Array) -> int:
    ordered = np.sort(hashes)
    return int(np.count_nonzero(ordered[1:] == ordered[:-1]))
