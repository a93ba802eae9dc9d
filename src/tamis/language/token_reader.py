"""A position in the tokens of a filter, which the parser moves forward."""

from collections.abc import Mapping

from tamis.errors import ParseError
from tamis.language.literals import BadLiteral, string_value
from tamis.language.tokens import Token, TokenKind

# Words that other languages write between two values, and what a filter writes.
OPERATOR_WORDS = {
    "contains": "write contains(s, 'part')",
    "includes": "write contains(s, 'part')",
    "has": "write contains(s, 'part')",
    "startswith": "write startswith(s, 'start')",
    "starts": "write startswith(s, 'start')",
    "endswith": "write endswith(s, 'end')",
    "ends": "write endswith(s, 'end')",
    "matches": "write RLIKE for a regular expression",
    "similar": "write RLIKE for a regular expression",
    "equals": "write =",
    "mod": "write %",
    "xor": "write <> between two conditions in parentheses",
}
_CONTAINS = ("contains", "includes", "has")
ARRAY_WORDS = OPERATOR_WORDS | dict.fromkeys(_CONTAINS, "write array_contains(a, 'element')")
MAP_WORDS = OPERATOR_WORDS | dict.fromkeys(_CONTAINS, "write map_contains_key(m, 'key')")


class TokenReader:
    """The tokens of one filter, read from left to right."""

    def __init__(self, tokens: list[Token], text: str) -> None:
        self.tokens = tokens
        self.text = text
        self.position = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def at_end(self) -> bool:
        return self.token.kind is TokenKind.END

    def accept(self, *texts: str) -> Token | None:
        """Take the next token if it is one of these keywords or operators; else None."""
        token = self.token
        if token.text in texts and token.kind in {TokenKind.KEYWORD, TokenKind.OPERATOR}:
            self.position += 1
            return token
        return None

    def accept_word(self, word: str) -> Token | None:
        """Take the next token if it is this word, a keyword only here (ESCAPE); else None."""
        token = self.token
        if token.kind is TokenKind.NAME and token.text.upper() == word:
            self.position += 1
            return token
        return None

    def is_word(self, word: str) -> bool:
        """Whether the next token is this word, a keyword only here."""
        return self.token.kind is TokenKind.NAME and self.token.text.upper() == word

    def expect(self, text: str, where: str) -> Token:
        """Take the next token, which must be this keyword or operator."""
        token = self.accept(text)
        if token is None:
            raise self.unexpected(f"expected {text} {where}")
        return token

    def expect_string(self, where: str) -> Token:
        """Take the next token, which must be a string."""
        token = self.token
        if token.kind is not TokenKind.STRING:
            raise self.unexpected(f"expected a string in quotes {where}")
        self.position += 1
        return token

    def string(self, token: Token) -> str:
        """The text that a string in quotes stands for."""
        try:
            return string_value(token.text)
        except BadLiteral as error:
            raise ParseError(str(error), self.text, token.start, token.end) from None

    def unexpected(
        self, hint: str | None = None, words: Mapping[str, str] = OPERATOR_WORDS
    ) -> ParseError:
        """The error that the next token does not belong here; `words` have hints of their own."""
        token = self.token
        problem = "the filter ends too early"
        if token.kind is not TokenKind.END:
            problem = f"unexpected {token.text[:40]!r}"
            if token.kind is TokenKind.NAME:
                hint = words.get(token.text.lower(), hint)
        return ParseError(problem, self.text, token.start, token.end, hint)
