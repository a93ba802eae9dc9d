"""Reports: one HTML file with numbers and charts, which opens from disk without a network.

In: titles, texts, numbers and tables. Out: a page without scripts that loads nothing; the styles
and the charts (SVG) are inside. It follows the reader's light or dark mode. The markup is also
well-formed XML, so that tests can read it.

`page` has the sections. They are made of `text`, `tables`, `charts` (lines over a number, bins) and
`curves` (with a spread), for which `scales` finds limits and ticks; `style` is the style sheet.
"""

from tamis.report.curves import Curve, CurvePoint
from tamis.report.page import Page
from tamis.report.scales import doubling

__all__ = ["Curve", "CurvePoint", "Page", "doubling"]
