"""What a profile prints."""

import json
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from tamis import Profile


def test_a_report():
    size = 1000
    chance = np.random.default_rng(3)
    offers = pa.table(
        {
            "company": ["IBM", "Dell", "IBM", "a\tb"] * (size // 4),
            "price": 100 + 10 * chance.standard_normal(size),
            "bid": [None, 1, 2, 3] * (size // 4),
            "ask": [None, 1, 2, None] * (size // 4),
            "time": [datetime(2024, 1, 1 + n % 2, tzinfo=UTC) for n in range(size)],
        }
    )
    text = str(Profile.of(offers))
    lines = text.splitlines()
    assert lines[0] == "1,000 events; 5 attributes"
    words = {line.split()[0]: line for line in lines[3:8]}
    assert words["company"].split()[:5] == ["company", "string", "100.0", "%", "3"]
    assert "'Dell' … 'a\\tb'" in words["company"]
    assert words["company"].endswith("'IBM' 50.0 %, 'Dell' 25.0 %, 'a\\tb' 25.0 %")
    bars = words["price"].split("  ")[-1].strip()
    assert "█" in bars[4:12]
    assert bars[0] in "▁▂▃"
    assert " 75.0 % " in words["bid"]
    assert "2024-01-01 00:00:00Z … 2024-01-02 00:00:00Z" in words["time"]
    assert lines[-1] == (
        "  bid and ask: 50.0 % of the events have both, 66.7 % of those that have either"
    )


def test_estimates_and_bounds_are_marked():
    values = ["x"] * 3000 + [f"v{n}" for n in range(3000)]
    line = str(Profile.of(pa.table({"s": values, "n": range(6000)}), top=1)).splitlines()[3]
    assert " ~" in line
    assert "'x' 5" in line or "'x' 4" in line
    assert "'v1'" not in line


def test_extremes_have_a_report():
    extremes = pa.table(
        {
            "i": [-(2**63), 2**63 - 1, None],
            "x": [float("inf"), 1.7e308, -1.7e308],
            "n": [float("nan")] * 3,
            "s": ["\n" * 100, "é" * 1000, ""],
            "t": pa.array([-(2**63) + 1, 2**63 - 1, None], pa.timestamp("us")),
            "a rather long name of an attribute": [5e-324, 1e-323, 0.0],
        }
    )
    text = str(Profile.of(extremes))
    assert max(map(len, text.splitlines())) < 300
    assert "nan … nan" in text
    assert "-290308-12-21" in text
    assert "+294247-01-10" in text
    assert json.loads(json.dumps(Profile.of(extremes).to_dict(), allow_nan=False))
    assert str(Profile.of([])) == "0 events; 0 attributes"


def test_a_dict_for_json():
    made = Profile.of(pa.table({"x": [1.5, float("inf"), None], "t": [datetime(2024, 1, 1)] * 3}))  # noqa: DTZ001 - Arrow has such times, too
    found = made.to_dict()
    assert found["events"] == found["sampled"] == 3
    assert found["attributes"]["x"] == {
        "type": "double", "present": 2, "missing": 1 - 2 / 3, "distinct": 2, "low": 1.5,
        "high": "Infinity", "edges": [1.5] * 9 + ["Infinity"] * 8,
        "frequent": [
            {"value": 1.5, "low": 1, "high": 1}, {"value": "Infinity", "low": 1, "high": 1}
        ],
    }  # fmt: skip
    assert found["attributes"]["t"]["low"] == "2024-01-01 00:00:00Z"
    assert found["pairs"] == [[2, 2], [2, 3]]


def test_refused_events_are_told():
    events = pa.table({"level": [1, 9]})
    assert str(Profile.of(events, {"level": "int(1, 5)"})).startswith("1 event, 1 refused; 1 attr")
