"""Small files of arrays, sound and forged, and what reading them says."""

import json
import struct
import zlib

import numpy as np
import pytest

from tamis import FileError
from tamis.container import (
    ALIGNMENT,
    MAGIC,
    open_container,
    write,
)

META = {"engine": "sliced", "count": 3, "none": None, "list": [1, 2.5, "é\n"], "map": {"": True}}


def small(path):
    """A file that has a bit of everything."""
    sections = {"a": np.arange(100, dtype=np.int32), "none": b"", "b": b"some bytes"}
    write(path, META, sections)
    return path


def contents(path):
    opened = open_container(path)
    return opened.meta, {name: opened.array(name).tolist() for name in opened}


def refusal(path):
    with pytest.raises(FileError) as caught:
        open_container(path)
    return str(caught.value)


def forged(path, content, room=0, **changes):
    """A file whose checksum is right, whatever its header says."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    base = -(-(32 + len(text)) // ALIGNMENT) * ALIGNMENT
    lengths = {"header": len(text), "total": base + room} | changes
    start = MAGIC + struct.pack("<IQQ", 1, lengths["header"], lengths["total"])
    start += struct.pack("<I", zlib.crc32(text, zlib.crc32(start))) + text
    path.write_bytes(start + b"\0" * (base - len(start)) + b"\0" * room)
    return path


def entry(**changes):
    fields = {"name": "a", "dtype": "u4", "shape": [4], "offset": 0, "length": 16}
    return fields | {"crc32": zlib.crc32(b"\0" * 16)} | changes
