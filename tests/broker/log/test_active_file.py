"""A file of frames that is written again, because nobody knows what of it is on the disk."""

import pytest

from tamis import Schema
from tamis.broker.log.active_file import INDEX_STEP, ActiveFile
from tamis.broker.log.disk import LocalDisk
from tamis.broker.log.event_decoder import EventDecoder
from tamis.broker.log.frames import NewRecord


class WatchedDisk(LocalDisk):
    """A disk that notes where it was written to."""

    def __init__(self):
        super().__init__()
        self.starts = []

    def write(self, path, position, data):
        self.starts.append(position)
        super().write(path, position, data)


@pytest.fixture
def file(tmp_path):
    """A file with ten records, each of which has an entry of the index."""
    decoder = EventDecoder(Schema({"s": "string"}))
    made = ActiveFile.begin(WatchedDisk(), tmp_path, 100, 100, decoder)
    for number in range(10):
        made.append([NewRecord(number, "", b"", b'{"s": "%s"}' % (b"x" * INDEX_STEP))])
    return made


def test_all_that_was_not_synced_is_written_again(file):
    disk = file._disk
    content, frames = file.path.read_bytes(), disk.starts[1:]
    for synced in range(100, 111):
        disk.starts.clear()
        file.write_again(synced)
        (start,) = disk.starts
        number = min(synced - 100, 9)
        assert start == (frames[number] if number else 0), synced
        assert file.path.read_bytes() == content
