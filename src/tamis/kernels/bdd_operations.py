"""Building, combining and restricting binary decision diagrams (BDD, sections 5 to 7).

BDD is short for Campailla et al., "Efficient filtering in publish-subscribe systems using binary
decision diagrams" (ICSE 2001). `restrict` is the operation of Coudert and Madre that the paper
uses to make diagrams smaller by what is known of dependent predicates. The nodes, and the meaning
of `FULL` and `OVER`, are those of `bdd_nodes`.
"""

import numpy as np

from tamis.kernels.bdd_nodes import (
    FALSE,
    TRUE,
    Array,
    NodeStore,
    count_nodes,
    hash_of,
    level_of,
    make_node,
)
from tamis.kernels.bits import smaller
from tamis.kernels.jit import inner, jit

AND, OR, XOR, RESTRICT = 0, 1, 2, 3  # operations of the computed table
UNKNOWN = -3  # a result that is neither a node nor FULL nor OVER

# Operators of a program in postfix order; a number from 0 on is a variable.
DO_AND, DO_OR, DO_NOT, DO_TRUE, DO_FALSE = -1, -2, -3, -4, -5


@jit
def apply(op: int, f: int, g: int, s: NodeStore, base: int) -> int:
    """f op g, for AND, OR or XOR.

    A frame of the stack, from `base` on, is f, g, the result of the low branch, and the stage.
    """
    stack = s.stack
    top = base
    stack[top, 0], stack[top, 1], stack[top, 3] = f, g, 0
    answer = FALSE
    while top >= base:
        f, g, stage = stack[top, 0], stack[top, 1], stack[top, 3]
        if stage == 0:
            if f > g:
                f, g = g, f
                stack[top, 0], stack[top, 1] = f, g
            answer = _terminal(op, f, g)
            if answer >= 0:
                top -= 1
                continue
            slot = hash_of(int(f), int(g), op, s.results.size)
            if s.keys[slot, 0] == op and s.keys[slot, 1] == np.int64(f) * 2**32 + g:
                answer = s.results[slot]
                top -= 1
                continue
        elif stage == 1:
            stack[top, 2] = answer
        level_f, level_g = level_of(f, s), level_of(g, s)
        if stage < 2:
            children = s.low if stage == 0 else s.high
            stack[top, 3] = stage + 1
            stack[top + 1, 0] = children[f] if level_f <= level_g else f
            stack[top + 1, 1] = children[g] if level_g <= level_f else g
            stack[top + 1, 3] = 0
            top += 1
            continue
        variable = s.label[f] if level_f <= level_g else s.label[g]
        answer = make_node(int(variable), int(stack[top, 2]), int(answer), s)
        if answer < 0:
            return answer
        slot = hash_of(int(f), int(g), op, s.results.size)
        s.keys[slot, 0], s.keys[slot, 1] = op, np.int64(f) * 2**32 + g
        s.results[slot] = answer
        top -= 1
    return answer


@inner
def _terminal(op: int, f: int, g: int) -> int:
    """The result where it needs no recursion, else -1; f <= g."""
    if f == g:
        return FALSE if op == XOR else f
    if op == AND:
        if f == FALSE:
            return FALSE
        if f == TRUE:
            return g
    else:
        if f == FALSE:
            return g
        if op == OR and f == TRUE:
            return TRUE
    return -1


@jit
def restrict(f: int, c: int, s: NodeStore) -> int:
    """A function that equals f wherever c is true, hopefully smaller: Coudert and Madre's restrict.

    c is not false. Where c tests a variable that f does not depend on, the test is dropped from c;
    where one branch of c is false, the result is that of the other branch.
    """
    stack, answer = s.stack, FALSE
    half = stack.shape[0] // 2  # `apply` works in the other half
    top = 0
    stack[0, 0], stack[0, 1], stack[0, 3] = f, c, 0
    while top >= 0:
        f, c, stage = stack[top, 0], stack[top, 1], stack[top, 3]
        if stage == 0:
            f, c, answer = _restrict_down(f, c, s, half)
            if answer == UNKNOWN:
                stack[top, 0], stack[top, 1], stack[top, 3] = f, c, 1
                _restrict_child(f, c, s.low, top, s)
                top += 1
                continue
            if answer < 0:
                return answer
            top -= 1
            continue
        if stage == 1:
            stack[top, 2], stack[top, 3] = answer, 2
            _restrict_child(f, c, s.high, top, s)
            top += 1
            continue
        answer = make_node(int(s.label[f]), int(stack[top, 2]), int(answer), s)
        if answer < 0:
            return answer
        slot = hash_of(int(f), int(c), int(RESTRICT), s.results.size)
        s.keys[slot, 0], s.keys[slot, 1] = RESTRICT, np.int64(f) * 2**32 + c
        s.results[slot] = answer
        top -= 1
    return answer


