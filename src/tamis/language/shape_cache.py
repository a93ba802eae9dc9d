"""The shape cache: reads many filters fast, because most differ from others only in constants.

A filter is split into *atoms* (``price <= 10``) and the *glue* between them (``AND NOT (``). The
glue is looked up: it is one of a few boolean structures, each parsed once. Each atom is looked up
as it is written; a new one is looked up again without its constants (``price <= ?``), which need no
parser. No tree is built until it is needed.

There are three ways to split. Most filters are written with ``AND`` and ``OR`` between single
spaces; split there, they fall into *pieces*: an atom with perhaps NOT and parentheses around it.
Pieces are looked up whole. If something is not a piece, a regular expression finds all atoms of the
filter. If the filter has atoms that this expression does not know, as ``length(s) > 3``, its atoms
are found by its tokens (`atom_places`); such an atom goes to the parser when it is first seen.

Correctness rests on two properties. One is of the grammar: if everything between the atoms is AND,
OR, NOT and parentheses, then the atoms are exactly the maximal comparisons of the filter. The other
is of the tokens: a piece that can be read by itself closes every string that it opens, so between
two such pieces AND is a keyword and not a part of a string. Everything else (an unknown
name, an error) goes to the ordinary parser, which alone decides what is correct and how error
messages read.
"""

import itertools
import re
import threading
from collections.abc import Callable, Sequence
from typing import ClassVar

from tamis.bounded_caches import BoundedCache, remembered
from tamis.deep_stack import with_deep_stack
from tamis.errors import ExpressionError
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.atom_places import atom_places
from tamis.language.atoms import (
    AnotherShape,
    Atom,
    AtomShape,
    OutsideDomain,
    atom_shape,
    constant_class,
)
from tamis.language.expression import Expression, parse_with
from tamis.language.lost_escapes import warn_of_lost_escapes
from tamis.language.parser import Parser, parse_tree
from tamis.language.structures import NoStructure, Postfix, postfix_of
from tamis.language.tokens import COMPARISON, NUMBER, QUOTED, STRING, Token, TokenKind, tokenize
from tamis.language.typing_rules import TypingRules
from tamis.schema import Schema

LONGEST = 20_000  # characters; longer filters go to the parser
# Bytes that are remembered of each sort. A piece takes about 450 bytes, and an IN list some hundred
# bytes for each constant.
MOST_STRUCTURES = 16_000_000
MOST_SHAPES = 32_000_000
MOST_PIECES = 64_000_000
PIECE_BYTES, CONSTANT_BYTES = 450, 120
SHORT = 60  # characters of a piece that takes no more than others

# Possessive quantifiers (*+) throughout: a word that is not an atom fails at once. Names beyond
# ASCII would slow down all other names; the ordinary parser reads them.
_NAME = rf"(?:[A-Za-z_][A-Za-z_0-9]*+(?!\w)|{QUOTED})"
_PATH = rf"{_NAME}(?:\.{_NAME})*+"
_CONSTANT = rf"(?:-?(?:{NUMBER})(?!\w)|{STRING})"
_ATOM = rf"""
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
      | (?i:contains|startswith|endswith)\s*+\(
            \s*+(?:{_PATH}\s*+,\s*+(?:{STRING})|(?:{STRING})\s*+,\s*+{_PATH})\s*+\)
      | (?i:array_contains)\s*+\(\s*+{_PATH}\s*+,\s*+{_CONSTANT}\s*+\)
    )
    | (?:{STRING})\s*+(?i:SUBSTRING\s++OF)\s++{_PATH}
    | (?<![\w.`])(?:{_CONSTANT})\s*+(?:{COMPARISON})\s*+{_PATH}
    """
ATOM = re.compile(f"({_ATOM})", re.VERBOSE | re.DOTALL)
# Where pieces end. The AND of BETWEEN is followed by a constant.
_BETWEEN_PIECES = re.compile(r" (AND|OR) (?![-.0-9'\"])")
_PIECE = re.compile(rf"((?:[\s(!]|(?i:NOT\b))*+)({_ATOM}|{_PATH})([\s)]*+)", re.VERBOSE | re.DOTALL)
# Plain numbers, and all constants. Plain numbers begin with a digit, which is found fast.
_NUMBERS = re.compile(r"([0-9](?<![\w.][0-9])[0-9]*+(?:\.[0-9]++)?(?![\w.]))")
_CONSTANTS = re.compile(rf"({QUOTED}|(?<![\w.])(?:{NUMBER})(?!\w)|{STRING})", re.DOTALL)

# The codes of structures, see `structures`.
_CODES = {"AND": "&", "OR": "|", "NOT": "!", "!": "!", "(": "(", ")": ")"}
_WORDS = {"&": "AND", "|": "OR", "!": "!", "(": "(", ")": ")"}

