"""Files that a matcher absorbs: as if it had subscribed to what they hold."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    rule,
    run_state_machine_as_test,
)

from saved_matchers import (
    DEFAULTS,
    LIFE,
    TEXTS,
    WIDE,
    kept,
    life_of,
    semantics_of,
    stock_table,
    view,
    wide_events,
)
from stocks import SMALL, stock_filters
from tamis import (
    FileError,
    Matcher,
    OptionError,
    SubscriptionError,
)
from tamis.engines import ENGINES
from tamis.semantics import NAMES


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rules.tamis"


def saved(path, texts, **options):
    """A file of some subscriptions."""
    matcher = Matcher(SMALL, **options)
    matcher.subscribe_many(texts)
    matcher.save(path)
    return path


@pytest.mark.long
@pytest.mark.parametrize("engine", ["auto", "sliced"])
@pytest.mark.parametrize("sizes", [(3, 4), (100, 1, 300), (0, 70, 0, 70), (80, 2)])
def test_absorbing_files_is_like_subscribing_to_all(path, engine, sizes):
    texts = {f"s{n}": text for n, text in enumerate([*stock_filters(1, sum(sizes) - 1), "TRUE"])}
    whole, joined, table = Matcher(SMALL, engine), Matcher(SMALL, engine), stock_table(40)
    whole.subscribe_many(texts)
    names, first = list(texts), 0
    for number, size in enumerate(sizes):
        some = {name: texts[name] for name in names[first : first + size]}
        first += size
        if number == 0:
            joined.subscribe_many(some)
        else:
            joined.absorb(saved(path, some))
    for one in (joined, kept(joined, path, table)):
        assert view(one, table) == view(whole, table)


@pytest.mark.parametrize("name", NAMES)
def test_absorbing_with_every_semantics(path, name):
    options = semantics_of(name)
    if name == "default":
        options["defaults"] = DEFAULTS | {"x": 2.5}
    matchers = [Matcher(WIDE, **options) for _ in range(3)]
    whole, one, other = matchers
    for number, text in enumerate(TEXTS):
        whole.subscribe(number, text)
        (one if number < 20 else other).subscribe(number, text)
    other.save(path)
    one.absorb(path)
    table = wide_events(complete=name == "total")
    assert view(one, table) == view(whole, table)
    kept(one, path, table)


def test_absorbing_replaces_ids_which_come_last_then(path):
    matcher, table = Matcher(SMALL), stock_table(40)
    matcher.subscribe_many({n: f"i > {n % 9}" for n in range(100)})
    matcher.subscribe(200, "x > 0")  # one by one
    changed = {n: f"s LIKE 'T{n % 4}%' AND i < {n % 7}" for n in (50, 3, 200, 300)}
    matcher.absorb(saved(path, changed))
    model = {n: f"i > {n % 9}" for n in range(100) if n not in changed} | changed
    expected = Matcher(SMALL)
    expected.subscribe_many(model)
    assert view(matcher, table) == view(expected, table)
    assert len(matcher) == 102
    for one in (matcher, expected):  # and it goes on
        one.unsubscribe(300)
        one.unsubscribe(0)
        one.subscribe(50, "b")
        one.subscribe(0, "TRUE")
        one.subscribe_many(dict.fromkeys(range(40, 140), "x < 1"))
    assert view(kept(matcher, path, table), table) == view(expected, table)


def test_absorbing_what_one_has_saved(path):
    matcher, table = Matcher(SMALL), stock_table(20)
    matcher.subscribe_many({f"s{n}": text for n, text in enumerate(stock_filters(4, 150))})
    matcher.save(path)
    before = view(matcher, table)
    matcher.absorb(path)
    matcher.absorb(path)
    assert view(matcher, table) == before
    path.unlink()
    assert view(matcher, table) == before


def test_absorbing_nothing(path):
    matcher, table = Matcher(SMALL), stock_table(20)
    matcher.absorb(saved(path, {}))
    assert view(matcher, table) == view(Matcher(SMALL), table)
    matcher.absorb(saved(path, {"a": "i > 0", "b": "FALSE"}))
    matcher.unsubscribe("a")
    matcher.unsubscribe("b")
    matcher.absorb(saved(path, {5: "i > 1"}))  # no id is left, so of any kind
    assert matcher.match({"i": 2}) == [5]


def test_what_cannot_be_absorbed_changes_nothing(path):
    matcher, table = Matcher(SMALL), stock_table(20)
    matcher.subscribe_many({n: f"i > {n % 9}" for n in range(70)})
    matcher.subscribe(70, "s LIKE 'T1%'")
    before = view(matcher, table)

    def refuses(error, said):
        with pytest.raises(error, match=said):
            matcher.absorb(path)
        assert view(matcher, table) == before

    refuses(FileError, "rules.tamis")  # there is none
    saved(path, {"a": "i > 0"})
    refuses(SubscriptionError, "the ids of this matcher are integers, and 'a' is not")
    for options in (
        {"semantics": "strict"},
        {"semantics": "default", "defaults": dict.fromkeys(SMALL)},
    ):
        saved(path, {5: "i > 0"}, **options)
        refuses(OptionError, "saved with the semantics .*, and this matcher has sql")
    for schema, said in (
        ({"i": "int", "new": "int"}, "saved with the attribute new, .* with_attributes"),
        ({"i": "double"}, "saved with i as double, and this matcher has it as int"),
        ({"side": "enum('buy', 'sell')"}, "saved with side as .*, and this matcher has it as"),
    ):
        foreign = Matcher(schema)
        foreign.subscribe(5, "TRUE")
        foreign.save(path)
        refuses(OptionError, said)
    saved(path, {n: f"i > {n}" for n in range(100)})
    whole = path.read_bytes()
    for place in (whole.index(b"i > 50i > 51") + 2, len(whole) // 2):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        refuses(FileError, "damaged")
    path.write_bytes(whole)
    matcher.absorb(path)
    assert len(matcher) == 100


@pytest.mark.parametrize("engine", [name for name in ENGINES if name not in {"auto", "sliced"}])
def test_engines_that_absorb_nothing(path, engine):
    matcher = Matcher(SMALL, engine)
    matcher.subscribe("a", "i > 0")
    with pytest.raises(
        OptionError, match=f"auto or sliced can be saved to a file, not those with {engine}"
    ):
        matcher.absorb(saved(path, {"b": "i > 1"}))
    assert matcher.match({"i": 5}) == ["a"]


@pytest.mark.parametrize("uncompiled", [0, 10**9])
def test_a_long_life_with_files_of_others(tmp_path, uncompiled):
    class Absorbing(life_of(tmp_path, uncompiled)):
        @rule(pairs=st.lists(st.tuples(st.integers(0, 9), st.sampled_from(LIFE)), max_size=6))
        def absorb(self, pairs):
            self.matcher.absorb(saved(tmp_path / "other.tamis", pairs))
            for name, text in dict(pairs).items():
                self.model.pop(name, None)
                self.model[name] = text

    run_state_machine_as_test(Absorbing, settings=settings(max_examples=8, stateful_step_count=25))
