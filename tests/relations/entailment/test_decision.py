"""Entailment against brute force over small domains, against evaluation, and against its limits."""

import functools
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import SCHEMA, atoms, delicate_rows, filters, rows
from tamis import LimitError, Schema, TypeMismatch, parse
from tamis.language.ast import FALSE, TRUE
from tamis.predicates.event_space import EventSpace, form_of
from tamis.relations.entailment.decision import Answer, entails, satisfiable, witness
from tamis.semantics import Semantics

YES, NO, UNDECIDED = Answer.YES, Answer.NO, Answer.UNDECIDED

# --- small domains, where everything is decided

SMALL = Schema({"n": "int(0, 3)", "m": "int(0, 3)", "f": "bool", "e": "enum('a', 'b', 'ab')"})
STRINGY = Schema({"s": "string", "f": "bool"})
DOMAINS = {"n": range(4), "m": range(4), "f": [False, True], "e": ["a", "b", "ab"]}
SHORT = ["".join(word) for n in range(5) for word in itertools.product("abx", repeat=n)]


def meanings(schema, **defaults):
    bottom = dict.fromkeys(schema)
    return {
        "sql": Semantics("sql", schema),
        "strict": Semantics("strict", schema),
        "no defaults": Semantics("default", schema, bottom),
        "defaults": Semantics("default", schema, bottom | defaults),
        "total": Semantics("total", schema),
    }


SMALL_MEANINGS = meanings(SMALL, n=1, f=True)
STRINGY_MEANINGS = meanings(STRINGY, s="a")
MEANINGS = meanings(SCHEMA, i=0, s="a", b=True, x=0.5)


def chains(atom, depth=2):
    """AND, OR and NOT over atoms, as text."""
    return st.recursive(
        atom,
        lambda inner: st.tuples(
            st.sampled_from([" AND ", " OR "]),
            st.lists(inner.map("({})".format), min_size=2, max_size=3),
            st.sampled_from(["", "NOT "]),
        ).map(lambda made: f"{made[2]}({made[0].join(made[1])})"),
        max_leaves=2**depth + 2,
    )


numbers = st.sampled_from(["0", "1", "2", "3"])
operators = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])
small_atoms = st.one_of(
    st.tuples(st.sampled_from("nm"), operators, numbers).map(" ".join),
    st.tuples(st.sampled_from("nm"), st.lists(numbers, min_size=1)).map(
        lambda made: f"{made[0]} IN ({', '.join(made[1])})"
    ),
    st.sampled_from(
        [
            "n < m", "n = m", "m >= n", "n + 1 = m", "n * m > 2", "abs(n - m) < 2", "n % 2 = 0",
            "n / m > 1", "n / m IS NULL", "f", "NOT f", "f IS NULL", "n IS NULL", "m IS NOT NULL",
            "f = (n > 1)", "e = 'a'", "e <> 'ab'", "e LIKE 'a%'", "upper(e) = 'A'", "e RLIKE 'b$'",
            "length(e) = n", "e < 'b'", "TRUE", "n = NULL",
        ]
    ),
)  # fmt: skip
patterns = st.text(alphabet="ab_%", max_size=4)
string_atoms = st.one_of(
    st.tuples(st.sampled_from(["", "NOT "]), patterns).map(
        lambda made: f"s {made[0]}LIKE '{made[1]}'"
    ),
    st.tuples(operators, st.text(alphabet="ab", max_size=2)).map(
        lambda made: f"s {made[0]} '{made[1]}'"
    ),
    st.sampled_from(
        [
            "s IS NULL", "f", "NOT f", "s IN ('a', 'b', '')", "s NOT IN ('ab', 'aa')",
            "contains('aba', s)", "startswith('ab', s)", "endswith('ab', s)", "length(s) > 2",
            "length(s) IN (0, 2)", "startswith(s, 'ab')", "contains(s, 'a')",
        ]
    ),
)  # fmt: skip


@functools.cache
def small_rows(total):
    missing = [] if total else [None]
    return list(itertools.product(*([*DOMAINS[name], *missing] for name in SMALL)))


def events(meaning, candidates):
    for row in candidates:
        if meaning.name != "total" or None not in row:
            yield meaning.prepare(row)


def forms(meaning, *texts):
    return [form_of(parse(text, meaning.schema), meaning) for text in texts]


def refuted(meaning, b, a, candidates):
    """Whether an event matches b and not a."""
    given, wanted = (meaning.condition(parse(text, meaning.schema)) for text in (b, a))
    return any(given(row) and not wanted(row) for row in events(meaning, candidates))


