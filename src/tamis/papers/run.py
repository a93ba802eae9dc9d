"""A run: every case of an experiment with every seed, kept as soon as it is measured.

The contestants of one case and seed run in one process, one after the other, on the same data; the
procedure compares their answers. Before anything is measured, the smallest case of every experiment
is run once and forgotten: then nothing is compiled during a measurement, and what cannot be run at
all is found out at the beginning.
"""

import gc
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tamis.engines.preparation import preparation
from tamis.errors import FileError
from tamis.papers.environment import environment
from tamis.papers.experiment import Experiment, RunScale
from tamis.papers.measurements import Point, X, rows_of
from tamis.papers.procedures import procedure
from tamis.papers.verdicts import Record, judge

CELLS = "measurements.jsonl"  # the file of an output folder with what was measured so far


class Cell(NamedTuple):
    """One case, measured by a procedure with one seed; experiments that share it measure once."""

    procedure: str
    parameters: str  # a digest of them
    case: X
    seed: int


@dataclass
class RunStep:
    """What is measured next, for whoever watches."""

    experiment: Experiment
    case: X
    seed: int
    number: int  # of this cell, from 1
    cells: int  # of the experiment


class CellFile:
    """What was measured so far, one cell per line; the last line may be torn."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        self._path = path
        self.found: dict[Cell, tuple[list[Point], float]] = {}
        self._billed: set[Cell] = set()
        if resume and path.exists():
            for cell, points, seconds in _read_cells(path):
                self.found[cell] = points, seconds
        else:
            _writing(path, lambda: path.write_text("", encoding="utf-8"))

    def seconds(self, cells: Sequence[Cell]) -> float:
        """What cells took; one that several experiments share counts for the first that asks."""
        new = [cell for cell in cells if cell not in self._billed]
        self._billed.update(new)
        return sum(self.found[cell][1] for cell in new)

    def keep(self, cell: Cell, points: list[Point], seconds: float) -> None:
        """Add a cell."""
        line = json.dumps({**cell._asdict(), "points": points, "seconds": round(seconds, 3)})

        def append() -> None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"\n{line}")  # after a torn line, a new one begins

        _writing(self._path, append)
        self.found[cell] = points, seconds


def rehearse(experiment: Experiment, scale_name: str, cells: CellFile) -> None:
    """Run the smallest case of an experiment, unless all that it needs is measured already."""
    if any(one not in cells.found for one in cells_of(experiment, experiment.scales[scale_name])):
        if scale_name != "quick":
            # `auto` matches meanwhile, but the time of the thread that compiles would count, too.
            preparation.wait()
        quick = experiment.scales["quick"]
        for _ in procedure(experiment.procedure)(quick.cases[0], quick.seeds[0], quick.parameters):
            pass


def run_experiment(
    experiment: Experiment, scale_name: str, cells: CellFile, watch: Callable[[RunStep], object]
) -> Record:
    """Measure what is not measured yet, and give the record with its verdicts."""
    scale = experiment.scales[scale_name]
    wanted = cells_of(experiment, scale)
    measure = procedure(experiment.procedure)
    for number, cell in enumerate(wanted, 1):
        if cell in cells.found:
            continue
        watch(RunStep(experiment, cell.case, cell.seed, number, len(wanted)))
        gc.collect()
        start = time.perf_counter()
        points = list(measure(cell.case, cell.seed, scale.parameters))
        cells.keep(cell, points, time.perf_counter() - start)
    return record_of(experiment, scale, cells, wanted)


def cells_of(experiment: Experiment, scale: RunScale) -> list[Cell]:
    """What an experiment measures at a scale."""
    text = json.dumps(scale.parameters, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return [
        Cell(experiment.procedure, digest, case, seed)
        for case in scale.cases
        for seed in scale.seeds_at(case)
    ]


def record_of(
    experiment: Experiment, scale: RunScale, cells: CellFile, wanted: Sequence[Cell]
) -> Record:
    """The record of an experiment whose cells are all measured."""
    by_seed: dict[int, list[Point]] = {seed: [] for seed in scale.seeds}
    for cell in wanted:
        by_seed[cell.seed] += filter(experiment.shows, cells.found[cell][0])
    published = {name: one.as_json() for name, one in experiment.published.items()}
    return judge({
        "name": experiment.name, "paper": experiment.paper, "figure": experiment.figure,
        "title": experiment.title, "claim": experiment.claim, "verdict": "", "why": "",
        "claims": [dict(claim) for claim in experiment.claims],
        "setup": experiment.setup, "today": experiment.today, "facts": experiment.facts,
        "scale": scale.name, "cases": list(scale.cases), "seeds": list(scale.seeds),
        "parameters": scale.parameters, "x": experiment.x, "measures": experiment.measures,
        "measurements": rows_of(scale.seeds, by_seed),
        "published": published,
        "pictures": [dict(picture) for picture in experiment.pictures],
        "seconds": round(cells.seconds(wanted), 1),
        "environment": environment(),
    })  # fmt: skip


def _read_cells(path: Path) -> Iterator[tuple[Cell, list[Point], float]]:
    for found in read_lines(path):
        key = {name: found[name] for name in Cell._fields}
        yield Cell(**key), [Point(*one) for one in found["points"]], found["seconds"]


def read_lines(path: Path) -> Iterable[dict[str, Any]]:
    """The objects of a file of JSON lines; a line that is not whole is left out."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"{path} cannot be read: {reason}") from None
    for line in lines:
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def _writing(path: Path, write: Callable[[], object]) -> None:
    try:
        write()
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}") from None
