"""``tamis explain``: shows how a filter is understood, and why an event matches it or not."""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tamis.cli.options import add_json, add_schema, add_semantics, read_defaults, read_schema
from tamis.cli.plan import explain_plan
from tamis.errors import FileError, OptionError, counted
from tamis.events.schema_inference import schema_of_filter
from tamis.explanation import Explanation
from tamis.language import ast
from tamis.language.expression import Expression, parse
from tamis.language.normal_form import normalize
from tamis.language.printer import print_tree
from tamis.matcher import Matcher
from tamis.schema import Attribute
from tamis.semantics import Semantics
from tamis.visible_text import visible, visible_json

STANDARD_OUTPUT = "-"


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "explain",
        help="show how a filter is understood, and why an event matches it or not",
        description="Parse a filter and show its attributes, normal form and predicates; with "
        "--event, why that event matches it or not, predicate by predicate; with --graph, its "
        "decision diagram as a picture. With --plan instead of a filter: how the subscriptions of "
        "a file are matched, and what that costs.",
    )
    parser.add_argument("filter", metavar="FILTER", nargs="?", help="the filter, in quotes")
    parser.add_argument(
        "--plan",
        metavar="SUBSCRIPTIONS",
        help="a file of subscriptions, or a .tamis file that Matcher.save wrote",
    )
    parser.add_argument(
        "--events",
        metavar="EVENTS",
        help="with --plan: events to measure with and to infer the schema from",
    )
    parser.add_argument("--event", metavar="EVENT", help="an event, as JSON or XML")
    parser.add_argument(
        "--graph",
        metavar="FILE.svg",
        help="draw the decision diagram of the filter, as the engine bdd holds it: solid edges "
        "where a predicate is true, dashed edges where it is not (-: print only the SVG)",
    )
    add_schema(parser, "inferred from the filter")
    add_semantics(parser)
    add_json(parser)
    parser.set_defaults(run=run, misused=parser.error)


def run(options: argparse.Namespace) -> None:
    """Print the explanation, and draw the diagram."""
    if options.plan is not None:
        explain_plan(options)
        return
    if options.filter is None:
        options.misused("give a FILTER, or --plan SUBSCRIPTIONS")
    if options.events is not None:
        options.misused("--events belongs to --plan; for a filter use --event")
    _check_graph(options)
    schema = (
        read_schema(options.schema)
        if options.schema is not None
        else schema_of_filter(options.filter)
    )
    expression = parse(options.filter, schema)
    matcher = Matcher(schema, semantics=options.semantics, defaults=read_defaults(options.defaults))
    matcher.subscribe("the filter", expression)
    why = matcher.why("the filter", options.event) if options.event is not None else None
    nodes = 0
    if options.graph is not None:
        picture, nodes = _picture(expression, matcher.meaning)
        if options.graph == STANDARD_OUTPUT:
            print(picture, end="")
            return
        _write(Path(options.graph), picture)
    form = normalize(expression.tree, matcher.meaning.logic)
    if options.json:
        print(_json(options, expression, form, why, nodes))
    else:
        print("\n".join(map(visible, _lines(options, expression, form, why, nodes))))


def _json(
    options: argparse.Namespace,
    expression: Expression,
    form: ast.Node,
    why: Explanation | None,
    nodes: int,
) -> str:
    """The explanation as JSON."""
    answer: dict[str, Any] = {
        "filter": str(expression),
        "attributes": {a.name: str(a) for a in _used_attributes(expression)},
        "semantics": options.semantics,
        "normal_form": print_tree(form, suffixes=False),
        "predicates": _predicates(form),
    }
    if why is not None:
        answer["why"] = why.to_dict()
    if options.graph is not None:
        answer["graph"] = {"file": options.graph, "nodes": nodes}
    return visible_json(answer)


def _lines(
    options: argparse.Namespace,
    expression: Expression,
    form: ast.Node,
    why: Explanation | None,
    nodes: int,
) -> Iterator[str]:
    """The explanation as lines of text."""
    attributes = ", ".join(f"{a.name} {a}" for a in _used_attributes(expression)) or "none"
    inferred = "" if options.schema is not None else "   (inferred; --schema can say better)"
    predicates = _predicates(form)
    yield f"filter       {expression}"
    yield f"attributes   {attributes}{inferred}"
    yield f"semantics    {options.semantics}"
    yield f"normal form  {print_tree(form, suffixes=False)}"
    yield f"predicates   {len(predicates)}"
    for predicate in predicates:
        yield f"  {predicate}"
    if options.graph is not None:
        yield f"graph        {options.graph}   ({counted(nodes, 'node')})"
    if why is not None:
        yield ""
        yield from str(why).split("\n")


def _used_attributes(expression: Expression) -> list[Attribute]:
    return [a for a in expression.schema.attributes if a.path in expression.attributes]


def _predicates(form: ast.Node) -> list[str]:
    found: dict[str, None] = {}
    stack = [form]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.And | ast.Or):
            stack.extend(reversed(node.items))
        elif not isinstance(node, ast.Literal):
            found[print_tree(node, suffixes=False)] = None
    return list(found)


def _check_graph(options: argparse.Namespace) -> None:
    if options.graph == STANDARD_OUTPUT:
        if options.json:
            raise OptionError("--graph - and --json both print; give --graph a file name")
    elif options.graph is not None and Path(options.graph).suffix.lower() != ".svg":
        raise OptionError(
            f"--graph {options.graph}: the graph is SVG; the file name must end in .svg"
        )


def _picture(expression: Expression, meaning: Semantics) -> tuple[str, int]:
    """The diagram of a filter as SVG, and how many nodes it has."""
    from tamis.diagrams.drawing import draw
    from tamis.engines.bdd import BddEngine, BddOptions

    engine = BddEngine(meaning, BddOptions())
    form = engine.prepare(expression)
    engine.add(0, form)
    root = engine.root(form)
    label = str(expression)
    if form.attributes:  # strict semantics also needs these attributes
        present = ", ".join(meaning.schema.attributes[n].name for n in form.attributes)
        label = f"if the event has {present}: {label}"
    names = {variable: print_tree(node, suffixes=False) for node, variable in engine.variables()}
    picture = draw(engine.diagram, {label: root}, names.__getitem__)
    return picture, len(engine.diagram.reachable([root]))


def _write(path: Path, text: str) -> None:
    """Write a temporary file and move it to its place, so that no incomplete file is seen."""
    try:
        target = path.resolve()  # follows a link, which stays
        with tempfile.TemporaryDirectory(prefix=".tamis-", dir=target.parent) as folder:
            new = Path(folder) / target.name
            new.write_text(text, encoding="utf-8")
            new.replace(target)
    except (
        OSError,
        RuntimeError,
        ValueError,
    ) as error:  # loops of links, NUL characters
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"{path} cannot be written: {reason}") from None
