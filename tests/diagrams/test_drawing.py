"""Pictures of diagrams: well formed, complete, and without an edge through a node."""

import itertools
import random
import re
from xml.etree import ElementTree as ET  # our own text, or a failing test

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from diagram_programs import negated
from tamis import CapacityError
from tamis.diagrams.diagram import AND, DO_AND, DO_OR, FALSE, OR, TRUE, Diagram
from tamis.diagrams.drawing import FAINT, HEIGHT, INK, LINES, MOST_CELLS, MOST_SHAPES, SHAPES, draw

SVG = "{http://www.w3.org/2000/svg}"
VARIABLES = 7


def diagram_of(variables=VARIABLES):
    made = Diagram(100_000)
    for level in range(variables):
        made.new_variable(level)
    return made


def build(diagram, *program):
    return diagram.build(np.array(program, np.int64))


class Picture:
    """What can be seen in an SVG."""

    def __init__(self, text):
        self.root = ET.fromstring(text)  # noqa: S314 - our own text
        self.width, self.height = (float(self.root.get(name)) for name in ("width", "height"))
        self.boxes = {}  # kind -> [(left, top, right, bottom, text, title)]
        for group in self.root.iter(f"{SVG}g"):
            box = group.find(f"{SVG}rect")
            if box is not None:
                x, y, w, h = (float(box.get(name)) for name in ("x", "y", "width", "height"))
                texts = group.find(f"{SVG}text").text, group.find(f"{SVG}title").text
                self.boxes.setdefault(group.get("class"), []).append((x, y, x + w, y + h, *texts))
        self.paths = {  # purpose -> [points along the line]
            group.get("class"): [points(path.get("d")) for path in group]
            for group in self.root.findall(f"{SVG}g")
            if group.get("class")
        }

        paths = [path.get("d") for path in self.root.iter(f"{SVG}path")]
        self.stretches = [line for path in paths for line in re.findall(r"\S+ \S+ V\S+", path)]

    def all_boxes(self):
        return [box for some in self.boxes.values() for box in some]


def points(path):
    """Points close to each other along a path of M, C and V."""
    found = []
    for letter, numbers in re.findall(r"([MCV])([^MCV]*)", path):
        at = [float(number) for number in numbers.split()]
        if letter == "M":
            found.append(tuple(at))
        elif letter == "V":
            (x, y), (end,) = found[-1], at
            found += [(x, y + (end - y) * n / 20) for n in range(1, 21)]
        else:
            corners = [found[-1], *zip(at[::2], at[1::2], strict=True)]
            for n in range(1, 41):
                t = n / 40
                weights = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3]
                found.append(
                    tuple(
                        sum(w * c[k] for w, c in zip(weights, corners, strict=True)) for k in (0, 1)
                    )
                )
    return found


def check(picture):
    """Boxes stand apart, lines go down between them, and everything is inside."""
    boxes = picture.all_boxes()
    for box in boxes:
        assert 0 < box[0] < box[2] < picture.width
        assert 0 < box[1] < box[3] < picture.height
    for a, b in itertools.combinations(boxes, 2):
        assert a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1]
    assert len(set(picture.stretches)) == len(picture.stretches)  # shared lines are drawn once
    for lines in picture.paths.values():
        for line in lines:
            assert all(before[1] <= after[1] for before, after in itertools.pairwise(line))
            for x, y in line:
                assert 0 < x < picture.width
                assert not any(b[0] < x < b[2] and b[1] + 0.1 < y < b[3] - 0.1 for b in boxes)


def touched(picture, x, y):
    """The box at whose upper edge a line ends, None for another line."""
    for box in picture.all_boxes():
        if box[0] <= x <= box[2] and abs(y - box[1]) < 0.1:
            return box
    return None


# --- the paper's example


def figure_four():
    """Q1 and Q2 share price < 1500."""
    diagram = diagram_of(3)
    roots = {"Q1": build(diagram, 0, 2, DO_AND), "Q2": build(diagram, 1, 2, DO_AND)}
    names = ["'IBM' in company", "'McDonalds' in company", "price < 1500"]
    return draw(diagram, roots, names.__getitem__)


