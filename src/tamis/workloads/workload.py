"""A workload: a schema, and filters and events for it, described by a small file."""

from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import OptionError, SchemaError, choose
from tamis.schema import Schema
from tamis.workloads.config import Config, read_config
from tamis.workloads.conjunctions import Comparisons
from tamis.workloads.equalities import Equalities
from tamis.workloads.queries import Queries
from tamis.workloads.random_draws import EVENTS, SUBSCRIPTIONS, Chance, seeded
from tamis.workloads.stock import Stock
from tamis.workloads.templates import Templates
from tamis.workloads.token_texts import ROWS
from tamis.workloads.trees import Trees
from tamis.workloads.workload_kind import WorkloadKind

# COUNT, TREE, BDD, MBD, and beyond the papers.
NAMES = (
    "w0", "w1", "w2", "w3", "w4",
    "tree", "tree-65",
    "bdd",
    "mbd-a", "mbd-b",
    "stock", "constants", "journeys",
    "shapes", "shapes-constants", "shapes-texts", "shapes-wide",
)  # fmt: skip

BLOCK = ROWS  # subscriptions or events per block; the rows of a seed depend on it

_CONFIGS = Path(__file__).parent / "configs"
_KINDS: dict[str, type[Comparisons | Equalities | Queries | Stock | Templates | Trees]] = {
    "comparisons": Comparisons,
    "equalities": Equalities,
    "grammar": Queries,
    "stock": Stock,
    "templates": Templates,
    "trees": Trees,
}


@dataclass(frozen=True)
class Workload:
    """Subscriptions and events, the same for the same arguments on every platform.

    `least` is the smallest number of subscriptions that can be made; it is 0 except for workloads
    that promise a number of matches.

    What is too large for one table is made in blocks of `BLOCK` rows. A block depends only on its
    number, so blocks can be made in any order and in any process. The blocks of a seed have other
    rows than its one table.
    """

    name: str
    about: str
    schema: Schema
    kind: WorkloadKind

    @property
    def least(self) -> int:
        return self.kind.least

    def parameters(self, count: int) -> dict[str, Any]:
        """The parameters of `count` subscriptions: those of the config, and derived ones."""
        _check_whole("count", count)
        return self.kind.parameters(count)

    def subscriptions(self, count: int, seed: int = 1) -> pa.Table:
        """A table of ``id`` (0, 1, ...) and ``filter``."""
        _check_whole("count", count)
        _check_whole("seed", seed)
        pieces = list(self.kind.filters(seeded(seed, SUBSCRIPTIONS), count))
        ids = pa.array(np.arange(count))
        return pa.table({"id": ids, "filter": pa.chunked_array(pieces, pa.string())})

    def subscription_block(self, block: int, count: int, seed: int = 1) -> pa.Table:
        """The part of `count` subscriptions whose ids begin at ``block * BLOCK``.

        The filters depend on `count`, so blocks of different counts do not belong together.
        """
        _check_whole("block", block)
        _check_whole("count", count)
        _check_whole("seed", seed)
        ids = np.arange(block * BLOCK, max(block * BLOCK, min((block + 1) * BLOCK, count)))
        filters = self.kind.filters(seeded(seed, SUBSCRIPTIONS, block), count)
        pieces: list[pa.StringArray] = []
        made = 0
        while made < ids.size:
            pieces.append(next(filters))
            made += len(pieces[-1])
        texts = pa.chunked_array(pieces, pa.string()).slice(0, ids.size)
        return pa.table({"id": pa.array(ids), "filter": texts})

    def events(self, count: int, seed: int = 1, density: float = 1.0) -> pa.Table:
        """A table with a column for each attribute of the schema, null where an event lacks it.

        `density` is the probability that an attribute is present. It does not change the values
        that are present, and what is present at some density is present at every higher one.
        """
        _check_whole("count", count)
        _check_whole("seed", seed)
        _check_density(density)
        return self._drawn(seeded(seed, EVENTS), count, density)

    def event_block(self, block: int, seed: int = 1, density: float = 1.0) -> pa.Table:
        """`BLOCK` events from number ``block * BLOCK`` on, of an endless sequence."""
        _check_whole("block", block)
        _check_whole("seed", seed)
        _check_density(density)
        return self._drawn(seeded(seed, EVENTS, block), BLOCK, density)

    def _drawn(self, chance: Chance, count: int, density: float) -> pa.Table:
        columns = self.kind.columns
        lacking = np.full(count, self.kind.pairs)  # attributes that each event still needs
        table = {}
        for position, column in enumerate(columns):
            values = column.values.draw(chance, count)
            chosen = chance.integers(0, len(columns) - position, count) < lacking
            lacking -= chosen
            present = chosen & (chance.random(count) < density)
            table[column.name] = pc.if_else(present, values, pa.scalar(None, values.type))
        return pa.table(table)


def workload(name: str) -> Workload:
    """The workload with a name, one of `NAMES`."""
    choose("workload", name, NAMES)
    return read_workload(_CONFIGS / f"{name}.toml")


def read_workload(path: str | Path) -> Workload:
    """The workload that a config file describes, named after the file.

    The file has the keys ``about``, ``kind`` (comparisons, equalities, grammar, stock, templates or
    trees) and those that the module of the kind lists.
    """
    path = Path(path)
    config: Config = read_config(path)
    about = config.text("about")
    kind: WorkloadKind = _KINDS[config.choice("kind", tuple(_KINDS))].read(config)
    config.finish()
    try:
        schema = Schema([(column.name, column.type) for column in kind.columns])
    except SchemaError as error:
        raise OptionError(f"{path}: {error}") from None
    return Workload(path.stem, about, schema, kind)


def _check_whole(what: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise OptionError(f"{what} must be a whole number from 0 on, and it is {value!r}")


def _check_density(value: object) -> None:
    if not isinstance(value, Real) or not 0.0 <= float(value) <= 1.0:
        raise OptionError(f"density must be a number from 0 to 1, and it is {value!r}")
