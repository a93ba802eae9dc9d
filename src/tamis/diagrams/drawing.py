"""A small diagram as a picture: one SVG that needs no other file.

Every variable has a row, the one with the smallest level on top; the labels of functions are above
all rows, false and true below them. A solid edge is taken if the predicate is true, a dashed one if
it is not. An edge that passes a row has its own place there, as a node has, so no edge runs through
a node; edges of one kind to one node share these places and become one line.

Nodes have their own background, and the colours of lines are midway between black and white, so the
picture can be read on both.
"""

import html
import unicodedata
from bisect import bisect, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tamis.diagrams.diagram import TRUE, Diagram
from tamis.errors import CapacityError

MOST_SHAPES = 200  # nodes and labels in a picture
MOST_CELLS = 40  # characters of a text that are shown; the tooltip has all of it
SWEEPS = 12  # passes over all rows to order them, and as many to place them

FONT, CELL = 13, 7.9  # pixels: height and width of a character
HEIGHT, PADDING = 30, 12  # of a box
BESIDE, BESIDE_BEND = 26, 14  # pixels between neighbours of a row
BELOW, MARGIN = 44, 20

LINES = {  # what an edge is for -> attributes of its line
    "label": 'stroke="#757c87" stroke-width="1.2"',
    "true": 'stroke="#2e8b57" stroke-width="1.6"',
    "false": 'stroke="#d1495b" stroke-width="1.6" stroke-dasharray="5 4"',
}
SHAPES = {  # kind of an item -> attributes of its box
    "label": 'rx="4" fill="#e7ecf5" stroke="none"',
    "node": 'rx="15" fill="#fbfcfe" stroke="#757c87"',
    "end": 'rx="2" fill="#fff4d6" stroke="#757c87"',
}
INK, FAINT = "#1c2430", "#757c87"


def draw(diagram: Diagram, roots: Mapping[str, int], names: Callable[[int], str]) -> str:
    """An SVG document of the functions `roots`, by label; `names` gives the text of a variable."""
    if not roots:
        raise ValueError("there is no function to draw")
    count = len(roots) + len(diagram.reachable(list(roots.values())))
    if count > MOST_SHAPES:
        raise CapacityError(
            f"a picture has at most {MOST_SHAPES} nodes and labels, and this diagram has {count:,}"
        )
    rows = _rows(diagram, roots, names)
    _sort(rows)
    _place(rows)
    return _svg(rows)


@dataclass(eq=False)
class _Item:
    """One place in a row: a label, a node, an end (false or true), or a bend of an edge."""

    kind: str
    text: str = ""  # as shown
    title: str = ""  # in full
    x: float = 0.0  # of its middle
    above: list["_Item"] = field(default_factory=list)
    below: list[tuple["_Item", str]] = field(default_factory=list)  # and what the edge is for

    @property
    def width(self) -> float:
        return 0.0 if self.kind == "bend" else max(HEIGHT, _cells(self.text) * CELL + 2 * PADDING)


_Rows = list[list[_Item]]


def _rows(diagram: Diagram, roots: Mapping[str, int], names: Callable[[int], str]) -> _Rows:
    """All items, each in its row, with the edges between neighbouring rows."""
    nodes = diagram.reachable(list(roots.values()))
    levels = sorted({diagram.level(diagram.label(node)) for node in nodes})
    row_of = {level: row for row, level in enumerate(levels, start=1)}
    rows: _Rows = [[] for _ in range(len(levels) + 2)]
    items: dict[int, tuple[_Item, int]] = {}
    bends: dict[tuple[int, str, int], _Item] = {}

    def item(node: int) -> tuple[_Item, int]:
        if node not in items:
            if node > TRUE:
                variable = diagram.label(node)
                made, row = _item("node", names(variable)), row_of[diagram.level(variable)]
            else:
                made, row = _Item("end", str(node), "true" if node else "false"), len(rows) - 1
            items[node] = made, row
            rows[row].append(made)
        return items[node]

    def join(upper: _Item, row: int, node: int, purpose: str) -> None:
        """Add an edge from an item in a row, with a bend in every row on the way."""
        lower, end = item(node)
        for passed in range(row + 1, end):
            bend = bends.get((node, purpose, passed))
            if bend is not None:  # from here on the line exists already
                _link(upper, bend, purpose)
                return
            bend = bends[node, purpose, passed] = _Item("bend")
            rows[passed].append(bend)
            _link(upper, bend, purpose)
            upper = bend
        _link(upper, lower, purpose)

    for label, root in roots.items():
        top = _item("label", label)
        rows[0].append(top)
        join(top, 0, root, "label")
    for node in reversed(nodes):  # parents before children
        upper, row = item(node)
        for child, purpose in zip(diagram.children(node), ("false", "true"), strict=True):
            join(upper, row, child, purpose)
    return rows


