"""A package of shared binary decision diagrams over flat arrays (BDD paper, sections 5 and 7).

Node 0 is false, node 1 is true. Every other node has a variable and two children with smaller
numbers, so numbers are a topological order and one pass over the arrays evaluates every node once.
A collection puts the nodes of one variable side by side, as the paper numbers them.
Variables are ordered by their levels, smallest on top. Reduced: no node has equal children, no two
nodes are equal; the unique table sees to it.

A kernel that runs out of room or over the limit answers `FULL` or `OVER`; what it made so far stays
in the tables, so that asking again after growing goes on where it stopped. Nothing recurses.
"""

from typing import Any, NamedTuple

import numpy as np

from tamis.kernels.jit import jit

Array = np.ndarray[Any, Any]

FALSE, TRUE = 0, 1
FULL, OVER = -1, -2  # answers instead of a node

AND, OR, XOR, RESTRICT = 0, 1, 2, 3  # operations of the computed table

# Operators of a program in postfix order; a number from 0 is a variable.
DO_AND, DO_OR, DO_NOT, DO_TRUE, DO_FALSE = -1, -2, -3, -4, -5

NODES, LIMIT = 0, 1  # places of `Store.sizes`
BOTTOM_LEVEL = 2**62  # below all variables
UNDEFINED = 2


class Store(NamedTuple):
    """The arrays of a diagram."""

    label: Array  # int32[node]: the variable, -1 for false and true
    low: Array  # int32[node]: the child when the variable is false
    high: Array  # int32[node]
    stamps: Array  # int32[node]: scratch of `count_nodes`, all zero
    level: Array  # int64[variable]
    unique: Array  # int32[slot]: a node, 0 for none; a power of two long, at most half full
    keys: Array  # int64[slot, 2]: the operation and operands that were computed
    results: Array  # int32[slot]
    stack: Array  # int32[frame, 4]: scratch, two halves; each as deep as there are variables
    sizes: Array  # int64: how many nodes there are, how many there may be


@jit
def _level(node: int, s: Store) -> int:
    return BOTTOM_LEVEL if node < 2 else s.level[s.label[node]]


@jit
def _hash(a: int, b: int, c: int, size: int) -> int:
    mixed = np.int64(a) * 0x2545F491 + np.int64(b) * 0x1B873593 + np.int64(c) * 0x3C6EF35F
    mixed ^= mixed >> 29
    return int(mixed & (size - 1))


@jit
def make_node(variable: int, low: int, high: int, s: Store) -> int:
    """The node of a variable and two children, made if there is none."""
    if low == high:
        return low
    slot = _hash(low, high, variable, s.unique.size)
    while s.unique[slot] != 0:
        node = s.unique[slot]
        if s.low[node] == low and s.high[node] == high and s.label[node] == variable:
            return int(node)
        slot = (slot + 1) & (s.unique.size - 1)
    node = s.sizes[NODES]
    if node >= s.sizes[LIMIT]:
        return OVER
    if node >= s.label.size or 2 * node >= s.unique.size:
        return FULL
    s.label[node], s.low[node], s.high[node] = variable, low, high
    s.unique[slot] = node
    s.sizes[NODES] = node + 1
    return int(node)


@jit
def _terminal(op: int, f: int, g: int) -> int:
    """The answer where it needs no work, -1 where it does; f <= g."""
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
def apply(op: int, f: int, g: int, s: Store, base: int) -> int:
    """f op g for AND, OR or XOR. Frames of the stack from `base`: f, g, the low result, stage."""
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
            slot = _hash(int(f), int(g), op, s.results.size)
            if s.keys[slot, 0] == op and s.keys[slot, 1] == np.int64(f) * 2**32 + g:
                answer = s.results[slot]
                top -= 1
                continue
        elif stage == 1:
            stack[top, 2] = answer
        level_f, level_g = _level(f, s), _level(g, s)
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
        slot = _hash(int(f), int(g), op, s.results.size)
        s.keys[slot, 0], s.keys[slot, 1] = op, np.int64(f) * 2**32 + g
        s.results[slot] = answer
        top -= 1
    return answer


@jit
def restrict(f: int, c: int, s: Store) -> int:
    """A diagram, small if that is easy, that equals f wherever c is true (Coudert and Madre).

    c is not false. Where c asks about a variable that f does not depend on, the question is
    dropped from c; where one branch of c is false, the answer is that of the other branch.
    """
    stack, answer = s.stack, FALSE
    half = stack.shape[0] // 2  # `apply` works in the other half
    top = 0
    stack[0, 0], stack[0, 1], stack[0, 3] = f, c, 0
    while top >= 0:
        f, c, stage = stack[top, 0], stack[top, 1], stack[top, 3]
        if stage == 0:
            f, c, answer = _restrict_down(f, c, s, half)
            if answer < -2:  # nothing is known yet
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
        slot = _hash(int(f), int(c), int(RESTRICT), s.results.size)
        s.keys[slot, 0], s.keys[slot, 1] = RESTRICT, np.int64(f) * 2**32 + c
        s.results[slot] = answer
        top -= 1
    return answer


