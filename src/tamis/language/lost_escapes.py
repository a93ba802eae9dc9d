r"""Backslashes that a string takes away from the regular expression in it.

In SQL the string ``'^\d+$'`` is ``^d+$``: ``\d`` is not an escape, so the backslash only marks the
letter after it. The filter is correct, and Spark reads it in the same way, but nobody means it.
"""

import logging
import re

from tamis.language.literals import BadLiteral, string_value
from tamis.language.tokens import STRING

logger = logging.getLogger("tamis")

MOST_SAID = 10  # warnings of a process

_PATTERN = re.compile(
    rf"\b(?:RLIKE|REGEXP)\s*({STRING})|\b(?:rlike|regexp|regexp_like)\s*\([^'\"]*,\s*({STRING})",
    re.DOTALL | re.IGNORECASE,
)
# Escapes of regular expressions that strings do not have, and \b, which is another one there.
_LOST = re.compile(r"(?:[^\\]|^)(?:\\\\)*\\[dDwWsSbBAzpPQE.+*?^$|(){}\[\]-]")
_said: set[str] = set()


def warn_of_lost_escapes(text: str) -> None:
    """Warn, once for each pattern, of a regular expression that loses its backslashes."""
    if "\\" not in text or len(_said) >= MOST_SAID:
        return
    for found in _PATTERN.finditer(text):
        written = found[1] or found[2]
        if written[0] in "rR" or written in _said or not _LOST.search(written):
            continue
        try:
            value = string_value(written)
        except BadLiteral:
            continue
        _said.add(written)
        logger.warning(
            "the string %s of a regular expression means %r, because a string takes its "
            "backslashes away; write r%s",
            written, value, written,
        )  # fmt: skip
