"""What is said of a micro-batch."""

import json
from types import SimpleNamespace

from tamis.spark.stream.metrics import StreamMetrics, behind_of, metrics_of
from tamis.spark.stream.versions import Versions

FACTS = {
    "batch": 3, "version": 2, "subscriptions": 7, "events": 1000, "matches": 5000, "bad": 1,
    "bad_subscriptions": 2, "newest": 90.0,
    "seconds": 2.0, "at": 100.0,
}  # fmt: skip


def test_rates_lag_and_what_is_behind():
    found = metrics_of(FACTS, [{"latestOffset": {"row": 900}, "endOffset": {"row": 700}}])
    assert (found.events_per_second, found.matches_per_second) == (500, 2500)
    assert (found.behind, found.lag) == (200, 10.0)
    assert str(found) == (
        "batch 3: 1,000 events, 5,000 matches in 2.0 s (500 events/s, 2,500 matches/s), version 2, "
        "1 bad event, 2 bad subscriptions, 200 behind, lag 10.0 s"
    )


def test_that_there_are_no_subscriptions_is_said():
    assert ", version 2, no subscriptions, 1 bad event" in str(
        metrics_of(FACTS | {"subscriptions": 0}, [])
    )


def test_without_times_and_counters_nothing_is_made_up():
    found = metrics_of(FACTS | {"newest": None, "seconds": 0}, [{"endOffset": "-"}])
    assert (found.behind, found.lag) == (None, None)
    assert found.events_per_second > 0


def test_offsets_of_sources():
    kafka = {"latestOffset": {"t": {"0": 10, "1": 20}}, "endOffset": {"t": {"0": 5, "1": 20}}}
    assert behind_of(kafka) == 5
    assert behind_of({"latestOffset": '{"row": 7}', "endOffset": '{"row": 7}'}) == 0
    assert behind_of({"latestOffset": None, "endOffset": {"logOffset": 3}}) is None
    assert behind_of({"latestOffset": {"a": 1}, "endOffset": {"b": 1}}) is None
    assert behind_of({"latestOffset": {"a": "x"}, "endOffset": {"a": "x"}}) is None
    assert behind_of({}) is None


def test_a_listener_tells_of_each_batch_once(tmp_path):
    versions = Versions(tmp_path / "tamis")
    versions.open()
    versions.commit(3, FACTS)
    told: list[object] = []
    listener = StreamMetrics(tmp_path, told.append)
    source = SimpleNamespace(json=json.dumps({"endOffset": None}))
    for batch in (3, 3, 4):  # batch 4 is not committed: a trigger without events
        progress = SimpleNamespace(batchId=batch, sources=[source])
        listener.onQueryProgress(SimpleNamespace(progress=progress))
    assert [one.batch for one in told] == [3]
    assert listener.batches == told
