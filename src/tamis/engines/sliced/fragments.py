"""What single atoms of filters become: the leaves of their normal form.

Atoms with the same `AtomShape` differ only in their constants, and so do their fragments. So the
first atom of a shape is normalised; of the others only the constants are converted, by the
converters that the shape carries. What holds for every atom of a shape is this:

* ``x op c`` and ``x BETWEEN c AND d`` give one leaf with a constant for each constant of the atom,
  in the same order, and perhaps leaves without constants (``x IS NULL``). Only the bounds of whole
  numbers and decimals are moved by one: ``n < 5`` is ``n <= 4`` in normal form, and ``d < 0.50`` is
  ``d <= 0.49``.
* ``x IN (c, d, ...)`` gives one leaf with the set of the constants.
* A string test gives one leaf with the text, or with a predicate that contains the text. Which
  predicate that is depends on the form of the text (`AtomShape.form_of_text`): in normal form
  ``s LIKE 'ab%'`` is ``startswith(s, 'ab')``, and ``s LIKE '%ab'`` is ``endswith(s, 'ab')``.
* No constant of a shape makes its atoms always or never true: its class keeps whole numbers away
  from the ends of 64 bits, and decimals at the ends of their type have another shape.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, ClassVar

from tamis.bounded_caches import BoundedCache
from tamis.engines.sliced.formulas import of_normal_form
from tamis.engines.sliced.leaves import (
    EQUAL,
    HAS,
    HAS_NOT,
    LEAF_KINDS,
    NONE_OF,
    ONE_OF,
    TEST,
    UNEQUAL,
    leaf_of,
)
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.atoms import Atom, AtomShape, FormOfText
from tamis.language.normal_form import normalize
from tamis.predicates.presence import attribute_set, required_by_conjuncts
from tamis.semantics import Semantics
from tamis.types import STRING

MOST_FRAGMENTS = 64_000_000  # bytes
MOST_RULES = 16_000_000  # bytes
FRAGMENT_BYTES, CONSTANT_BYTES = 300, 120
SHORT = 40  # characters of the constants of a fragment that takes no more than others

# Two sets of attributes (see `tamis.predicates.presence`): those that occur in the text of an atom,
# and those that its fragment requires.
AtomAttributes = tuple[int, int]
# Shape, codes and constants of the leaves, and the attributes. A plain tuple, as millions are made.
Fragment = tuple[str, tuple[int, ...], tuple[Any, ...], AtomAttributes]
Rule = Callable[[Atom], Fragment]

_SETS = {EQUAL: ONE_OF, UNEQUAL: NONE_OF, ONE_OF: ONE_OF, NONE_OF: NONE_OF}
_SINGLES = {ONE_OF: EQUAL, NONE_OF: UNEQUAL}


class Fragments(BoundedCache[Atom, Fragment]):
    """The fragments of atoms, or of their negations, in one semantics."""

    least: ClassVar[int] = FRAGMENT_BYTES

    def __init__(self, semantics: Semantics, *, negated: bool) -> None:
        super().__init__(MOST_FRAGMENTS)
        self._schema = semantics.schema
        self._logic = semantics.logic
        self._is_negated = negated
        self._rules: dict[AtomShape, Rule] = {}
        self._rule_bytes = 0

    def __missing__(self, atom: Atom) -> Fragment:
        fragment = self._older.get(atom)
        shape = atom.shape
        if fragment is None:
            if shape is None:
                fragment = self.normalized(atom)
            else:
                rule = self._rules.get(shape)
                fragment = self._learn(shape, atom) if rule is None else rule(atom)
        if shape is not None and len(self) < self._room and len("".join(atom.constants)) <= SHORT:
            self[atom] = fragment  # without `keep`: millions come this way
        else:
            self.keep(atom, fragment)
        return fragment

    def size(self, atom: Atom, fragment: Fragment) -> int:
        shape, codes, _, _ = fragment
        count = max(len(atom.constants), len(codes))
        texts = sum(map(len, atom.constants)) if atom.shape is not None else atom.node.nbytes
        return FRAGMENT_BYTES + CONSTANT_BYTES * count + len(shape) + texts

    def normalized(self, atom: Atom) -> Fragment:
        """The fragment of an atom by its normal form."""
        node = atom.node
        tree = normalize(ast.Not(node) if self._is_negated else node, self._logic)
        shape, predicates = of_normal_form(tree)
        leaves = [leaf_of(predicate, self._schema) for predicate in predicates]
        occurring = attribute_set(ast.attributes(node), self._schema)
        return (
            shape,
            tuple([code for code, _ in leaves]),
            tuple([constant for _, constant in leaves]),
            (occurring, required_by_conjuncts(tree, self._schema)),
        )

    def _learn(self, shape: AtomShape, atom: Atom) -> Fragment:
        """The fragment of the first atom of a shape, which gives a rule for the others."""
        fragment = self.normalized(atom)
        size = FRAGMENT_BYTES + CONSTANT_BYTES * len(shape.converters)
        if self._rule_bytes + size > MOST_RULES:
            self._rules.clear()
            self._rule_bytes = 0
        self._rule_bytes += size
        if shape.form_of_text is not None:
            self._rules[shape] = _StringTestRule(shape.form_of_text, self.normalized)
        elif any(code % LEAF_KINDS == TEST for code in fragment[1]):
            self._rules[shape] = self.normalized
        else:
            self._rules[shape] = rule_of(atom, shape, fragment)
        return fragment


class _StringTestRule:
    """How string tests of one shape become fragments: like the first whose text has their form."""

    def __init__(self, form_of_text: FormOfText, normalized: Rule) -> None:
        self._form_of_text = form_of_text
        self._normalized = normalized
        self._with_text: dict[str, Callable[[str], Fragment] | None] = {}

    def __call__(self, atom: Atom) -> Fragment:
        found = self._form_of_text(atom.constants[0][1:-1])
        if found is None:
            return self._normalized(atom)
        form, text = found
        if form not in self._with_text:
            fragment = self._normalized(atom)
            self._with_text[form] = _with_another_text(fragment)
            return fragment
        make = self._with_text[form]
        return self._normalized(atom) if make is None else make(text)


def _with_another_text(fragment: Fragment) -> Callable[[str], Fragment] | None:
    """A function that makes the same fragment with another text; None if it is in no constant."""
    shape, codes, constants, attributes = fragment
    places = [place for place, constant in enumerate(constants) if constant is not None]
    if len(places) != 1:
        return None
    before, after = constants[: places[0]], constants[places[0] + 1 :]
    sample = constants[places[0]]
    if isinstance(sample, str):
        return lambda text: (shape, codes, (*before, text, *after), attributes)
    make = _predicate_maker(sample)
    if make is None:
        return None
    return lambda text: (shape, codes, (*before, make(text), *after), attributes)


def _predicate_maker(sample: Node) -> Callable[[str], Node] | None:
    """A function that makes the same string test with another text; None for other predicates."""
    match sample:
        case ast.Not(operand):
            plain = _predicate_maker(operand)
            return None if plain is None else lambda text: ast.Not(plain(text))
        case ast.Like(value, _, escape):
            return lambda text: ast.Like(value, text, escape)
        case ast.Call(name, (value, ast.Literal()), of):
            return lambda text: ast.Call(name, (value, ast.Literal(text, STRING)), of)
        case ast.Call(name, (ast.Literal(), value), of):
            return lambda text: ast.Call(name, (ast.Literal(text, STRING), value), of)
    return None


def rule_of(sample: Atom, shape: AtomShape, fragment: Fragment) -> Rule:
    """How the atoms of a shape become fragments, given one of them and its fragment."""
    form, codes, constants, attributes = fragment
    if len(codes) == 1 and codes[0] % LEAF_KINDS in {HAS, HAS_NOT}:
        (to_element,) = shape.converters
        return lambda atom: (form, codes, ((to_element(atom.constants[0]),),), attributes)
    places = [place for place, constant in enumerate(constants) if constant is not None]
    if len(places) < len(shape.converters):
        return _set_rule(shape, fragment, places[0])
    converters = shape.converters
    # By how much a bound of a whole number or decimal is moved, up or down; 0 for other types.
    moves = [
        constants[place] - convert(text) if isinstance(constants[place], int | Decimal) else 0
        for place, convert, text in zip(places, converters, sample.constants, strict=True)
    ]
    if len(constants) == 1:
        (convert,), (move,) = converters, moves
        if move:
            return lambda atom: (form, codes, (convert(atom.constants[0]) + move,), attributes)
        return lambda atom: (form, codes, (convert(atom.constants[0]),), attributes)
    if len(constants) == len(converters) and len({*converters}) == 1 and not any(moves):
        same = converters[0]
        return lambda atom: (form, codes, tuple(map(same, atom.constants)), attributes)
    # For each leaf: the number of its constant, how to convert it, and by how much to move it.
    steps: list[tuple[int, Callable[[str], Any], int]] = [(0, _no_constant, 0)] * len(constants)
    for number, place in enumerate(places):
        steps[place] = number, converters[number], moves[number]

    def rule(atom: Atom) -> Fragment:
        texts = atom.constants
        found = [
            convert(texts[n]) + move if move else convert(texts[n]) for n, convert, move in steps
        ]
        return form, codes, tuple(found), attributes

    return rule


def _no_constant(_text: str) -> None:
    return None


def _set_rule(shape: AtomShape, fragment: Fragment, place: int) -> Rule:
    """IN and NOT IN, whose set is at one place among the leaves; with one member, = and <>."""
    form, codes, constants, attributes = fragment
    attribute, kind = divmod(codes[place], LEAF_KINDS)
    before, after = constants[:place], constants[place + 1 :]
    of_sets = _replaced(codes, place, attribute * LEAF_KINDS + _SETS[kind])
    of_singles = _replaced(codes, place, attribute * LEAF_KINDS + _SINGLES[_SETS[kind]])
    converters = shape.converters
    same = converters[0] if len({*converters}) == 1 else None

    def rule(atom: Atom) -> Fragment:
        if same is None:
            pairs = zip(converters, atom.constants, strict=True)
            members = sorted({convert(text) for convert, text in pairs})
        else:
            members = sorted({*map(same, atom.constants)})
        if len(members) == 1:
            return form, of_singles, (*before, members[0], *after), attributes
        return form, of_sets, (*before, tuple(members), *after), attributes

    return rule


def _replaced(codes: tuple[int, ...], place: int, code: int) -> tuple[int, ...]:
    return (*codes[:place], code, *codes[place + 1 :])
