"""Counting, and the text that Prometheus reads."""

import re

import pytest

from brokers import prices, taken, with_broker
from tamis.broker.metrics import MOST_LABELS, OTHER, Histogram, Metrics
from tamis.broker.records import NewEvent

SAMPLE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)')


def samples(text):
    """Every sample of a text by its name and labels, as a strict reader sees them."""
    assert text.endswith("\n")
    found, described = {}, set()
    for line in text.splitlines():
        if line.startswith("# "):
            described.add(line.split(" ")[2])
            continue
        name, labels, number = SAMPLE.fullmatch(line).groups()
        assert {name, re.sub("_(bucket|sum|count)$", "", name)} & described, name
        key = f"{name}{{{labels}}}" if labels else name
        assert key not in found, key
        found[key] = float(number)
    return found


def test_what_is_counted_is_shown_with_its_labels():
    metrics = Metrics()
    quotes = metrics.events.of("quotes")
    quotes.add()
    quotes.add(41)
    assert metrics.events.of("quotes") is quotes
    metrics.refused.of("quotes", "schema").add(2)
    sse = metrics.connections.of("sse")
    sse.add()
    sse.add(-1)
    sse.set(7)
    found = samples(metrics.text())
    assert found['tamis_events_total{topic="quotes"}'] == 42
    assert found['tamis_refused_events_total{topic="quotes",reason="schema"}'] == 2
    assert found['tamis_connections{protocol="sse"}'] == 7


def test_a_histogram_counts_everything_up_to_each_bound():
    metrics = Metrics()
    for size in (1, 1, 2, 3, 1_000_000):
        metrics.batch_sizes.observe(size)
    found = samples(metrics.text())
    assert found['tamis_batch_events_bucket{le="1"}'] == 2
    assert found['tamis_batch_events_bucket{le="2"}'] == 3
    assert found['tamis_batch_events_bucket{le="5"}'] == 4
    assert found['tamis_batch_events_bucket{le="100000"}'] == 4
    assert found['tamis_batch_events_bucket{le="+Inf"}'] == 5
    assert found["tamis_batch_events_count"] == 5
    assert found["tamis_batch_events_sum"] == 1_000_007
    assert found["tamis_sync_seconds_count"] == 0


def test_a_histogram_with_labels_has_them_before_its_bounds():
    lines = list(Histogram((0.5,)).lines("seconds", 'topic="a"'))
    assert lines[0] == 'seconds_bucket{topic="a",le="0.5"} 0'
    assert lines[-1] == 'seconds_count{topic="a"} 0'


def test_labels_are_bounded_and_the_rest_is_counted_together():
    metrics = Metrics()
    for number in range(MOST_LABELS + 50):
        metrics.events.of(f"topic-{number}").add()
    found = {k: v for k, v in samples(metrics.text()).items() if "tamis_events_total" in k}
    assert len(found) == MOST_LABELS + 1
    assert found[f'tamis_events_total{{topic="{OTHER}"}}'] == 50


def test_gauges_that_are_asked_are_asked_when_shown_and_bounded():
    metrics = Metrics()
    asked = []

    def lags():
        asked.append(1)
        for number in range(MOST_LABELS * 2):
            yield ("quotes", f"s{number}"), MOST_LABELS * 2 - number

    metrics.ask_when_shown("subscription_lag", "Lag.", ("topic", "subscription"), lags)
    assert not asked
    found = {k: v for k, v in samples(metrics.text()).items() if "lag" in k}
    assert len(asked) == 1
    assert len(found) == MOST_LABELS
    assert found['tamis_subscription_lag{topic="quotes",subscription="s0"}'] == 2 * MOST_LABELS


def test_any_label_is_one_line_that_reads_back():
    metrics = Metrics()
    metrics.ask_when_shown("lag", "Lag.", ("id",), lambda: [(('a "b"\\\nc\r\u2028',), 0.25)])
    line = next(one for one in metrics.text().split("\n") if one.startswith("tamis_lag{"))
    assert line == 'tamis_lag{id="a \\"b\\"\\\\\\nc\r\u2028"} 0.25'


def test_a_topic_that_is_gone_is_left_out():
    metrics = Metrics()
    metrics.events.of("quotes").add()
    metrics.refused.of("quotes", "schema").add()
    metrics.events.of("news").add()
    metrics.forget_topic("quotes")
    assert "quotes" not in metrics.text()
    assert 'tamis_events_total{topic="news"} 1' in metrics.text()


def test_a_wrong_number_of_labels_is_an_error():
    with pytest.raises(ValueError, match="tamis_events_total has the labels"):
        Metrics().events.of("a", "b")


def test_a_broker_counts_what_came_again_and_what_was_acknowledged(tmp_path):
    async def use(broker, guest):
        await broker.put_subscription(guest, "quotes", "s", "TRUE")
        same = NewEvent(b'{"price": 1}', "a")
        await broker.publish(guest, "quotes", [same, *prices(2), same])
        await broker.publish(guest, "quotes", [same])
        await broker.publish(guest, "quotes", prices(3))
        attachment = await broker.attach(guest, "quotes", "s")
        assert len(await taken(broker, attachment)) == 3
        await broker.ack(guest, "quotes", "s", 0)
        await attachment.close()
        await broker.ack(guest, "quotes", "s", 1)  # while nobody listens
        found = samples(broker.metrics.text())
        assert found['tamis_repeated_events_total{topic="quotes"}'] == 2
        assert found['tamis_acknowledgements_total{topic="quotes"}'] == 2

    with_broker(tmp_path, use)


def test_a_broker_shows_how_far_behind_subscriptions_are_asleep_or_not(tmp_path):
    async def use(broker, guest):
        for name in ("slow", "half", "done", "awake"):
            await broker.put_subscription(guest, "quotes", name, "TRUE")
        await broker.publish(guest, "quotes", prices(1, 2, 3))
        half = await broker.attach(guest, "quotes", "half")
        await taken(broker, half)
        half.ack(0)
        half.ack(2)
        await half.close()
        await broker.ack(guest, "quotes", "done", 2)
        awake = await broker.attach(guest, "quotes", "awake")
        await taken(broker, awake, 2)
        awake.ack_up_to(1)
        found = samples(broker.metrics.text())
        labels = 'topic="quotes",account="guest",subscription='
        for name, lag in {"slow": 3, "half": 2, "done": 0, "awake": 1}.items():
            assert found[f'tamis_subscription_lag{{{labels}"{name}"}}'] == lag, name

    with_broker(tmp_path, use)
