"""Reports: one HTML file with numbers and plots, which opens from disk without a network.

It needs no script and loads nothing: the styles and the drawings (SVG) are inside. It follows the
reader's light or dark mode. The markup is also well-formed XML, so that tests can read it.
"""

from tamis.report.page import Page
from tamis.report.scales import doubling

__all__ = ["Page", "doubling"]
