"""The constraints of filters by their atoms are those by their normal forms."""

import random

from cases import each
from tamis.language.expression import parse
from tamis.language.shape_cache import ShapeCache
from tamis.relations.tables.atom_values import AtomValues
from tamis.relations.tables.prepared_filters import FilterPreparation
from tamis.schema import Schema
from tamis.semantics import Semantics

SCHEMA = Schema(
    {
        "i": "int", "d": "double", "s": "string", "r": "int(1, 9)",
        "e": "enum('a', 'b', 'c')", "b": "bool",
    }
)  # fmt: skip
DEFAULTS = {"i": 3, "d": None, "s": "b", "r": None, "e": "a", "b": None}
CONSTANTS = {
    "i": ["0", "-3", "7", "2147483648", "5000000000"], "d": ["0.0", "-0.0", "2", "-1.25", "7.5"],
    "s": ["''", "'a'", "'b c'", '"q"', "'it''s'"], "r": ["1", "5", "9"], "e": ["'a'", "'c'"],
    "b": ["TRUE", "FALSE"],
}  # fmt: skip


def atom(chance):
    name = chance.choice(list(CONSTANTS))
    constants = CONSTANTS[name]
    one, other = chance.choice(constants), chance.choice(constants)
    form = chance.randrange(10)
    if name == "b" or form < 6:
        operators = ["=", "<>", "<", "<=", ">", ">="]
        return f"{name} {chance.choice(operators[: 2 if name == 'b' else 6])} {one}"
    if form == 6:
        return f"{name} BETWEEN {one} AND {other}"
    if form == 7:
        return f"{name} NOT IN ({one}, {other})"
    if form == 8:
        return f"{name} IS {chance.choice(['', 'NOT '])}NULL"
    return f"{name} IN ({one}, {other})"


@each("semantics", ["sql", "strict", "default", "total"])
def test_constraints_by_atoms_are_those_by_the_normal_form(semantics):
    meaning = Semantics(semantics, SCHEMA, DEFAULTS if semantics == "default" else None)
    preparation, shapes = FilterPreparation(meaning), ShapeCache(SCHEMA)
    chance = random.Random(3)  # noqa: S311 - repeated
    short = 0
    for _ in range(2000):
        text = " AND ".join(atom(chance) for _ in range(chance.randrange(1, 5)))
        if chance.randrange(10) == 0:
            text = f"NOT ({text})"
        shaped = shapes.parse(text)
        plain = parse(text, SCHEMA)
        expected, found = preparation.prepare(plain), preparation.prepare(shaped)
        assert (expected is None) == (found is None), text
        if expected is not None:
            assert expected.constraints == found.constraints, text
            assert expected.mask == found.mask
            assert expected.form == found.form
            if expected.constraints is not None:
                short += AtomValues(preparation.space).of(shaped) is not None
    assert short > 200


def test_the_condition_of_a_constraint_is_that_of_its_values():
    preparation = FilterPreparation(Semantics("sql", SCHEMA))
    for text in ("i < 5", "d BETWEEN 1 AND 2.5", "s IN ('a', 'b')", "r >= 2"):
        long = FilterPreparation(Semantics("sql", SCHEMA)).prepare(parse(text, SCHEMA))
        short = preparation.prepare(ShapeCache(SCHEMA).parse(text))
        assert [constraint.node for constraint in short.constraints] == [
            constraint.node for constraint in long.constraints
        ]
