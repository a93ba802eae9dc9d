"""Boolean structures in postfix order mean what the parser says, or are refused."""

from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from filter_readings import STOCK, truth_of_shape
from tamis.language import ast
from tamis.language.shape_cache import ShapeCache, ShapedExpression, structure_tree
from tamis.language.structures import (
    DEEPEST,
    NoStructure,
    Postfix,
    needed_atoms,
    postfix_of,
)


@st.composite
def structures(draw, depth=4):
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(st.sampled_from(["a", "a", "!a", "!!a", "(a)"]))
    parts = draw(st.lists(structures(depth - 1), min_size=2, max_size=3))
    text = parts[0]
    for part in parts[1:]:
        text += draw(st.sampled_from("&|")) + part
    return draw(st.sampled_from(["{}", "({})", "!({})", "(!(({})))"])).format(text)


def truth_of(tree, truths):
    match tree:
        case ast.Slot(index):
            return truths[index]
        case ast.Not(operand):
            return not truth_of(operand, truths)
        case ast.And(items):
            return all(truth_of(item, truths) for item in items)
        case ast.Or(items):
            return any(truth_of(item, truths) for item in items)


@given(structures(), st.randoms())
@settings(max_examples=100)
def test_structures_mean_what_the_parser_says(structure, chance):
    shape, signs = postfix_of(structure)
    tree = structure_tree(structure, STOCK)
    atoms = structure.count("a")
    assert signs is None or (len(signs) == atoms and not all(signs))
    for _ in range(10):
        truths = [chance.random() < 0.5 for _ in range(atoms)]
        pairs = zip(truths, signs or [True] * atoms, strict=True)
        signed = [truth is sign for truth, sign in pairs]
        assert truth_of_shape(shape, signed) is truth_of(tree, truths)


@given(structures())
@settings(max_examples=100)
def test_needed_atoms_are_joined_by_and(structure):
    """A formula without negation needs an atom if it is false where only that atom is."""
    shape = postfix_of(structure).shape
    for atom, is_needed in enumerate(needed_atoms(shape)):
        truths = [place != atom for place in range(shape.count("a"))]
        assert truth_of_shape(shape, truths) is not is_needed


@each(
    ("structure", "shape", "signs"),
    [
        ("a", "a", None),
        ("!a", "a", (False,)),
        ("!!a", "a", None),
        ("a&a&a", "aa&a&", None),
        ("a|a&a|a", "aaa&|a|", None),
        ("a&(a|a)", "aaa|&", None),
        ("(a|a)&a", "aa|a&", None),
        ("a&(a|!a)", "aaa|&", (True, True, False)),
        ("!(a&(a|!a))", "aaa&|", (False, False, True)),
        ("!(a|a)|a", "aa&a|", (False, False, True)),
        ("(((a)))", "a", None),
    ],
)
def test_postfix_forms_by_hand(structure, shape, signs):
    assert postfix_of(structure) == Postfix(shape, signs)


@each(
    "codes", ["", "&", "a&", "aa", "a!a", "(a", "a)", "a)&(a", ")a(", "a&()", "(a))|((a)", "a|&a"]
)
def test_what_is_not_a_structure(codes):
    try:
        postfix_of(codes)
    except NoStructure:
        return
    raise AssertionError(codes)


@each(
    ("codes", "fits"),
    [
        ("(" * DEEPEST + "a" + ")" * DEEPEST, True),
        ("(" * (DEEPEST + 1) + "a" + ")" * (DEEPEST + 1), False),
        ("!(" * 15 + "a" + ")" * 15, True),
        ("!(" * 16 + "a" + ")" * 16, False),
        ("&".join(["(!a|(a&!a))"] * 200), True),  # many, but not one in another
        ("(" * DEEPEST + "!!!(a)" + ")" * DEEPEST, False),
    ],
)
def test_only_what_is_nested_counts(codes, fits):
    try:
        postfix_of(codes)
    except NoStructure:
        assert not fits
    else:
        assert fits


def test_filters_with_many_parentheses_need_no_parser():
    text = " AND ".join(f"(NOT (n = {k} OR (m < {k})))" for k in range(40))
    assert isinstance(ShapeCache(STOCK).parse(text), ShapedExpression)
