"""The parser: from text to tree, by recursive descent with binding powers.

::

    filter     := condition END
    condition  := condition OR condition
                | condition AND condition
                | (NOT | !) condition
                | value [test]
    test       := [NOT] BETWEEN value AND value
                | [NOT] IN '(' condition {',' condition} ')'
                | [NOT] IN '{' condition {',' condition} '}'      the papers' set
                | [NOT] IN '[' value ',' value ']'                the papers' interval
                | [NOT] LIKE string [ESCAPE string]
                | [NOT] (RLIKE | REGEXP) string
                | [NOT] SUBSTRING OF value                        the papers' s ⊑ v
                | IS [NOT] (NULL | TRUE | FALSE | UNKNOWN)
    value      := value (= | == | <> | != | < | <= | > | >= | <=>) value
                | value (+ | - | '||') value
                | value (* | / | % | DIV) value
                | (+ | -) value
                | number | string | TRUE | FALSE | NULL
                | (TIMESTAMP | DATE) string
                | name {'.' name}
                | name '(' [condition {',' condition}] ')'
                | (CAST | TRY_CAST) '(' condition AS type ')'
                | CASE [condition] {WHEN condition THEN condition} [ELSE condition] END
                | '(' condition ')'

Alternatives are listed from loose to tight; operators associate to the left; at most one test
follows a value. These are the precedences of Spark SQL. A level of nesting costs two to five Python
frames, so `MAX_DEPTH` bounds the levels; chains of AND and OR are read in loops.
"""

from tamis.errors import LimitError, ParseError
from tamis.language import ast
from tamis.language.functions.casts import TYPE_NAMES, named_type
from tamis.language.functions.conditionals import CASE, CASE_OF
from tamis.language.limits import MAX_ATOMS, MAX_DEPTH
from tamis.language.literals import BadLiteral, number_literal, string_value
from tamis.language.token_reader import TokenReader
from tamis.language.tokens import Token, TokenKind, tokenize
from tamis.language.typing_rules import LocatedNode, TypingRules
from tamis.schema import Schema
from tamis.types import BOOL, NULL, STRING, Type

OR, AND, NOT, TEST, COMPARISON, SUM, PRODUCT, UNARY = range(1, 9)

_BINARY = {
    "+": SUM, "-": SUM, "||": SUM, "*": PRODUCT, "/": PRODUCT, "%": PRODUCT, "DIV": PRODUCT,
    "=": COMPARISON, "==": COMPARISON, "<>": COMPARISON, "!=": COMPARISON, "<": COMPARISON,
    "<=": COMPARISON, ">": COMPARISON, ">=": COMPARISON, "<=>": COMPARISON,
}  # fmt: skip
_ALIASES = {"==": "=", "!=": "<>"}
_TESTS = {"BETWEEN", "IN", "LIKE", "RLIKE", "REGEXP", "IS"}
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


def parse_tree(text: str, schema: Schema) -> ast.Node:
    """The typed tree of a filter."""
    return Parser(tokenize(text), TypingRules(schema, text), text).filter()


