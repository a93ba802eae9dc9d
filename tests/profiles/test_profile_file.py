"""Files of profiles."""

import io
import json

import numpy as np
import pyarrow as pa
import pytest

from tamis import FileError, Matcher, Profile
from tamis.container import open_container, write
from tamis.profiles.profile_file import unpacked
from tamis.workloads import workload


@pytest.fixture(scope="module")
def made():
    return Profile.of(workload("stock").events(3000, density=0.7), sample=500, top=10)


@pytest.fixture
def path(tmp_path, made):
    made.save(tmp_path / "stock.profile")
    return tmp_path / "stock.profile"


def test_a_file_gives_the_same_profile_again(path, made):
    again = Profile.load(path)
    assert again.to_dict() == made.to_dict()
    assert again.report() == made.report()
    assert (again.schema, again.limits) == (made.schema, made.limits)
    assert again.sample.equals(made.sample)
    assert again.merge(made).events == 6000


@pytest.mark.parametrize(
    "events",
    [
        pa.table({}),
        pa.table({"a": pa.nulls(3, pa.int64()), "b": pa.nulls(3, pa.string())}),
        pa.table({"x": [float("nan"), -0.0], "s": ["", "🙂" * 300], "`o d`.d": [True, None]}),
        pa.table({"r": [{"t": pa.scalar(2**40, pa.timestamp("us")).as_py(), "a b": "'"}]}),
    ],
)
def test_values_of_every_kind_are_kept(tmp_path, events):
    found = Profile.of(events)
    found.save(tmp_path / "p")
    again = Profile.load(str(tmp_path / "p"))
    assert json.dumps(again.to_dict()) == json.dumps(found.to_dict())
    assert again.schema == found.schema
    assert Profile.empty(found.schema, found.limits).with_bytes(found.to_bytes()).to_dict() == (
        found.to_dict()
    )


def test_other_files_are_refused(tmp_path, path):
    Matcher({"a": "int"}).save(tmp_path / "rules.tamis")
    with pytest.raises(FileError, match="is not a tamis profile, but tamis rules"):
        Profile.load(tmp_path / "rules.tamis")
    with pytest.raises(FileError, match="does not exist"):
        Profile.load(tmp_path / "none")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(FileError, match="damaged"):
        Profile.load(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("0.counts", np.zeros(3, np.int64)),
        ("1.counts", np.full(40, 2**62)),
        ("0.values", b"\xff" * 1000),
        ("0.minima", np.zeros(2000, np.uint64)),
        ("1.values", np.zeros(1, np.int32)),
        ("1.sample", np.zeros(7, np.int32)),
        ("2.sample", np.full(500, 10**6, np.int32)),
        ("sample", np.zeros((500, 1), np.uint64)),
        ("pairs", np.zeros((2, 2), np.int64)),
    ],
)
def test_parts_that_contradict_each_other_are_refused(path, name, content):
    container = open_container(path)
    sections = {section: container.array(section) for section in container}
    assert name in sections
    write(path, container.meta, sections | {name: content})
    with pytest.raises(FileError, match=str(path)):
        Profile.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"events": None}, {"attributes": []}, {"attributes": [{}] * 3}, {"limits": [0, 1, 1]},
        {"limits": [1]}, {"schema": {"a": "what"}}, {"events": 0}, {"events": -1}, {"events": 600},
        {"refused": -1},
    ],
)  # fmt: skip
def test_headers_that_make_no_sense_are_refused(path, change):
    container = open_container(path)
    sections = {section: container.array(section) for section in container}
    write(path, {**container.meta, **change}, sections)
    with pytest.raises(FileError, match=str(path)):
        Profile.load(path)


def test_a_range_of_another_type_is_refused(path):
    container = open_container(path)
    sections = {section: container.array(section) for section in container}
    attributes = [dict(entry) for entry in container.meta["attributes"]]
    attributes[0]["low"] = 3
    write(path, {**container.meta, "attributes": attributes}, sections)
    with pytest.raises(FileError, match="do not fit together"):
        Profile.load(path)


def test_what_a_pickle_holds_is_not_run():
    file = io.BytesIO()
    np.savez(file, meta=np.array([{"an": "object"}], object))
    with pytest.raises(ValueError, match="Object arrays cannot be loaded"):
        unpacked(file.getvalue())
