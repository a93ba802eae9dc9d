"""The shape cache: reads many filters fast, because most differ from others only in constants.

A filter is split into *atoms* (``price <= 10``) and the *glue* between them (``AND NOT (``). The
glue is looked up: it is one of a few boolean structures, each parsed once. Each atom is looked up
as it is written; a new one is looked up again without its constants (``price <= ?``), which need no
parser. No tree is built until it is needed.

There are two ways to split. Most filters are written with ``AND`` and ``OR`` between single spaces;
split there, they fall into *pieces*: an atom with perhaps NOT and parentheses around it. Pieces are
looked up whole. If something is not a piece, a regular expression finds all atoms of the filter.

Correctness rests on two properties. One is of the grammar: if everything between the atoms is AND,
OR, NOT and parentheses, then the atoms are exactly the maximal comparisons of the filter. The other
is of the tokens: a piece that can be read by itself closes every string that it opens, so between
two such pieces AND is a keyword and not a part of a string. Everything else (arithmetic, nested
functions, an unknown name, an error) goes to the ordinary parser, which alone decides what is
correct and how error messages read.
"""

import functools
import itertools
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

from tamis.errors import ExpressionError
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.expression import Expression, parse_with
from tamis.language.literals import number_literal
from tamis.language.parser import Parser, parse_tree
from tamis.language.tokens import COMPARISON, NUMBER, QUOTED, STRING, Token, TokenKind, tokenize
from tamis.language.typing_rules import TypingRules
from tamis.schema import Attribute, IntRange, Schema
from tamis.types import DOUBLE, INT, INT32, Type
from tamis.types import STRING as STRING_TYPE

LONGEST = 20_000  # characters; longer filters go to the parser
MOST_STRUCTURES = 100_000
MOST_SHAPES = 20_000
MOST_ATOMS = 200_000

# Possessive quantifiers (*+) throughout: a word that is not an atom fails at once. Names beyond
# ASCII would slow down all other names; the ordinary parser reads them.
_NAME = rf"(?:[A-Za-z_][A-Za-z_0-9]*+(?!\w)|{QUOTED})"
_PATH = rf"{_NAME}(?:\.{_NAME})*+"
_CONSTANT = rf"(?:-?(?:{NUMBER})(?!\w)|{STRING})"
_ATOM = rf"""(
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
    )"""
ATOM = re.compile(_ATOM, re.VERBOSE | re.DOTALL)
# Where pieces end. The AND of BETWEEN is followed by a constant.
_CHAIN = re.compile(r" (AND|OR) (?![-.0-9'\"])")
_PIECE = re.compile(rf"((?:[\s(!]|(?i:NOT\b))*+){_ATOM}([\s)]*+)", re.VERBOSE | re.DOTALL)
# Plain numbers, and all constants. Plain numbers begin with a digit, which is found fast.
_NUMBERS = re.compile(r"([0-9](?<![\w.][0-9])[0-9]*+(?:\.[0-9]++)?(?![\w.]))")
_CUT = re.compile(rf"({QUOTED}|(?<![\w.])(?:{NUMBER})(?!\w)|{STRING})", re.DOTALL)

# A boolean structure is a string of these and of "a" for an atom: "a&(a|!a)".
_CODES = {"AND": "&", "OR": "|", "NOT": "!", "!": "!", "(": "(", ")": ")"}
_WORDS = {"&": "AND", "|": "OR", "!": "!", "(": "(", ")": ")"}
_FORMULA = re.compile(r"(?:[!(]*a\)*[&|])*[!(]*a\)*")
DEEPEST = (
    30  # parentheses and NOTs; each adds at most three of the 100 levels that the parser allows
)


class _Unknown(Exception):
    """A filter that the cache cannot read."""


