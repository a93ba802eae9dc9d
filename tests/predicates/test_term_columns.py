"""Functions of strings over a batch: called once for each distinct string."""

from dataclasses import replace

import numpy as np

from cases import each
from function_differences import value_tree
from strategies import SCHEMA
from tamis.language.evaluation import compile_value
from tamis.language.functions.table import FUNCTIONS
from tamis.predicates.event_batches import batch_of_rows, slice_of, values_of_column
from tamis.predicates.term_columns import TermColumns
from tamis.schema import Attribute

TEXTS = ["abc", "b", None, "abc", "Bß", "", "b", "xyz"]
ROWS = [
    tuple((dict.fromkeys(SCHEMA) | {"s": text, "t": other, "b": text == "b"}).values())
    for text, other in zip(TEXTS, reversed(TEXTS), strict=True)
]


@each(
    "text",
    ["instr(s, 'b')", "instr('abcb', s)", "instr(s, NULL)", "instr(s, t)", "lower(s)", "s || 'x'",
     "locate('b', s, 2)", "coalesce(s, 'none')", "coalesce(s, t)", "split_part(s, 'b', 1)",
     "replace(s, 'b', 'cc')", "if(b, s, 'else')", "length(lower(s))", "s LIKE '%b_'",
     "TRY_CAST(s AS INT)", "locate('b', s, NULL)"],
)  # fmt: skip
def test_strings_have_the_values_of_rows(text):
    term = value_tree(text)
    expected = [compile_value(term, SCHEMA)(row) for row in ROWS]
    batch = batch_of_rows(ROWS, SCHEMA)
    for start, end in ((0, len(ROWS)), (2, 4), (5, 6)):  # a part has the texts of the whole
        column = TermColumns(slice_of(batch, start, end)).column(term)
        assert values_of_column(column, Attribute(("made",), term.type)) == expected[start:end]


def test_a_constant_keeps_the_sign_of_its_zero():
    found = TermColumns(batch_of_rows(ROWS, SCHEMA)).vector(value_tree("power(-0.0D, -1)"))
    assert found.values.tolist() == [-np.inf] * len(ROWS)


def test_a_function_is_called_once_for_each_distinct_string(monkeypatch):
    entry, given = FUNCTIONS["instr"], []

    def meaning(call):
        compute = entry.meaning(call)

        def noted(text, part):
            given.append(text)
            return compute(text, part)

        return noted

    monkeypatch.setitem(FUNCTIONS, "instr", replace(entry, meaning=meaning))
    batch = batch_of_rows(ROWS * 3, SCHEMA)
    found = TermColumns(batch).vector(value_tree("instr(s, 'b')"))
    assert sorted(given) == sorted({text for text in TEXTS if text is not None})
    given.clear()
    part = TermColumns(slice_of(batch, 2, 4)).vector(value_tree("instr(s, 'b')"))
    assert given == ["abc"]
    assert np.array_equal(part.values[1:], found.values[3:4])
