"""Leaves of many filters fast: each atom is normalised once, each structure put together once.

A filter that came through the shape cache is a boolean structure and atoms. Asked for truth,
negation distributes over AND and OR in both logics, so the normal form of the filter is that of its
atoms, or of their negations, put together as the structure says. This needs no tree:

* A *fragment* is what an atom, or its negation, becomes. It is remembered for each atom. Atoms
  with the same `AtomShape` differ in their constants only, and so do their fragments: a *rule*
  makes the one from the other. Rules are not written down here but read off from what `normalize`
  makes of a few probes; what a rule does not explain is normalised.
* A *template* says what shape fragments make together, and in which order their leaves come. It
  depends on the structure and on the shapes of the fragments.

The result means what `leaves_of` gives. It may have leaves twice that the normal form has once.
What is no formula of atoms, or has an atom that is always or never true, goes the slow way. The
limit of normal forms needs no test here: the texts of the shape cache are far too short for it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from tamis.engines.sliced.forms import ALWAYS, NEVER
from tamis.engines.sliced.leaves import (
    EQUAL,
    LEAF_KINDS,
    NONE_OF,
    ONE_OF,
    PRESENT,
    UNEQUAL,
    Leaves,
    leaf_of,
    leaves_of,
)
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.language.normal_form import normalize
from tamis.language.shape_cache import Atom, AtomShape, ShapedExpression
from tamis.schema import Enumeration, Schema
from tamis.semantics import Semantics
from tamis.types import Kind

MOST_FRAGMENTS = 200_000
MOST_RULES = 20_000
MOST_TEMPLATES = 100_000

# Shape, codes and constants of the leaves, and two sets of attributes as bits: those that occur in
# the text, and those that are present whenever the fragment is true. A plain tuple, as millions of
# them are made.
Presence = tuple[int, int]
Fragment = tuple[str, tuple[int, ...], tuple[Any, ...], Presence]
Rule = Callable[[Atom], Fragment]
Converter = Callable[[str], Any]

_NEW = tuple.__new__  # what the constructor of a named tuple calls, without the detour


class Reader:
    """Reads the leaves of filters in one semantics."""

    def __init__(self, semantics: Semantics) -> None:
        self._semantics = semantics
        self._is_strict = semantics.name == "strict"
        self._plain = Fragments(semantics, negated=False).__getitem__
        self._negated = Fragments(semantics, negated=True).__getitem__
        self._getters: dict[str, tuple[Callable[[Atom], Fragment], ...]] = {}
        self._templates = Templates()

    def leaves(self, expression: Expression) -> Leaves:
        """The leaves of a filter, with the meaning of those of `leaves_of`."""
        if type(expression) is not ShapedExpression:
            return leaves_of(expression, self._semantics)
        structure = expression.structure
        if "!" in structure:
            getters = self._getters.get(structure) or self._learn(structure)
            found: Any = [get(atom) for get, atom in zip(getters, expression.atoms, strict=True)]
        else:
            found = map(self._plain, expression.atoms)
        shapes, codes, constants, presence = zip(*found)  # noqa: B905 - fours, and strict is slow
        template = self._templates[structure, shapes, 0]
        if template is CONSTANT:
            return leaves_of(expression, self._semantics)
        if self._is_strict:
            missing = _missing(presence, template.is_top)
            if missing:
                template = self._templates[structure, shapes, len(missing)]
                codes = (*codes, tuple([attribute * LEAF_KINDS + PRESENT for attribute in missing]))
                constants = (*constants, (None,) * len(missing))
        shape, pick, _ = template
        if len(codes) < 20:
            leaf_codes, leaf_constants = sum(codes, ()), sum(constants, ())  # for few the fastest
        else:
            leaf_codes = tuple(chain.from_iterable(codes))
            leaf_constants = tuple(chain.from_iterable(constants))
        if pick is not None:
            leaf_codes, leaf_constants = pick(leaf_codes), pick(leaf_constants)
        return _NEW(Leaves, (shape, leaf_codes, leaf_constants))

    def _learn(self, structure: str) -> tuple[Callable[[Atom], Fragment], ...]:
        if len(self._getters) >= MOST_TEMPLATES:
            self._getters.clear()
        _, signs = parsed(structure)
        getters = tuple([self._plain if positive else self._negated for positive in signs])
        self._getters[structure] = getters
        return getters


def _missing(presence: Sequence[Presence], is_top: Sequence[bool]) -> list[int]:
    """The attributes that occur in a filter and that it may be true without."""
    occurring = asked = 0
    for (here, needed), top in zip(presence, is_top, strict=True):
        occurring |= here
        if top:
            asked |= needed
    left = occurring & ~asked
    return [n for n in range(left.bit_length()) if left >> n & 1]


# --- formulas


class Chain(NamedTuple):
    """AND or OR of leaves, which are numbers, and of chains of the other sign."""

    sign: str
    items: "tuple[int | Chain, ...]"


Formula = int | Chain


def chain_of(sign: str, parts: Iterable[Formula]) -> Formula:
    """A chain without chains of its own sign in it."""
    items: list[Formula] = []
    for part in parts:
        if type(part) is Chain and part.sign == sign:
            items += part.items
        else:
            items.append(part)
    return Chain(sign, tuple(items)) if len(items) > 1 else items[0]


def written(formula: Formula) -> tuple[str, tuple[int, ...]]:
    """The shape of a formula and its leaves in order: those of a chain before the chains in it."""
    if isinstance(formula, int):
        return "a", (formula,)
    sign, items = formula
    order = tuple([item for item in items if isinstance(item, int)])
    shape = "a" + ("a" + sign) * (len(order) - 1) if order else ""
    if len(order) < len(items):
        for part, leaves in sorted([written(item) for item in items if isinstance(item, Chain)]):
            shape += part + (sign if shape else "")
            order += leaves
    return shape, order


def read(shape: str, first: int) -> Formula:
    """The formula of a shape whose leaves are numbered from `first`."""
    if shape == "a":
        return first
    stack: list[Formula] = []
    for sign in shape:
        if sign == "a":
            stack.append(first)
            first += 1
        else:
            right = stack.pop()
            stack[-1] = chain_of(sign, (stack[-1], right))
    return stack[0]


def parsed(structure: str) -> tuple[Formula, list[bool]]:
    """The formula of a checked structure of the shape cache, without negation.

    Its leaves are the atoms; the answer says of each whether it stands as it is, or negated.
    """
    signs: list[bool] = []
    codes = iter(structure)
    code = ""

    def advance() -> None:
        nonlocal code
        code = next(codes, "")

    def alternatives(*, positive: bool) -> Formula:
        parts = [conjunction(positive=positive)]
        while code == "|":
            advance()
            parts.append(conjunction(positive=positive))
        return chain_of("|" if positive else "&", parts)

    def conjunction(*, positive: bool) -> Formula:
        parts = [single(positive=positive)]
        while code == "&":
            advance()
            parts.append(single(positive=positive))
        return chain_of("&" if positive else "|", parts)

    def single(*, positive: bool) -> Formula:
        first = code
        advance()
        if first == "a":
            signs.append(positive)
            return len(signs) - 1
        if first == "!":
            return single(positive=not positive)
        inside = alternatives(positive=positive)
        advance()  # the parenthesis that closes
        return inside

    advance()
    return alternatives(positive=True), signs


# --- templates


class Template(NamedTuple):
    """How fragments are put together."""

    shape: str
    pick: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None  # brings leaves into order
    is_top: tuple[bool, ...]  # for each fragment, whether the filter is true only if it is


CONSTANT = Template("", None, ())  # where a fragment is always or never true


class Templates(dict[tuple[str, tuple[str, ...], int], Template]):
    """Templates by structure, shapes of the fragments, and number of leaves besides them."""

    def __missing__(self, key: tuple[str, tuple[str, ...], int]) -> Template:
        if len(self) >= MOST_TEMPLATES:
            self.clear()
        template = self[key] = template_of(*key)
        return template


def template_of(structure: str, shapes: tuple[str, ...], besides: int) -> Template:
    """The template of a structure; leaves besides the fragments are behind them, and asked too."""
    if ALWAYS in shapes or NEVER in shapes:
        return CONSTANT
    fragments: list[Formula] = []
    leaves = 0
    for shape in shapes:
        fragments.append(read(shape, leaves))
        leaves += shape.count("a")

    def filled(part: Formula) -> Formula:
        if isinstance(part, int):
            return fragments[part]
        return chain_of(part.sign, map(filled, part.items))

    formula, _ = parsed(structure)
    whole = filled(formula)
    if besides:
        whole = chain_of("&", [whole, *range(leaves, leaves + besides)])
    together, order = written(whole)
    in_order = order == tuple(range(len(order)))
    top = (formula,) if isinstance(formula, int) else formula.items if formula.sign == "&" else ()
    return Template(
        together,
        None if in_order else itemgetter(*order),
        tuple([place in top for place in range(len(shapes))]),
    )


# --- fragments


class Fragments(dict[Atom, Fragment]):
    """What atoms, or their negations, become in normal form."""

    def __init__(self, semantics: Semantics, *, negated: bool) -> None:
        super().__init__()
        self._schema = semantics.schema
        self._logic = semantics.logic
        self._is_negated = negated
        self._rules: dict[AtomShape, Rule] = {}
        self._met: set[AtomShape] = set()  # shapes of one atom, not worth a rule

    def __missing__(self, atom: Atom) -> Fragment:
        if len(self) >= MOST_FRAGMENTS:
            self.clear()
        shape = atom.shape
        rule = self.normalized if shape is None else self._rules.get(shape, self._meet)
        fragment = self[atom] = rule(atom)
        return fragment

    def normalized(self, atom: Atom) -> Fragment:
        """The fragment of an atom by its normal form."""
        node = atom.node
        tree = normalize(ast.Not(node) if self._is_negated else node, self._logic)
        occurring = self._bits([node])
        if isinstance(tree, ast.Literal):
            return ALWAYS if tree.value is True else NEVER, (), (), (occurring, 0)
        predicates: list[Node] = []
        shape, order = written(_formula(tree, predicates))
        codes, constants = zip(*(leaf_of(predicates[n], self._schema) for n in order), strict=True)
        parts = tree.items if isinstance(tree, ast.And) else (tree,)
        asked = self._bits([part for part in parts if not isinstance(part, ast.Or | ast.IsNull)])
        return shape, codes, constants, (occurring, asked)

    def _bits(self, nodes: Sequence[Node]) -> int:
        bits = 0
        for path in frozenset().union(*map(ast.attributes, nodes)):
            bits |= 1 << self._schema.positions[path]
        return bits

    def _meet(self, atom: Atom) -> Fragment:
        """The fragment of an atom of a new shape; the second atom of a shape gives it a rule."""
        fragment = self.normalized(atom)
        shape = atom.shape
        if shape is None:
            return fragment
        if shape in self._met:
            if len(self._rules) >= MOST_RULES:
                self._rules.clear()
            self._rules[shape] = self._learned(shape, atom) or self.normalized
            self._met.discard(shape)
            return fragment
        if len(self._met) >= MOST_RULES:
            self._met.clear()
        self._met.add(shape)
        return fragment

    def _learned(self, shape: AtomShape, sample: Atom) -> Rule | None:
        """A rule that gives what `normalized` gives for the sample and for probes."""
        probes = [Atom(shape, texts) for texts in probe_constants(shape)]
        rule = rule_of(shape, probes[0], self.normalized(probes[0]), self._schema)
        if rule is None:
            return None
        # repr tells 1 from 1.0.
        same = all(repr(rule(atom)) == repr(self.normalized(atom)) for atom in (*probes, sample))
        return rule if same else None


def _formula(tree: Node, predicates: list[Node]) -> Formula:
    """A normal form as a formula, its predicates put behind those that are there."""
    if isinstance(tree, ast.And | ast.Or):
        sign = "&" if isinstance(tree, ast.And) else "|"
        return Chain(sign, tuple(_formula(item, predicates) for item in tree.items))
    predicates.append(tree)
    return len(predicates) - 1


# --- rules


def probe_constants(shape: AtomShape) -> Iterator[tuple[str, ...]]:
    """Constants for a shape: all different and far apart, the same backwards, all equal."""
    count = len(shape.classes)
    for places in (range(count), range(count - 1, -1, -1), [0] * count):
        yield tuple(
            _probe(kind, place, shape) for kind, place in zip(shape.classes, places, strict=True)
        )


def _probe(kind: str, place: int, shape: AtomShape) -> str:
    match kind:
        case "string" if isinstance(shape.domain, Enumeration):
            values = shape.domain.values
            return f"'{values[place % len(values)]}'"
        case "string":
            return f"'{place:05}'"
        case "wide":
            return str(10**12 + 100 * place)
        case "decimal":
            return f"{100 * (place + 1)}.5"
        case _:
            return str(100 * (place + 1))


def rule_of(shape: AtomShape, probe: Atom, fragment: Fragment, schema: Schema) -> Rule | None:
    """How the constants of an atom become those of its fragment, as one atom of the shape shows."""
    form, codes, constants, presence = fragment
    sets = [n for n, code in enumerate(codes) if code % LEAF_KINDS in {ONE_OF, NONE_OF}]
    if sets:
        others = [constant for n, constant in enumerate(constants) if n not in sets]
        converters = [
            _converter(codes[sets[0]], negative, 0, schema) for negative in shape.negative
        ]
        known = [convert for convert in converters if convert is not None]
        if len(sets) > 1 or others != [None] * len(others) or len(known) != len(converters):
            return None
        return _set_rule(fragment, sets[0], known)
    plan: list[tuple[int, Converter]] = []
    for code, constant in zip(codes, constants, strict=True):
        step = _step(code, constant, probe, shape, schema)
        if step is None:
            return None
        plan.append(step)
    if len(plan) == 1:
        ((place, convert),) = plan
        return lambda atom: (form, codes, (convert(atom.constants[place]),), presence)
    if plan == [(place, plan[0][1]) for place in range(len(shape.classes))]:
        same = plan[0][1]
        return lambda atom: (form, codes, tuple(map(same, atom.constants)), presence)

    def rule(atom: Atom) -> Fragment:
        texts = atom.constants
        return form, codes, tuple([convert(texts[place]) for place, convert in plan]), presence

    return rule


def _set_rule(fragment: Fragment, place: int, converters: Sequence[Converter]) -> Rule:
    """IN and NOT IN; with one member they are = and <>."""
    form, codes, constants, presence = fragment
    before, behind = constants[:place], constants[place + 1 :]
    kind = codes[place] % LEAF_KINDS
    single = codes[place] - kind + (EQUAL if kind == ONE_OF else UNEQUAL)
    single_codes = (*codes[:place], single, *codes[place + 1 :])

    def rule(atom: Atom) -> Fragment:
        pairs = zip(converters, atom.constants, strict=True)
        members = sorted({convert(text) for convert, text in pairs})
        if len(members) == 1:
            return form, single_codes, (*before, members[0], *behind), presence
        return form, codes, (*before, tuple(members), *behind), presence

    return rule


def _step(
    code: int, constant: Any, probe: Atom, shape: AtomShape, schema: Schema
) -> tuple[int, Converter] | None:
    """Which constant of an atom becomes that of a leaf, and how."""
    if constant is None:
        return 0, lambda _text: None
    for place, (text, negative) in enumerate(zip(probe.constants, shape.negative, strict=True)):
        for change in (0, 1, -1):
            convert = _converter(code, negative, change, schema)
            if convert is not None and convert(text) == constant:
                return place, convert
    return None


def _converter(code: int, negative: bool, change: int, schema: Schema) -> Converter | None:
    """What makes a value of the attribute from a text; a whole number is changed by one or not.

    None where there is none. 0.0 - 0.0 is 0.0, and so are all zeros of a filter.
    """
    attribute = code // LEAF_KINDS
    kind = schema.attributes[attribute].type.kind if attribute < len(schema) else None
    if kind is Kind.INT:
        if negative:
            return lambda text: change - int(text)
        return (lambda text: int(text) + change) if change else int
    if change:
        return None
    if kind is Kind.DOUBLE:
        return (lambda text: 0.0 - float(text)) if negative else float
    return itemgetter(slice(1, -1)) if kind is Kind.STRING else None
