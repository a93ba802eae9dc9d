"""How fast tests for elements of arrays are, beside equalities of one value.

    python benchmarks/arrays.py [--filters N] [--events E] [--elements K]

Each filter looks for another constant: in an attribute, or among the K elements of an array. All
are timed in one process, by processor time: reading the filters, matching a table, and matching
events one by one. An event with K elements looks up K values, and finds K times as many matches.
"""

import argparse
import time

import numpy as np
import pyarrow as pa

from tamis import Matcher

SCHEMA = {"tags": "array<string>", "tag": "string", "price": "double"}
FORMS = {
    "tag = c": "tag = 't{}'",
    "array_contains(tags, c)": "array_contains(tags, 't{}')",
    "tag = c AND price < 0.5": "tag = 't{}' AND price < 0.5",
    "array_contains(tags, c) AND price < 0.5": "array_contains(tags, 't{}') AND price < 0.5",
}
SINGLE = 300  # events that are matched one by one


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, usual in (("filters", 100_000), ("events", 20_000), ("elements", 5)):
        arguments.add_argument(f"--{name}", type=int, default=usual)
    options = arguments.parse_args()
    table = events(options.filters, options.events, options.elements)
    counts = f"{options.filters:,} filters, {options.events:,} events"
    print(f"{counts} of {options.elements} elements\n")
    print("| filter | reading | events/s | matches per event | single event |")
    print("|---|---|---|---|---|")
    for name, form in FORMS.items():
        print(row(name, form, options.filters, table), flush=True)


def events(constants: int, size: int, elements: int) -> pa.Table:
    """Events whose values are drawn uniformly from the constants of the filters."""
    chance = np.random.default_rng(1)
    names = pa.array([f"t{n}" for n in range(constants)])
    flat = names.take(pa.array(chance.integers(0, constants, size * elements)))
    offsets = pa.array(np.arange(size + 1, dtype=np.int32) * elements)
    tag = names.take(pa.array(chance.integers(0, constants, size)))
    return pa.table(
        {"tags": pa.ListArray.from_arrays(offsets, flat), "tag": tag, "price": chance.random(size)}
    )


def row(name: str, form: str, filters: int, table: pa.Table) -> str:
    matcher = Matcher(SCHEMA, engine="sliced")
    some = table.slice(0, SINGLE).to_pylist()
    start = time.process_time()
    matcher.subscribe_many([(n, form.format(n)) for n in range(filters)])
    read = time.process_time()
    matcher.match_batch(table.slice(0, 1024))  # kernels are compiled, and numbers known
    matcher.match(some[0])
    ready = time.process_time()
    found = matcher.match_batch(table).num_rows
    done = time.process_time()
    for event in some:
        matcher.match(event)
    single = (time.process_time() - done) / len(some)
    rate = table.num_rows / (done - ready)
    return (
        f"| `{name}` | {read - start:.2f} s | {rate:,.0f} | {found / table.num_rows:.1f} "
        f"| {single * 1e6:.0f} us |"
    )


if __name__ == "__main__":
    main()
