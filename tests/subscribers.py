"""Ids of subscribers and their filters, and tables that hold them."""

import pyarrow as pa
import pytest

from tamis import Schema
from tamis.container import open_container, text_array, write
from tamis.language.expression import parse_with
from tamis.subscriptions.subscriptions import Subscriptions

SCHEMA = Schema({"x": "int", "s": "string"})
WORDS = [
    "", "a", "b", "ab", "a'b", 'a"b', "a\nb", "\0", "\x7f", "\x80", "é", "e\u0301", "日本",
    "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0001f600", "\U0010ffff", "x" * 100, "1", "NULL",
]  # fmt: skip
NUMBERS = [0, 1, -1, 2, 7, 10, 11, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), *range(100, 111)]
STRANGERS = ["nobody", "\ud800", "a\udfff", 5, -(2**63) - 1, 2**63, 10**100, True, 1.0, None, b"a"]
LISTED = pytest.mark.parametrize("names", [WORDS, NUMBERS], ids=["words", "numbers"])


def parse(text):
    return parse_with(text, SCHEMA)


def texts_of(numbers):
    return pa.array([f"x = {number} AND s <> 'é'" for number in numbers], pa.string())


def filled(names, kind=None):
    """All in one page."""
    found = Subscriptions(parse)
    ids = pa.array(names, kind)
    assert found.add_page(ids, texts_of(range(len(ids)))) == range(len(ids))
    return found


def many(count, name=str):
    return [name(number) for number in range(count)]


def subscriptions_of(meta, get):
    """What a file holds, with every check."""

    def texts():
        return text_array(get, "subscriptions.filters", meta["count"])

    return Subscriptions.from_sections(meta, get, texts, parse, is_trusted=False)


def reloaded(found, path=None):
    meta, sections, _ = found.to_sections()
    if path is None:
        return subscriptions_of(meta, sections.__getitem__)
    write(path, meta, sections)
    opened = open_container(path)
    return subscriptions_of(opened.meta, opened.array)