def _item(kind: str, text: str) -> _Item:
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return _Item(kind, _shortened(shown), shown)


def _link(upper: _Item, lower: _Item, purpose: str) -> None:
    upper.below.append((lower, purpose))
    lower.above.append(upper)


def _cells(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _shortened(text: str) -> str:
    if _cells(text) <= MOST_CELLS:
        return text
    while _cells(text) >= MOST_CELLS:
        text = text[:-1]
    return text.rstrip() + "…"


# --- the order of each row: every item near the mean of its neighbours, with few crossings


def _sort(rows: _Rows) -> None:
    best, fewest = [row[:] for row in rows], _crossings(rows)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        if sweep % 2 == 0:
            for fixed, row in pairwise(rows):
                _sort_row(row, fixed, lambda item: item.above)
        else:
            for fixed, row in zip(rows[:0:-1], rows[-2::-1], strict=True):
                _sort_row(row, fixed, lambda item: [lower for lower, _ in item.below])
        crossings = _crossings(rows)
        if crossings < fewest:
            best, fewest = [row[:] for row in rows], crossings
    rows[:] = best


def _sort_row(row: list[_Item], fixed: list[_Item], near: Callable[[_Item], list[_Item]]) -> None:
    place = {item: n for n, item in enumerate(fixed)}
    row.sort(key=lambda item: sum(place[one] for one in near(item)) / len(near(item)))


def _crossings(rows: _Rows) -> int:
    found = 0
    for row, next_row in pairwise(rows):
        place = {item: n for n, item in enumerate(next_row)}
        passed: list[int] = []  # where the edges that start further left end
        for item in row:
            ends = sorted(place[lower] for lower, _ in item.below)
            found += sum(len(passed) - bisect(passed, end) for end in ends)
            for end in ends:
                insort(passed, end)
    return found


# --- the place of each item: near its neighbours, in order, with space between


def _place(rows: _Rows) -> None:
    for row in rows:
        _set_apart(row, [(0.0, 1.0)] * len(row))
    for sweep in range(SWEEPS):
        settled = sweep >= SWEEPS // 2  # follow one neighbouring row at first, then both
        for row in rows[1:]:
            _set_apart(row, [_wish(item, up=True, down=settled) for item in row])
        for row in rows[-2::-1]:
            _set_apart(row, [_wish(item, up=settled, down=True) for item in row])
    left = min(item.x - item.width / 2 for row in rows for item in row) - MARGIN
    for row in rows:
        for item in row:
            item.x -= left


def _wish(item: _Item, *, up: bool, down: bool) -> tuple[float, float]:
    """The best place for an item, and its weight: long edges should be straight."""
    near = item.above[:] if up or not item.below else []
    if down or not near:
        near += [lower for lower, _ in item.below]
    weights = [1 << 2 * ((item.kind == "bend") + (one.kind == "bend")) for one in near]
    total = sum(weights)
    return sum(w * one.x for w, one in zip(weights, near, strict=True)) / total, float(total)


def _set_apart(row: Sequence[_Item], wishes: Sequence[tuple[float, float]]) -> None:
    """Place each item as near to its wish as the others allow: isotonic regression."""
    offsets = [0.0]
    for a, b in pairwise(row):
        beside = BESIDE_BEND if "bend" in {a.kind, b.kind} else BESIDE
        offsets.append(offsets[-1] + (a.width + b.width) / 2 + beside)
    blocks: list[tuple[float, float, int]] = []  # of items that touch: mean, weight, number
    for (wish, matter), offset in zip(wishes, offsets, strict=False):
        mean, weight, size = wish - offset, matter, 1
        while blocks and blocks[-1][0] >= mean:
            before, heavy, members = blocks.pop()
            mean = (mean * weight + before * heavy) / (weight + heavy)
            weight, size = weight + heavy, size + members
        blocks.append((mean, weight, size))
    means = [mean for mean, _, size in blocks for _ in range(size)]
    for item, mean, offset in zip(row, means, offsets, strict=False):
        item.x = mean + offset


# --- the picture


def _svg(rows: _Rows) -> str:
    tops = _tops(rows)
    legend = tops[-1] + HEIGHT + 30
    width = max(230.0, max(item.x + item.width / 2 for row in rows for item in row) + MARGIN)
    height = legend + MARGIN
    title = ", ".join(item.title for item in rows[0])
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-size="{FONT}" '
        "font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\">"
    )
    lines = [head, f"<title>Decision diagram of {html.escape(title, quote=False)}</title>"]
    edges = list(_edges(rows, tops))
    for purpose, line in LINES.items():
        found = [path for kind, path in edges if kind == purpose]
        if found:
            lines += [f'<g class="{purpose}" fill="none" {line}>', *found, "</g>"]
    lines.append(f'<g fill="{INK}" text-anchor="middle" xml:space="preserve">')
    for row, top in zip(rows, tops, strict=True):
        lines += [_box(item, top) for item in row if item.kind != "bend"]
    lines += ["</g>", *_legend(legend), "</svg>", ""]
    return "\n".join(lines)


