"""Config files that cannot be used say which file, which key and what was expected."""

import re

import pytest

import tamis
from tamis.workloads import read_workload
from tamis.workloads.config import made_up_word

COMPARISONS = {
    "about": '"some"', "kind": '"comparisons"', "attributes": "4", "domains": "[[1, 3]]",
    "operators": '["="]', "predicates": "[1, 2]",
}  # fmt: skip
EQUALITIES = {
    "about": '"some"', "kind": '"equalities"', "attributes": "4", "values": "3",
    "popularity": "0.9", "degradation": "0.5", "exponent": "1",
}  # fmt: skip
STOCK = {
    "about": '"some"', "kind": '"stock"', "symbols": "4", "exponent": "1.5", "price": "[1, 2]",
    "width": "[0, 1]", "volume": "[1, 9]",
}  # fmt: skip
GRAMMAR = {
    "about": '"some"', "kind": '"grammar"', "grammar": '"g.bnf"',
    "attributes": '[{names = ["x"], type = "int", range = [0, 9]}]',
}  # fmt: skip


def write(folder, keys):
    path = folder / "own.toml"
    path.write_text("\n".join(f"{key} = {value}" for key, value in keys.items() if value))
    (folder / "g.bnf").write_text('query = "x = 1" | "x = 2" ;')
    return path


@pytest.mark.parametrize("keys", [COMPARISONS, EQUALITIES, STOCK, GRAMMAR])
def test_these_can_be_used(keys, tmp_path):
    made = read_workload(write(tmp_path, keys))
    matcher = tamis.Matcher(made.schema)
    matcher.subscribe_many(made.subscriptions(20))
    matcher.match_batch(made.events(3))


@pytest.mark.parametrize(
    ("keys", "change", "problem"),
    [
        (COMPARISONS, {"about": "3"}, "about must be a text, and it is 3"),
        (COMPARISONS, {"about": '"  "'}, "about must be a text"),
        (COMPARISONS, {"about": None}, "about is missing: a text"),
        (COMPARISONS, {"kind": None}, "kind is missing: one of comparisons, equalities"),
        (COMPARISONS, {"kind": '"comparison"'}, "did you mean 'comparisons'?"),
        (COMPARISONS, {"attributes": "0"}, "attributes must be a whole number from 1 to 10,000"),
        (COMPARISONS, {"attributes": "4.0"}, "attributes must be a whole number"),
        (COMPARISONS, {"attributes": "true"}, "attributes must be a whole number"),
        (COMPARISONS, {"domains": "[1, 3]"}, "domains must be a list of intervals"),
        (COMPARISONS, {"domains": "[]"}, "domains must be a list of intervals"),
        (COMPARISONS, {"domains": "[[3, 1]]"}, "domains must be a list of intervals"),
        (
            COMPARISONS,
            {"domains": f"[[{-(2**63)}, {2**63 - 1}]]"},
            "domains must be intervals of less than 2**63 numbers",
        ),
        (COMPARISONS, {"operators": '["=", "=="]'}, "operators must be a list of operators among"),
        (COMPARISONS, {"operators": '["=", "="]'}, "operators must be a list of texts, no two"),
        (COMPARISONS, {"operators": '"="'}, "operators must be a list of texts"),
        (COMPARISONS, {"predicates": "[1, 5]"}, "predicates must be two whole numbers in"),
        (COMPARISONS, {"predicates": "[0, 1]"}, "from 1 to 4, and it is [0, 1]"),
        (COMPARISONS, {"pairs": "5"}, "pairs must be a whole number from 0 to 4"),
        (COMPARISONS, {"step": "0"}, "step must be a whole number"),
        (COMPARISONS, {"order": '"sorted"'}, "choices: random, schema"),
        (COMPARISONS, {"order": "1"}, "order must be one of random, schema"),
        (COMPARISONS, {"pair": "3"}, "unknown key pair; did you mean"),
        (EQUALITIES, {"popularity": "1.5"}, "popularity must be a number from 0 to 1"),
        (EQUALITIES, {"popularity": "nan"}, "popularity must be a number from 0 to 1"),
        (EQUALITIES, {"matches": "5"}, "exactly one of the keys degradation and matches"),
        (EQUALITIES, {"degradation": None}, "exactly one of the keys degradation and matches"),
        (STOCK, {"price": "[1, 2, 3]"}, "price must be two whole numbers in ascending order"),
        (STOCK, {"volume": "[-1, 2]"}, "volume must be two whole numbers"),
        (GRAMMAR, {"attributes": "[]"}, "attributes must be one or more tables [[attributes]]"),
        (GRAMMAR, {"attributes": "[{}]"}, "attributes[0].names is missing: a list of texts"),
        (
            GRAMMAR,
            {"attributes": '[{names = ["x"], type = "bool"}]'},
            "'bool'; choices: int, double, string",
        ),
        (
            GRAMMAR,
            {"attributes": '[{names = ["x"], type = "int", range = [0, 1], values = ["a"]}]'},
            "unknown key attributes[0].values; available",
        ),
        (
            GRAMMAR,
            {"attributes": '[{names = ["x", "x.y"], type = "int", range = [0, 1]}]'},
            "own.toml: attribute x.y lies inside x",
        ),
        (
            GRAMMAR,
            {"attributes": GRAMMAR["attributes"].replace("}]", "}, ") + GRAMMAR["attributes"][1:]},
            "attribute x is declared twice",
        ),
    ],
)
def test_a_bad_key_is_named(keys, change, problem, tmp_path):
    path = write(tmp_path, keys | change)
    with pytest.raises(tamis.OptionError, match=re.escape(problem)) as caught:
        read_workload(path)
    assert str(path) in str(caught.value)


def test_a_long_value_is_cut(tmp_path):
    path = write(tmp_path, COMPARISONS | {"attributes": '"' + "x" * 1000 + '"'})
    with pytest.raises(tamis.OptionError) as caught:
        read_workload(path)
    assert len(str(caught.value)) < len(str(path)) + 200


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(tamis.FileError, match=r"none\.toml cannot be read: No such file"):
        read_workload(tmp_path / "none.toml")
    path = write(tmp_path, GRAMMAR | {"grammar": '"none.bnf"'})
    with pytest.raises(tamis.FileError, match=r"none\.bnf cannot be read"):
        read_workload(path)


def test_a_file_that_is_not_toml(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text("about = \n")
    with pytest.raises(tamis.FileError, match=r"own\.toml is not valid TOML: .*line 1"):
        read_workload(path)
    path.write_bytes(b'about = "\xff"')
    with pytest.raises(tamis.FileError, match=r"own\.toml is not valid UTF-8: .* at byte 9"):
        read_workload(path)


def test_a_grammar_at_fault_is_named(tmp_path):
    path = write(tmp_path, GRAMMAR)
    (tmp_path / "g.bnf").write_text("query = atom ;")
    with pytest.raises(tamis.FileError, match=r"g\.bnf, line 1, column 9: the rule atom is und"):
        read_workload(path)


def test_made_up_words():
    words = [made_up_word(number) for number in range(30_000)]
    assert len(set(words)) == len(words)
    assert (words[0], words[-1]) == ("baba", "dadonu")
    assert {len(word) for word in words} == {4, 6}
    assert words[-1][:4] in words  # some are parts of others
