"""Reading many filters fast: most of them have been seen before, but for their constants.

A filter of a million is cut by one regular expression into *atoms* (``price <= 10``) and the *glue*
between them (``AND NOT (``). The glue is looked up: it is one of a few boolean structures, each
parsed once. Each atom is looked up as it stands; a new one is looked up once more without its
constants (``price <= ?``), which need no parser. No tree is built until somebody asks for it.

Correctness rests on one property of the grammar: if everything between the atoms is AND, OR, NOT
and parentheses, then the atoms are exactly the maximal comparisons of the filter. Whatever does not
fit (arithmetic, nested functions, an unknown name, an error) goes to the ordinary parser, which
alone decides what is right and what a message says.
"""

import functools
import itertools
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tamis.errors import ExpressionError
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.expression import Expression, parse_with
from tamis.language.literals import number_literal
from tamis.language.parser import Parser, parse_tree
from tamis.language.rules import Rules
from tamis.language.tokens import COMPARISON, NUMBER, QUOTED, STRING, Kind, Token, tokenize
from tamis.schema import Domain, Schema
from tamis.types import DOUBLE, INT, INT32
from tamis.types import STRING as STRING_TYPE

LONGEST = 20_000  # characters; a longer filter is worth its own parse
MOST_STRUCTURES = 20_000
MOST_ATOMS = 200_000

# Possessive quantifiers (*+) throughout: a word that is no atom is given up at once. Names beyond
# ASCII would slow every other name down; the ordinary parser takes them.
_NAME = rf"(?:[A-Za-z_][A-Za-z_0-9]*+(?!\w)|{QUOTED})"
_PATH = rf"{_NAME}(?:\.{_NAME})*+"
_CONSTANT = rf"(?:-?(?:{NUMBER})(?!\w)|{STRING})"
ATOM = re.compile(
    rf"""(
    (?<![\w.`])(?:
        {_PATH}(?:
            \s++(?i:SUBSTRING\s++OF)\s*+(?:{STRING})
          | \s*+(?:(?:{COMPARISON})\s*+(?:{_CONSTANT}|{_PATH})
          | (?i:
                (?:NOT\s++)?(?:
                    BETWEEN\s++{_CONSTANT}\s++AND\s++{_CONSTANT}
                  | IN\s*+\(\s*+{_CONSTANT}(?:\s*+,\s*+{_CONSTANT})*+\s*+\)
                  | (?:LIKE|RLIKE|REGEXP)\s*+(?:{STRING})
                )
              | IS\s++(?:NOT\s++)?NULL\b
            ))
        )
      | (?i:contains|startswith|endswith)\s*+\(\s*+{_PATH}\s*+,\s*+(?:{STRING})\s*+\)
    )
    | (?:{STRING})\s*+(?i:SUBSTRING\s++OF)\s++{_PATH}
    )""",
    re.VERBOSE | re.DOTALL,
)
_CUT = re.compile(rf"({QUOTED}|(?<![\w.])(?:{NUMBER})(?!\w)|{STRING})", re.DOTALL)

# A boolean structure is a string of these and of "a" for an atom: "a&(a|!a)".
_CODES = {"AND": "&", "OR": "|", "NOT": "!", "!": "!", "(": "(", ")": ")"}
_WORDS = {"&": "AND", "|": "OR", "!": "!", "(": "(", ")": ")"}
_FORMULA = re.compile(r"(?:[!(]*a\)*[&|])*[!(]*a\)*")
DEEPEST = 30  # parentheses and NOTs; each adds at most three levels of the parser's hundred


class _Unknown(Exception):
    """A filter that the cache cannot read."""


class AtomShape(NamedTuple):
    """An atom without its constants: how to make it from them."""

    make: Callable[[Sequence[ast.Literal]], Node]
    negative: tuple[bool, ...]  # a minus stands before the constant
    domain: Domain | None = None  # in which the constants must lie

    def with_constants(self, constants: tuple[str, ...]) -> "PendingAtom":
        """The atom with other constants; raises `_Unknown` if one is outside the domain."""
        if self.domain is not None:
            for text, negative in zip(constants, self.negative, strict=True):
                value = text[1:-1] if text[0] in "'\"" else -int(text) if negative else int(text)
                if value not in self.domain:
                    raise _Unknown
        return PendingAtom(self, constants)


