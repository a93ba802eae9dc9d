"""The places of keys and values in TOML."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from tamis.broker.toml_places import places

TEXT = '''# a comment = [1]
a = 1 # one
"b c"."d\\"]" = [ "x, ]", 'y"', # comment ]
  { e = """m"ul
ti""", f = 1979-05-27 07:32:00 }, ]
g.h.i = true

[t . "u.v"]
k = {}
[[list]]
x = 1
[[list]]
x = """"quoted"""""
[list.sub]
y = -1e3
[[list.deep]]
z = \'\'\'it's\'\'\'
[only.inner]
'''


def values(content, path=()):
    """All paths and values of a document."""
    if path:
        yield path, content
    if isinstance(content, dict | list):
        pairs = content.items() if isinstance(content, dict) else enumerate(content)
        for key, value in pairs:
            yield from values(value, (*path, key))


def check(text):
    found = places(text)
    for path, value in values(tomllib.loads(text)):
        if path not in found:  # only the whole of an array of tables, or a table of dotted keys
            assert isinstance(value, list | dict)
            continue
        _, start, end = found[path]
        shown = text[start:end]
        if not isinstance(value, dict | list) or shown.startswith(("{", "[ ")):
            assert tomllib.loads(f"v = {shown}")["v"] == value, path


def test_every_value_stands_where_it_is_said_to_stand():
    check(TEXT)
    found = places(TEXT)
    assert TEXT[found["b c", 'd"]', 1].start :].startswith("'y\"'")
    assert TEXT[found["list", 1, "sub", "y"].key :].startswith("y = -1e3")
    assert TEXT[found["list", 1].key :].startswith('[[list]]\nx = """"q')
    assert TEXT[found["only",].key :].startswith("[only.inner]")
    assert TEXT[found["g", "h"].key :].startswith("g.h.i")


_keys = st.sampled_from(["a", "b-1", '"c.d"', "'e \"'", '"\\u00e9"', "f . g"])
_scalars = st.sampled_from(
    ["1", "true", "1.5", '"x"', "''", '"""\n],}#"""', "'''\n\"'''", "07:32:00", '"\\\\"', '"\\"#"']
)
_values = st.recursive(
    _scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[ " + ",\n # ]\n".join(items) + " ]"),
        st.dictionaries(st.sampled_from("xyz"), inner, max_size=3).map(
            lambda pairs: "{ " + ", ".join(f"{k} = {v}" for k, v in pairs.items()) + " }"
        ),
    ),
    max_leaves=6,
)


@given(st.dictionaries(_keys, _values, max_size=5), st.sampled_from(["", "[t]\n", "[[t.'u']]\n"]))
def test_random_documents(pairs, header):
    check(header + "\n".join(f"{key} = {value} # '" for key, value in pairs.items()))
