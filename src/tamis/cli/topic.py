"""``tamis topic``: makes, lists, shows and deletes the topics of a broker."""

import argparse
import json
from typing import Any

from tamis.cli.argument_types import duration, positive, size
from tamis.cli.broker_options import connected, finish_action
from tamis.cli.options import add_semantics, read_defaults, read_schema
from tamis.errors import counted
from tamis.schema import Schema
from tamis.visible_text import visible

_CREATE = """\
Make a topic. SCHEMA is "NAME TYPE, NAME TYPE, ..." or a JSON file. For a topic that exists, new
attributes are added to it; its other attributes must be the same.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "topic",
        help="make, list, show and delete the topics of a broker",
        description="The topics of a broker: each has a name, a schema, a semantics and a limit of "
        "what is kept.",
    )
    actions = parser.add_subparsers(metavar="ACTION", title="actions", required=True)
    create = actions.add_parser("create", help="make a topic", description=_CREATE)
    create.add_argument("name", metavar="NAME", help="letters, digits, dots, hyphens, underscores")
    create.add_argument("schema", metavar="SCHEMA", help="names and types of the attributes")
    add_semantics(create)
    create.add_argument(
        "--max-age", type=duration, metavar="TIME",
        help="remove events that are older: 90s, 15m, 12h, 7d (default: keep them)",
    )  # fmt: skip
    create.add_argument(
        "--max-bytes", type=size, metavar="SIZE",
        help="remove the oldest events when all together have more bytes, such as 10g",
    )  # fmt: skip
    create.add_argument(
        "--max-events", type=positive, metavar="N",
        help="remove the oldest events when there are more than N",
    )  # fmt: skip
    finish_action(create, _create)
    finish_action(actions.add_parser("list", help="list all topics"), _list)
    show = actions.add_parser("show", help="show one topic")
    show.add_argument("name", metavar="NAME")
    finish_action(show, _show)
    delete = actions.add_parser("delete", help="delete a topic, with its events and subscriptions")
    delete.add_argument("name", metavar="NAME")
    finish_action(delete, _delete)


def _create(options: argparse.Namespace) -> None:
    schema = _read_schema(options.schema)
    limits = ("max_age", "max_bytes", "max_events")
    retention = {name: value for name in limits if (value := getattr(options, name)) is not None}
    with connected(options) as broker:
        made = broker.topics.create(
            options.name, schema, semantics=options.semantics,
            defaults=read_defaults(options.defaults), retention=retention or None,
        )  # fmt: skip
    _print(options, made, _line(made))


def _read_schema(text: str) -> Schema | str:
    """The schema of a file or of NAME:TYPE,...; the broker reads any other text."""
    is_of_pairs = text.lower().endswith(".json") or ":" in text.partition(",")[0]
    return read_schema(text) if is_of_pairs else text


def _list(options: argparse.Namespace) -> None:
    with connected(options) as broker:
        found = broker.topics.list()
    _print(options, found, *map(_line, found))


def _show(options: argparse.Namespace) -> None:
    with connected(options) as broker:
        found = broker.topics.get(options.name)
    _print(options, found, *_lines(found))


def _delete(options: argparse.Namespace) -> None:
    with connected(options) as broker:
        broker.topics.delete(options.name)
    _print(options, {"deleted": options.name}, f"{options.name} deleted")


def _print(options: argparse.Namespace, answer: Any, *lines: str) -> None:
    if options.json:
        print(json.dumps(answer))
    elif lines:
        print("\n".join(map(visible, lines)))


def _line(topic: dict[str, Any]) -> str:
    events = counted(topic["next_offset"] - topic["first_offset"], "event")
    subscriptions = counted(topic["subscriptions"], "durable subscription")
    return f"{topic['name']}  ({_schema(topic)})  {events}, {subscriptions}"


def _lines(topic: dict[str, Any]) -> list[str]:
    limits = {name: value for name, value in topic["retention"].items() if value is not None}
    kept = ", ".join(f"{name} {value:g}" for name, value in limits.items())
    lines = [
        f"topic          {topic['name']}",
        f"attributes     {_schema(topic)}",
        f"semantics      {topic['semantics']}",
        f"kept           {kept or 'everything'}",
        f"offsets        {topic['first_offset']:,} to {topic['next_offset'] - 1:,}"
        if topic["next_offset"] > topic["first_offset"]
        else "offsets        none yet",
        f"subscriptions  {topic['subscriptions']:,} durable",
    ]
    for name, what in (("expired", "removed by age or size"), ("damaged", "lost to damage")):
        if topic[name]:
            lines.append(f"{name:<14} {counted(topic[name], 'event')} {what}")
    return lines


def _schema(topic: dict[str, Any]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in topic["schema"].items())