def _tops(rows: _Rows) -> list[float]:
    """Where each row begins: further down if edges from the row above go far to a side."""
    tops = [float(MARGIN)]
    for row in rows[:-1]:
        aside = max(abs(item.x - lower.x) for item in row for lower, _ in item.below)
        tops.append(tops[-1] + HEIGHT + BELOW + min(60.0, aside / 8))
    return tops


def _edges(rows: _Rows, tops: Sequence[float]) -> Iterator[tuple[str, str]]:
    """The purpose of every edge, and its path."""
    drawn: set[_Item] = set()  # bends
    for number, row in enumerate(rows):
        for item in row:
            if item.kind != "bend":
                aside = 0.0 if len(item.below) == 1 else min(14.0, item.width / 4)
                for lower, purpose in sorted(item.below, key=lambda edge: edge[0].x):
                    yield purpose, _path(item.x - aside, number, lower, tops, drawn)
                    aside = -aside


def _path(x: float, number: int, item: _Item, tops: Sequence[float], drawn: set[_Item]) -> str:
    """The path from the lower side of a row to an item of the next row, and on to its end."""
    steps = [f"M{x:.1f} {tops[number] + HEIGHT:.1f}"]
    while True:
        begin, end = tops[number] + HEIGHT, tops[number + 1]
        middle = (begin + end) / 2
        steps.append(f"C{x:.1f} {middle:.1f} {item.x:.1f} {middle:.1f} {item.x:.1f} {end:.1f}")
        if item.kind != "bend" or item in drawn:
            return f'<path d="{" ".join(steps)}"/>'
        drawn.add(item)
        number += 1
        steps.append(f"V{end + HEIGHT:.1f}")
        x, item = item.x, item.below[0][0]


def _box(item: _Item, top: float) -> str:
    box = f'x="{item.x - item.width / 2:.1f}" y="{top:.1f}" width="{item.width:.1f}"'
    return (
        f'<g class="{item.kind}"><title>{html.escape(item.title, quote=False)}</title>'
        f'<rect {box} height="{HEIGHT}" {SHAPES[item.kind]}/>'
        f'<text x="{item.x:.1f}" y="{top + HEIGHT / 2 + FONT * 0.35:.1f}" stroke="none">'
        f"{html.escape(item.text, quote=False)}</text></g>"
    )


def _legend(y: float) -> Iterator[str]:
    yield f'<g fill="{FAINT}">'
    for x, purpose, text in ((MARGIN, "true", "true"), (MARGIN + 90, "false", "not true")):
        yield f'<path d="M{x} {y - 4:.1f}h30" {LINES[purpose]}/>'
        yield f'<text x="{x + 38}" y="{y:.1f}">{text}</text>'
    yield "</g>"