def test_the_figure_of_the_paper():
    picture = Picture(figure_four())
    check(picture)
    assert [box[4] for box in picture.boxes["label"]] == ["Q1", "Q2"]
    assert [box[4] for box in picture.boxes["node"]] == [
        "'IBM' in company", "'McDonalds' in company", "price < 1500",
    ]  # fmt: skip
    assert sorted(box[4:] for box in picture.boxes["end"]) == [("0", "false"), ("1", "true")]
    assert {purpose: len(lines) for purpose, lines in picture.paths.items()} == {
        "label": 2, "true": 3, "false": 3,
    }  # fmt: skip
    tops = [box[1] for kind in ("label", "node", "end") for box in picture.boxes[kind]]
    assert tops == sorted(tops)
    price = picture.boxes["node"][2]
    into = [touched(picture, *line[-1]) for line in picture.paths["true"]]
    assert into.count(price) == 2


def test_it_is_the_same_every_time():
    assert figure_four() == figure_four()


def test_it_needs_nothing_else():
    text = figure_four()
    assert "href" not in text
    assert "<script" not in text
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]
    assert ET.fromstring(text).find(f"{SVG}title").text == (  # noqa: S314 - our own text
        "Decision diagram of Q1, Q2"
    )


def test_dashes_mean_not_true():
    assert "dasharray" in LINES["false"]
    assert "dasharray" not in LINES["true"] + LINES["label"]
    texts = [element.text for element in Picture(figure_four()).root.iter(f"{SVG}text")]
    assert texts[-2:] == ["true", "not true"]


# --- any diagram


@st.composite
def functions(draw):
    """A diagram and some functions of it: disjunctions of conjunctions of literals."""
    diagram = diagram_of()
    roots = {}
    for number in range(draw(st.integers(1, 4))):
        root = FALSE
        for part in draw(st.lists(st.sets(st.integers(-VARIABLES, VARIABLES - 1)), max_size=4)):
            product = TRUE
            for literal in part:
                f = diagram.variable(literal if literal >= 0 else -literal - 1)
                product = diagram.apply(AND, product, f if literal >= 0 else negated(diagram, f))
            root = diagram.apply(OR, root, product)
        roots[f"Q{number}"] = root
    return diagram, roots


@given(functions())
@settings(max_examples=30)
def test_every_node_and_every_edge_is_there(case):
    diagram, roots = case
    picture = Picture(draw(diagram, roots, "v{}".format))
    check(picture)
    nodes = diagram.reachable(list(roots.values()))
    shown = sorted(box[4] for box in picture.boxes.get("node", []))
    assert shown == sorted(f"v{diagram.label(node)}" for node in nodes)
    assert sorted(box[4] for box in picture.boxes["label"]) == sorted(roots)
    children = {child for node in nodes for child in diagram.children(node)}
    ends = {str(int(n)) for n in children | set(roots.values()) if n in {FALSE, TRUE}}
    assert {box[4] for box in picture.boxes.get("end", [])} == ends
    for purpose in ("true", "false"):
        lines = picture.paths.get(purpose, [])
        assert len(lines) == len(nodes)
        goals = {diagram.children(node)[purpose == "true"] for node in nodes}
        into = [touched(picture, *line[-1]) for line in lines]
        assert len({box for box in into if box is not None}) == len(goals)
        for line, box in zip(lines, into, strict=True):
            if box is None:  # it runs into another line of its kind
                others = [other for other in lines if other is not line]
                assert any(
                    abs(x - line[-1][0]) < 0.2 and abs(y - line[-1][1]) < 0.2
                    for other in others
                    for x, y in other
                )
    assert len(picture.paths["label"]) == len(roots)


@given(functions())
@settings(max_examples=20)
def test_rows_are_levels(case):
    diagram, roots = case
    boxes = Picture(draw(diagram, roots, "v{}".format)).boxes.get("node", [])
    tops = {}
    for box in boxes:
        assert tops.setdefault(box[4], box[1]) == box[1]
    order = sorted(tops, key=tops.__getitem__)
    assert order == sorted(order, key=lambda name: diagram.level(int(name[1:])))


@pytest.mark.parametrize(("root", "text"), [(FALSE, "0"), (TRUE, "1")])
def test_constants(root, text):
    picture = Picture(draw(diagram_of(), {"always the same": root}, str))
    check(picture)
    assert [box[4] for box in picture.boxes["end"]] == [text]
    assert "node" not in picture.boxes


def test_two_labels_of_one_function():
    diagram = diagram_of()
    picture = Picture(draw(diagram, dict.fromkeys("ab", diagram.variable(0)), str))
    check(picture)
    assert len(picture.boxes["label"]) == 2
    assert len(picture.boxes["node"]) == 1


