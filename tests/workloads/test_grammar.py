"""Reading grammars, and what is said of those that cannot be used."""

import re

import pytest

import tamis
from cases import each
from tamis.workloads.grammar import parse_grammar


def test_rules_and_expectations():
    grammar = parse_grammar(
        """
        # a comment with "quotes' and ; signs
        query = term { 0.6 " AND " term } ;
        term = 0.75 atom | 0.25 "NOT " [ 0.5 "-" ] atom
        ;
        atom = ( "x" | 'y"' ) ;
        """
    )
    assert [rule.name for rule in grammar.rules if rule.is_named] == ["query", "term", "atom"]
    assert grammar.rules[0].name == "query"
    assert grammar.expectations() == pytest.approx({"query": 1.0, "term": 2.5, "atom": 2.5})


def test_recursion_that_ends():
    grammar = parse_grammar('q = 0.6 "x" | 0.4 "(" q " OR " q ")" ;')
    assert grammar.expectations()["q"] == pytest.approx(5)


def test_long_chains_of_rules():
    # Eigenvalues of the whole matrix would be far off here.
    rules = [f"r{i} = r{i + 1} r{i + 1} r{i + 1} r{i + 1} ;" for i in range(6)]
    rules += [f"r{i} = r{i + 1} ;" for i in range(6, 80)]
    grammar = parse_grammar("\n".join([*rules, 'r80 = "x" ;']))
    assert grammar.expectations()["r80"] == pytest.approx(4**6)


@each(
    ("text", "place", "problem"),
    [
        ("", (1, 1), "expected the name of a rule, found the end"),
        ("# nothing", (1, 10), "expected the name of a rule, found the end"),
        ('= "a" ;', (1, 1), "expected the name of a rule, found ="),
        ('query "a" ;', (1, 7), 'expected = after the name query, found "a"'),
        ('query = "a"', (1, 12), "expected a part of a rule, | or ;, found the end"),
        ('query = "a" ) ;', (1, 13), "expected a part of a rule, | or ;, found )"),
        ('query = ( "a" ;', (1, 15), "expected a part of a rule or ), found ;"),
        ('query = { 0.5 "a" ] ;', (1, 19), "expected a part of a rule or }, found ]"),
        ('query = [ "a" ] "b" ;', (1, 11), 'expected a probability, found "a"'),
        ('query = "a" 0.5 ;', (1, 13), "expected a part of a rule, | or ;, found 0.5"),
        ('query = "a ;\n', (1, 9), "the text is not closed on its line"),
        ("query =\n  'a ;", (2, 3), "the text is not closed on its line"),
        ('query = "a" ?', (1, 13), "unexpected character '?'"),
        ('query =\n\n  atom "b" ;', (3, 3), "the rule atom is undefined; available: 'query'"),
        ('query = atm ;\natom = "a" ;', (1, 9), "atm is undefined; did you mean 'atom'?"),
        ('query = "a" ;\nquery = "b" ;', (2, 1), "the rule query is defined twice"),
        ('query = "a" ;\nx = y ;\ny = "b" ;', (2, 1), "the rule x is never reached from the first"),
        ('query = 0.5 "a" | 0.6 "b" ;', (1, 9), "the probabilities sum to 1.1, not to 1"),
        ('query = 0.5 "a" ;', (1, 9), "the probabilities sum to 0.5, not to 1"),
        ('query = 0.5 "a" | "b" ;', (1, 9), "some alternatives have a probability and others"),
        ('query = "c" ( 0.5 "a" | 0.4 "b" ) ;', (1, 15), "the probabilities sum to 0.9"),
        ('query = 1.5 "a" ;', (1, 9), "a probability is at most 1, not 1.5"),
        ('query = "b" { 1 "a" } ;', (1, 15), "a repetition of probability 1 never ends"),
        ("query = ;", (1, 1), "the rule query can expand to an empty query"),
        ('query = [ 0.5 "a" ] x ;\nx = "b" | ;', (1, 1), "query can expand to an empty query"),
        ('query = { 0.5 "a" } "" ;', (1, 1), "query can expand to an empty query"),
        ('query = "a" | query query ;', (1, 1), "the rule query grows without end: it leads back"),
        ('query = "a" query ;', (1, 1), "it leads back to itself 1 times on average"),
        (
            'query = { 0.9 item } item ;\nitem = 0.4 "a" | 0.6 "b" item item ;',
            (2, 1),
            "the rule item grows without end: it leads back to itself 1.2 times on average",
        ),
        ('q = "a" x ;\nx = 0.9 y y "a" | 0.1 "b" ;\ny = 0.3 "a" | 0.7 x ;', (2, 1), "the rule x"),
        ('q = "a" { 0.5 q q } ;', (1, 1), "the rule q grows without end"),
        ("q = " + "(" * 60 + '"a"' + ")" * 60 + " ;", (1, 55), "brackets nest deeper than 50"),
        (
            "\n".join(["q = " + "r0 " * 9 + ";"])
            + "\n".join(f"r{i} = " + f"r{i + 1} " * 9 + ";" for i in range(9))
            + '\nr9 = "a" ;',
            (1, 1),
            "rules on average; at most 1,000,000 are possible",
        ),
    ],
)
def test_what_is_wrong_and_where(text, place, problem):
    line, column = place
    expected = re.escape(f"own.bnf, line {line}, column {column}: ") + ".*" + re.escape(problem)
    with pytest.raises(tamis.FileError, match=expected):
        parse_grammar(text, "own.bnf")


def test_the_place_is_drawn():
    with pytest.raises(tamis.FileError) as caught:
        parse_grammar('query = "a" |\n  atom ;')
    drawing = str(caught.value).split("\n")[1:]
    assert drawing == ["    atom ;", "    ^"]


def test_sums_may_be_off_by_rounding():
    parse_grammar('q = 0.1 "a" | 0.2 "b" | 0.7 "c" ;')
    parse_grammar('q = 0.3333333333 "a" | 0.3333333333 "b" | 0.3333333334 "c" ;')
