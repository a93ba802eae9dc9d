"""Seeded filters with the shape of the papers' workloads, as text."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from tamis import Schema

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Workload:
    """A schema and a way to make filters over it."""

    name: str
    about: str
    schema: Schema
    make: Callable[[random.Random], str]

    def filters(self, count: int, seed: int = 1) -> list[str]:
        chance = random.Random(seed)
        return [self.make(chance) for _ in range(count)]


def conjunctions(attributes: int, predicates: int, low: int, high: int) -> Callable[..., str]:
    """COUNT: 1 to `predicates` comparisons of different attributes, values uniform in a domain."""

    def make(chance: random.Random) -> str:
        chosen = chance.sample(range(attributes), chance.randint(1, predicates))
        return " AND ".join(
            f"a{a} {chance.choice(COMPARISONS)} {chance.randint(low, high)}" for a in chosen
        )

    return make


def equalities(chance: random.Random) -> str:
    """TREE: attribute i of 30 is tested for one of 3 values with a probability falling with i."""
    tested = [i for i in range(30) if chance.random() < 0.98 * 0.85**i] or [0]
    return " AND ".join(f"a{i} = {chance.randint(1, 3)}" for i in tested)


def boolean_query(chance: random.Random, depth: int = 0) -> str:
    """BDD: AND, OR and NOT over 208 atoms, 7.6 of them on average."""
    if depth and chance.random() < 0.25 * depth:
        return boolean_atom(chance)
    if chance.random() < 0.15:
        return f"NOT {boolean_atom(chance)}"
    word = chance.choice((" AND ", " OR "))
    parts = [boolean_query(chance, depth + 1) for _ in range(chance.choice((2, 3)))]
    return f"({word.join(parts)})"


def boolean_atom(chance: random.Random) -> str:
    kind = chance.randrange(10)
    if kind < 3:
        return f"i{kind} {chance.choice(COMPARISONS)} {chance.choice((10, 30, 50, 70))}"
    if kind < 6:
        return f"d{kind - 3} {chance.choice(COMPARISONS)} {chance.choice((10.0, 30.0, 50.0, 70.0))}"
    name, text = f"s{kind - 6}", chance.choice(("aa", "bb", "a", "b"))
    form = chance.choice(
        ("{} = '{}'", "{} <> '{}'", "contains({}, '{}')", "'{1}' SUBSTRING OF {0}")
    )
    return form.format(name, text)


def stock(chance: random.Random) -> str:
    """A few shapes, and constants that hardly ever come twice."""
    price = chance.uniform(1, 500)
    return (
        f"symbol = 'S{chance.randint(1, 5000)}' AND price BETWEEN {price:.2f} AND {price * 1.1:.2f}"
        f" AND volume >= {chance.randint(1, 1_000_000)}"
    )


_INTS = {f"a{i}": "int" for i in range(120)}
WORKLOADS = (
    Workload("COUNT W0", "1..20 of 120 attributes, values 1..250", Schema(_INTS),
             conjunctions(120, 20, 1, 250)),
    Workload("COUNT W2", "1..20 of 120 attributes, values 10,000..100,000", Schema(_INTS),
             conjunctions(120, 20, 10_000, 100_000)),
    Workload("COUNT W4", "1..5 of 10 attributes, values 1..10", Schema(_INTS),
             conjunctions(10, 5, 1, 10)),
    Workload("TREE", "equalities on 30 attributes of 3 values", Schema(_INTS), equalities),
    Workload("BDD", "random boolean queries over 208 atoms",
             Schema({**{f"i{n}": "int" for n in range(3)}, **{f"d{n}": "double" for n in range(3)},
                     **{f"s{n}": "string" for n in range(4)}}), boolean_query),
    Workload("stock", "one shape, constants of their own",
             Schema({"symbol": "string", "price": "double", "volume": "int"}), stock),
)  # fmt: skip
