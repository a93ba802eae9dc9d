"""Plays many simulated networks of brokers, each drawn from a seed, and counts what went wrong.

By hand: ``python tests/network_seeds.py --seeds 100000 --workers 2 --into seeds.jsonl`` plays so
many, and goes on where it was interrupted; ``python tests/network_seeds.py --trace 577`` plays one
and tells what happened.
"""

import argparse
import gc
import json
import logging
import multiprocessing
import sys
import time
from collections import Counter
from pathlib import Path

from tamis.broker.simulation.trial import Trial, play

TOGETHER = 50  # seeds that are played and written down together


class Told(logging.Handler):
    """Writes what brokers log into the trace of a trial."""

    def __init__(self, trial: Trial) -> None:
        super().__init__()
        self.trial = trial

    def emit(self, record: logging.LogRecord) -> None:
        peer, reason = getattr(record, "peer", ""), getattr(record, "reason", "")
        self.trial.note(f"    log: {record.getMessage()} {peer} {reason}".rstrip())


def trace(seed: int) -> bool:
    """Play one trial, and show it."""
    trial = Trial(seed, is_traced=True)
    logger = logging.getLogger("tamis.broker")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(Told(trial))
    outcome = trial.run()
    print(*outcome.trace, *outcome.wrong, sep="\n")  # noqa: T201 - that is what it is for
    return not outcome.wrong


def play_some(first: int) -> dict:
    """The outcomes of some trials, put together."""
    logging.disable(logging.CRITICAL)
    gc.disable()
    found = {"first": first, "acknowledged": 0, "delivered": 0, "moves": 0, "wrong": {}}
    faults = Counter()
    for seed in range(first, first + TOGETHER):
        outcome = play(seed)
        faults += outcome.faults
        found["acknowledged"] += outcome.acknowledged
        found["delivered"] += outcome.delivered
        found["moves"] += outcome.moves
        if outcome.wrong:
            found["wrong"][seed] = outcome.wrong[:3]
    gc.collect()
    return {**found, "faults": dict(faults)}


def summary(parts: list[dict]) -> str:
    faults = Counter()
    for part in parts:
        faults += Counter(part["faults"])
    wrong = {seed: what for part in parts for seed, what in part["wrong"].items()}
    counted = {
        key: sum(part[key] for part in parts) for key in ("acknowledged", "delivered", "moves")
    }
    shown = ", ".join(f"{name} {count}" for name, count in faults.most_common())
    lines = [f"seed {seed}: {what}" for seed, what in wrong.items()]
    first = (
        f"{len(parts) * TOGETHER} seeds, {len(wrong)} wrong, {counted['acknowledged']} events "
        f"acknowledged, {counted['delivered']} delivered, {counted['moves']} moves, "
        f"{faults.total()} faults: {shown}"
    )
    return "\n".join([first, *lines])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--into", type=Path, help="a file to write results to, and to go on with")
    parser.add_argument("--trace", type=int, metavar="SEED")
    options = parser.parse_args()
    if options.trace is not None:
        sys.exit(0 if trace(options.trace) else 1)
    parts = []
    if options.into is not None and options.into.exists():
        parts = [json.loads(line) for line in options.into.read_text("utf-8").splitlines()]
    done = {part["first"] for part in parts}
    end = options.first + options.seeds
    waiting = [n for n in range(options.first, end, TOGETHER) if n not in done]
    began = time.monotonic()
    with multiprocessing.Pool(options.workers, maxtasksperchild=20) as pool:
        for part in pool.imap_unordered(play_some, waiting):
            parts.append(part)
            for seed, what in part["wrong"].items():
                print(f"seed {seed}: {what}", flush=True)  # noqa: T201 - while others are played
            if options.into is not None:
                with options.into.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(part) + "\n")
    print(summary(parts), f"{time.monotonic() - began:.0f} s", sep="\n")  # noqa: T201 - at the end
    sys.exit(any(part["wrong"] for part in parts))


if __name__ == "__main__":
    main()
