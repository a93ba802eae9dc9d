"""Tests of a value against patterns, as operators and as functions.

::

    [NOT] (LIKE | ILIKE) string [ESCAPE string]
    [NOT] (LIKE | ILIKE) (ANY | SOME | ALL) '(' string {',' string} ')'
    [NOT] (RLIKE | REGEXP) string
    (like | ilike) '(' condition ',' string [',' string] ')'
    (rlike | regexp | regexp_like) '(' condition ',' string ')'

``x ILIKE p`` is ``lower(x) LIKE lower(p)``, and ANY and ALL are OR and AND of single patterns, as
in Spark: nothing after the parser knows of them.
"""

from tamis.errors import LimitError, ParseError
from tamis.language import ast
from tamis.language.call_reader import CallReader
from tamis.language.like_patterns import BACKSLASH
from tamis.language.tokens import Token
from tamis.language.typing_rules import LocatedNode

PATTERN_WORDS = {"LIKE", "ILIKE", "RLIKE", "REGEXP"}
_FUNCTIONS = PATTERN_WORDS | {"REGEXP_LIKE"}
# Bytes of a tree. ANY and ALL repeat the tested value, and may be nested in it.
MOST_REPEATED = 1_000_000


class PatternReader(CallReader):
    """The part of the parser that reads patterns."""

    def pattern_test(self, left: LocatedNode, word: str, *, negated: bool) -> LocatedNode:
        """``left LIKE ...`` after its word; `negated` if a NOT precedes it, which is not read."""
        if word in {"RLIKE", "REGEXP"}:
            pattern = self.expect_string(f"after {word}")
            return self.located(self.rlike(left, pattern), left.start, pattern.end, left)
        for quantifier in ("ANY", "SOME", "ALL"):
            if self.accept_word(quantifier):
                return self.quantified(
                    left, word, quantifier, is_and=(quantifier == "ALL") != negated
                )
        pattern = self.expect_string(f"after {word}")
        escape, end = BACKSLASH, pattern.end
        if self.accept_word("ESCAPE"):
            token = self.expect_string("after ESCAPE")
            escape, end = self.escape(token), token.end
        return self.located(self.like(left, word, pattern, escape), left.start, end, left)

    def quantified(
        self, left: LocatedNode, word: str, quantifier: str, *, is_and: bool
    ) -> LocatedNode:
        """``left LIKE ANY (...)`` after ANY; with NOT before LIKE, ``any`` is NOT all and so on."""
        where = f"after {word} {quantifier}"
        self.expect("(", where)
        patterns = [self.expect_string(where)]
        while self.accept(","):
            patterns.append(self.expect_string("after the comma"))
        end = self.expect(")", "at the end of the patterns, or a comma").end
        self.count_atom(left, len(patterns) - 1)
        if len(patterns) * left.node.nbytes > MOST_REPEATED:
            raise LimitError(
                "the value before LIKE is too large for so many patterns", self.text, left.start,
                end, "split it into several subscriptions",
            )  # fmt: skip
        tests = tuple(self.like(left, word, pattern) for pattern in patterns)
        if len(tests) == 1:
            return self.located(tests[0], left.start, end, left)
        inner = self.located(tests[0], left.start, end, left)
        return self.located(ast.And(tests) if is_and else ast.Or(tests), left.start, end, inner)

    def call(self, name: Token) -> LocatedNode:
        if name.text.upper() in _FUNCTIONS:
            return self.pattern_call(name)
        return super().call(name)

    def pattern_call(self, name: Token) -> LocatedNode:
        """``like(x, pattern)`` and others, at the opening parenthesis."""
        word, written = name.text.upper(), name.text.lower()
        self.position += 1
        self.enter()
        operand = self.expression(0)
        self.depth -= 1
        self.count_atom(operand)
        self.expect(",", f"and a pattern: {written}(x, 'pattern')")
        pattern = self.expect_string(f"as the pattern of {written}")
        if word in {"LIKE", "ILIKE"}:
            escape = BACKSLASH
            if self.accept(","):
                escape = self.escape(self.expect_string("as the escape character"))
            node = self.like(operand, word, pattern, escape)
        else:
            node = self.rlike(operand, pattern)
        end = self.expect(")", "after the pattern").end
        return self.located(node, name.start, end, operand)

    def like(
        self, left: LocatedNode, word: str, pattern: Token, escape: str = BACKSLASH
    ) -> ast.Node:
        """A test by LIKE or ILIKE."""
        text = self.string(pattern)
        folds = word == "ILIKE"
        return self.rules.like(left, text, escape, pattern.start, pattern.end, folds=folds)

    def rlike(self, left: LocatedNode, pattern: Token) -> ast.Node:
        """A test by a regular expression."""
        return self.rules.rlike(left, self.string(pattern), pattern.start, pattern.end)

    def escape(self, token: Token) -> str:
        """The escape character of LIKE."""
        escape = self.string(token)
        if len(escape) != 1:
            raise ParseError(
                "the escape character of LIKE must be a single character",
                self.text,
                token.start,
                token.end,
            )
        return escape