@inner
def _restrict_child(f: int, c: int, children: Array, top: int, s: NodeStore) -> None:
    stack = s.stack
    stack[top + 1, 0] = children[f]
    stack[top + 1, 1] = children[c] if level_of(c, s) == level_of(f, s) else c
    stack[top + 1, 3] = 0


@inner
def _restrict_down(f: int, c: int, s: NodeStore, base: int) -> tuple[int, int, int]:
    """Go down in f and c while only one branch matters: where that ends, and the result there.

    The result is UNKNOWN where both branches are needed.
    """
    while True:
        if c == TRUE or f < 2:
            return f, c, f
        if f == c:
            return f, c, TRUE
        level_f, level_c = level_of(f, s), level_of(c, s)
        if level_c < level_f:
            c = apply(int(OR), int(s.low[c]), int(s.high[c]), s, base)
            if c < 0:
                return f, c, c
        elif level_c == level_f and s.low[c] == FALSE:
            f, c = s.high[f], s.high[c]
        elif level_c == level_f and s.high[c] == FALSE:
            f, c = s.low[f], s.low[c]
        else:
            break
    slot = hash_of(int(f), int(c), int(RESTRICT), s.results.size)
    if s.keys[slot, 0] == RESTRICT and s.keys[slot, 1] == np.int64(f) * 2**32 + c:
        return f, c, s.results[slot]
    return f, c, UNKNOWN


@inner
def run_program(program: Array, care: int, values: Array, s: NodeStore) -> int:
    """Run a program in postfix order; returns how many functions it leaves, or FULL or OVER.

    They are values[0], values[1], ...; values[*] is as long as the program. Unless `care` is TRUE,
    the result of every step is restricted by it, so that no large function arises on the way to a
    small one.
    """
    depth = 0
    for step in program:
        if step == DO_TRUE:
            node = TRUE
        elif step == DO_FALSE:
            node = FALSE
        elif step >= 0:
            node = make_node(step, int(FALSE), int(TRUE), s)
        else:
            # One call for all operators, because the compiler copies it to every place of a call.
            depth -= 1
            op, f, g = XOR, int(TRUE), values[depth]
            if step != DO_NOT:
                depth -= 1
                op, f = (AND if step == DO_AND else OR), values[depth]
            node = apply(op, f, g, s, 0)
        if node > TRUE and care != TRUE:
            node = restrict(node, care, s)
        if node < 0:
            return node
        values[depth] = node
        depth += 1
    return depth


@jit
def build_function(program: Array, care: int, values: Array, s: NodeStore) -> int:
    """The function that a program leaves, or FULL or OVER."""
    left = run_program(program, care, values, s)
    return left if left < 0 else int(values[0])


@jit
def restrict_by(
    f: int, facts: Array, values: Array, scratch: Array, s: NodeStore, effort: int
) -> int:
    """f, restricted by each of the functions that the program `facts` leaves (BDD, section 7).

    If there are several, they are all tried again as long as f becomes smaller. A result that is
    not smaller is thrown away: restriction is a heuristic. It ends after `effort` nodes were
    visited, whatever is left to try.
    """
    left = run_program(facts, int(TRUE), values, s)
    if left < 0:
        return left
    best, size = f, count_nodes(f, s, scratch)
    changed = True
    while changed and size > 0:
        changed = False
        for k in range(left):
            if values[k] == FALSE:  # no event is possible, so any answer is right
                continue
            if effort < 0:
                return best
            effort -= smaller(size, scratch.size)
            tried = restrict(best, values[k], s)
            if tried < 0:
                return tried
            fewer = count_nodes(tried, s, scratch)
            if fewer < size:
                best, size, changed = tried, fewer, left > 1
    return best