@jit
def _restrict_child(f: int, c: int, children: Array, top: int, s: Store) -> None:
    stack = s.stack
    stack[top + 1, 0] = children[f]
    stack[top + 1, 1] = children[c] if _level(c, s) == _level(f, s) else c
    stack[top + 1, 3] = 0


@jit
def _restrict_down(f: int, c: int, s: Store, base: int) -> tuple[int, int, int]:
    """f and c until both branches must be asked: then with the answer -3, else with the answer."""
    while True:
        if c == TRUE or f < 2:
            return f, c, f
        if f == c:
            return f, c, TRUE
        level_f, level_c = _level(f, s), _level(c, s)
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
    slot = _hash(int(f), int(c), int(RESTRICT), s.results.size)
    if s.keys[slot, 0] == RESTRICT and s.keys[slot, 1] == np.int64(f) * 2**32 + c:
        return f, c, s.results[slot]
    return f, c, -3


@jit
def run(program: Array, care: int, values: Array, s: Store) -> int:
    """Run a program in postfix order; the functions that it leaves are values[0], values[1], ...

    values[*] is as long as the program. How many functions are left, or FULL or OVER. Unless `care`
    is TRUE every step is restricted by it, so that no large function arises on the way to a small
    one.
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
            # One call for all operators: the compiler makes a copy of it for each place.
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
def build(program: Array, care: int, values: Array, s: Store) -> int:
    """The one function of a program."""
    left = run(program, care, values, s)
    return left if left < 0 else int(values[0])


@jit
def restrict_by(f: int, facts: Array, values: Array, scratch: Array, s: Store) -> int:
    """f, restricted by one function after the other of the program `facts`.

    More than one are gone through again as long as f becomes smaller. A result that is not smaller
    is thrown away: restriction is a heuristic.
    """
    left = run(facts, int(TRUE), values, s)
    if left < 0:
        return left
    best, size = f, count_nodes(f, s, scratch)
    changed = True
    while changed and size > 0:
        changed = False
        for k in range(left):
            if values[k] == FALSE:  # no event can be: whatever is answered is right
                continue
            tried = restrict(best, values[k], s)
            if tried < 0:
                return tried
            smaller = count_nodes(tried, s, scratch)
            if smaller < size:
                best, size, changed = tried, smaller, left > 1
    return best


@jit
def count_nodes(root: int, s: Store, values: Array) -> int:
    """How many nodes a function has, false and true not counted. values[*] is scratch."""
    if root < 2:
        return 0
    # Breadth first over values[*]; a node is stamped when it is put there.
    values[0] = root
    s.stamps[root] = 1
    found, done = 1, 0
    while done < found:
        node = values[done]
        done += 1
        for child in (s.low[node], s.high[node]):
            if child > 1 and s.stamps[child] == 0:
                if found == values.size:
                    for k in range(found):
                        s.stamps[values[k]] = 0
                    return 2**40  # larger than anything that is kept
                s.stamps[child] = 1
                values[found] = child
                found += 1
    for k in range(found):
        s.stamps[values[k]] = 0
    return found


# --- keeping house


@jit
def rehash(s: Store) -> None:
    """Fill an empty unique table with all nodes."""
    for node in range(2, s.sizes[NODES]):
        slot = _hash(int(s.low[node]), int(s.high[node]), int(s.label[node]), s.unique.size)
        while s.unique[slot] != 0:
            slot = (slot + 1) & (s.unique.size - 1)
        s.unique[slot] = node


@jit
def mark(roots: Array, places: Array, s: Store) -> int:
    """Set places[node], which must be zero, to 1 for the nodes that roots[*] need; how many."""
    for root in roots:
        places[root] = 1
    count = 0
    for node in range(s.sizes[NODES] - 1, 1, -1):
        if places[node]:
            count += 1
            places[s.low[node]] = places[s.high[node]] = 1
    return count


@jit
def compact(roots: Array, places: Array, ranks: Array, starts: Array, s: Store, new: Store) -> None:
    """Copy the nodes that are marked to a new store, those of one variable side by side.

    ranks[variable] is 0 for the lowest level; starts[rank + 1] is written. Children are below their
    parents, so they come before them. roots[*] are renumbered; places[node] becomes the new number.
    """
    for rank in range(starts.size):
        starts[rank] = 0
    for node in range(2, s.sizes[NODES]):
        starts[ranks[s.label[node]] + 1] += places[node]
    starts[0] = 2
    for rank in range(1, starts.size):
        starts[rank] += starts[rank - 1]
    for node in range(2, s.sizes[NODES]):
        if places[node]:
            rank = ranks[s.label[node]]
            places[node] = starts[rank]
            starts[rank] += 1
    for rank in range(starts.size - 1, 0, -1):
        starts[rank] = starts[rank - 1]
    starts[0] = 2
    places[FALSE], places[TRUE] = FALSE, TRUE
    for node in range(2, s.sizes[NODES]):
        if places[node]:
            here = places[node]
            new.label[here] = s.label[node]
            new.low[here], new.high[here] = places[s.low[node]], places[s.high[node]]
    for k in range(roots.size):
        roots[k] = places[roots[k]]
    new.sizes[NODES] = starts[starts.size - 1]
    rehash(new)


# --- evaluation


class Stretches(NamedTuple):
    """Nodes of one variable side by side, as `compact` puts them; later nodes follow behind."""

    variables: Array  # int64[rank]
    starts: Array  # int64[rank + 1]


@jit
def evaluate(truth: Array, stretches: Stretches, s: Store, value: Array) -> None:
    """EvalBDD (Fig. 3): value[node] for all nodes; truth[variable] is 0 or 1."""
    value[FALSE], value[TRUE] = 0, 1
    starts = stretches.starts
    for k in range(stretches.variables.size):
        child = s.high if truth[stretches.variables[k]] else s.low
        for node in range(starts[k], starts[k + 1]):
            value[node] = value[child[node]]
    for node in range(starts[starts.size - 1], s.sizes[NODES]):
        value[node] = value[s.high[node] if truth[s.label[node]] else s.low[node]]


@jit
def evaluate_three(truth: Array, stretches: Stretches, s: Store, value: Array) -> None:
    """MVEvalBDD (Fig. 5): truth and value may also be UNDEFINED, and then the node is.

    The children of a node whose variable is undefined are not looked at; a node with an undefined
    child is undefined.
    """
    value[FALSE], value[TRUE] = 0, 1
    starts = stretches.starts
    for k in range(stretches.variables.size):
        asked = truth[stretches.variables[k]]
        if asked == UNDEFINED:
            for node in range(starts[k], starts[k + 1]):
                value[node] = UNDEFINED
        else:
            for node in range(starts[k], starts[k + 1]):
                value[node] = _three(asked, value[s.low[node]], value[s.high[node]])
    for node in range(starts[starts.size - 1], s.sizes[NODES]):
        asked = truth[s.label[node]]
        if asked == UNDEFINED:
            value[node] = UNDEFINED
        else:
            value[node] = _three(asked, value[s.low[node]], value[s.high[node]])


@jit
def _three(asked: int, low: int, high: int) -> int:
    # Values are 0, 1 and 2 for undefined, which the second bit tells.
    return (high if asked else low) & 1 | (low | high) & UNDEFINED


@jit
def undefined_variables(
    variables: Array, starts: Array, attributes: Array, missing: Array, truth: Array
) -> None:
    """Set truth to UNDEFINED for each of variables[*] that asks about a missing attribute.

    attributes[starts[k]:starts[k + 1]] are those of variables[k]; missing[attribute] is 0 or 1.
    """
    for k in range(variables.size):
        for j in range(starts[k], starts[k + 1]):
            if missing[attributes[j]]:
                truth[variables[k]] = UNDEFINED


@jit
def true_slots(value: Array, roots: Array, found: Array) -> int:
    """Write the slots whose root is true to found[*], which is one longer; how many there are."""
    count = 0
    for slot in range(roots.size):
        found[count] = slot
        count += value[roots[slot]] == 1
    return count


@jit
def missing_nothing(slots: Array, needed: Array, missing: Array) -> Array:
    """Those of slots[*] that need no missing attribute: needed[slot, word], missing[word]."""
    found = np.empty(slots.size, np.int32)
    count = 0
    for slot in slots:
        lacks = np.uint64(0)
        for word in range(missing.size):
            lacks |= needed[slot, word] & missing[word]
        found[count] = slot
        count += lacks == 0
    return found[:count]


@jit
def walk(node: int, truth: Array, s: Store) -> int:
    """The value of one function: a path from its root."""
    while node > TRUE:
        node = s.high[node] if truth[s.label[node]] else s.low[node]
    return int(node)


class Outputs(NamedTuple):
    """Output nodes in groups of equal children; those of a group form a list."""

    low: Array  # int32[group]: the children of its output nodes
    high: Array  # int32[group]
    first: Array  # int32[group]: the first slot of its list, -1 for a free group
    next: Array  # int32[slot]: the next slot of the list, -1 at its end
    previous: Array  # int32[slot]: the one before, -1 at its start
    variable: Array  # int64[slot]: what the output node asks


@jit
def evaluate_groups(size: int, outputs: Outputs, truth: Array, s: Store, found: Array) -> int:
    """Write the slots of the output nodes that are true to found[*] (MBD, section 3.3).

    The children of a group are evaluated once. How many slots were written.
    """
    count = 0
    for group in range(size):
        if outputs.first[group] < 0:
            continue
        high = walk(outputs.high[group], truth, s)
        low = walk(outputs.low[group], truth, s)
        if high + low == 0:
            continue
        slot = outputs.first[group]
        while slot >= 0:
            if (high if truth[outputs.variable[slot]] else low) == TRUE:
                found[count] = slot
                count += 1
            slot = outputs.next[slot]
    return count
