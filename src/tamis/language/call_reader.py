"""Calls of functions, and the expressions with words in them: CAST, CASE and INTERVAL."""

from tamis.errors import LimitError, ParseError
from tamis.language import ast
from tamis.language.functions.abbreviations import ABBREVIATIONS, EXTRACT
from tamis.language.functions.arrays import QUANTIFIERS
from tamis.language.functions.casts import TYPE_NAMES, named_type
from tamis.language.functions.conditionals import CASE, CASE_OF
from tamis.language.interval_literals import UNITS, interval_literal
from tamis.language.limits import MAX_ARGUMENTS
from tamis.language.literals import BadLiteral
from tamis.language.tokens import Token, TokenKind
from tamis.language.tree_reader import TreeReader
from tamis.language.typing_rules import LocatedNode
from tamis.types import BOOL, NULL, STRING, Type

# The words that may be written instead of commas, and before the arguments of TRIM.
_WORDS = {"substring": ("FROM", "FOR"), "substr": ("FROM", "FOR"), "trim": ("FROM",)}
_SIDES = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}


class CallReader(TreeReader):
    """The part of the parser that reads a call after its name."""

    def call(self, name: Token) -> LocatedNode:
        self.position += 1
        if name.text.lower() in {"cast", "try_cast"}:
            return self.cast(name)
        if name.text.lower() in QUANTIFIERS:
            return self.quantifier(name)
        self.rules.check_function(name)
        spelling, arguments = self.arguments(name.text)
        end = self.tokens[self.position - 1].end
        if len(arguments) > MAX_ARGUMENTS:
            problem = f"{name.text} has more than {MAX_ARGUMENTS:,} arguments"
            raise LimitError(problem, self.text, name.start, name.end)
        node = self.rules.call(spelling, arguments, name.start, end)
        result = self.located(node, name.start, end, *arguments)
        if spelling.lower() in ABBREVIATIONS:  # what they stand for has up to three levels
            inner = self.located(node, name.start, end, result)
            result = self.located(node, name.start, end, inner)
        if node.type == BOOL:
            self.count_atom(result)
        return result

    def arguments(self, name: str) -> tuple[str, list[LocatedNode]]:
        """The arguments of a call, perhaps with words between them, and of which function they are.

        ``SUBSTRING(s FROM 2 FOR 3)`` is ``substring(s, 2, 3)``, and ``TRIM(LEADING 'x' FROM s)`` is
        ``ltrim('x', s)``.
        """
        if name.lower() == EXTRACT:
            return name, self.part_of_time()
        words = _WORDS.get(name.lower(), ())
        side = _SIDES.get(self.token.text.upper()) if words == ("FROM",) else None
        if side is None or self.tokens[self.position + 1].text in {")", ",", "."}:
            return name, self.list_until(")", words)
        self.position += 1
        self.accept_word("FROM")
        return side, self.list_until(")", words)

    def part_of_time(self) -> list[LocatedNode]:
        """``YEAR FROM value)``, the name of the part as a string."""
        self.enter()
        part = self.token
        if part.kind is not TokenKind.NAME:
            raise self.unexpected("expected a part of a time: extract(YEAR FROM x)")
        self.position += 1
        if not self.accept_word("FROM"):
            raise self.unexpected("expected FROM, as in extract(YEAR FROM x)")
        of = self.expression(0)
        self.expect(")", "after the time")
        self.depth -= 1
        return [LocatedNode(ast.Literal(part.text, STRING), part.start, part.end), of]

    def quantifier(self, name: Token) -> LocatedNode:
        """``exists(array, element -> condition)`` or forall, after its opening parenthesis."""
        self.enter()
        arguments = [self.expression(0)]
        while self.accept(","):
            is_function = self.tokens[min(self.position + 1, len(self.tokens) - 1)].text == "->"
            arguments.append(
                self.function(name, arguments[0]) if is_function else self.expression(0)
            )
        end = self.expect(")", "at the end of the list, or a comma").end
        self.depth -= 1
        node = self.rules.call(name.text, arguments, name.start, end)
        result = self.located(node, name.start, end, *arguments)
        self.count_atom(result)
        return result

    def function(self, of: Token, array: LocatedNode) -> LocatedNode:
        """``element -> condition``, the second argument of exists and forall."""
        name = self.token
        if name.kind not in {TokenKind.NAME, TokenKind.QUOTED}:
            raise self.unexpected("expected a name for the element: t -> t = 'x'")
        self.position += 2
        word = self.name(name)
        with self.rules.element_named(word, of.text, array, name.start, name.end):
            body = self.expression(0)
            condition = self.rules.boolean(body, of.text)
        return self.located(ast.Lambda(word, condition), name.start, body.end, body)

    @staticmethod
    def name(token: Token) -> str:
        """The name that a token stands for, without its backticks."""
        return token.text[1:-1].replace("``", "`") if token.kind is TokenKind.QUOTED else token.text

    def cast(self, name: Token) -> LocatedNode:
        """``CAST(condition AS type)``, after its opening parenthesis."""
        self.enter()
        operand = self.expression(0)
        self.depth -= 1
        if not self.accept_word("AS"):
            raise self.unexpected(f"expected AS and a type, as in {name.text}(x AS DOUBLE)")
        wanted = self.type()
        end = self.expect(")", "after the type").end
        node = self.rules.cast(name.text.lower(), operand, wanted, name.start, end)
        return self.located(node, name.start, end, operand)

    def type(self) -> Type:
        """The name of a type, with the digits of a decimal."""
        word = self.token
        if word.kind is not TokenKind.NAME:
            raise self.unexpected("expected the name of a type")
        self.position += 1
        digits: list[int] = []
        end = word.end
        if self.accept("("):
            while self.token.kind is TokenKind.NUMBER and self.token.text.isdecimal():
                digits.append(int(self.token.text[:4]))
                self.position += 1
                if not self.accept(","):
                    break
            end = self.expect(")", "after the digits of the type").end
        found = named_type(word.text, digits)
        if found is None:
            raise ParseError(
                f"there is no type {self.text[word.start : end]} to convert to", self.text,
                word.start, end, f"expected one of {', '.join(TYPE_NAMES)}, DECIMAL(10, 2)",
            )  # fmt: skip
        return found

    def starts_case(self, word: Token) -> bool:
        """Whether a name is the CASE of an expression, rather than an attribute of that name."""
        after = self.token
        return word.text.upper() == "CASE" and (
            after.kind in {TokenKind.NAME, TokenKind.QUOTED, TokenKind.NUMBER, TokenKind.STRING}
            or after.text in {"TRUE", "FALSE", "NULL", "("}
        )

    def case(self, word: Token) -> LocatedNode:
        """``CASE [subject] WHEN ... THEN ... [ELSE ...] END``, after its first word."""
        self.enter()
        subject = None if self.is_word("WHEN") else self.expression(0)
        parts: list[LocatedNode] = []
        while self.accept_word("WHEN"):
            parts.append(self.expression(0))
            self.count_atom(parts[-1])
            if not self.accept_word("THEN"):
                raise self.unexpected("expected THEN after what follows WHEN")
            parts.append(self.expression(0))
        if not parts:
            raise self.unexpected("expected WHEN after CASE")
        if self.accept_word("ELSE"):
            parts.append(self.expression(0))
        else:
            parts.append(LocatedNode(ast.Literal(None, NULL), self.token.start, self.token.start))
        end = self.accept_word("END")
        if end is None:
            raise self.unexpected("expected WHEN, ELSE or END in a CASE")
        self.depth -= 1
        if subject is None:
            node = self.rules.case(CASE, parts, word.start, end.end)
            return self.located(node, word.start, end.end, *parts)
        node = self.rules.case(CASE_OF, [subject, *parts], word.start, end.end)
        return self.located(node, word.start, end.end, subject, *parts)

    def starts_interval(self, word: Token) -> bool:
        """Whether a name is the INTERVAL of a constant, rather than an attribute of that name."""
        return word.text.upper() == "INTERVAL" and self.is_amount()

    def is_amount(self) -> bool:
        """Whether a number of an interval follows; its unit tells -1 DAY from a subtraction."""
        is_signed = self.token.text in {"-", "+"}
        number = self.tokens[self.position + is_signed]
        if number.kind not in {TokenKind.NUMBER, TokenKind.STRING}:
            return False
        return not is_signed or self.tokens[self.position + 2].text.upper() in UNITS

    def interval(self, word: Token) -> LocatedNode:
        """``INTERVAL 1 DAY 2 HOURS``, after its first word."""
        parts: list[tuple[str, str]] = []
        while not parts or self.is_amount():
            sign = self.accept("-", "+")
            token, unit = self.tokens[self.position : self.position + 2]
            self.position += 1
            number = token.text if token.kind is TokenKind.NUMBER else self.string(token).strip()
            if self.token.kind is not TokenKind.NAME or unit.text.upper() not in UNITS:
                raise self.unexpected("expected a unit after the number: INTERVAL 1 DAY")
            self.position += 1
            parts.append(((sign.text if sign else "") + number, unit.text))
        end = self.tokens[self.position - 1].end
        try:
            return LocatedNode(interval_literal(parts), word.start, end)
        except BadLiteral as error:
            raise ParseError(str(error), self.text, word.start, end) from None
