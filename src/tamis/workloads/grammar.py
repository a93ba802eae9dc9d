"""Grammars in extended BNF, with probabilities on the rules (BDD, section 8, Query Generation).

BDD is short for Campailla et al., "Efficient filtering in publish-subscribe systems using binary
decision diagrams" (ICSE 2001).

::

    # one or more terms; each further one is added with probability 0.6
    query = term { 0.6 " AND " term } ;
    term  = 0.9 atom | 0.1 "NOT " atom ;
    atom  = name ( " < " | " > " ) [ 0.5 "-" ] "10" ;
    name  = "price" | "volume" ;

The grammar of the format itself::

    grammar  = rule { rule } ;
    rule     = name "=" choice ";" ;
    choice   = sequence { "|" sequence } ;
    sequence = [ number ] { item } ;
    item     = name | text | "(" choice ")"
             | "[" number { item } "]"
             | "{" number { item } "}" ;

* A text is in double or single quotes and is written as it is, so spaces must be inside quotes.
* Either all alternatives of a choice have a probability, and these sum to 1, or none has one, and
  all are equally probable. A sequence may be empty.
* ``[ p x ]`` is x with probability p, else nothing.
* ``{ p x }`` repeats x, each time with probability p: p / (1 - p) times on average.
* A comment goes from # to the end of the line. Queries begin with the first rule.

Internally, groups, options and repetitions become rules: ``{ p x }`` is a rule r with
``r = p x r | (1 - p) ;``. A grammar is refused if a rule is undefined, defined twice or never
reached, if probabilities do not sum to 1, if a query can be empty, or if the mean length of a query
is infinite.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np

from tamis.errors import FileError, did_you_mean
from tamis.workloads.random_draws import Array

TOLERANCE = 1e-9  # for the sum of probabilities
MOST_NESTED = 50
MOST_EXPANSIONS = 1_000_000  # rules that one query uses on average

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
      | (?P<text>"[^"\n]*"|'[^'\n]*')
      | (?P<number>[0-9]+(?:\.[0-9]+)?)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>[=|;(){}\[\]])""",
    re.VERBOSE,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Text:
    """A part of a query that is written as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Use:
    """A place where a rule is expanded."""

    rule: str
    place: int


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to expand a rule."""

    probability: float
    parts: tuple[Text | Use, ...]

    def uses(self) -> list[Use]:
        return [part for part in self.parts if isinstance(part, Use)]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; those of groups, options and repetitions have names that no file can contain."""

    name: str
    place: int
    alternatives: tuple[Alternative, ...]

    @property
    def is_named(self) -> bool:
        return "/" not in self.name


@dataclass(frozen=True)
class Grammar:
    """Rules that have been checked; queries begin with the first one."""

    rules: tuple[Rule, ...]

    def expectations(self) -> dict[str, float]:
        """How often each rule of the file is used in a query, on average."""
        size = len(self.rules)
        begin = np.zeros(size)
        begin[0] = 1.0
        uses = np.linalg.solve((np.eye(size) - self.matrix()).T, begin)
        pairs = zip(self.rules, uses.tolist(), strict=True)
        return {rule.name: count for rule, count in pairs if rule.is_named}

    def matrix(self) -> Array:
        """Element (r, s): how often one expansion of rule r uses rule s, on average."""
        numbers = {rule.name: number for number, rule in enumerate(self.rules)}
        matrix = np.zeros((len(self.rules), len(self.rules)))
        for number, rule in enumerate(self.rules):
            for alternative in rule.alternatives:
                for use in alternative.uses():
                    matrix[number, numbers[use.rule]] += alternative.probability
        return matrix

    def reachable(self) -> set[str]:
        """The names of the rules that a query can use."""
        rules = {rule.name: rule for rule in self.rules}
        found, waiting = set[str](), [self.rules[0].name]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                for alternative in rules[name].alternatives:
                    waiting.extend(use.rule for use in alternative.uses())
        return found

    def empty(self) -> set[str]:
        """The names of the rules that can expand to nothing."""
        found = set[str]()
        while True:
            more = {rule.name for rule in self.rules if _can_be_empty(rule, found)}
            if more == found:
                return found
            found = more


def parse_grammar(text: str, name: str = "the grammar") -> Grammar:
    """The grammar that a text describes; errors call it by `name`."""
    source = _Source(text, name)
    grammar = Grammar(_Parser(source).grammar())
    _check_names(grammar, source)
    _check_texts(grammar, source)
    _check_size(grammar, source)
    return grammar


class _Source(NamedTuple):
    text: str
    name: str

    def refuse(self, place: int, problem: str) -> NoReturn:
        """Raise an error about a place in the text."""
        line = self.text.count("\n", 0, place) + 1
        start = self.text.rfind("\n", 0, place) + 1
        shown = self.text[start:].split("\n", 1)[0].replace("\t", " ")
        column = place - start + 1
        raise FileError(
            f"{self.name}, line {line}, column {column}: {problem}\n  {shown}\n{' ' * column} ^"
        )


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


class _Parser:
    """One pass over the tokens of one grammar."""

    def __init__(self, source: _Source) -> None:
        self.source = source
        self.tokens = _tokens(source)
        self.position = 0
        self.rules: list[Rule] = []
        self.outer = ""  # the rule of the file that is being read
        self.inner = 0  # rules made for its groups, options and repetitions
        self.depth = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.position]

    def accept(self, text: str) -> bool:
        if self.token.kind == "sign" and self.token.text == text:
            self.position += 1
            return True
        return False

    def unexpected(self, expected: str) -> NoReturn:
        token = self.token
        found = "the end" if token.kind == "end" else token.text
        self.source.refuse(token.place, f"expected {expected}, found {found}")

    def grammar(self) -> tuple[Rule, ...]:
        while self.token.kind != "end" or not self.rules:
            # Groups come after the rule that they belong to, so that the first rule stays first.
            place = len(self.rules)
            self.rules.insert(place, self.rule())
        return tuple(self.rules)

    def rule(self) -> Rule:
        name = self.token
        if name.kind != "name":
            self.unexpected("the name of a rule")
        self.position += 1
        if not self.accept("="):
            self.unexpected(f"= after the name {name.text}")
        self.outer, self.inner = name.text, 0
        alternatives = self.choice()
        if not self.accept(";"):
            self.unexpected("a part of a rule, | or ;")
        return Rule(name.text, name.place, alternatives)

    def choice(self) -> tuple[Alternative, ...]:
        place = self.token.place
        weights: list[float | None] = []
        sequences: list[tuple[Text | Use, ...]] = []
        while True:
            weights.append(self.probability() if self.token.kind == "number" else None)
            sequences.append(self.items())
            if not self.accept("|"):
                break
        given = [weight for weight in weights if weight is not None]
        if not given:
            given = [1.0 / len(sequences)] * len(sequences)
        elif len(given) < len(sequences):
            self.source.refuse(place, "some alternatives have a probability and others have none")
        elif abs(sum(given) - 1.0) > TOLERANCE:
            self.source.refuse(place, f"the probabilities sum to {sum(given):g}, not to 1")
        return tuple(map(Alternative, given, sequences))

    def probability(self) -> float:
        token = self.token
        if token.kind != "number":
            self.unexpected("a probability")
        self.position += 1
        if float(token.text) > 1.0:
            self.source.refuse(token.place, f"a probability is at most 1, not {token.text}")
        return float(token.text)

    def items(self) -> tuple[Text | Use, ...]:
        parts: list[Text | Use] = []
        while True:
            token = self.token
            if token.kind == "text":
                self.position += 1
                if len(token.text) > 2:
                    parts.append(Text(token.text[1:-1]))
            elif token.kind == "name":
                self.position += 1
                parts.append(Use(token.text, token.place))
            elif token.kind == "sign" and token.text in _CLOSING:
                self.position += 1
                parts.append(self.bracket(token))
            else:
                return tuple(parts)

    def bracket(self, opening: _Token) -> Use:
        """A group, an option or a repetition, as the use of a new rule."""
        self.inner += 1
        use = Use(f"{self.outer}/{self.inner}", opening.place)
        self.depth += 1
        if self.depth > MOST_NESTED:
            self.source.refuse(opening.place, f"brackets nest deeper than {MOST_NESTED}")
        if opening.text == "(":
            alternatives = self.choice()
        else:
            place = self.token.place
            probability = self.probability()
            parts = self.items()
            if opening.text == "{":
                if probability == 1.0:
                    self.source.refuse(place, "a repetition of probability 1 never ends")
                parts = (*parts, use)
            alternatives = (Alternative(probability, parts), Alternative(1.0 - probability, ()))
        self.depth -= 1
        if not self.accept(_CLOSING[opening.text]):
            self.unexpected(f"a part of a rule or {_CLOSING[opening.text]}")
        self.rules.append(Rule(use.rule, opening.place, alternatives))
        return use


def _tokens(source: _Source) -> list[_Token]:
    tokens: list[_Token] = []
    place = 0
    while place < len(source.text):
        found = _TOKEN.match(source.text, place)
        if found is None:
            quoted = source.text[place] in "\"'"
            source.refuse(
                place,
                "the text is not closed on its line"
                if quoted
                else f"unexpected character {source.text[place]!r}",
            )
        if found.lastgroup != "space":
            tokens.append(_Token(str(found.lastgroup), found[0], place))
        place = found.end()
    return [*tokens, _Token("end", "", len(source.text))]


def _check_names(grammar: Grammar, source: _Source) -> None:
    rules: dict[str, Rule] = {}
    for rule in grammar.rules:
        if rule.name in rules:
            source.refuse(rule.place, f"the rule {rule.name} is defined twice")
        rules[rule.name] = rule
    for rule in grammar.rules:
        for alternative in rule.alternatives:
            for use in alternative.uses():
                if use.rule not in rules:
                    hint = did_you_mean(use.rule, [r.name for r in grammar.rules if r.is_named])
                    source.refuse(use.place, f"the rule {use.rule} is undefined; {hint}")
    reachable = grammar.reachable()
    for rule in grammar.rules:
        if rule.name not in reachable:
            source.refuse(rule.place, f"the rule {rule.name} is never reached from the first rule")


def _check_texts(grammar: Grammar, source: _Source) -> None:
    first = grammar.rules[0]
    if first.name in grammar.empty():
        source.refuse(first.place, f"the rule {first.name} can expand to an empty query")


def _can_be_empty(rule: Rule, empty: set[str]) -> bool:
    return any(
        all(isinstance(part, Use) and part.rule in empty for part in alternative.parts)
        for alternative in rule.alternatives
        if alternative.probability > 0.0
    )


def _check_size(grammar: Grammar, source: _Source) -> None:
    """Refuse a grammar whose queries are infinite or too large on average.

    The expected size of a query is finite if the matrix has a spectral radius below 1. That is the
    largest radius of its rings, the sets of rules that lead back to each other. Computing it ring
    by ring is numerically safe, and tells which rule to blame.
    """
    matrix = grammar.matrix()
    reach = _closure(matrix > 0.0)
    for number, rule in enumerate(grammar.rules):
        ring = np.flatnonzero(reach[number] & reach[:, number])
        radius = np.abs(np.linalg.eigvals(matrix[np.ix_(ring, ring)])).max(initial=0.0)
        if radius > 1.0 - TOLERANCE:
            source.refuse(
                rule.place,
                f"the rule {rule.name.split('/')[0]} grows without end: it leads back to itself "
                f"{radius:.4g} times on average, which must be less than once",
            )
    uses = sum(grammar.expectations().values())
    if uses > MOST_EXPANSIONS:
        source.refuse(
            grammar.rules[0].place,
            f"a query uses {uses:.4g} rules on average; at most {MOST_EXPANSIONS:,} are possible",
        )


def _closure(steps: Array) -> Array:
    """Which rule leads to which, in one step or more."""
    while True:
        more: Array = steps | (steps @ steps)
        if (more == steps).all():
            return more
        steps = more
