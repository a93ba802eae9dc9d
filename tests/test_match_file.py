"""Files of matches, read back."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis import match_file
from tamis.match_file import MatchFile

TEXTS = pa.array(["a", "b", "", "日本", "a", "e"], pa.large_string())  # an id may come twice
NUMBERS = pa.array([5, -7, 2**62, 0, 5, 9])


def coded(codes, ids):
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), ids, safe=False)


def written(tables, schema=None):
    file = io.BytesIO()
    with MatchFile(file, schema or tables[0].schema) as made:
        for table in tables:
            made.write(table)
    assert made.rows == sum(table.num_rows for table in tables)
    return pq.ParquetFile(file)


@given(
    pieces=st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=5),
    ids=st.sampled_from([TEXTS, NUMBERS]),
    rows=st.sampled_from([1, 4, 1000]),
    rare=st.sampled_from([0, 1, 1000]),
)
def test_pairs_are_read_as_they_were_written(pieces, ids, rows, rare):
    match_file.ROWS, before = rows, (match_file.ROWS, match_file.RARE)
    match_file.RARE = rare
    try:
        tables = [
            pa.table({"event_id": np.arange(len(codes)), "subscription": coded(codes, ids)})
            for codes in pieces
        ]
        kind = pa.dictionary(pa.int32(), ids.type)
        file = written(tables, pa.schema([("event_id", pa.int64()), ("subscription", kind)]))
    finally:
        match_file.ROWS, match_file.RARE = before
    found = file.read()
    assert found["event_id"].to_pylist() == [n for codes in pieces for n in range(len(codes))]
    names = ids.to_pylist()
    assert found["subscription"].to_pylist() == [names[c] for codes in pieces for c in codes]
    plain = pa.int64() if ids is NUMBERS else pa.string()
    assert found.schema.types == [pa.int64(), plain]  # nobody has to know of dictionaries


@each("ids", [TEXTS, NUMBERS])
def test_lists_with_columns_to_keep(ids):
    lists = pa.LargeListArray.from_arrays(pa.array([0, 2, 2, 3]), coded([1, 3, 0], ids))
    table = pa.table(
        {
            "event_id": pa.array(["x", "y", "x"]).dictionary_encode(),
            "subscriptions": lists,
            "kept": pa.array([{"a": "u", "b": None}, None, {"a": None, "b": [1]}]),
            "name": pa.array(["n", None, "m"]).dictionary_encode(),
        }
    )
    other = table.set_column(0, "event_id", pa.array(["z", "y", "w"]).dictionary_encode())
    found = written([table, other.slice(1)]).read()
    plain = table.to_pylist() + other.slice(1).to_pylist()
    assert found.to_pylist() == plain


def test_a_file_without_matches_has_its_columns():
    schema = pa.schema([("event_id", pa.string()), ("count", pa.int64())])
    file = written([], schema)
    assert (file.read().num_rows, file.schema_arrow.names) == (0, ["event_id", "count"])


def test_row_groups_are_large_and_ids_are_codes():
    ids = pa.array([f"alert-{n}" for n in range(1000)])
    tables = [
        pa.table({"event_id": np.full(5000, n), "subscription": coded(np.arange(5000) % 1000, ids)})
        for n in range(20)
    ]
    group = written(tables).metadata
    assert (group.num_row_groups, group.row_group(0).num_rows) == (1, 100_000)
    event, subscription = (group.row_group(0).column(n) for n in range(2))
    assert "DELTA_BINARY_PACKED" in event.encodings
    assert "RLE_DICTIONARY" in subscription.encodings
    assert event.total_uncompressed_size < 10_000


def test_ids_that_no_match_has_are_left_out():
    ids = pa.array([f"alert-{n}" for n in range(50_000)])
    table = pa.table({"event_id": [1, 2], "subscription": coded([7, 49_999], ids)})
    file = written([table])
    assert file.read()["subscription"].to_pylist() == ["alert-7", "alert-49999"]
    assert file.metadata.row_group(0).total_byte_size < 1000


def test_every_reader_sees_plain_columns(tmp_path):
    import duckdb
    import pandas as pd
    import polars as pl

    texts = pa.array(["ann", "bob"], pa.large_string())
    table = pa.table({"event_id": np.array([1, 1, 2]), "subscription": coded([0, 1, 0], texts)})
    path = tmp_path / "part-0.parquet"
    with path.open("wb") as file, MatchFile(file, table.schema) as made:
        made.write(table)
    expected = [(1, "ann"), (1, "bob"), (2, "ann")]
    query = f"SELECT event_id, subscription FROM '{path}'"  # noqa: S608 - a path of this test
    assert duckdb.sql(query).fetchall() == expected
    assert pl.read_parquet(path).rows() == expected
    frame = pd.read_parquet(path)
    assert list(frame.itertuples(index=False, name=None)) == expected
    assert frame["subscription"].dtype == object  # and not a category
