"""What the papers published, as it stands in their files."""

import tomllib

import pytest

from cases import each
from tamis.errors import OptionError
from tamis.papers import published
from tamis.papers.published import FOLDER, PublishedNumbers, published_numbers

FILES = sorted(FOLDER.glob("*.toml"))


@each("path", FILES)
def test_every_table_says_where_it_stands_and_has_a_value_for_each_x(path):
    for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
        assert set(table) == {"where", "unit", "x", "lines"}, name
        assert any(word in table["where"].lower() for word in ("section", "table", "fig", "page"))
        for line, values in table["lines"].items():
            assert len(values) == len(table["x"]), (name, line)


def test_numbers_have_the_names_of_our_lines():
    found = published_numbers("COUNT", "table-1", {"counting-list": "list-based"})
    assert found.line("counting-list")[5_000_000] == 1056
    assert found.line("counting-bits") == {}
    assert found.names == {"counting-list": "list-based"}
    assert PublishedNumbers.from_json(found.as_json()) == found


def test_what_a_paper_does_not_have_is_left_out(tmp_path, monkeypatch):
    text = '[t]\nwhere = "page 1"\nunit = "ms"\nx = [1, 2]\n[t.lines]\na = [1, nan]\nb = [1]\n'
    (tmp_path / "tree.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr(published, "FOLDER", tmp_path)
    assert published_numbers("TREE", "t", {"ours": "a"}).line("ours") == {1: 1.0}
    with pytest.raises(OptionError, match="needs one value for each x"):
        published_numbers("TREE", "t", {"ours": "b"})


def test_the_first_table_of_count_has_the_factors_of_its_text():
    """A database takes hundreds of times as long as lists."""
    table = published_numbers("COUNT", "table-1", {"database": "Kdb", "lists": "list-based"})
    said = {x: table.line("database")[x] / table.line("lists")[x] for x in (1_000, 100_000)}
    assert said == pytest.approx({1_000: 893, 100_000: 426}, rel=0.01)