class AtomShape:
    """An atom without its constants, and how to make it from them. Equal only to itself."""

    __slots__ = ("classes", "converters", "domain", "make", "negative")

    def __init__(
        self,
        make: Callable[[Sequence[ast.Literal]], Node],
        negative: tuple[bool, ...],
        classes: tuple[str, ...],
        attribute: Attribute,
    ) -> None:
        self.make = make
        self.negative = negative  # whether a minus precedes each constant
        self.classes = classes  # of the constants; see `_class_of`
        self.converters = tuple([constant_converter(attribute.type, minus) for minus in negative])
        self.domain = attribute.domain  # that the constants must be in

    def with_constants(self, constants: tuple[str, ...]) -> "Atom":
        """The atom with these constants; raises `_Unknown` if one is outside the domain."""
        domain = self.domain
        if domain is not None:
            for text, convert in zip(constants, self.converters):  # noqa: B905 - strict is slow
                if isinstance(domain, IntRange):
                    inside = domain.low <= convert(text) <= domain.high
                else:
                    inside = convert(text) in domain
                if not inside:
                    raise _Unknown
        return Atom(self, constants)


class Atom:
    """A comparison or other predicate; all filters that contain it share it and its node.

    It has a shape and constants, and makes its node when first needed; or it has only the node.
    """

    __slots__ = ("_node", "constants", "shape")

    def __init__(
        self, shape: AtomShape | None, constants: tuple[str, ...] = (), node: Node | None = None
    ) -> None:
        self.shape = shape
        self.constants = constants
        self._node = node

    @property
    def node(self) -> Node:
        if self._node is None:
            assert self.shape is not None  # noqa: S101 - an atom without a shape has its node
            self._node = self.shape.make(
                [
                    constant_literal(text, negative=negative)
                    for text, negative in zip(self.constants, self.shape.negative, strict=True)
                ]
            )
        return self._node


def constant_literal(text: str, *, negative: bool) -> ast.Literal:
    """The literal of a constant that has a class."""
    if text[0] in "'\"":
        return ast.Literal(text[1:-1], STRING_TYPE)
    return number_literal(text, negative=negative)


class ShapedExpression(Expression):
    """An expression that was read by the cache; its tree is built when first needed."""

    __slots__ = ("atoms", "structure")

    def __init__(self, structure: str, atoms: tuple[Atom, ...], schema: Schema) -> None:
        self.structure = structure
        self.atoms = atoms
        self.schema = schema

    @property
    def tree(self) -> Node:
        try:
            return self._tree
        except AttributeError:
            nodes = [atom.node for atom in self.atoms]
            self._tree = _fill(structure_tree(self.structure, self.schema), nodes)
            return self._tree


class _PieceCache(dict[str, tuple[str, Atom]]):
    """Pieces by their text: the codes (see `_CODES`) around the atom, and the atom."""

    def __init__(self, schema: Schema, glue: "_GlueCache") -> None:
        super().__init__()
        self.schema = schema
        self.glue = glue
        self.shapes: dict[tuple[str, ...], AtomShape | None] = {}
        self.words: dict[tuple[str, ...], AtomShape] = {}  # the same by another key, see `_short`

    def __missing__(self, text: str) -> tuple[str, Atom]:
        atom = self._short(text) or self._of_numbers(text)
        piece = self._piece(text) if atom is None else ("a", atom)
        if len(self) >= MOST_ATOMS:
            self.clear()
        self[text] = piece
        return piece

    def _short(self, text: str) -> Atom | None:
        """The short way for ``name op constant`` and ``name BETWEEN constant AND constant``."""
        words = text.split(" ")
        if len(words) == 3:
            name, op, constant = words
            shape = self.words.get((name, op, _class_of(constant)))
            return None if shape is None else shape.with_constants((constant,))
        if len(words) == 5:
            name, op, low, link, high = words
            shape = self.words.get((name, op, _class_of(low), link, _class_of(high)))
            return None if shape is None else shape.with_constants((low, high))
        return None

    def _of_numbers(self, text: str) -> Atom | None:
        """The short way for atoms whose constants are plain numbers."""
        parts = _NUMBERS.split(text)
        constants = tuple(parts[1::2])
        if not constants:
            return None
        parts[1::2] = map(_class_of, constants)
        shape = self.shapes.get(tuple(parts))
        return None if shape is None else shape.with_constants(constants)

    def _piece(self, text: str) -> tuple[str, Atom]:
        found = _PIECE.fullmatch(text)
        if found is None:
            raise _Unknown
        before, atom, after = found.groups()
        if before.endswith("NOT "):  # a negated atom is also an atom
            before, atom = before[:-4], f"NOT {atom}"
        if before or after:
            return f"{self.glue[before]}a{self.glue[after]}", self[atom][1]
        return "a", self._atom(text)

    def _atom(self, text: str) -> Atom:
        parts = _CUT.split(text)
        constants = tuple(parts[1::2])
        parts[1::2] = map(_class_of, constants)
        key = tuple(parts)
        shape = self.shapes[key] if key in self.shapes else self._learn(key, text)
        if shape is None:
            return Atom(None, node=parse_tree(text, self.schema))
        return shape.with_constants(constants)

    def _learn(self, key: tuple[str, ...], text: str) -> AtomShape | None:
        if "" in key[1::2]:
            return None
        if len(self.shapes) >= MOST_SHAPES:
            self.shapes.clear()
            self.words.clear()
        shape = atom_shape(parse_tree(text, self.schema), key, self.schema)
        self.shapes[key] = shape
        words = tuple("".join(key).split(" "))
        if shape is not None and key[-1] == "" and words[2::2] == shape.classes:
            self.words[words] = shape
        return shape


