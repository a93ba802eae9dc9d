"""Calls from deep in a caller's own recursion."""

import sys

import pytest

from cases import each
from tamis import Matcher, Schema, covers, merge, parse
from tamis.deep_stack import called_deeply, with_deep_stack
from tamis.relations.covering import counterexample

SCHEMA = Schema({"x": "double"})
LEFT = 60  # frames that the caller has left, about


def nested(last="x < 1"):
    """A filter with almost as many levels as one may have."""
    text = last
    for n in range(48):
        text = f"NOT ({text} AND x > {n})"
    return text


def deep(call, frames=None):
    """The answer of a call when most of the stack is used up."""
    left = sys.getrecursionlimit() - LEFT - used() if frames is None else frames
    return call() if left <= 0 else deep(call, left - 1)


def used():
    frame, count = sys._getframe(), 0
    while frame is not None:
        frame, count = frame.f_back, count + 1
    return count


def sums(levels):
    return "x" + " + 1)" * levels + " > 5"


CALLS = {
    "parse": lambda *_: str(parse(nested(), SCHEMA)),
    "str": lambda one, _: str(one),
    "equality": lambda one, other: (one == other, hash(one) == hash(other)),
    "attributes": lambda *_: parse(nested(), SCHEMA).attributes,
    "covers": lambda one, other: (covers(one, other), counterexample(one, other)),
    "merge": lambda one, other: str(merge([one, other])),
}


@each("name", CALLS)
def test_filters(name):
    call = CALLS[name]
    expected = call(*(parse(nested(last), SCHEMA) for last in ("x < 1", "x < 2")))
    one, other = (parse(nested(last), SCHEMA) for last in ("x < 1", "x < 2"))
    assert deep(lambda: call(one, other)) == expected


@each("engine", ["naive", "auto", "sliced", "tree", "mbd"])
def test_matchers(engine):
    matcher = Matcher(SCHEMA, engine)
    matcher.subscribe_many({"w": nested("x < 3"), "y": "(" * 40 + sums(40)})
    for output in ("lists", "counts"):  # what is imported and compiled first needs much stack
        matcher.match_batch([{"x": 0.5}], output)
    matcher.match({"x": 0.5})
    deep(lambda: matcher.subscribe("a", nested()))
    deep(lambda: matcher.subscribe_many({"b": nested("x < 2"), "c": "(" * 40 + sums(40)}))
    plain = Matcher(SCHEMA, "naive")
    plain.subscribe_many(matcher.items())
    for event in ({"x": 0.5}, {"x": 1.5}, {}):
        expected = plain.match(event)
        assert deep(lambda event=event: matcher.match(event)) == expected
        found = deep(lambda event=event: matcher.match_batch([event], "lists"))
        assert found["subscriptions"].to_pylist() == [expected]
        why = deep(lambda event=event: matcher.why("a", event))
        assert why.matched == ("a" in expected)
        assert deep(lambda why=why: str(why)) == str(plain.why("a", event))
        assert deep(why.to_dict) == why.to_dict()


def test_errors_come_back_from_the_other_stack():
    @with_deep_stack
    def fails(levels):
        if levels:
            return fails.__wrapped__(levels - 1)
        raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        deep(lambda: fails(2 * LEFT))
    with pytest.raises(RecursionError):
        called_deeply(fails.__wrapped__, 2 * sys.getrecursionlimit())
    with pytest.raises(RecursionError):
        fails(2 * sys.getrecursionlimit())
