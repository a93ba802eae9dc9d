"""Measures of events: their bounds, what they need, and what they say without it."""

from fractions import Fraction

import pytest

from cases import each
from tamis import Schema, parse
from tamis.errors import OptionError
from tamis.profiles import Profile
from tamis.relations.merging.degrees import degree
from tamis.relations.merging.measures import Profiled, Sampled, Uniform
from tamis.semantics import Semantics


def test_bounds_of_attributes_without_a_domain():
    schema = Schema({"x": "double", "at": "timestamp", "s": "string", "i": "int"})
    meaning = Semantics("sql", schema)
    bounds = {
        "x": (0, 10), "at": ("2024-01-01", "2024-12-31"), "s": ["a", "b", "c", "bc"], "i": (1, 4)
    }  # fmt: skip
    measure = Uniform(schema, bounds=bounds)

    def probability(text):
        return degree(parse(text, schema), [], meaning, measure).probability

    assert probability("x < 2.5") == Fraction(1, 4)
    assert probability("x >= 2.5 AND x < 5 AND i = 1") == Fraction(1, 16)
    assert probability("x = 1") == 0
    assert probability("s LIKE 'b%'") == Fraction(1, 2)
    assert probability("at >= TIMESTAMP '2024-07-01'") == pytest.approx(0.5, abs=0.01)
    assert probability("x IS NOT NULL") == 1


def test_without_a_domain_the_error_says_what_to_do():
    schema = Schema({"x": "double"})
    with pytest.raises(OptionError, match="needs a domain for attribute x; declare one"):
        degree(parse("x < 1", schema), [], Semantics("sql", schema), Uniform(schema))
    with pytest.raises(OptionError, match="needs a domain for attribute x"):
        degree(parse("x + 1 < 1", schema), [], Semantics("sql", schema), Uniform(schema))


def test_domains_around_constants():
    schema = Schema({"x": "double", "s": "string", "i": "int", "at": "timestamp"})
    texts = (
        "x < 10", "x > 20 AND s = 'a'", "i = 5", "s LIKE 'b%'", "at < TIMESTAMP '2024-01-01'",
    )  # fmt: skip
    parts = [parse(text, schema) for text in texts]
    measure, meaning = Uniform.around(parts), Semantics("sql", schema)

    def probability(text):
        return degree(parse(text, schema), [], meaning, measure).probability

    assert probability("x < 10") == Fraction(1, 3)
    assert probability("s = 'a'") == probability("s LIKE 'b%'") == Fraction(1, 3)
    assert probability("i <= 5") == Fraction(2, 3)  # 4, 5 and 6
    assert 0 < probability("at < TIMESTAMP '2024-01-01'") < 1


@each(
    ("options", "complaint"),
    [
        ({"bounds": {"nn": (1, 2)}}, "unknown attribute 'nn'"),
        ({"presence": {"nn": 1}}, "unknown attribute 'nn'"),
        ({"presence": 1.5}, "must be from 0 to 1"),
        ({"bounds": {"x": (2, 1)}}, "pair"),
        ({"bounds": {"x": (1, 2, 3)}}, "pair"),
        ({"bounds": {"s": []}}, "list of strings"),
    ],
)
def test_bad_options_of_a_uniform_measure(options, complaint):
    with pytest.raises(OptionError, match=complaint):
        Uniform(Schema({"x": "double", "s": "string"}), **options)


def test_a_profile_is_a_measure_with_independent_attributes():
    schema = Schema({"k": "int", "s": "string"})
    events = [{"k": n % 4, "s": "abc"[n % 3]} if n % 5 else {"k": 7} for n in range(600)]
    meaning = Semantics("sql", schema)
    measure = Profiled(Profile.of(events, schema))

    def probability(text, name=meaning):
        return float(degree(parse(text, schema), [], name, measure).probability)

    assert probability("k = 7") == pytest.approx(0.2)
    assert probability("k < 2") == pytest.approx(0.4)
    assert probability("s IS NULL") == pytest.approx(0.2)
    assert probability("s LIKE 'a%' AND k = 7") == pytest.approx(0.8 / 3 * 0.2)
    assert probability("s = 'zzz'") == 0
    filled = Semantics("default", schema, {"k": 0, "s": "a"})
    assert probability("s = 'a'", filled) == pytest.approx(0.2 + 0.8 / 3)
    assert probability("s = 'a'", Semantics("total", schema)) == pytest.approx(1 / 3)


def test_a_profile_without_an_attribute_says_so():
    schema = Schema({"k": "int", "s": "string"})
    measure = Profiled(Profile.of([{"k": 1}], schema))
    with pytest.raises(OptionError, match="no event of the profile has attribute s"):
        degree(parse("s = 'a'", schema), [], Semantics("sql", schema), measure)


def test_a_sample_needs_events():
    with pytest.raises(OptionError, match="at least one event"):
        Sampled([], Schema({"n": "int"}))
