"""The benchmark of unusual filters: every kind is read, and costs something."""

import unusual
from cases import each
from tamis import Matcher, parse


def test_every_kind_is_read():
    for template in unusual.KINDS.values():
        for _, text in unusual.filters(template, 2):
            parse(text, unusual.SCHEMA)


@each("kind", ["usual", "RLIKE"])
def test_a_kind_is_timed_in_every_way(kind):
    found = unusual.costs(unusual.KINDS[kind], 3, 4)
    assert len(found) == 6
    assert all(one > 0 for one in found)


def test_new_strings_are_others():
    before, after = ({event["s"] for event in unusual.events(40, more)} for more in ("", "new"))
    assert not before & after


def test_some_events_match_usual_filters():
    matcher = Matcher(unusual.SCHEMA)
    matcher.subscribe_many(unusual.filters(unusual.KINDS["three tests or another"], 50))
    assert matcher.match_batch(unusual.events(20)).num_rows
