"""The filters of ``fixtures/accepted.txt`` and ``fixtures/refused.txt``, a test for each line."""

from pathlib import Path

import pytest

from cases import each
from strategies import SCHEMA as COMMON
from tamis import Schema, errors, parse

SCHEMA = Schema(
    {name: str(attribute) for name, attribute in COMMON.items()}
    | {"level": "int(1, 250)", "side": "enum('buy', 'sell')"}
    | {"words": "array<string>", "counts": "array<int>", "props": "map<string, int>"}
    | {"`and`": "bool", "`zip code`": "int", "a.`b.c`": "string"}
)


def cases(name):
    """The lines of a file as pairs: what is before and after the arrow."""
    path = Path(__file__).parent / "fixtures" / name
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
    return [
        pytest.param(*line.split(" => "), id=f"line {number}: {line.split(' => ')[0]}")
        for number, line in lines
        if line.strip() and not line.startswith("#")
    ]


@each(("text", "printed"), cases("accepted.txt"))
def test_accepted(text, printed):
    expression = parse(text, SCHEMA)
    assert str(expression) == printed
    assert parse(printed, SCHEMA) == expression


@each(("text", "complaint"), cases("refused.txt"))
def test_refused(text, complaint):
    kind, _, fragment = complaint.partition(": ")
    with pytest.raises(errors.ExpressionError) as caught:
        parse(text, SCHEMA)
    assert type(caught.value) is getattr(errors, kind)
    assert fragment
    assert fragment in f"{caught.value.problem}; {caught.value.hint}"