# --- texts

NASTY = ["<b>&amp;\"'</b>", "]]>", "a\x00b\x0b", "\ud800", "\uffff", "a\nb\tc", "  two  spaces  ",
         "日本" * 30, "é😀", "\u202egnirts", "", "x" * 500]  # fmt: skip


@each("text", NASTY)
def test_any_text_is_valid_xml(text):
    diagram = diagram_of()
    picture = Picture(draw(diagram, {text: diagram.variable(0)}, lambda _: text))
    check(picture)
    picture.root[0].text.encode()
    for kind in ("label", "node"):
        ((left, _, right, _, shown, title),) = picture.boxes[kind]
        shown, title = shown or "", title or ""
        wanted = "".join(c if c.isprintable() else "\ufffd" for c in text)
        assert title == wanted
        assert len(shown) <= MOST_CELLS
        assert shown == title or (shown.endswith("…") and title.startswith(shown[:-1]))
        assert right - left >= 7.8 * len(shown)


def test_a_long_predicate_is_shortened_and_whole_in_its_tooltip():
    diagram = diagram_of()
    text = "company IN ('" + "', '".join(map(str, range(100))) + "')"
    ((*_, shown, title),) = Picture(
        draw(diagram, {"Q": diagram.variable(0)}, lambda _: text)
    ).boxes["node"]
    assert len(shown) <= MOST_CELLS
    assert shown.startswith("company IN ('0', '1'")
    assert shown.endswith("…")
    assert title == text


# --- limits


def parity(diagram, variables):
    f = FALSE
    for variable in reversed(range(variables)):
        f = diagram.apply(2, diagram.variable(variable), f)
    return f


def test_the_largest_picture_and_one_that_is_too_large():
    diagram = diagram_of(120)
    f = parity(diagram, 100)
    assert len(diagram.reachable([f])) == MOST_SHAPES - 1
    picture = Picture(draw(diagram, {"odd": f}, str))
    check(picture)
    assert len(picture.boxes["node"]) == 199
    with pytest.raises(
        CapacityError, match="at most 200 nodes and labels, and this diagram has 201"
    ):
        draw(diagram, {"odd": f, "also": f}, str)
    with pytest.raises(CapacityError, match="this diagram has 240"):
        draw(diagram, {"odd": parity(diagram, 120)}, str)
    with pytest.raises(CapacityError, match="this diagram has 1,001"):
        draw(diagram, {str(n): diagram.variable(0) for n in range(1000)}, str)


def test_nothing_to_draw():
    with pytest.raises(ValueError, match="no function"):
        draw(diagram_of(), {}, str)


def test_long_edges_that_cross():
    """Sums of products over far pairs: about as tangled as a picture can be."""
    diagram = diagram_of(60)
    chance = random.Random(4)  # noqa: S311 - a test, not a secret
    roots = {}
    for n in range(12):
        pairs = [(chance.randrange(60), chance.randrange(60), DO_AND) for _ in range(3)]
        roots[f"Q{n}"] = build(diagram, *itertools.chain(*pairs), DO_OR, DO_OR)
    text = draw(diagram, roots, "predicate {}".format)
    check(Picture(text))
    assert len(text) < 300_000


# --- light and dark


def luminance(colour):
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


@each("background", ["#ffffff", "#0d1117", "#000000"])
def test_lines_can_be_seen_on_light_and_dark(background):
    """WCAG requires 3:1 for graphics, 4.5:1 for text; no grey has 4.5 on all of these."""
    assert contrast(FAINT, background) >= 4
    for line in LINES.values():
        (colour,) = re.findall(r"#\w{6}", line)
        assert contrast(colour, background) >= 3
    for shape in SHAPES.values():
        (fill,) = re.findall(r'fill="(#\w{6})"', shape)
        assert contrast(fill, INK) >= 4.5
    known = " ".join([*LINES.values(), *SHAPES.values(), INK, FAINT])
    assert set(re.findall(r"#\w{6}", figure_four())) <= set(re.findall(r"#\w{6}", known))


def test_boxes_are_tall_enough_for_their_text():
    size = float(ET.fromstring(figure_four()).get("font-size"))  # noqa: S314 - our own text
    assert 12 <= size <= HEIGHT / 2
