"""Atoms of every kind are found among the tokens of a filter."""

import pytest

from cases import each
from tamis.language.atom_places import atom_places
from tamis.language.limits import MAX_DEPTH
from tamis.language.structures import NoStructure


@each(
    "text, structure, atoms",
    [
        ("halted", "a", ["halted"]),
        ("a + 1 > 2 AND NOT (b)", "a&!(a)", ["a + 1 > 2", "b"]),
        ("(a + 1) * 2 > 3 or x", "a|a", ["(a + 1) * 2 > 3", "x"]),
        ("((a + b)) > 3", "a", ["((a + b)) > 3"]),
        ("(((a + b) > 3))", "((a))", ["(a + b) > 3"]),
        ("x BETWEEN 1 AND 2 AND y", "a&a", ["x BETWEEN 1 AND 2", "y"]),
        ("x NOT BETWEEN (1) AND 2 OR y", "a|a", ["x NOT BETWEEN (1) AND 2", "y"]),
        ("NOT x IS NOT NULL AND y NOT IN (1, 2)", "!a&a", ["x IS NOT NULL", "y NOT IN (1, 2)"]),
        ("exists(a, t -> t > 1 AND t < 2) OR b", "a|a", ["exists(a, t -> t > 1 AND t < 2)", "b"]),
        ("(a AND b) IS TRUE AND c", "a&a", ["(a AND b) IS TRUE", "c"]),
        ("NOT (a AND b) = c", "!a", ["(a AND b) = c"]),
        ("! (f(x) = ')' OR g[1] = '(')", "!(a|a)", ["f(x) = ')'", "g[1] = '('"]),
        ("'a AND b' = s AND `or` = 1", "a&a", ["'a AND b' = s", "`or` = 1"]),
        ("(CASE WHEN a AND b THEN 1 END) = 1", "a", ["(CASE WHEN a AND b THEN 1 END) = 1"]),
        ("CASE WHEN a OR b THEN c END AND d", "a&a", ["CASE WHEN a OR b THEN c END", "d"]),
        (
            "case x WHEN 1 THEN CASE WHEN a OR b THEN 1 END End > 0 OR d",
            "a|a",
            ["case x WHEN 1 THEN CASE WHEN a OR b THEN 1 END End > 0", "d"],
        ),
    ],
)
def test_the_structure_and_the_atoms(text, structure, atoms):
    assert atom_places(text) == (structure, atoms)


@each(
    "text",
    [
        "", "AND", "a AND", "a OR OR b", "NOT", "(", ")", "(a", "a)", "(a))", "f(a", "()", "[a",
        "case = 3 OR end AND x", "case ILIKE 'a' OR end AND x", "CASE WHEN a OR b THEN 1",
        "NOT (a) AND", "((a) OR",
    ],
)  # fmt: skip
def test_what_is_left_to_the_parser(text):
    with pytest.raises(NoStructure):
        atom_places(text)


def test_atoms_that_may_be_too_deep_are_left_to_the_parser():
    atom = " + ".join("a" * (MAX_DEPTH // 2 - 20)) + " > 1"
    assert atom_places("NOT (" * 5 + atom + ")" * 5).atoms == [atom]
    with pytest.raises(NoStructure):
        atom_places("NOT (" * 10 + atom + ")" * 10)
    # What is around an atom does not count for the next one.
    assert len(atom_places(f"{'(' * 14}a + b > 1{')' * 14} AND {atom}").atoms) == 2