class _GlueCache(dict[str, str]):
    """Codes of the glue between two atoms, by its text; see `_CODES`."""

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
        self.glue = _GlueCache()
        self.structures: set[str] = set()
        self.atoms = _PieceCache(schema, self.glue)

    def parse(self, text: str) -> Expression:
        """Read a filter."""
        if type(text) is str and len(text) <= LONGEST:
            try:
                return self._cut(text)
            except (_Unknown, ExpressionError):
                pass  # some part is not a piece
            try:
                return self._search(text)
            except (_Unknown, ExpressionError):
                pass  # the ordinary parser reports errors with their place in the text
        return parse_with(text, self.schema)

    def _cut(self, text: str) -> Expression:
        """Read a filter by its pieces."""
        get = self.atoms.__getitem__
        if " OR " in text or " BETWEEN " in text:
            parts = _CHAIN.split(text)
            codes, atoms = zip(*map(get, parts[::2]))  # noqa: B905 - pairs, and strict is slow
            parts[::2] = codes
            parts[1::2] = map(_CODES.__getitem__, parts[1::2])
            structure = "".join(parts)
        else:
            codes, atoms = zip(*map(get, text.split(" AND ")))  # noqa: B905 - as above
            structure = "&".join(codes)
        if structure not in self.structures:
            self._learn(structure)
        return ShapedExpression(structure, atoms, self.schema)

    def _search(self, text: str) -> Expression:
        """Read a filter by its atoms, wherever they are."""
        parts = ATOM.split(text)
        structure = "a".join(map(self.glue.__getitem__, parts[::2]))
        if structure not in self.structures:
            self._learn(structure)
        atoms = tuple([self.atoms[atom][1] for atom in parts[1::2]])
        return ShapedExpression(structure, atoms, self.schema)

    def _learn(self, structure: str) -> None:
        check_structure(structure)
        if len(self.structures) >= MOST_STRUCTURES:
            self.structures.clear()
        self.structures.add(structure)


def check_structure(codes: str) -> None:
    """Raise `_Unknown` for what is not a formula, or might be too deep for the parser."""
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
        kind = (
            TokenKind.ATOM
            if code == "a"
            else TokenKind.OPERATOR
            if code in "!()"
            else TokenKind.KEYWORD
        )
        tokens.append(Token(kind, str(next(atoms)) if code == "a" else _WORDS[code], 0, 0))
    tokens.append(Token(TokenKind.END, "", 0, 0))
    return Parser(tokens, TypingRules(schema, ""), "").filter()


def _fill(node: Node, atoms: Sequence[Node]) -> Node:
    if isinstance(node, ast.Slot):
        return atoms[node.index]
    return ast.rebuild(node, tuple(_fill(part, atoms) for part in ast.children(node)))


