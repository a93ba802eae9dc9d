"""What rules with arithmetic cost: an event, in a batch and alone, against testing one by one.

``python benchmarks/terms.py`` measures processor time in one process, and checks that all matches
are the same.
"""

import argparse
import random
import time
from typing import Any

from tamis import Matcher, Schema

SCHEMA = Schema(
    {
        "price": "double", "qty": "int", "fee": "double", "limit": "int", "total": "decimal(10, 2)",
        "name": "string", "at": "timestamp",
    }
)  # fmt: skip
SHARED = ["price * qty", "price - fee", "qty + limit", "total * 3", "length(name)", "hour(at)"]


def rules(count: int, kind: str, chance: random.Random) -> list[tuple[int, str]]:
    """Rules over several attributes; `shared` ones test few terms, others each their own."""
    found = []
    for number in range(count):
        constant = chance.randint(1, 5_000)
        if kind == "shared":
            term = chance.choice(SHARED)
        elif kind == "strings":
            term = f"instr(lower(name), '{chance.choice('abcde')}{number}')"
        else:
            term = f"price * {1 + number} + qty * {chance.randint(1, 99)} - fee"
            constant *= 100
        found.append((number, f"{term} {chance.choice(['<', '>'])} {constant}"))
    return found


def events(count: int, chance: random.Random) -> list[dict[str, Any]]:
    return [
        {
            "price": chance.uniform(1, 100), "qty": chance.randint(1, 100),
            "fee": chance.uniform(0, 5), "limit": chance.randint(1, 5_000),
            "total": f"{chance.uniform(0, 2_000):.2f}", "name": f"name {chance.randint(1, 500)}",
            "at": f"2024-01-31 {chance.randint(10, 23)}:00:00",
        }
        for _ in range(count)
    ]  # fmt: skip


def cost(matcher: Matcher, some: list[dict[str, Any]], *, alone: bool) -> tuple[float, int]:
    """Microseconds of processor time per event, and the number of matches."""
    if alone:
        matcher.match(some[0])
        began = time.process_time()
        matches = sum(len(matcher.match(event)) for event in some)
    else:
        matcher.match_batch(some[:2])
        began = time.process_time()
        matches = matcher.match_batch(some).num_rows
    return (time.process_time() - began) / len(some) * 1e6, matches


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rules", type=int, nargs="+", default=[190, 10_000])
    options.add_argument("--events", type=int, default=2_000)
    chosen = options.parse_args()
    print(f"{'rules':>8} {'terms':>9} {'naive':>10} {'alone':>10} {'batch':>10}   us per event")
    for count in chosen.rules:
        for kind in ("shared", "unshared", "strings"):
            chance = random.Random(7)
            written, some = rules(count, kind, chance), events(chosen.events, chance)
            few = some[: max(20, 40_000 // count)]
            naive, fast = Matcher(SCHEMA, engine="naive"), Matcher(SCHEMA, engine="sliced")
            for matcher in (naive, fast):
                matcher.subscribe_many(written)
            baseline, expected = cost(naive, few, alone=True)
            alone, found = cost(fast, few, alone=True)
            if not found == expected == fast.match_batch(few).num_rows:
                raise SystemExit(f"matches differ: {count} {kind} rules")
            batch, _ = cost(fast, some, alone=False)
            print(f"{count:8,} {kind:>9} {baseline:10.1f} {alone:10.1f} {batch:10.1f}")


if __name__ == "__main__":
    main()
