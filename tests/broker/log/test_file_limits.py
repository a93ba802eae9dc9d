"""Which files are sealed together."""

from tamis import Schema
from tamis.broker.log.active_file import ActiveFile
from tamis.broker.log.disk import LocalDisk
from tamis.broker.log.event_decoder import EventDecoder
from tamis.broker.log.file_limits import SECOND, LogOptions, due_files
from tamis.broker.log.frames import NewRecord
from tamis.broker.log.sealed_segment import RowGroups, SealedSegment
from tamis.broker.log.segment_writer import seal


def test_a_segment_between_files_parts_them(tmp_path):
    """It may be there after a crash in which a file came back that had been given up."""
    disk, decoder = LocalDisk(), EventDecoder(Schema({"n": "int"}))
    files = []
    for first in range(3):
        file = ActiveFile.begin(disk, tmp_path, first, first, decoder)
        file.append([NewRecord(first, "", b"", b"{}")])
        files.append(file)
    before, middle, after = files
    path = seal(disk, tmp_path, [middle], 1, 2)
    found = [before, SealedSegment(disk, path, RowGroups(1000)), after]
    options = LogOptions(most_active_files=2)
    assert due_files(files, 3, None, options) == [before, middle]
    assert due_files(found, 3, None, options) == [before]
    assert due_files(found[1:], 3, None, options) == []


def test_a_small_file_is_sealed_at_its_age(tmp_path):
    decoder = EventDecoder(Schema({"n": "int"}))
    file = ActiveFile.begin(LocalDisk(), tmp_path, 0, 0, decoder)
    file.append([NewRecord(5, "", b"", b"{}")])
    options = LogOptions(segment_age=2.0)
    assert due_files([file], 1, 5 + 2 * SECOND - 1, options) == []
    assert due_files([file], 1, 5 + 2 * SECOND, options) == [file]