@pytest.mark.long
@pytest.mark.parametrize("name", SMALL_MEANINGS)
@given(a=chains(small_atoms), b=chains(small_atoms))
@settings(max_examples=30)
def test_small_domains_are_decided_as_brute_force_decides(name, a, b):
    meaning = SMALL_MEANINGS[name]
    wanted, given_ = forms(meaning, a, b)
    space = EventSpace.of(meaning)
    every = small_rows(total=name == "total")
    expected = NO if refuted(meaning, b, a, every) else YES
    assert entails(given_, wanted, space) is expected
    possible = any(map(meaning.condition(parse(b, SMALL)), events(meaning, every)))
    assert satisfiable(given_, space) is (YES if possible else NO)
    check_witness(meaning, b, a)


@pytest.mark.long
@pytest.mark.parametrize("name", STRINGY_MEANINGS)
@given(a=chains(string_atoms), b=chains(string_atoms))
@settings(max_examples=30)
def test_strings_are_always_decided(name, a, b):
    meaning = STRINGY_MEANINGS[name]
    wanted, given_ = forms(meaning, a, b)
    answer = entails(given_, wanted, EventSpace.of(meaning))
    assert answer is not UNDECIDED
    every = itertools.product([*SHORT, None], [False, True, None])
    if refuted(meaning, b, a, every):
        assert answer is NO
    assert check_witness(meaning, b, a) == (answer is NO)


def check_witness(meaning, b, a):
    wanted, given_ = forms(meaning, a, b)
    row = witness(given_, wanted, EventSpace.of(meaning))
    if row is None:
        return False
    assert meaning.condition(parse(b, meaning.schema))(row)
    assert not meaning.condition(parse(a, meaning.schema))(row)
    return True


# --- everything that can be written

texts = filters() | atoms(1)


@pytest.mark.long
@pytest.mark.parametrize("name", MEANINGS)
@given(a=texts, b=texts, some_rows=st.lists(rows(), min_size=5, max_size=10))
@settings(max_examples=20)
def test_yes_and_no_are_always_right(name, a, b, some_rows):
    meaning = MEANINGS[name]
    try:
        wanted, given_ = forms(meaning, a, b)
    except (TypeMismatch, LimitError):
        return
    answer = entails(given_, wanted, EventSpace.of(meaning))
    if answer is YES:
        assert not refuted(meaning, b, a, [*some_rows, *delicate_rows()])
    assert check_witness(meaning, b, a) == (answer is NO)


@given(a=texts, b=texts, c=texts)
@settings(max_examples=25)
def test_the_laws_of_an_order(a, b, c):
    meaning = MEANINGS["sql"]
    space = EventSpace.of(meaning)
    try:
        first, second, third = forms(meaning, a, b, c)
        both, either = forms(meaning, f"({a}) AND ({b})", f"({a}) OR ({b})")
    except (TypeMismatch, LimitError):
        return
    assert entails(first, first, space) is YES
    assert entails(both, first, space) is not NO
    assert entails(second, either, space) is not NO
    if entails(first, second, space) is YES and entails(second, third, space) is YES:
        assert entails(first, third, space) is not NO
    if satisfiable(both, space) is YES:
        assert satisfiable(first, space) is not NO


def test_constants():
    space = EventSpace.of(MEANINGS["sql"])
    (form,) = forms(MEANINGS["sql"], "i > 1")
    assert [entails(FALSE, form, space), entails(form, TRUE, space)] == [YES, YES]
    assert [entails(TRUE, form, space), entails(form, FALSE, space)] == [NO, NO]
    assert [satisfiable(TRUE, space), satisfiable(FALSE, space)] == [YES, NO]


def test_an_impossible_filter_entails_everything():
    space = EventSpace.of(MEANINGS["sql"])
    never, other = forms(MEANINGS["sql"], "i > 1 AND s LIKE 'a%' AND s LIKE 'b%'", "x > 1")
    assert entails(never, other, space) is YES
    assert entails(never, FALSE, space) is YES


def test_a_witness_of_a_total_world_lacks_nothing():
    b, a = forms(MEANINGS["total"], "i > 1", "i > 2")
    row = witness(b, a, EventSpace.of(MEANINGS["total"]))
    assert row[SCHEMA.positions["i",]] == 2
    assert None not in row


# --- large and nasty ones: an answer, or none, and never a hang

WIDE = Schema(
    {"i": "int", "j": "int", "s": "string", "b": "bool"}
    | {f"n{k}": "int" for k in range(100)}
    | {f"z{k}": "bool" for k in range(60)}
)
MANY = 6_000


def deep(levels, constant):
    text = "i = 1"
    for level in range(levels):
        text = f"(({text}) AND n{level} > {constant} OR n{level + 50} < {level})"
    return text


