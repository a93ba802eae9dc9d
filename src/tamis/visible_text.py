"""Text from outside, for people: nothing in it can command a terminal, or hide.

Ids, names and values come from strangers. Control characters move the cursor or change colours,
C1 controls do the same in one byte, and bidirectional marks turn the order of what is read around.
"""

import json
from typing import Any


def visible(text: str) -> str:
    r"""One line of text, in which every character that does not print is an escape: ``\x1b``.

    A line break is such a character, too: a value cannot begin a line of its own.
    """
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )


def visible_lines(text: str) -> str:
    """A text of several lines, each of them `visible`."""
    return "\n".join(map(visible, text.split("\n")))


def visible_json(value: Any) -> str:
    """A value as JSON on one line, in which every character that does not print is escaped."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return "".join(sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in text)
