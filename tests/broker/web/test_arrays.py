"""Topics whose events have arrays and maps."""

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


def _quoted(text):
    from urllib.parse import quote

    return quote(text)
