"""Topics whose events have arrays and maps, or decimals."""

SCHEMA = {"tags": "array<string>", "props": "map<string, int>", "at": "array<timestamp>"}


def test_events_with_arrays_are_stored_matched_and_read(served):
    topic = served.topic("tagged", SCHEMA)
    path = served.subscribe(topic, "red", "array_contains(tags, 'red')", durable=True)
    events = [
        {"tags": ["red", None], "props": {"k": 1}, "at": ["2024-01-31 12:00:00"]},
        {"tags": ["blue"], "props": {}}, {"tags": "red"}, {},
    ]  # fmt: skip
    answer = served.ask("POST", f"{topic}/events", events).json
    assert answer["accepted"] == 3
    assert [one["row"] for one in answer["refused"]] == [2]
    assert "expects array<string>" in answer["refused"][0]["reason"]
    stream = served.listen(f"{path}/events")
    assert [message.content["event"] for message in stream.take(1)] == [events[0]]
    stream.close()
    for text, count in (("props['k'] = 1", 1), ("NOT array_contains(tags, 'red')", 1),
                        ("tags IS NULL", 1), ("exists(tags, t -> t LIKE '%e%')", 2)):  # fmt: skip
        answer = served.ask("GET", f"{topic}/events?filter=" + _quoted(text))
        assert answer.body.count(b'"offset"') == count, text
    bad = served.ask("POST", f"{topic}/check", {"filter": "tags contains 'red'"})
    assert b"array_contains" in bad.body
    why = served.ask("POST", f"{topic}/why", {"subscription": "red", "event": {"tags": ["blue"]}})
    assert why.status == 200
    assert b"array_contains(tags, 'red')" in why.body


def test_events_with_decimals_are_stored_matched_and_read(served):
    topic = served.topic("orders", {"total": "decimal(20, 2)", "n": "int"})
    path = served.subscribe(topic, "exact", "total * n = 0.30", durable=True)
    body = (
        b'[{"total": 0.10, "n": 3}, {"total": "0.1", "n": 3}, {"total": 123456789012345678.05},'
        b' {"total": 0.125}, {"total": 0.1, "n": 2}]'
    )
    answer = served.ask("POST", f"{topic}/events", body).json
    assert answer["accepted"] == 4
    assert [one["row"] for one in answer["refused"]] == [3]
    assert "more than 2 digits after the point" in answer["refused"][0]["reason"]
    stream = served.listen(f"{path}/events")
    assert [message.content["offset"] for message in stream.take(2)] == [0, 1]
    stream.close()
    for text, count in (("total = 123456789012345678.05", 1), ("total < 0.105", 3),
                        ("total > 123456789012345678.0", 1), ("total + 0.2 = 0.3", 3)):  # fmt: skip
        answer = served.ask("GET", f"{topic}/events?filter=" + _quoted(text))
        assert answer.body.count(b'"offset"') == count, text
    assert b"123456789012345678.05" in served.ask("GET", f"{topic}/events?from=2").body
    event = {"total": 0.15, "n": 2}
    why = served.ask("POST", f"{topic}/why", {"subscription": "exact", "event": event})
    assert why.json["matched"] is True


def test_arrays_and_maps_are_read_with_the_clock_of_the_log(served):
    topic = served.topic("seen", {"at": "array<timestamp>", "rates": "map<string, double>"})
    events = [
        {"at": ["2024-01-31 12:00:00", None], "rates": {"eu": 1.5}},
        {"at": ["2999-01-01 00:00:00"], "rates": {"eu": None, "us": -0.0}}, {"rates": {}},
    ]  # fmt: skip
    served.ask("POST", f"{topic}/events", events)
    for text, count in (("exists(at, t -> t > now())", 1), ("at[0] < now() - INTERVAL 1 DAY", 1),
                        ("array_contains(map_values(rates), 0.0)", 1), ("size(rates) = 0", 1),
                        ("map_contains_key(rates, 'eu') AND rates['eu'] IS NULL", 1)):  # fmt: skip
        answer = served.ask("GET", f"{topic}/events?filter=" + _quoted(text))
        assert answer.body.count(b'"offset"') == count, text


def _quoted(text):
    from urllib.parse import quote

    return quote(text)
