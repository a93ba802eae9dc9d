"""What changes come to."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import OptionError, Schema
from tamis.matcher_settings import MatcherSettings
from tamis.spark.stream.changelogs import FixedTable, FolderLog, TableLog, changelog_of
from tamis.spark.stream.changes import changes_of
from tamis.spark.stream.worker import CompileChangesTask, ReadChangesTask, apply

SETTINGS = MatcherSettings(Schema({"x": "int", "s": "string"}))


def test_the_kinds_of_changelogs(tmp_path):
    assert changelog_of(str(tmp_path)) == FolderLog(str(tmp_path))
    assert changelog_of(tmp_path) == FolderLog(str(tmp_path))
    assert changelog_of("table:rules", "seq") == TableLog("rules", "seq")
    log = FolderLog("a")
    assert changelog_of(log) is log

    class Frame:
        def mapInArrow(self):  # noqa: N802 - Spark's name
            """What a DataFrame is known by."""

    frame = Frame()
    assert changelog_of(frame) == FixedTable(frame)
    with pytest.raises(OptionError, match=r"the folder of a changelog, 'table:NAME' or a Data"):
        changelog_of(3)


def test_changes_count_in_their_order():
    rows = [
        ("a", "x > 1", None),
        ("b", "x > 2", "upsert"),
        ("a", None, None),
        ("c", "x > 3", "insert"),
        ("c", "ignored", "delete"),
        ("b", "x > 4", "update"),
        ("a", "x > 5", None),
    ]
    changes, letters = changes_of(rows, SETTINGS)
    assert changes == {"c": None, "b": "x > 4", "a": "x > 5"}
    assert list(changes) == ["c", "b", "a"]
    assert letters == []


def test_a_change_that_cannot_be_used_changes_nothing():
    rows = [
        ("a", "x > 1", None),
        ("a", "y > 1", None),
        ("a", "x > 1 AND", None),
        (None, "x > 1", None),
        (None, None, None),
        ("b", "x > 1", "upsrt"),
        ("c", None, "upsert"),
    ]
    changes, letters = changes_of(rows, SETTINGS)
    assert changes == {"a": "x > 1"}
    assert [letter.row for letter in letters] == [1, 2, 3, 4, 5, 6]
    assert (letters[0].line, letters[0].column) == (1, 1)
    assert "unknown op 'upsrt'; there is upsert, insert" in letters[4].reason


def test_columns_that_no_filter_can_use_are_explained():
    settings = MatcherSettings(SETTINGS.schema, skipped={"tags": "array<string>"})
    _, letters = changes_of([("a", "tags = 'x'", None)], settings)
    assert letters[0].reason.startswith(
        "column tags has the type array<string>, which no filter can use (line 1, column 1)"
    )


ops = st.sampled_from([None, "upsert", "delete"])
texts = st.sampled_from([None, "x > 1", "x > 2", "s = 'a'", "y > 1", "x >"])
rows = st.lists(st.tuples(st.integers(0, 4), texts, ops), max_size=30)


@given(rows, st.integers(1, 10))
def test_tasks_come_to_the_same_as_the_driver(rows, size):
    """`apply`, in bulks of any size, against `changes_of`, on top of what was there before."""
    wanted, letters = changes_of(rows, SETTINGS)
    matcher = SETTINGS.matcher()
    made: dict[object, object] = {}
    found = []
    for start in range(0, len(rows), size):
        bulk = rows[start : start + size]
        ids, filters, kinds = (list(column) for column in zip(*bulk, strict=True))
        places = list(range(start, start + len(bulk)))
        found += apply(matcher, ids, filters, places, kinds, made, None)
    held = {s: str(matcher.get(s)) for s in matcher}
    assert held == {s: text for s, text in wanted.items() if text is not None}
    assert made == wanted
    superseded = {letter.row for letter in letters} - {letter.row for letter in found}
    assert {letter.row for letter in found} <= {letter.row for letter in letters}
    # Those that nobody was told of stood before the removal of their id.
    for row in superseded:
        later = [other for other in rows[row + 1 :] if other[0] == rows[row][0]]
        assert any(op == "delete" or (op is None and text is None) for _, text, op in later)


def test_a_task_tells_what_it_did():
    import pyarrow as pa

    batch = pa.record_batch(
        {
            "id": ["a", "b", "a", "c"],
            "filter": ["x > 1", "y > 1", None, "x > 2"],
            "row": [0, 1, 2, 3],
            "op": pa.array([None, None, "delete", None], pa.string()),
        }
    )
    found = pa.Table.from_batches(list(CompileChangesTask(SETTINGS)([batch]))).to_pylist()
    kinds = [row["kind"] for row in found]
    assert kinds == ["removed", "counts", "letter", "file", "rules"]
    assert json.loads(found[0]["text"]) == ["a"]
    assert json.loads(found[1]["text"]) == [4, 1, 1, 0]
    found = pa.Table.from_batches(list(ReadChangesTask(SETTINGS, "string")([batch]))).to_pylist()
    assert [row["kind"] for row in found] == ["counts", "letter", "change", "change"]
    assert [(row["id"], row["text"]) for row in found[2:]] == [("a", None), ("c", "x > 2")]


def test_a_bad_change_does_not_hide_one_of_another_file():
    made = {}
    matcher = SETTINGS.matcher()
    letters = apply(matcher, ["a", "b"], ["x > 1"] * 2, [0, 0], ["upsrt", None], made, None)
    assert made == {"b": "x > 1"}
    assert [letter.id for letter in letters] == ["a"]
