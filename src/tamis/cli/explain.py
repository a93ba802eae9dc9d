"""``tamis explain``: what a filter says, and why an event does or does not match it."""

import argparse
import json
from typing import Any

from tamis.cli.options import add_json, add_schema, add_semantics, read_defaults, read_schema
from tamis.guessing import schema_of_filter
from tamis.language import ast
from tamis.language.expression import parse
from tamis.language.normalize import normalize
from tamis.language.printer import print_tree
from tamis.matcher import Matcher


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "explain",
        help="what a filter says, and why an event matches it or not",
        description="Read a filter and show what it says; with --event, why that event matches "
        "it or not, atom by atom.",
    )
    parser.add_argument("filter", metavar="FILTER", help="the filter, in quotes")
    parser.add_argument("--event", metavar="EVENT", help="an event, as JSON or XML")
    add_schema(parser, "guessed from the filter")
    add_semantics(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the explanation."""
    schema = (
        read_schema(options.schema)
        if options.schema is not None
        else schema_of_filter(options.filter)
    )
    expression = parse(options.filter, schema)
    matcher = Matcher(schema, semantics=options.semantics, defaults=read_defaults(options.defaults))
    matcher.subscribe("the filter", expression)
    form = normalize(expression.tree, matcher.meaning.logic)
    used = [a for a in schema.attributes if a.path in expression.attributes]
    why = matcher.why("the filter", options.event) if options.event is not None else None
    if options.json:
        answer: dict[str, Any] = {
            "filter": str(expression),
            "attributes": {a.name: str(a) for a in used},
            "semantics": options.semantics,
            "normal_form": print_tree(form, suffixes=False),
            "predicates": _predicates(form),
        }
        if why is not None:
            answer["why"] = why.to_dict()
        _say(json.dumps(answer, ensure_ascii=False, default=str))
        return
    guessed = "" if options.schema is not None else "   (guessed; say better with --schema)"
    _say(f"filter       {expression}")
    _say(f"attributes   {', '.join(f'{a.name} {a}' for a in used) or 'none'}{guessed}")
    _say(f"semantics    {options.semantics}")
    _say(f"normal form  {print_tree(form, suffixes=False)}")
    _say(f"predicates   {len(_predicates(form))}")
    for predicate in _predicates(form):
        _say(f"  {predicate}")
    if why is not None:
        _say("")
        _say(str(why))


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


def _say(text: str) -> None:
    print(text)
