"""Shapes taken apart: their operations compute what the formula says, on a stack of that depth."""

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis.engines.sliced.shape_programs import ShapeProgram, shape_program
from tamis.kernels.programs import AND_LEAF, AND_TOP, OR_LEAF, OR_TOP, PUSH


@st.composite
def shapes(draw, depth=3, sign=None):
    """Formulas in postfix order, AND below OR and OR below AND, in any order of their parts."""
    if depth == 0 or (sign and draw(st.integers(0, 2)) == 0):
        return "a"
    mine = {"&": "|", "|": "&"}.get(sign) or draw(st.sampled_from("&|"))
    parts = draw(st.lists(shapes(depth - 1, mine), min_size=1 + bool(sign), max_size=4))
    return parts[0] + "".join(part + mine for part in parts[1:])


def evaluated(text, values):
    """A formula, letter by letter."""
    stack, leaves = [], iter(values)
    for sign in text:
        if sign == "a":
            stack.append(next(leaves))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(left and right if sign == "&" else left or right)
    (answer,) = stack
    return answer


def run(shape, values):
    """What the kernels do with a shape, and how high the stack was."""
    leaves = iter(values[shape.leads :])
    stack = [all(values[: shape.leads])] if shape.leads else []
    highest = len(stack)
    for op in shape.ops:
        if op == PUSH:
            stack.append(next(leaves))
        elif op == AND_LEAF:
            stack[-1] &= next(leaves)
        elif op == OR_LEAF:
            stack[-1] |= next(leaves)
        else:
            top = stack.pop()
            stack[-1] = stack[-1] & top if op == AND_TOP else stack[-1] | top
        highest = max(highest, len(stack))
    assert list(leaves) == []
    (answer,) = stack
    return answer, highest


@each(
    ("text", "expected"),
    [
        ("a", ShapeProgram(1, 1, (), 1)),
        ("aa&", ShapeProgram(2, 2, (), 1)),
        ("aa&a&", ShapeProgram(3, 3, (), 1)),
        ("aa|", ShapeProgram(2, 0, (PUSH, OR_LEAF), 1)),
        ("aa|a|", ShapeProgram(3, 0, (PUSH, OR_LEAF, OR_LEAF), 1)),
        ("aaa|&", ShapeProgram(3, 1, (PUSH, OR_LEAF, AND_TOP), 2)),
        ("aa&aa|&", ShapeProgram(4, 2, (PUSH, OR_LEAF, AND_TOP), 2)),
        ("aaa&|", ShapeProgram(3, 0, (PUSH, PUSH, AND_LEAF, OR_TOP), 2)),
        ("aa&aa&|", ShapeProgram(4, 0, (PUSH, AND_LEAF, PUSH, AND_LEAF, OR_TOP), 2)),
        ("aa|aa|&", ShapeProgram(4, 0, (PUSH, OR_LEAF, PUSH, OR_LEAF, AND_TOP), 2)),
        ("aaaa&|&", ShapeProgram(4, 1, (PUSH, PUSH, AND_LEAF, OR_TOP, AND_TOP), 3)),
    ],
)
def test_shapes_by_hand(text, expected):
    assert shape_program(text) == expected


@given(shapes(), st.randoms(use_true_random=False))
def test_the_operations_compute_the_formula(text, chance):
    shape = shape_program(text)
    assert shape.width == text.count("a")
    for share in (0, 1, 1, 2, 2, 3, 3, 4):
        values = [chance.randrange(4) < share for _ in range(shape.width)]
        answer, highest = run(shape, values)
        assert answer == evaluated(text, values)
        assert highest == shape.depth


@given(shapes())
def test_a_filter_is_true_only_if_its_leads_are(text):
    shape = shape_program(text)
    for gone in range(shape.leads):
        values = [place != gone for place in range(shape.width)]
        assert not evaluated(text, values)


@each("size", [2, 3, 64, 500])
def test_a_conjunction_is_all_leads(size):
    assert shape_program("a" + "a&" * (size - 1)) == ShapeProgram(size, size, (), 1)
    shape = shape_program("a" + "a|" * (size - 1))
    assert (shape.leads, shape.depth) == (0, 1)


def test_a_deep_formula():
    text = "a"
    for n in range(300):
        text = "a" + text + "&|"[n % 2]
    shape = shape_program(text)
    values = [n % 3 == 0 for n in range(301)]
    assert run(shape, values) == (evaluated(text, values), shape.depth)