def _class_of(constant: str) -> str:
    """The class of a constant; constants of one class can replace each other without a type change.

    Empty for a constant without a class, and for what is not a constant. A whole number has 32 bits
    or is wide; 2147483648 has no class, because it is wide by itself and has 32 bits after a minus.
    """
    if not constant.isascii():
        try:
            constant.encode()
        except UnicodeEncodeError:
            return ""
    elif constant.isdecimal():
        size = len(constant)
        if size < 10 or (size == 10 and constant <= "2147483647"):
            return "whole"
        is_wide = size < 19 and constant[0] != "0" and constant != "2147483648"
        return "wide" if is_wide else ""
    else:
        whole, _, fraction = constant.partition(".")
        if whole.isdecimal() and fraction.isdecimal() and len(whole) < 10 and len(fraction) < 10:
            return "decimal"
    quote = constant[:1]
    if quote not in {"'", '"'} or constant[-1] != quote or constant.count(quote) != 2:
        return ""
    return "" if "\\" in constant else "string"


def constant_converter(wanted: Type, minus: bool) -> Callable[[str], Any]:
    """A function from the text of a constant to its value, converted to the attribute's type.

    It is what the literal becomes in a normal form. 0.0 - 0.0 is 0.0, and so are all zeros of a
    filter.
    """
    if wanted == INT:
        return _negative_whole if minus else int
    if wanted == DOUBLE:
        return _negative_double if minus else float
    return _unquoted


def _negative_whole(text: str) -> int:
    return -int(text)


def _negative_double(text: str) -> float:
    return 0.0 - float(text)


_unquoted = operator.itemgetter(slice(1, -1))


def atom_shape(node: Node, key: tuple[str, ...], schema: Schema) -> AtomShape | None:
    """How to make atoms like this one from other constants of the same classes.

    None where the constants need more than conversion: patterns, timestamps.
    """
    negative = tuple(piece.rstrip().endswith("-") for piece in key[:-1:2])
    make = _maker(node, schema)
    if make is None or not negative:
        return None
    (path,) = ast.attributes(node)
    attribute = schema.attributes[schema.positions[path]]
    return AtomShape(make, negative, key[1::2], attribute)


def _maker(node: Node, schema: Schema) -> Callable[[Sequence[ast.Literal]], Node] | None:
    match node:
        case ast.Not(operand):
            inner = _maker(operand, schema)
            return None if inner is None else lambda literals: ast.Not(inner(literals))
        case ast.Compare(op, left, right) if _replaceable(left, right, schema):
            convert = _cast_as(right)
            return lambda literals: ast.Compare(op, left, convert(literals[0]))
        case ast.Between(operand, low, high, low_type, high_type) if _replaceable(
            operand, low, schema
        ) and _replaceable(operand, high, schema):
            at_low, at_high = _cast_as(low), _cast_as(high)
            return lambda literals: ast.Between(
                operand, at_low(literals[0]), at_high(literals[1]), low_type, high_type
            )
        case ast.In(operand, items) if all(_replaceable(operand, i, schema) for i in items):
            converters = [_cast_as(item) for item in items]
            return lambda literals: ast.In(
                operand, tuple(c(v) for c, v in zip(converters, literals, strict=True))
            )
        case _:
            return None


def _replaceable(left: Node, right: Node, schema: Schema) -> bool:
    """Whether `right` can be replaced by any constant of its class without changing types."""
    constant = right.operand if isinstance(right, ast.Cast) else right
    if not isinstance(left, ast.Attribute) or not isinstance(constant, ast.Literal):
        return False
    attribute = schema.find(left.path)
    if attribute is None:
        return False
    if attribute.domain is not None:
        # Not decimals, which a domain may round.
        return constant.type in {INT32, INT, STRING_TYPE}
    if left.type in {DOUBLE, INT}:
        return constant.type in {INT32, INT} or left.type == DOUBLE
    return left.type == STRING_TYPE == constant.type


def _cast_as(node: Node) -> Callable[[ast.Literal], Node]:
    if isinstance(node, ast.Cast):
        wanted = node.type
        return lambda literal: ast.Cast(literal, wanted)
    return lambda literal: literal
