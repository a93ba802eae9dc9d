"""The log of versions and micro-batches."""

import json

import pytest

from tamis import FileError, Matcher
from tamis.dead_letters import DeadLetter
from tamis.spark.stream.versions import KEPT, Pin, Version, Versions


@pytest.fixture
def versions(tmp_path):
    found = Versions(tmp_path / "tamis")
    found.open()
    return found


@pytest.fixture
def rules(tmp_path):
    path = tmp_path / "rules.tamis"
    matcher = Matcher({"x": "int"})
    matcher.subscribe(1, "x > 1")
    matcher.save(path)
    return path


def test_the_folder_has_one_name_for_ever(tmp_path):
    first = Versions(tmp_path).open()
    assert Versions(tmp_path).open() == first
    assert Versions(tmp_path / "other").open() != first


def test_a_version_comes_back_as_it_was(versions, rules):
    letter = DeadLetter("subscriptions", 3, "a", "bad", 1, 2, "x <")
    versions.add(Version(1, ["a.jsonl"], is_base=True, ids="bigint"), rules)
    second = Version(
        2,
        {"a.jsonl": [3, 4]},
        False,
        {7: "x > 2", 1: None},
        (letter,),
        1,
        "bigint",
        {"x": "int", "`a.b`": "enum('p', 'q')"},
        1,
    )
    versions.add(second)
    assert versions.get(2) == second
    assert versions.newest() == 2
    assert list(versions.get(2).changes) == [7, 1]  # integers stay integers


def test_a_checkpoint_of_another_format_is_refused(versions, tmp_path):
    (tmp_path / "tamis/id.json").write_text('{"id": "a"}')
    with pytest.raises(FileError, match="has the format 1, and this version of tamis reads 2; go"):
        versions.owner()


def test_changes_since_a_base_are_joined_in_their_order(versions, rules):
    versions.add(Version(1, 1, is_base=True), rules)
    versions.add(Version(2, 2, False, {"a": "x > 1", "b": "x > 2"}))
    versions.add(Version(3, 3, False, {"a": None, "c": "x > 3"}))
    assert versions.since_base(1) == (1, {})
    assert versions.since_base(2) == (1, {"a": "x > 1", "b": "x > 2"})
    assert versions.since_base(3) == (1, {"b": "x > 2", "a": None, "c": "x > 3"})
    versions.add(Version(4, 4, is_base=True), rules)
    versions.add(Version(5, 5, False, {"d": "x > 4"}))
    assert versions.since_base(5) == (4, {"d": "x > 4"})


def test_a_pin_stays(versions):
    assert versions.pinned(0) is None
    versions.pin(0, Pin(3, 1_700_000_000_000_000))
    assert versions.pinned(0) == Pin(3, 1_700_000_000_000_000)
    assert versions.pinned(-1) is None


def test_a_pin_of_a_version_without_clocks_is_read(versions, tmp_path):
    (tmp_path / "tamis/batches/00000007.json").write_text('{"version": 2}')
    assert versions.pinned(7) == Pin(2, 0)


def test_old_files_go_and_what_a_replay_needs_stays(versions, rules, tmp_path):
    for number in range(1, 6):
        versions.add(Version(number, number, is_base=True), rules)
        versions.add(Version(number + 100, number, False, {"a": "x > 1"}))
    for batch in range(KEPT + 51):
        versions.pin(batch, Pin(5, batch))
        versions.commit(batch, {"batch": batch})
    assert [path.name for path in sorted((tmp_path / "tamis/rules").iterdir())] == [
        "00000004.tamis",
        "00000005.tamis",
    ]
    assert not (tmp_path / "tamis/versions/00000003.json").exists()
    assert versions.get(4).is_base
    assert versions.committed(KEPT + 50) == {"batch": KEPT + 50}
    assert versions.committed(0) is None
    assert versions.pinned(KEPT + 49) == Pin(5, KEPT + 49)


def test_a_base_can_be_fetched(versions, rules, tmp_path):
    versions.add(Version(1, 1, is_base=True), rules)
    versions.fetch_rules(1, tmp_path / "again.tamis")
    assert Matcher.load(tmp_path / "again.tamis").match({"x": 2}) == [1]


@pytest.mark.parametrize("content", ["", "[]", "{", "null"])
def test_a_damaged_record_says_so(versions, tmp_path, content):
    (tmp_path / "tamis/versions/00000001.json").write_text(content)
    with pytest.raises(FileError, match=r"00000001\.json is damaged"):
        versions.get(1)


def test_nothing_half_written_is_ever_seen(versions, tmp_path, monkeypatch):
    """What dies before the rename leaves a hidden file, which nobody looks at."""
    versions.add(Version(1, 1, is_base=False))
    (tmp_path / "tamis/versions/.00000002.json.abc").write_text('{"numb')
    assert versions.newest() == 1
    monkeypatch.setattr(json, "dumps", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        versions.add(Version(2, 2, is_base=False))
    assert versions.newest() == 1
