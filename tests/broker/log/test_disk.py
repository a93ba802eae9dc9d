"""The local disk: few open files, whatever the number of topics."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tamis.broker.log.disk import LocalDisk

DESCRIPTORS = Path("/proc/self/fd")


@pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="needs a list of open files")
def test_many_files_need_few_descriptors(tmp_path):
    disk = LocalDisk(most_open=5)
    before = len(list(DESCRIPTORS.iterdir()))
    for n in range(100):
        disk.create(tmp_path / str(n))
        disk.write(tmp_path / str(n), 0, b"abc")
    assert len(list(DESCRIPTORS.iterdir())) <= before + 5
    assert all(disk.read(tmp_path / str(n), 1, 9) == b"bc" for n in range(100))
    disk.close()
    assert len(list(DESCRIPTORS.iterdir())) <= before
    assert disk.read(tmp_path / "7", 0, 1) == b"a"


def test_a_file_with_the_name_of_a_removed_one_is_another_file(tmp_path):
    disk, path = LocalDisk(), tmp_path / "a"
    for content in (b"first", b"second"):
        disk.create(path)
        disk.write(path, 0, content)
        disk.sync(path)
        assert path.read_bytes() == content
        disk.remove(path)
    disk.create(path)
    with disk._opened(path):  # in use while another one takes its place
        disk.remove(path)
        disk.create(path)
    disk.write(path, 0, b"third")
    assert path.read_bytes() == b"third"
    with pytest.raises(FileExistsError):
        disk.create(path)


def test_threads_may_use_one_file(tmp_path):
    disk, path = LocalDisk(most_open=1), tmp_path / "a"
    disk.create(path)

    def work(n):
        disk.write(path, 10 * n, b"%010d" % n)
        disk.sync(path)
        return disk.read(path, 10 * n, 10)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(50))) == [b"%010d" % n for n in range(50)]
    assert disk.size(path) == 500
    disk.truncate(path, 5)
    assert bytes(disk.view(path)) == b"00000"
    disk.truncate(path, 0)
    assert bytes(disk.view(path)) == b""
