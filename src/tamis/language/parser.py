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
                | [NOT] LIKE string and other patterns            see `pattern_reader`
                | [NOT] SUBSTRING OF value                        the papers' s ⊑ v
                | IS [NOT] (NULL | TRUE | FALSE | UNKNOWN)
                | IS [NOT] DISTINCT FROM value                    the same as NOT <=> and <=>
    value      := value (= | == | <> | != | < | <= | > | >= | <=>) value
                | value (+ | - | '||') value
                | value (* | / | % | DIV) value
                | (+ | -) value
                | number | string | TRUE | FALSE | NULL
                | (TIMESTAMP | DATE) string
                | INTERVAL (number | string) unit {(number | string) unit}
                | name {'.' name}
                | name '(' [condition {',' condition}] ')'
                | (EXISTS | FORALL) '(' condition ',' name '->' condition ')'
                | value '[' condition ']'
                | (CAST | TRY_CAST) '(' condition AS type ')'
                | CASE [condition] {WHEN condition THEN condition} [ELSE condition] END
                | '(' condition ')'

Alternatives are listed from loose to tight; operators associate to the left; at most one test
follows a value. These are the precedences of Spark SQL. A level of nesting costs two to five Python
frames, so `MAX_DEPTH` bounds the levels; chains of AND and OR are read in loops.
"""

from tamis.errors import ParseError
from tamis.language import ast
from tamis.language.literals import BadLiteral, number_literal
from tamis.language.pattern_reader import PATTERN_WORDS, PatternReader
from tamis.language.tokens import Token, TokenKind, tokenize
from tamis.language.typing_rules import LocatedNode, TypingRules
from tamis.schema import Schema
from tamis.types import BOOL, NULL, STRING

OR, AND, NOT, TEST, COMPARISON, SUM, PRODUCT, UNARY = range(1, 9)

_BINARY = {
    "+": SUM, "-": SUM, "||": SUM, "*": PRODUCT, "/": PRODUCT, "%": PRODUCT, "DIV": PRODUCT,
    "=": COMPARISON, "==": COMPARISON, "<>": COMPARISON, "!=": COMPARISON, "<": COMPARISON,
    "<=": COMPARISON, ">": COMPARISON, ">=": COMPARISON, "<=>": COMPARISON,
}  # fmt: skip
_ALIASES = {"==": "=", "!=": "<>"}
_TESTS = {"BETWEEN", "IN", "LIKE", "RLIKE", "REGEXP", "IS"}
_TEST_NAMES = {"SUBSTRING", "ILIKE"}  # words that are also names
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


def parse_tree(text: str, schema: Schema) -> ast.Node:
    """The typed tree of a filter."""
    return Parser(tokenize(text), TypingRules(schema, text), text).filter()


class Parser(PatternReader):
    """One pass over the tokens of one filter, which builds its tree."""

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
            raise self.unexpected(hint, self.rules.other_words(whole))
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
        if token.kind is TokenKind.NAME and token.text.upper() in _TEST_NAMES:
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

    # --- tests that follow a value

    def test(self, left: LocatedNode) -> LocatedNode:
        """``left [NOT] BETWEEN``, IN, LIKE and others, or ``left IS``."""
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
        elif self.accept(*PATTERN_WORDS) or self.accept_word("ILIKE"):
            result = self.pattern_test(left, token.text.upper(), negated=negated)
        elif self.accept_word("SUBSTRING"):
            if not self.accept_word("OF"):
                raise self.unexpected("expected OF after SUBSTRING")
            whole = self.expression(TEST)
            node = self.rules.substring(left, whole)
            result = self.located(node, left.start, whole.end, left, whole)
        elif not negated and self.accept("IS"):
            return self.is_test(left)
        else:
            raise self.unexpected(
                "expected BETWEEN, IN, LIKE, ILIKE, RLIKE or SUBSTRING OF after NOT"
            )
        return (
            self.located(ast.Not(result.node), left.start, result.end, result)
            if negated
            else result
        )

    def member(self, left: LocatedNode) -> LocatedNode:
        """``left IN (...)`` or ``{...}``, or the interval ``left IN [low, high]``."""
        opening = self.accept(*_BRACKETS)
        if opening is None:
            raise self.unexpected(self.rules.list_hint(self.token))
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
            if left.node.type == STRING:
                raise self.rules.mismatch(
                    "IN [a, b] is a range, and this is a string", opening.start, end,
                    f"write IN ({self.text[items[0].start : items[1].end]}) for a list, or BETWEEN "
                    "... AND ... for a range",
                )  # fmt: skip
            node = self.rules.between(left, *items)
        else:
            self.count_atom(left, len(items) - 1)
            node = self.rules.member(left, items)
        return self.located(node, left.start, end, left, *items)

    def is_test(self, left: LocatedNode) -> LocatedNode:
        negated = self.accept("NOT") is not None
        if self.accept_word("DISTINCT"):
            if not self.accept_word("FROM"):
                raise self.unexpected("expected FROM after DISTINCT")
            right = self.expression(TEST)
            same = self.rules.compare("<=>", left, right)
            result = self.located(same, left.start, right.end, left, right)
            return result if negated else self.located(ast.Not(same), left.start, right.end, result)
        what = self.accept("NULL", "TRUE", "FALSE") or self.accept_word("UNKNOWN")
        if what is None:
            raise self.unexpected("expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM after IS")
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
            found = inner._replace(start=token.start, end=closing.end)
        else:
            found = self.primary()
        return self.indexed(found) if self.token.text == "[" else found

    def indexed(self, holder: LocatedNode) -> LocatedNode:
        """``holder[place]``, an element of an array or the value of a key of a map."""
        while self.accept("["):
            self.enter()
            place = self.expression(0)
            self.depth -= 1
            end = self.expect("]", "after the place of an element").end
            node = self.rules.element(holder, place, end)
            holder = self.located(node, holder.start, end, holder, place)
        return holder

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
        if len(token.text) == 8 and token.kind is TokenKind.NAME and self.starts_interval(token):
            return self.interval(token)
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
            if token.text in PATTERN_WORDS and self.tokens[self.position + 1].text == "(":
                self.position += 1
                return self.call(token)
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

    def timestamp(self, word: Token) -> LocatedNode:
        text = self.expect_string(f"after {word.text}")
        value = self.string(text)
        if word.text.upper() == "DATE":
            if ":" in value:
                raise ParseError(
                    "a DATE has no time of day", self.text, text.start, text.end, "write TIMESTAMP"
                )
            read = self.rules.date
        else:
            read = self.rules.timestamp
        return LocatedNode(read(value, text.start, text.end), word.start, text.end)

    def number(self, token: Token, *, negative: bool) -> ast.Node:
        try:
            return number_literal(token.text, negative=negative)
        except BadLiteral as error:
            raise ParseError(str(error), self.text, token.start, token.end) from None