def numbered(word, template, count):
    return word.join(template.format(k=k, l=k + 1) for k in range(count))


def members(count, shift=0):
    return ", ".join(str(3 * k + shift) for k in range(count))


def holes(pigeons):
    """That many pigeons in one hole less, one each: impossible, and hard to see."""
    seats = range(pigeons - 1)
    somewhere = (
        "(" + " OR ".join(f"n{p * len(seats) + h} = 1" for h in seats) + ")" for p in range(pigeons)
    )
    alone = (
        f"(n{p * len(seats) + h} <> 1 OR n{q * len(seats) + h} <> 1)"
        for h in seats
        for p, q in itertools.combinations(range(pigeons), 2)
    )
    return " AND ".join([*somewhere, *alone])


@pytest.mark.long
@pytest.mark.parametrize(
    ("b", "a", "expected"),
    [
        pytest.param(f"i IN ({members(MANY)})", f"i IN ({members(MANY + 50)})", YES, id="sets"),
        pytest.param(f"i IN ({members(MANY)}, 1)", f"i IN ({members(MANY)})", NO, id="no subset"),
        pytest.param(
            numbered(" OR ", "i = {k}", 5_000), "i BETWEEN 0 AND 4999", YES, id="points"
        ),
        pytest.param(
            numbered(" AND ", "i <> {k}", 5_000), f"i NOT IN ({members(1_000)})", YES, id="holes"
        ),
        pytest.param(
            "s IN (" + numbered(", ", "'v{k}'", MANY) + ")", "s LIKE 'v%'", YES, id="strings"
        ),
        pytest.param(
            "s LIKE 'v%' AND s NOT IN (" + numbered(", ", "'v{k}'", MANY) + ")",
            "s > 'v'", UNDECIDED, id="too many strings between",
        ),
        pytest.param(
            numbered(" OR ", "i = {k} AND j > {k}", 1_500),
            numbered(" OR ", "i = {k} AND j >= {k}", 1_500), UNDECIDED, id="many alternatives",
        ),
        pytest.param(
            numbered(" OR ", "i = {k} AND j > {k}", 100),
            numbered(" OR ", "j >= {k} AND i = {k}", 100), YES, id="some alternatives",
        ),
        pytest.param(
            numbered(" OR ", "i = {k} AND j > {k}", 2_000),
            " OR ".join(f"i = {k} AND j > {k}" for k in reversed(range(2_000))),
            YES, id="the same in another order",
        ),
        pytest.param(deep(48, 3), deep(48, 2), YES, id="deep"),
        pytest.param(deep(48, 2), deep(48, 3), NO, id="deep, the other way"),
        pytest.param(
            numbered(" AND ", "(n{k} > 1 OR n{l} < 5)", 90),
            numbered(" AND ", "(n{k} > 1 OR n{l} < 6)", 90), YES, id="clauses",
        ),
        pytest.param(numbered(" AND ", "z{k} = z{l}", 50), "z0 = z50", YES, id="equalities"),
        pytest.param(
            numbered(" AND ", "(z{k} AND z{l} OR NOT z{k} AND NOT z{l})", 50),
            "z0 AND z50 OR NOT z0 AND NOT z50", YES, id="equalities, written out",
        ),
        pytest.param(holes(4), "b", YES, id="four pigeons"),
        pytest.param(holes(9), "b", UNDECIDED, id="nine pigeons"),
        pytest.param(
            numbered(" AND ", "s RLIKE 'a{k}'", 1_000), "s RLIKE 'a5'", YES, id="one regex of many"
        ),
        pytest.param(
            numbered(" AND ", "s RLIKE '^a{k}'", 500), numbered(" OR ", "s RLIKE '^b{k}'", 500),
            UNDECIDED, id="regexes",
        ),
        pytest.param(
            numbered(" AND ", "s LIKE '%{k}_{l}%'", 12), "s LIKE '%3%'", YES,
            id="one pattern of many",
        ),
        pytest.param(
            "s LIKE '%a" + "_" * 30 + "%'", "s LIKE '%a" + "_" * 12 + "%'", UNDECIDED,
            id="a pattern with too many places",
        ),
        pytest.param(
            "s LIKE '%" + "a_" * 4_900 + "%'", "s LIKE '%a%'", UNDECIDED, id="a long pattern"
        ),
        pytest.param(
            numbered(" AND ", "i * {l} + j > {k}", 500), "i > 0", NO, id="much to compute"
        ),
    ],
)  # fmt: skip
def test_large_filters(b, a, expected):
    meaning = Semantics("sql", WIDE)
    given_, wanted = forms(meaning, b, a)
    assert entails(given_, wanted, EventSpace.of(meaning)) is expected