class PendingAtom:
    """An atom that is made when first asked for; all filters with it share the node."""

    __slots__ = ("_node", "constants", "shape")

    def __init__(self, shape: AtomShape, constants: tuple[str, ...]) -> None:
        self.shape = shape
        self.constants = constants
        self._node: Node | None = None

    def build(self) -> Node:
        if self._node is None:
            literals = [
                ast.Literal(text[1:-1], STRING_TYPE)
                if text[0] in "'\""
                else number_literal(text, negative=negative)
                for text, negative in zip(self.constants, self.shape.negative, strict=True)
            ]
            self._node = self.shape.make(literals)
        return self._node


class ShapedExpression(Expression):
    """An expression that was read through the cache; its tree is built when first asked for."""

    __slots__ = ("_atoms", "_structure")

    def __init__(
        self, structure: str, atoms: tuple[Node | PendingAtom, ...], schema: Schema
    ) -> None:
        self._structure = structure
        self._atoms = atoms
        self.schema = schema

    @property
    def tree(self) -> Node:
        try:
            return self._tree
        except AttributeError:
            atoms = [a.build() if isinstance(a, PendingAtom) else a for a in self._atoms]
            self._tree = _fill(structure_tree(self._structure, self.schema), atoms)
            return self._tree


class _Atoms(dict[str, Node | PendingAtom]):
    """Atoms by their text."""

    def __init__(self, schema: Schema) -> None:
        super().__init__()
        self.schema = schema
        self.shapes: dict[tuple[str, ...], AtomShape | None] = {}

    def __missing__(self, text: str) -> Node | PendingAtom:
        if len(self) >= MOST_ATOMS:
            self.clear()
        atom = self[text] = self._comparison(text) or self._atom(text)
        return atom

    def _comparison(self, text: str) -> PendingAtom | None:
        """The short way for the most frequent atom by far, ``name op whole number``."""
        before = text.rstrip("0123456789")
        shape = self.shapes.get((before, "whole", ""))
        if shape is None or len(text) - len(before) > 9:
            return None
        return shape.with_constants((text[len(before) :],))

    def _atom(self, text: str) -> Node | PendingAtom:
        parts = _CUT.split(text)
        constants = tuple(parts[1::2])
        try:
            parts[1::2] = [_class_of(constant) for constant in constants]
            key = tuple(parts)
            shape = self.shapes[key] if key in self.shapes else self._learn(key, text)
        except _Unknown:
            shape = None
        return shape.with_constants(constants) if shape else parse_tree(text, self.schema)

    def _learn(self, key: tuple[str, ...], text: str) -> AtomShape | None:
        if len(self.shapes) >= MOST_STRUCTURES:
            self.shapes.clear()
        shape = atom_shape(parse_tree(text, self.schema), key, self.schema)
        self.shapes[key] = shape
        return shape


class _Glue(dict[str, str]):
    """Codes of what stands between two atoms, by its text; see `_CODES`."""

    def __missing__(self, text: str) -> str:
        if len(self) >= MOST_STRUCTURES:
            self.clear()
        try:
            codes = "".join(_CODES[token.text] for token in tokenize(text)[:-1])
        except (KeyError, ExpressionError):
            raise _Unknown from None
        self[text] = codes
        return codes


