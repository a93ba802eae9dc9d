"""What tests of the engines that hold diagrams, `bdd` and `mbd`, have in common."""

import random

import pyarrow as pa

from strategies import SCHEMA
from tamis import Profile, Schema, parse
from tamis.engines import make_engine
from tamis.semantics import Semantics

SMALL = Schema({"i": "int", "j": "int", "k": "int", "s": "string"})
PAIRS = Schema({f"{letter}{n}": "int" for letter in "ab" for n in range(1, 41)})
# Its diagram has 2^40 nodes where all a come before all b.
EXPONENTIAL = " OR ".join(f"(a{n} = 1 AND b{n} = 1)" for n in range(1, 41))
# Attributes of the schema that are there the less often the later they come.
BACKWARDS = Profile.of(pa.table({n: [None] * k + [1] * (40 - k) for k, n in enumerate(SCHEMA)}))


def diagram_engine(name, schema=SMALL, semantics="sql", defaults=None, **options):
    return make_engine(name, Semantics(semantics, schema, defaults), options)


def add(engine, handle, text, schema=SMALL):
    engine.add(handle, engine.prepare(parse(text, schema)))


def check_workload(tested, generated, meaning, count, density=1.0):
    """Engines that take `count` subscriptions of a workload answer as `naive` does."""
    oracle = make_engine("naive", meaning)
    for handle, text in enumerate(generated.subscriptions(count)["filter"].to_pylist()):
        expression = parse(text, generated.schema)
        oracle.add(handle, expression)
        for engine in tested:
            engine.add(handle, engine.prepare(expression))
    for event in generated.events(20, density=density).to_pylist():
        row = tuple(event[name] for name in generated.schema)
        wanted = oracle.match(row).tolist()
        assert all(engine.match(row).tolist() == wanted for engine in tested)


def bytes_as_filters_come_and_go(engine, count, asked_every):
    """The bytes of the diagram after each of `count` filters, of which 30 are there at a time."""
    oracle = make_engine("naive", Semantics("sql", SMALL))
    chance = random.Random(11)  # noqa: S311 - a test, not a secret
    held, sizes = [], []
    for handle in range(count):
        text = (
            f"(i > {chance.randrange(10**6)} AND j = {chance.randrange(10**6)}) "
            f"OR (k < {chance.randrange(10**6)} AND s = '{chance.randrange(10**6)}')"
        )
        add(engine, handle, text)
        oracle.add(handle, parse(text, SMALL))
        held.append(handle)
        if len(held) > 30:
            gone = held.pop(chance.randrange(len(held)))
            engine.remove(gone)
            oracle.remove(gone)
        if handle % asked_every == 0:
            row = (chance.randrange(10**6), 1, chance.randrange(10**6), None)
            assert engine.match(row).tolist() == oracle.match(row).tolist()
        sizes.append(engine.diagram.bytes)
    return sizes
