import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis.errors import SchemaError
from tamis.names import RESERVED, path_text, split_path


@each(
    ("name", "path"),
    [
        ("price", ("price",)),
        ("address.city", ("address", "city")),
        ("a.b.c", ("a", "b", "c")),
        ("zip code", ("zip code",)),
        ("address.zip code", ("address", "zip code")),
        ("`a.b`", ("a.b",)),
        ("`a.b`.c", ("a.b", "c")),
        ("a.`b.c`", ("a", "b.c")),
        ("`a``b`", ("a`b",)),
        ("````", ("`",)),
        ("", ("",)),
        ("``", ("",)),
        ("a..b", ("a", "", "b")),
        (".", ("", "")),
        ("prix_é", ("prix_é",)),
        ("日本", ("日本",)),
        ("a\nb", ("a\nb",)),
        ("and", ("and",)),
    ],
)
def test_a_name_means_a_path(name, path):
    assert split_path(name) == path


@each("name", ["a`b", "`a", "`a`b", "a.`b", "`", "```", "`a`.b`", "a``"])
def test_a_stray_backtick_is_refused_with_a_way_out(name):
    with pytest.raises(
        SchemaError, match=r"write `a\.b` for a name with a dot and `` for a backtick"
    ):
        split_path(name)


@each(
    ("path", "text"),
    [
        (("price",), "price"),
        (("address", "zip code"), "address.`zip code`"),
        (("a.b",), "`a.b`"),
        (("a`b",), "`a``b`"),
        (("",), "``"),
        (("1st",), "`1st`"),
        (("prix_é",), "`prix_é`"),
    ],
)
def test_a_path_is_written_with_backticks_where_needed(path, text):
    assert path_text(path) == text


@each("word", sorted(RESERVED))
def test_reserved_words_are_written_in_backticks(word):
    assert path_text((word.lower(),)) == f"`{word.lower()}`"


@given(st.lists(st.text(alphabet="ab.` é\n") | st.text(), min_size=1, max_size=4).map(tuple))
def test_every_path_survives_being_written(path):
    assert split_path(path_text(path)) == path