class Parser(TokenReader):
    """One pass over the tokens of one filter, which builds its tree."""

    def __init__(self, tokens: list[Token], rules: TypingRules, text: str) -> None:
        super().__init__(tokens, text)
        self.rules = rules
        self.depth = 0
        self.atoms = 0

    # --- conditions

    def filter(self) -> ast.Node:
        """The whole filter."""
        if self.at_end():
            raise ParseError(
                "the filter is empty", self.text, 0, hint="write TRUE to match every event"
            )
        whole = self.expression(0)
        if not self.at_end():
            hint = "expected AND, OR, or the end of the filter"
            if self.token.text == ")":
                hint = "there is no open parenthesis for it to close"
            elif self.token.text in _TESTS or self.token.text in _BINARY:
                hint = "put parentheses around what comes before it"
            raise self.unexpected(hint)
        return self.rules.boolean(whole, "a filter")

    def expression(self, floor: int) -> LocatedNode:
        """An expression whose operators all bind tighter than `floor`."""
        negation = self.accept("NOT", "!")
        # After a NOT or a test only AND and OR may follow, after an AND only OR.
        left, ceiling = (
            (self.negation(negation, floor), AND) if negation else (self.prefix(), UNARY)
        )
        while True:
            power = self.power()
            if power <= floor or power > ceiling:
                return left
            if power in {AND, OR}:
                left, ceiling = self.chain(left, power), power
            elif power == TEST:
                left, ceiling = self.test(left), AND
            else:
                op = self.token.text
                self.position += 1
                right = self.expression(power)
                left = self.binary(_ALIASES.get(op, op), left, right)

    def power(self) -> int:
        """How tightly the next token binds as an operator; 0 if it is not an operator."""
        token = self.token
        if token.kind is TokenKind.OPERATOR:
            return _BINARY.get(token.text, 0)
        if token.kind is TokenKind.KEYWORD:
            if token.text in {"AND", "OR"}:
                return AND if token.text == "AND" else OR
            if token.text in _TESTS or token.text == "NOT":
                return TEST
            return _BINARY.get(token.text, 0)
        if token.kind is TokenKind.NAME and token.text.upper() == "SUBSTRING":
            return TEST
        return 0

    def chain(self, first: LocatedNode, power: int) -> LocatedNode:
        """``first AND ... AND ...``, or the same with OR."""
        word = "AND" if power == AND else "OR"
        operands = [first]
        while self.accept(word):
            operands.append(self.expression(power))
        items = tuple(self.rules.boolean(operand, word) for operand in operands)
        node = ast.And(items) if power == AND else ast.Or(items)
        return self.located(node, operands[0].start, operands[-1].end, *operands)

    def binary(self, op: str, left: LocatedNode, right: LocatedNode) -> LocatedNode:
        if _BINARY[op] == COMPARISON:
            self.count_atom(left)
            node: ast.Node = self.rules.compare(op, left, right)
        else:
            node = self.rules.operator(op, (left, right))
        return self.located(node, left.start, right.end, left, right)

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

    # --- tests that follow a value

    def test(self, left: LocatedNode) -> LocatedNode:
        """``left [NOT] BETWEEN``, IN, LIKE, RLIKE or SUBSTRING OF, or ``left IS``."""
        negated = self.accept("NOT") is not None
        self.count_atom(left)
        token = self.token
        if self.accept("BETWEEN"):
            low = self.expression(TEST)
            self.expect("AND", "between the two bounds of BETWEEN")
            high = self.expression(TEST)
            result = self.located(
                self.rules.between(left, low, high), left.start, high.end, left, low, high
            )
        elif self.accept("IN"):
            result = self.member(left)
        elif self.accept("LIKE"):
            result = self.like(left)
        elif self.accept("RLIKE", "REGEXP"):
            pattern = self.expect_string(f"after {token.text}")
            node = self.rules.rlike(left, self.string(pattern), pattern.start, pattern.end)
            result = self.located(node, left.start, pattern.end, left)
        elif self.accept_word("SUBSTRING"):
            if not self.accept_word("OF"):
                raise self.unexpected("expected OF after SUBSTRING")
            whole = self.expression(TEST)
            node = self.rules.substring(left, whole)
            result = self.located(node, left.start, whole.end, left, whole)
        elif not negated and self.accept("IS"):
            return self.is_test(left)
        else:
            raise self.unexpected("expected BETWEEN, IN, LIKE, RLIKE or SUBSTRING OF after NOT")
        return (
            self.located(ast.Not(result.node), left.start, result.end, result)
            if negated
            else result
        )

    def member(self, left: LocatedNode) -> LocatedNode:
        """``left IN (...)`` or ``{...}``, or the interval ``left IN [low, high]``."""
        opening = self.accept(*_BRACKETS)
        if opening is None:
            raise self.unexpected("expected a list in parentheses: IN (1, 2)")
        closing = _BRACKETS[opening.text]
        items = self.list_until(closing)
        end = self.tokens[self.position - 1].end
        if not items:
            raise ParseError("the list of IN is empty", self.text, opening.start, end)
        if opening.text == "[":
            if len(items) != 2:
                raise ParseError(
                    f"an interval has two ends, not {len(items)}", self.text, opening.start, end,
                    "write IN (...) for a list",
                )  # fmt: skip
            node = self.rules.between(left, *items)
        else:
            self.count_atom(left, len(items) - 1)
            node = self.rules.member(left, items)
        return self.located(node, left.start, end, left, *items)

    def list_until(self, closing: str) -> list[LocatedNode]:
        items: list[LocatedNode] = []
        if self.accept(closing):
            return items
        self.enter()
        while True:
            items.append(self.expression(0))
            if not self.accept(","):
                break
        self.expect(closing, "at the end of the list, or a comma")
        self.depth -= 1
        return items

    def like(self, left: LocatedNode) -> LocatedNode:
        pattern = self.expect_string("after LIKE")
        escape, end = "\\", pattern.end
        if self.accept_word("ESCAPE"):
            token = self.expect_string("after ESCAPE")
            escape, end = self.string(token), token.end
            if len(escape) != 1:
                raise ParseError(
                    "the escape character of LIKE must be a single character",
                    self.text,
                    token.start,
                    token.end,
                )
        node = self.rules.like(left, self.string(pattern), escape, pattern.start, pattern.end)
        return self.located(node, left.start, end, left)

    def is_test(self, left: LocatedNode) -> LocatedNode:
        negated = self.accept("NOT") is not None
        what = self.accept("NULL", "TRUE", "FALSE") or self.accept_word("UNKNOWN")
        if what is None:
            raise self.unexpected("expected NULL, TRUE, FALSE or UNKNOWN after IS")
        word = what.text.upper()
        if word == "NULL":
            node: ast.Node = ast.IsNull(left.node)
        else:
            operand = self.rules.boolean(left, f"IS {word}")
            unknown = word == "UNKNOWN"
            node = ast.IsNull(left.node) if unknown else ast.IsTruth(operand, word == "TRUE")
        result = self.located(node, left.start, what.end, left)
        return self.located(ast.Not(node), left.start, what.end, result) if negated else result

    # --- values

    def negation(self, word: Token, floor: int) -> LocatedNode:
        if floor >= NOT:
            raise ParseError(
                f"{word.text} is not allowed here", self.text, word.start, word.end,
                "put parentheses around it",
            )  # fmt: skip
        self.enter()
        operand = self.expression(AND)
        self.depth -= 1
        node = ast.Not(self.rules.boolean(operand, "NOT"))
        return self.located(node, word.start, operand.end, operand)

    def prefix(self) -> LocatedNode:
        """The start of an expression that does not begin with NOT."""
        token = self.token
        if token.kind is TokenKind.ATOM:
            self.position += 1
            return LocatedNode(ast.Slot(int(token.text)), token.start, token.end)
        if self.accept("-", "+"):
            return self.signed(token)
        if self.accept("("):
            self.enter()
            inner = self.expression(0)
            column = token.start - self.text.rfind("\n", 0, token.start)
            closing = self.expect(")", f"to close the ( at column {column}")
            self.depth -= 1
            return inner._replace(start=token.start, end=closing.end)
        return self.primary()

    def enter(self) -> None:
        """Count one more level of nesting; the caller subtracts it again."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.too_deep(self.token.start, self.token.end)

    def signed(self, sign: Token) -> LocatedNode:
        number = self.token
        if sign.text == "-" and number.kind is TokenKind.NUMBER:
            self.position += 1
            return LocatedNode(self.number(number, negative=True), sign.start, number.end)
        self.enter()
        operand = self.expression(PRODUCT)
        self.depth -= 1
        if sign.text == "-":
            node = self.rules.operator("-", (operand,))
        else:
            node = self.rules.positive(operand)
        return self.located(node, sign.start, operand.end, operand)

    def primary(self) -> LocatedNode:
        token = self.token
        self.position += 1
        if token.kind is TokenKind.NUMBER:
            return LocatedNode(self.number(token, negative=False), token.start, token.end)
        if token.kind is TokenKind.STRING:
            literal = ast.Literal(self.string(token), STRING)
            return LocatedNode(literal, token.start, token.end)
        if token.kind is TokenKind.KEYWORD and token.text in {"TRUE", "FALSE"}:
            return LocatedNode(ast.Literal(token.text == "TRUE", BOOL), token.start, token.end)
        if token.kind is TokenKind.KEYWORD and token.text == "NULL":
            return LocatedNode(ast.Literal(None, NULL), token.start, token.end)
        if len(token.text) == 4 and token.kind is TokenKind.NAME and self.starts_case(token):
            return self.case(token)
        if (
            token.kind is TokenKind.NAME
            and self.token.text == "("
            and self.token.kind is TokenKind.OPERATOR
        ):
            return self.call(token)
        if (
            token.kind is TokenKind.NAME
            and token.text.upper() in {"TIMESTAMP", "DATE"}
            and self.token.kind is TokenKind.STRING
        ):
            return self.timestamp(token)
        if token.kind in {TokenKind.NAME, TokenKind.QUOTED}:
            return self.path(token)
        self.position -= 1
        hint = "expected an attribute, a constant or a condition"
        if token.kind is TokenKind.KEYWORD:
            hint += f"; write an attribute of that name in backticks: `{token.text.lower()}`"
        raise self.unexpected(hint)

    def path(self, first: Token) -> LocatedNode:
        parts, last = [self.name(first)], first
        while self.accept("."):
            last = self.token
            if last.kind not in {TokenKind.NAME, TokenKind.QUOTED, TokenKind.KEYWORD}:
                raise self.unexpected("expected a name after the dot")
            if last.kind is TokenKind.KEYWORD:
                raise self.unexpected(f"write `{last.text.lower()}` in backticks")
            self.position += 1
            parts.append(self.name(last))
        node = self.rules.attribute(tuple(parts), first.start, last.end)
        return LocatedNode(node, first.start, last.end)

    @staticmethod
    def name(token: Token) -> str:
        """The name that a token stands for, without its backticks."""
        return token.text[1:-1].replace("``", "`") if token.kind is TokenKind.QUOTED else token.text

    def call(self, name: Token) -> LocatedNode:
        self.position += 1
        if name.text.lower() in {"cast", "try_cast"}:
            return self.cast(name)
        arguments = self.list_until(")")
        end = self.tokens[self.position - 1].end
        node = self.rules.call(name.text, arguments, name.start, end)
        result = self.located(node, name.start, end, *arguments)
        if node.type == BOOL:
            self.count_atom(result)
        return result

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

    def timestamp(self, word: Token) -> LocatedNode:
        text = self.expect_string(f"after {word.text}")
        value = self.string(text)
        if word.text.upper() == "DATE" and ":" in value:
            raise ParseError(
                "a DATE has no time of day", self.text, text.start, text.end, "write TIMESTAMP"
            )
        return LocatedNode(self.rules.timestamp(value, text.start, text.end), word.start, text.end)

    def number(self, token: Token, *, negative: bool) -> ast.Node:
        try:
            return number_literal(token.text, negative=negative)
        except BadLiteral as error:
            raise ParseError(str(error), self.text, token.start, token.end) from None

    def string(self, token: Token) -> str:
        try:
            return string_value(token.text)
        except BadLiteral as error:
            raise ParseError(str(error), self.text, token.start, token.end) from None