_atom_tree = with_deep_stack(parse_tree)


class _NotCached(Exception):
    """A filter that the cache cannot read."""


class ShapedExpression(Expression):
    """An expression that was read by the cache; its tree is built when first needed."""

    __slots__ = ("atoms", "postfix", "structure")

    def __init__(
        self, structure: str, postfix: Postfix, atoms: tuple[Atom, ...], schema: Schema
    ) -> None:
        self.structure = structure
        self.postfix = postfix
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

    @property
    def has_clock(self) -> bool:
        """As of any expression, without the tree."""
        return any(ast.has_clock(atom.node) for atom in self.atoms)


class _PieceCache(BoundedCache[str, tuple[str, Atom]]):
    """Pieces by their text: the codes (see `_CODES`) around the atom, and the atom."""

    least: ClassVar[int] = PIECE_BYTES

    def __init__(self, schema: Schema, glue: "_GlueCache") -> None:
        super().__init__(MOST_PIECES)
        self.schema = schema
        self.glue = glue
        self.shapes: dict[tuple[str, ...], AtomShape | None] = {}
        self.words: dict[tuple[str, ...], AtomShape] = {}  # the same by another key, see `_short`
        self._shape_bytes = 0

    def __missing__(self, text: str) -> tuple[str, Atom]:
        piece = self._older.get(text)
        if piece is None:
            atom = None
            if text[:1] != "(" and text.count(")") == text.count("("):  # perhaps an atom alone
                try:
                    atom = self._short(text) or self._of_numbers(text) or self._of_string(text)
                except AnotherShape:
                    atom = None
            piece = self._piece(text) if atom is None else ("a", atom)
        if len(text) <= SHORT and len(self) < self._room:
            self[text] = piece  # without `keep`: millions come this way
        else:
            self.keep(text, piece)
        return piece

    def size(self, text: str, piece: tuple[str, Atom]) -> int:
        atom = piece[1]
        held = CONSTANT_BYTES * len(atom.constants) if atom.shape else atom.node.nbytes
        return PIECE_BYTES + 2 * len(text) + held

    def whole(self, text: str) -> Atom:
        """The atom that a whole text is, of any kind."""
        piece = self.find(text)
        if piece is None:
            piece = "a", self._atom(text)
            self.keep(text, piece)
        return piece[1]

    def _short(self, text: str) -> Atom | None:
        """The short way for ``name op constant`` and ``name BETWEEN constant AND constant``."""
        words = text.split(" ")
        if len(words) == 3:
            name, op, constant = words
            shape = self.words.get((name, op, constant_class(constant)))
            return None if shape is None else shape.with_constants((constant,))
        if len(words) == 5:
            name, op, low, link, high = words
            shape = self.words.get((name, op, constant_class(low), link, constant_class(high)))
            return None if shape is None else shape.with_constants((low, high))
        return None

    def _of_numbers(self, text: str) -> Atom | None:
        """The short way for atoms whose constants are plain numbers."""
        parts = _NUMBERS.split(text)
        constants = tuple(parts[1::2])
        if not constants:
            return None
        parts[1::2] = map(constant_class, constants)
        shape = self.shapes.get(tuple(parts))
        return None if shape is None else shape.with_constants(constants)

    def _of_string(self, text: str) -> Atom | None:
        """The short way for atoms whose only constant is a string in single quotes."""
        parts = text.split("'")
        if len(parts) != 3:
            return None
        before, string, after = parts
        constant = f"'{string}'"
        shape = self.shapes.get((before, constant_class(constant), after))
        return None if shape is None else shape.with_constants((constant,))

    def _piece(self, text: str) -> tuple[str, Atom]:
        found = _PIECE.fullmatch(text)
        if found is None:
            raise _NotCached
        before, atom, after = found.groups()
        if before.endswith("NOT "):  # a negated atom is also an atom
            before, atom = before[:-4], f"NOT {atom}"
        if before or after:
            return f"{self.glue[before]}a{self.glue[after]}", self[atom][1]
        return "a", self._atom(text)

    def _atom(self, text: str) -> Atom:
        parts = _CONSTANTS.split(text)
        constants = tuple(parts[1::2])
        parts[1::2] = map(constant_class, constants)
        key = tuple(parts)
        shape = self.shapes[key] if key in self.shapes else self._learn(key, text)
        if shape is not None:
            try:
                return shape.with_constants(constants)
            except AnotherShape:
                pass  # it is read like one that has no shape
        warn_of_lost_escapes(text)
        return Atom(None, node=_atom_tree(text, self.schema))

    def _learn(self, key: tuple[str, ...], text: str) -> AtomShape | None:
        if "" in key[1::2]:
            return None
        size = PIECE_BYTES + CONSTANT_BYTES * len(key) + sum(map(len, key))
        if self._shape_bytes + size > MOST_SHAPES:
            self.shapes.clear()
            self.words.clear()
            self._shape_bytes = 0
        self._shape_bytes += size
        shape = atom_shape(_atom_tree(text, self.schema), key, self.schema)
        self.shapes[key] = shape
        words = tuple("".join(key).split(" "))
        if shape is not None and key[-1] == "" and words[2::2] == shape.classes:
            self.words[words] = shape
        return shape