class ShapeCache:
    """Reads filters over one schema; gives what `parse` gives, errors included."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.glue = _Glue()
        self.structures: set[str] = set()
        self.atoms = _Atoms(schema)

    def parse(self, text: str) -> Expression:
        """Read a filter."""
        if type(text) is str and len(text) <= LONGEST:
            parts = ATOM.split(text)
            try:
                structure = "a".join(map(self.glue.__getitem__, parts[::2]))
                if structure not in self.structures:
                    self._learn(structure)
                atoms = tuple(map(self.atoms.__getitem__, parts[1::2]))
                return ShapedExpression(structure, atoms, self.schema)
            except (_Unknown, ExpressionError):
                pass  # the ordinary parser knows the place in the whole text
        return parse_with(text, self.schema)

    def _learn(self, structure: str) -> None:
        check_structure(structure)
        if len(self.structures) >= MOST_STRUCTURES:
            self.structures.clear()
        self.structures.add(structure)


def check_structure(codes: str) -> None:
    """Refuse what is no formula, and what might be too deep for the parser."""
    if not _FORMULA.fullmatch(codes) or codes.count("(") + codes.count("!") > DEEPEST:
        raise _Unknown
    depth = 0
    for code in codes:
        if code == "(":
            depth += 1
        elif code == ")":
            depth -= 1
            if depth < 0:
                raise _Unknown
    if depth:
        raise _Unknown


@functools.lru_cache(maxsize=1000)
def structure_tree(codes: str, schema: Schema) -> Node:
    """The tree of a formula over `Slot`, by the ordinary parser."""
    tokens: list[Token] = []
    atoms = itertools.count()
    for code in codes:
        kind = Kind.ATOM if code == "a" else Kind.OPERATOR if code in "!()" else Kind.KEYWORD
        tokens.append(Token(kind, str(next(atoms)) if code == "a" else _WORDS[code], 0, 0))
    tokens.append(Token(Kind.END, "", 0, 0))
    return Parser(tokens, Rules(schema, ""), "").filter()


def _fill(node: Node, atoms: Sequence[Node]) -> Node:
    if isinstance(node, ast.Slot):
        return atoms[node.index]
    return ast.rebuild(node, tuple(_fill(part, atoms) for part in ast.children(node)))


def _class_of(constant: str) -> str:
    """What matters of a constant for its type; constants of one class can replace each other."""
    if constant[0] in "'\"":
        if "\\" in constant or constant[0] in constant[1:-1]:
            raise _Unknown
        if not constant.isascii():
            try:
                constant.encode()
            except UnicodeEncodeError:
                raise _Unknown from None
        return "string"
    before, point, behind = constant.partition(".")
    if len(before) < 10 and before.isdecimal():
        if not point:
            return "whole"
        if len(behind) < 10 and behind.isdecimal():
            return "decimal"
    raise _Unknown


def atom_shape(node: Node, key: tuple[str, ...], schema: Schema) -> AtomShape | None:
    """How to make atoms like this one from other constants of the same classes.

    None where the constants need more than conversion: patterns, timestamps.
    """
    negative = tuple(piece.rstrip().endswith("-") for piece in key[:-1:2])
    make = _maker(node, schema)
    if make is None or not negative:
        return None
    (path,) = ast.attributes(node)
    attribute = schema.find(path)
    return AtomShape(make, negative, attribute.domain if attribute else None)


def _maker(node: Node, schema: Schema) -> Callable[[Sequence[ast.Literal]], Node] | None:
    match node:
        case ast.Not(operand):
            inner = _maker(operand, schema)
            return None if inner is None else lambda literals: ast.Not(inner(literals))
        case ast.Compare(op, left, right) if _replaceable(left, right, schema):
            convert = _converter(right)
            return lambda literals: ast.Compare(op, left, convert(literals[0]))
        case ast.Between(operand, low, high, low_type, high_type) if _replaceable(
            operand, low, schema
        ) and _replaceable(operand, high, schema):
            at_low, at_high = _converter(low), _converter(high)
            return lambda literals: ast.Between(
                operand, at_low(literals[0]), at_high(literals[1]), low_type, high_type
            )
        case ast.In(operand, items) if all(_replaceable(operand, i, schema) for i in items):
            converters = [_converter(item) for item in items]
            return lambda literals: ast.In(
                operand, tuple(c(v) for c, v in zip(converters, literals, strict=True))
            )
        case _:
            return None


def _replaceable(left: Node, right: Node, schema: Schema) -> bool:
    """Whether any constant of the same class may stand for `right`, giving the same types."""
    constant = right.operand if isinstance(right, ast.Cast) else right
    if not isinstance(left, ast.Attribute) or not isinstance(constant, ast.Literal):
        return False
    attribute = schema.find(left.path)
    if attribute is None:
        return False
    if attribute.domain is not None:
        return constant.type in {INT32, STRING_TYPE}  # no decimals, which a domain may round
    if left.type in {DOUBLE, INT}:
        return constant.type == INT32 or left.type == DOUBLE
    return left.type == STRING_TYPE == constant.type


def _converter(node: Node) -> Callable[[ast.Literal], Node]:
    if isinstance(node, ast.Cast):
        wanted = node.type
        return lambda literal: ast.Cast(literal, wanted)
    return lambda literal: literal
