"""Texts and numbers of a report as markup; markup inside them stays text."""

import math
import re
from decimal import Decimal
from html import escape
from numbers import Integral, Real

LABEL, CELL, TOOLTIP = 48, 240, 4_000  # characters that are shown of long texts

# Neither HTML nor XML can contain these, not even as references.
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
_LONG = 10**15  # numbers from here on are written with an exponent
# Elements without content, in HTML or usually in SVG.
_CLOSED = {"meta", "rect", "circle", "line", "path"}


def element(name: str, content: str = "", /, **attributes: object) -> str:
    """An element around `content`, which is markup; an attribute that is None is left out.

    >>> element("td", "5 &lt; 6", class_="number", aria_label="a < b")
    '<td class="number" aria-label="a &lt; b">5 &lt; 6</td>'
    """
    parts = [name]
    for key, value in attributes.items():
        if value is not None:
            shown = f"{value:.1f}" if isinstance(value, float) else markup(str(value))
            # An XML parser would turn plain ones into spaces.
            shown = shown.replace("\n", "&#10;").replace("\t", "&#9;")
            parts.append(f'{key.rstrip("_").replace("_", "-")}="{shown}"')
    opening = " ".join(parts)
    return f"<{opening} />" if name in _CLOSED and not content else f"<{opening}>{content}</{name}>"


def markup(text: str) -> str:
    """The text as markup; control characters become their Unicode pictures."""
    return escape(_FORBIDDEN.sub(_picture, text.replace("\r\n", "\n").replace("\r", "\n")))


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code == 0x7F:
        return "\u2421"
    return chr(0x2400 + code) if code < 0x20 else "\ufffd"


def cut(text: str, limit: int) -> str:
    """The text, or its beginning with an ellipsis if it is longer than `limit`."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def tooltip(text: str, limit: int) -> str | None:
    """The `title` of a text that is cut at `limit`; None if it is not cut."""
    return cut(text, TOOLTIP) if len(text) > limit else None


def is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def shown(value: object) -> str:
    """A value as a text for people.

    >>> shown(18034221), shown(0.123456), shown(61234.5), shown(None), shown("a")
    ('18,034,221', '0.1235', '61,234', '–', 'a')
    """
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, Real):
        return str(value)
    if isinstance(value, Integral):
        whole = int(value)  # not a float: it may be too large for one
        return f"{whole:,}" if abs(whole) < _LONG else f"{Decimal(whole):.3e}"
    number = float(value)
    if math.isnan(number):
        return "–"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    if abs(number) >= _LONG:
        return f"{number:.3e}"
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"