class _GlueCache(BoundedCache[str, str]):
    """Codes of the glue between two atoms, by its text; see `_CODES`."""

    def make(self, text: str) -> str:
        try:
            return "".join(_CODES[token.text] for token in tokenize(text)[:-1])
        except (KeyError, ExpressionError):
            raise _NotCached from None


class _StructureCache(BoundedCache[str, Postfix]):
    """The postfix forms of structures."""

    def make(self, structure: str) -> Postfix:
        return postfix_of(structure)

    def size(self, structure: str, postfix: Postfix) -> int:
        signs = postfix.signs
        shape = len(structure) + len(postfix.shape)
        return self.least + shape + (0 if signs is None else 8 * len(signs))


class ShapeCache:
    """Reads filters over one schema; gives what `parse` gives, errors included."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.glue = _GlueCache(MOST_STRUCTURES)
        self.structures = _StructureCache(MOST_STRUCTURES)
        self.pieces = _PieceCache(schema, self.glue)

    def parse(self, text: str) -> Expression:
        """Read a filter."""
        if type(text) is str and len(text) <= LONGEST:
            try:
                return self._by_pieces(text)
            except (_NotCached, NoStructure, OutsideDomain, ExpressionError):
                pass  # some part is not a piece
            try:
                return self._by_atoms(text)
            except (_NotCached, NoStructure, OutsideDomain, ExpressionError):
                pass  # there are atoms that `ATOM` does not know, or an error
            try:
                return self._by_tokens(text)
            except (NoStructure, OutsideDomain, ExpressionError):
                pass  # the ordinary parser reports errors with their place in the text
        return parse_with(text, self.schema)

    def _by_pieces(self, text: str) -> Expression:
        """Read a filter by its pieces."""
        get = self.pieces.__getitem__
        if " OR " in text or " BETWEEN " in text:
            parts = _BETWEEN_PIECES.split(text)
            codes, atoms = zip(*map(get, parts[::2]))  # noqa: B905 - pairs, and strict is slow
            parts[::2] = codes
            parts[1::2] = map(_CODES.__getitem__, parts[1::2])
            structure = "".join(parts)
        else:
            codes, atoms = zip(*map(get, text.split(" AND ")))  # noqa: B905 - as above
            structure = "&".join(codes)
        return ShapedExpression(structure, self.structures[structure], atoms, self.schema)

    def _by_atoms(self, text: str) -> Expression:
        """Read a filter by its atoms, wherever they are."""
        parts = ATOM.split(text)
        structure = "a".join(map(self.glue.__getitem__, parts[::2]))
        postfix = self.structures[structure]
        atoms = tuple([self.pieces[atom][1] for atom in parts[1::2]])
        return ShapedExpression(structure, postfix, atoms, self.schema)

    def _by_tokens(self, text: str) -> Expression:
        """Read a filter whose atoms are told apart by its tokens; they may be of any kind."""
        structure, written = atom_places(text)
        postfix = self.structures[structure]
        atoms = tuple([self.pieces.whole(atom) for atom in written])
        return ShapedExpression(structure, postfix, atoms, self.schema)


class WrittenExpression(Expression):
    """A filter whose text was read before; it is read again when its tree is first needed."""

    __slots__ = ("_read", "text")

    def __init__(self, text: str, read: Callable[[str], Expression], schema: Schema) -> None:
        self.text = text
        self._read = read
        self.schema = schema

    @property
    def tree(self) -> Node:
        try:
            return self._tree
        except AttributeError:
            self._tree = self._read(self.text).tree
            return self._tree


def later_reader(schema: Schema) -> Callable[[str], WrittenExpression]:
    """A function that makes expressions of texts which were read before; any thread may use them.

    They share one cache, so the tree of one is read as fast as by `ShapeCache`.
    """
    cache, lock = ShapeCache(schema), threading.Lock()

    def read(text: str) -> Expression:
        with lock:
            return cache.parse(text)

    return lambda text: WrittenExpression(text, read, schema)


@remembered()
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
