"""What unusual filters cost, beside usual ones.

    python benchmarks/unusual.py [--filters N] [--events E]

Each kind of filter is a template, filled in with a number of its own and random constants. All are
timed in one process, by processor time, the best of three: reading, a table whose strings were seen
before and one whose strings are new, a single event, a new one, and a batch of one event.
"""

import argparse
import logging
import random
import time
from collections.abc import Callable
from typing import Any

from tamis import Matcher

SCHEMA = {
    "s": "string", "t": "string", "x": "double", "y": "double", "n": "int", "at": "timestamp",
    "p": "decimal(12, 2)", "tags": "array<string>", "nums": "array<int>",
    "props": "map<string, string>",
}  # fmt: skip
KINDS = {
    "usual": "n = {c} AND x < {d}",
    "three tests or another": "n = {c} OR x < {d} OR s = '{w}'",
    "negated": "NOT (n <> {c} OR NOT x < {d})",
    "300 values each": "n IN ({many})",
    "not in": "n NOT IN ({c}, {k}) AND x < 5",
    "one attribute, all digits": "x < {d}",
    "LIKE, one part": "s LIKE '%{w}%'",
    "LIKE, two parts": "s LIKE 'a%{w}'",
    "LIKE, any character": "s LIKE '%a_{k}%'",
    "ILIKE": "s ILIKE '%{w}%'",
    "RLIKE": "s RLIKE 'a.*{k}'",
    "function of a string": "instr(s, '{k}') > 2",
    "string with its own text": "s || '{k}' = '{w}'",
    "time with its own interval": "at + INTERVAL '{k}' MINUTE > TIMESTAMP '2024-05-15 12:00:00'",
    "decimal with its own factor": "p * {k} < {c}",
    "element of an array": "array_contains(tags, '{w}')",
    "condition on elements": "exists(nums, v -> v > {c} AND v < {k})",
    "key of a map of its own": "props['k{k}'] = '{w}'",
    "two attributes": "x < y AND n < {c}",
    "value of its own": "x * {k} + y < {d}",
}


def word(chance: random.Random) -> str:
    return chance.choice("abcdefgh") + chance.choice(["lpha", "eta", "amma"]) + str(number(chance))


def number(chance: random.Random) -> int:
    return chance.randrange(10_000)


def filters(template: str, count: int) -> list[tuple[int, str]]:
    chance = random.Random(1)
    return [
        (k, template.format(
            k=k + 1, c=number(chance), d=repr(chance.uniform(0, 1_000)), w=word(chance),
            many=", ".join(str(number(chance)) for _ in range(300 if "{many}" in template else 0)),
        ))
        for k in range(count)
    ]  # fmt: skip


def events(count: int, after: str = "") -> list[dict[str, Any]]:
    """Events; `after` makes their strings others than before."""
    chance = random.Random(2)
    return [
        {
            "s": word(chance) + after, "t": word(chance) + after, "x": chance.uniform(0, 1_000),
            "y": chance.uniform(0, 1_000), "n": number(chance), "p": f"{number(chance)}.50",
            "at": f"2024-0{chance.randint(1, 9)}-11 12:00:00",
            "tags": [word(chance) for _ in range(5)], "nums": [number(chance) for _ in range(5)],
            "props": {f"k{number(chance)}": word(chance)},
        }
        for _ in range(count)
    ]  # fmt: skip


def seconds(run: Callable[[], Any], rounds: int = 3) -> float:
    """Processor time, the best of some rounds."""
    found = []
    for _ in range(rounds):
        began = time.process_time()
        run()
        found.append(time.process_time() - began)
    return min(found)


def costs(template: str, count: int, size: int) -> list[float]:
    """Microseconds: to read a filter, and for an event in each of the ways that are timed."""
    matcher, written = Matcher(SCHEMA, engine="sliced"), filters(template, count)
    read = seconds(lambda: matcher.subscribe_many(written), 1) / count
    known, new = matcher.given(events(size)), matcher.given(events(size, "new"))
    alone, other = events(5), events(5, "newer")
    one = matcher.given(events(1))
    matcher.match_given(known, "counts")
    matcher.match(alone[0])
    found = [
        read,
        seconds(lambda: matcher.match_given(known, "counts")) / size,
        seconds(lambda: matcher.match_given(new, "counts"), 1) / size,
        seconds(lambda: [matcher.match(event) for event in alone]) / len(alone),
        seconds(lambda: [matcher.match(event) for event in other], 1) / len(other),
        seconds(lambda: matcher.match_given(one, "counts")),
    ]
    return [1e6 * one for one in found]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--filters", type=int, default=3_000)
    options.add_argument("--events", type=int, default=512)
    chosen = options.parse_args()
    logging.getLogger("tamis").setLevel(logging.ERROR)  # of filters that no event can match
    costs(KINDS["usual"], 100, 10)  # kernels are loaded
    print("| filters | read | table | new strings | one event | a new one | batch of one |")
    print("|---|---|---|---|---|---|---|")
    for name, template in KINDS.items():
        row = [f"{one:,.1f}" for one in costs(template, chosen.filters, chosen.events)]
        print(f"| {name}: `{template}` | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
