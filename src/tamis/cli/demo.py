"""``tamis demo``: a small stream of stock quotes and the people who wait for some of them."""

import argparse
import json
import random
from collections import Counter
from typing import Any

from tamis.cli.options import add_json
from tamis.matcher import Matcher
from tamis.schema import Schema

SCHEMA = Schema(
    {"symbol": "string", "price": "double", "volume": "int", "change": "double", "halted": "bool"}
)
SUBSCRIPTIONS = {
    "ann": "symbol IN ('IBM', 'DELL') AND price <= 100",
    "bob": "price BETWEEN 50 AND 60 OR volume >= 9000",
    "carol": "symbol LIKE 'A%' AND NOT halted",
    "dave": "abs(change) > 4 AND price * volume > 400000",
    "eve": "change IS NULL",
    "frank": "symbol RLIKE '^(INTC|AMD)$' AND change < 0",
}
_SYMBOLS = ["IBM", "DELL", "AAPL", "AMD", "INTC", "ORCL"]


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "demo",
        help="match a small stream of stock quotes",
        description="Match a small stream of stock quotes with six subscriptions.",
    )
    parser.add_argument(
        "--events", type=number, default=2000, metavar="N", help="quotes (default: 2000)"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the random quotes (default: 1)")
    add_json(parser)
    parser.set_defaults(run=run)


def number(text: str) -> int:
    """A whole number above 0."""
    if not text.isdecimal() or not 0 < int(text[:20]) < 10**9:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, got {text!r}")
    return int(text)


def quotes(count: int, seed: int) -> list[dict[str, Any]]:
    """Random quotes; the first of a day have no change yet."""
    chance = random.Random(seed)  # noqa: S311 - a demonstration, not a secret
    made = []
    for _ in range(count):
        quote: dict[str, Any] = {
            "symbol": chance.choice(_SYMBOLS),
            "price": round(chance.uniform(20, 160), 2),
            "volume": chance.randint(1, 100) * 100,
            "halted": chance.random() < 0.1,
        }
        if chance.random() < 0.9:
            quote["change"] = round(chance.gauss(0, 2), 2)
        made.append(quote)
    return made


def run(options: argparse.Namespace) -> None:
    """Match the quotes and show what happened."""
    matcher = Matcher(SCHEMA)
    matcher.subscribe_many(SUBSCRIPTIONS)
    events = quotes(options.events, options.seed)
    pairs = matcher.match_batch(events)
    counts = Counter(pairs["subscription"].to_pylist())
    if options.json:
        each = {name: counts[name] for name in matcher}
        answer = {"events": len(events), "matches": pairs.num_rows, "by_subscription": each}
        _say(json.dumps(answer))
        return
    _say(f"{len(matcher)} subscriptions on {len(events):,} stock quotes\n")
    _say("the first quotes, and who is told of them")
    for event in events[:5]:
        _say(f"  {_line(event)}  ->  {', '.join(map(str, matcher.match(event))) or '-'}")
    _say("\nmatches by subscription")
    for name in matcher:
        _say(f"  {name!s:<6} {counts[name]:>6,}   {matcher.get(name)}")
    _say(f"  total  {pairs.num_rows:>6,}\n")
    _say("why is dave not told of the first quote?" if "dave" not in matcher.match(events[0])
         else "why is dave told of the first quote?")  # fmt: skip
    for line in str(matcher.why("dave", events[0])).splitlines():
        _say(f"  {line}")


def _line(event: dict[str, Any]) -> str:
    change = f"{event['change']:+6.2f}" if "change" in event else "     ?"
    halted = "halted" if event["halted"] else ""
    return f"{event['symbol']:<5} {event['price']:>7.2f} {change} {event['volume']:>6} {halted:<6}"


def _say(text: str) -> None:
    print(text)
