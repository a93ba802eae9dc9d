"""Reading expressions within limits: places of nodes, levels of nesting, and counts of atoms.

A level of nesting costs Python frames, here and in every pass over the tree, so `MAX_DEPTH` bounds
the levels of the text (`enter`) as well as those of the tree (`located`).
"""

from abc import ABC, abstractmethod

from tamis.errors import LimitError
from tamis.language import ast
from tamis.language.limits import MAX_ATOMS, MAX_DEPTH
from tamis.language.token_reader import TokenReader
from tamis.language.tokens import Token
from tamis.language.typing_rules import LocatedNode, TypingRules


class TreeReader(TokenReader, ABC):
    """The tokens of one filter, from which typed nodes are made."""

    def __init__(self, tokens: list[Token], rules: TypingRules, text: str) -> None:
        super().__init__(tokens, text)
        self.rules = rules
        self.depth = 0
        self.atoms = 0

    @abstractmethod
    def expression(self, floor: int) -> LocatedNode:
        """An expression whose operators all bind tighter than `floor`."""

    def enter(self) -> None:
        """Count one more level of nesting; the caller subtracts it again."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.too_deep(self.token.start, self.token.end)

    def list_until(self, closing: str, words: tuple[str, ...] = ()) -> list[LocatedNode]:
        """Expressions with commas between them, or all with these words."""
        items: list[LocatedNode] = []
        if self.accept(closing):
            return items
        self.enter()
        is_worded = False
        while True:
            items.append(self.expression(0))
            if len(items) <= len(words) and self.accept_word(words[len(items) - 1]):
                is_worded = True
                continue
            if is_worded or not self.accept(","):
                break
            words = ()
        self.expect(closing, "at the end of the list, or a comma")
        self.depth -= 1
        return items

    def located(self, node: ast.Node, start: int, end: int, *parts: LocatedNode) -> LocatedNode:
        """A node with its place, one level higher than its parts."""
        height = 1 + max((part.height for part in parts), default=0)
        if height > MAX_DEPTH:
            raise self.too_deep(start, end)
        return LocatedNode(node, start, end, height)

    def too_deep(self, start: int, end: int) -> LimitError:
        return LimitError(
            f"the filter is nested more than {MAX_DEPTH} levels deep", self.text, start, end,
            "a chain of ANDs or of ORs needs no parentheses",
        )  # fmt: skip

    def count_atom(self, place: LocatedNode, count: int = 1) -> None:
        """Count comparisons and list members, and raise an error beyond the limit."""
        self.atoms += count
        if self.atoms > MAX_ATOMS:
            raise LimitError(
                f"the filter has more than {MAX_ATOMS:,} comparisons and list members",
                self.text, place.start, place.end, "split it into several subscriptions",
            )  # fmt: skip
