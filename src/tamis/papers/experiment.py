"""Experiments: one TOML file for each table or figure of a paper.

Keys of a file:

* ``paper``, ``figure``, ``title``; ``claim``: what the paper says, in one sentence;
* ``setup``: how it is measured here, and what differs from the paper; ``today``: what the result
  means today, in which ``{NAME}`` stands for the fact of that name;
* ``procedure``: who measures, a key of `procedures.PROCEDURES`; ``[parameters]``: what it is given;
* ``x``: what the horizontal axis is; ``[measures]``: the name of each measure, and its unit;
  ``lines``: which lines belong to the figure, all that the procedure measures if there is no such
  key. Experiments with the same procedure and parameters measure once;
* ``[scales.quick]``, ``[scales.default]``, ``[scales.full]``: the ``cases`` and ``seeds`` of each
  size of a run, ``few_seeds`` the cases for which the first seed is enough; other keys replace
  those of ``[parameters]``;
* ``[published.MEASURE]``: the ``table`` of the paper's file, and in ``lines`` the paper's names of
  our lines;
* ``[[claims]]``: each with a ``claim``, a ``rule`` and the parameters of the rule;
* ``[facts.NAME]``: a number for the text: the median of ``measure`` of the line ``of`` (divided by
  that of ``to``, or by its own at x = ``over``) at x = ``at`` (``largest`` by default);
* ``[[pictures]]``: see `pictures`.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tamis.errors import FileError, OptionError, choose, did_you_mean
from tamis.papers.measurements import Point, X
from tamis.papers.pictures import check_picture
from tamis.papers.published import PAPERS, PublishedNumbers, published_numbers
from tamis.papers.rules import check_parameters, rule_parameters
from tamis.workloads.config import read_text

FOLDER = Path(__file__).parent / "experiments"
SCALES = ("quick", "default", "full")

_TEXTS = ("paper", "figure", "title", "claim", "setup", "today", "procedure", "x")
_TABLES = ("measures", "parameters", "scales", "published", "facts")
_LISTS = ("claims", "pictures", "lines")
_OPTIONAL = ("published", "facts", "parameters", "lines")


@dataclass(frozen=True)
class RunScale:
    """How large a run is."""

    name: str
    cases: tuple[X, ...]
    seeds: tuple[int, ...]
    parameters: dict[str, Any]
    few_seeds: tuple[X, ...] = ()  # cases that take long

    def seeds_at(self, case: X) -> tuple[int, ...]:
        """The seeds with which a case is measured."""
        return self.seeds[:1] if case in self.few_seeds else self.seeds


@dataclass(frozen=True)
class Experiment:
    """What a file says."""

    name: str  # that of the file
    paper: str
    figure: str
    title: str
    claim: str
    setup: str
    today: str
    procedure: str
    x: str
    measures: dict[str, str]
    scales: dict[str, RunScale]
    published: dict[str, PublishedNumbers]  # by measure
    claims: tuple[dict[str, Any], ...]
    facts: dict[str, dict[str, Any]]
    pictures: tuple[dict[str, Any], ...]
    lines: tuple[str, ...] | None

    def shows(self, point: Point) -> bool:
        """Whether a point belongs to the figure."""
        is_shown = self.lines is None or point.line in self.lines
        return is_shown and point.measure in self.measures


def experiment_names() -> list[str]:
    """All experiments, in the order of the papers."""
    order = [paper.lower() for paper in PAPERS]
    names = [path.stem for path in FOLDER.glob("*.toml")]
    return sorted(names, key=lambda name: (order.index(name.partition("-")[0]), name))


def experiment(name: str) -> Experiment:
    """The experiment of a name."""
    choose("experiment", name, experiment_names())
    return read_experiment(FOLDER / f"{name}.toml")


def read_experiment(path: Path) -> Experiment:
    """The experiment that a file describes."""
    text = read_text(path)
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{path} is not valid TOML: {error}") from None
    try:
        return _checked(path.stem, found)
    except OptionError as error:
        raise OptionError(f"{path}: {error}") from None


def _checked(name: str, found: dict[str, Any]) -> Experiment:
    known = (*_TEXTS, *_TABLES, *_LISTS)
    for key in found:
        if key not in known:
            raise OptionError(f"unknown key {key}; {did_you_mean(key, known) or ''}".rstrip("; "))
    for keys, kind, what in (
        (_TEXTS, str, "a text"), (_TABLES, dict, "a table"), (_LISTS, list, "a list"),
    ):  # fmt: skip
        for key in keys:
            if not isinstance(found.get(key, kind() if key in _OPTIONAL else None), kind):
                raise OptionError(f"{key} must be {what}")
    choose("paper", found["paper"], PAPERS)
    measures = found["measures"]
    published = {}
    for measure, source in found.get("published", {}).items():
        choose("measure with published numbers", measure, measures)
        published[measure] = published_numbers(found["paper"], source["table"], source["lines"])
    for claim in found["claims"]:
        check_parameters(claim["rule"], rule_parameters(claim))
        choose("measure of a claim", claim["measure"], measures)
    for picture in found["pictures"]:
        choose("measure of a picture", picture["measure"], measures)
        check_picture(picture)
    return Experiment(
        name=name, published=published,
        lines=tuple(found["lines"]) if "lines" in found else None,
        scales={scale: _scale(scale, found) for scale in SCALES}, measures=measures,
        claims=tuple(found["claims"]), pictures=tuple(found["pictures"]),
        facts=found.get("facts", {}), **{key: " ".join(found[key].split()) for key in _TEXTS},
    )  # fmt: skip


def _scale(name: str, found: dict[str, Any]) -> RunScale:
    given = dict(found["scales"].get(name, {}))
    cases, seeds = given.pop("cases", ()), given.pop("seeds", ())
    few = tuple(given.pop("few_seeds", ()))
    if not cases or not seeds:
        raise OptionError(f"scales.{name} must have cases and seeds")
    if len(set(seeds)) < len(seeds) or len(set(cases)) < len(cases):
        raise OptionError(f"scales.{name} has a case or a seed twice")
    if not set(few) <= set(cases):
        raise OptionError(f"scales.{name}.few_seeds names a case that is not among its cases")
    return RunScale(name, tuple(cases), tuple(seeds), found.get("parameters", {}) | given, few)
