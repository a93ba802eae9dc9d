"""The rules that decide a claim from measurements, by name.

A rule is a function of the measurements, the published numbers and the parameters that the
experiment's file gives it. It says `CONFIRMED`, `REFUTED` or `NOT_COMPARABLE`, and why, with the
numbers that decided. Every seed counts: a claim is confirmed if all seeds agree with it at every x,
refuted if at some x all seeds contradict it, and else the measurements do not decide.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tamis.errors import OptionError, choose
from tamis.papers.measurements import Measurements, Series, X, quotients
from tamis.papers.published import PublishedNumbers
from tamis.papers.regression import fitted_slope
from tamis.report.text import shown

CONFIRMED, REFUTED, NOT_COMPARABLE = "confirmed", "refuted", "not comparable"
VERDICTS = (CONFIRMED, REFUTED, NOT_COMPARABLE)


class Finding(NamedTuple):
    """What a rule decides, and why."""

    verdict: str
    why: str


class Evidence(NamedTuple):
    """What rules look at."""

    measurements: Measurements
    published: dict[str, PublishedNumbers]  # by measure

    def series(self, line: str, measure: str) -> Series:
        return self.measurements.series(line, measure)

    def said(self, line: str, measure: str) -> dict[X, float]:
        """What the paper has for a line, by x; there may be nothing."""
        published = self.published.get(measure)
        return published.line(line) if published else {}


Rule = Callable[..., Finding]


def ratio(
    evidence: Evidence, *, of: str, to: str, measure: str,
    above: float | None = None, below: float | None = None, at: X = "every",
) -> Finding:  # fmt: skip
    """One line divided by another is above or below a number, at every x or at one of them."""
    one, two = evidence.series(of, measure), evidence.series(to, measure)
    ranges = {x: one.ratios(two, x) for x in _places(_common(one, two), at)}
    return _within(f"{of} / {to}, {measure}", ranges, above, below)


def value(
    evidence: Evidence, *, of: str, measure: str,
    above: float | None = None, below: float | None = None, at: X = "every",
) -> Finding:  # fmt: skip
    """The values of a line are above or below a number."""
    series = evidence.series(of, measure)
    ranges = {x: series.at(x) for x in _places(series.xs, at)}
    return _within(f"{of}, {measure}", ranges, above, below)


def growth(
    evidence: Evidence, *, of: str, measure: str,
    above: float | None = None, below: float | None = None, first: X | None = None,
    last: X | None = None,
) -> Finding:  # fmt: skip
    """A line's value at one x divided by that at another is above or below a number.

    They are the last and the first one that were measured, or those that are named.
    """
    series = evidence.series(of, measure)
    xs = series.xs
    start = [x for x in xs if x == first] if first is not None else xs[:1]
    end = [x for x in xs if x == last] if last is not None else xs[-1:]
    if not start or not end or start == end:
        return _nothing(f"{of}, {measure}", "at two places")
    ranges = {end[0]: quotients(series.by_seed(end[0]), series.by_seed(start[0]))}
    return _within(f"{of}, {measure}, divided by that at {shown(start[0])}", ranges, above, below)


def slope(
    evidence: Evidence, *, of: str, measure: str,
    above: float | None = None, below: float | None = None, least: float = 0,
) -> Finding:  # fmt: skip
    """The exponent with which a line grows (its slope, both axes logarithmic), with its 95 %
    confidence interval, is above or below a number; x below `least` are left out.
    """
    series = evidence.series(of, measure)
    xs = [x for x in series.xs if isinstance(x, int | float) and x > 0 and x >= least]
    if len(xs) < 3:
        return _nothing(f"{of}, {measure}", "at three sizes")
    points = [(float(x), v) for x in xs for v in series.at(x) if v > 0]
    middle, margin = fitted_slope(points)
    low, high = middle - margin, middle + margin
    wanted = _wanted(above, below)
    what = f"{of}, {measure}: grows with the power {middle:.2f} of x (95 %: {low:.2f} to {high:.2f}"
    why = f"{what}; {shown(xs[0])} to {shown(xs[-1])}), wanted {wanted}"
    if (above is None or low > above) and (below is None or high < below):
        return Finding(CONFIRMED, why)
    if (above is not None and high < above) or (below is not None and low > below):
        return Finding(REFUTED, why)
    return Finding(NOT_COMPARABLE, f"{why}, which the interval does not decide")


def monotone(evidence: Evidence, *, of: str, measure: str, direction: str) -> Finding:
    """The medians of a line rise, or fall, from each x to the next."""
    choose("direction", direction, ("rises", "falls"))
    series = evidence.series(of, measure)
    if len(series.xs) < 2:
        return _nothing(f"{of}, {measure}", "at two places")
    medians = [(x, series.median(x)) for x in series.xs]
    sign = 1 if direction == "rises" else -1
    against = [
        f"{shown(after[1])} at {shown(after[0])} after {shown(before[1])} at {shown(before[0])}"
        for before, after in pairwise(medians)
        if sign * (after[1] - before[1]) < 0
    ]
    ends = f"{shown(medians[0][1])} at {shown(medians[0][0])}, {shown(medians[-1][1])} at "
    ends += shown(medians[-1][0])
    if against:
        return Finding(REFUTED, f"{of}, {measure}: {'; '.join(against)}")
    return Finding(CONFIRMED, f"{of}, {measure}, {direction} at every step: {ends}")


def crossover(evidence: Evidence, *, of: str, to: str, measure: str) -> Finding:
    """One line is below another at the smallest x, and above it at the largest."""
    few = ratio(evidence, of=of, to=to, measure=measure, below=1.0, at="smallest")
    many = ratio(evidence, of=of, to=to, measure=measure, above=1.0, at="largest")
    verdicts = (few.verdict, many.verdict)
    why = f"{few.why}; {many.why}"
    if REFUTED in verdicts:
        return Finding(REFUTED, why)
    return Finding(CONFIRMED if set(verdicts) == {CONFIRMED} else NOT_COMPARABLE, why)


def alike(
    evidence: Evidence, *, lines: Sequence[str], measure: str, factor: float, at: X = "every"
) -> Finding:
    """Several lines stay within a factor of each other."""
    series = [evidence.series(line, measure) for line in lines]
    ranges: dict[X, list[float]] = {}
    for x in _places(_common(*series), at):
        found = [one.by_seed(x) for one in series]
        seeds = set.intersection(*(set(one) for one in found))
        values = [[one[seed] for one in found] for seed in sorted(seeds)]
        ranges[x] = [max(some) / min(some) for some in values if min(some) > 0]
    what = f"{measure} of {', '.join(lines)}, the largest divided by the smallest"
    return _within(what, ranges, None, factor)


def published_ratio(
    evidence: Evidence, *, of: str, to: str, measure: str, factor: float, at: X = "every"
) -> Finding:
    """The ratio of two lines is that of the paper, within a factor either way."""
    one, two = evidence.series(of, measure), evidence.series(to, measure)
    said, than = evidence.said(of, measure), evidence.said(to, measure)
    common = [x for x in _common(one, two) if said.get(x) and than.get(x)]
    ranges = {
        x: [found * than[x] / said[x] for found in one.ratios(two, x)] for x in _places(common, at)
    }
    return _within(
        f"{of} / {to}, {measure}, divided by the same of the paper", ranges, 1 / factor, factor
    )


def published(
    evidence: Evidence, *, of: str, measure: str, factor: float, at: X = "every"
) -> Finding:
    """The values of a line are those of the paper, within a factor either way."""
    series, said = evidence.series(of, measure), evidence.said(of, measure)
    common = [x for x in series.xs if said.get(x)]
    ranges = {x: [found / said[x] for found in series.at(x)] for x in _places(common, at)}
    return _within(f"{of}, {measure}, divided by that of the paper", ranges, 1 / factor, factor)


def decline(evidence: Evidence, *, of: str, measure: str, below: float) -> Finding:
    """A line's value at its last x is below a part of the largest value that it had before."""
    series = evidence.series(of, measure)
    if len(series.xs) < 3:
        return _nothing(f"{of}, {measure}", "at three places")
    last = series.xs[-1]
    peak = max(series.xs[:-1], key=series.median)
    ranges = {last: quotients(series.by_seed(last), series.by_seed(peak))}
    what = f"{of}, {measure}, divided by the largest before, that at {shown(peak)}"
    return _within(what, ranges, None, below)


RULES: dict[str, Rule] = {
    "ratio": ratio, "value": value, "growth": growth, "slope": slope, "monotone": monotone,
    "crossover": crossover, "alike": alike, "published-ratio": published_ratio,
    "published": published, "decline": decline,
}  # fmt: skip


def rule_parameters(claim: dict[str, Any]) -> dict[str, Any]:
    """The keys of a claim that are parameters of its rule."""
    return {key: value for key, value in claim.items() if key not in {"claim", "rule"}}


def check_parameters(rule: str, parameters: dict[str, Any]) -> None:
    """Refuse a rule that does not exist, and parameters that it lacks or does not have."""
    choose("rule", rule, RULES)
    known = list(inspect.signature(RULES[rule]).parameters.values())[1:]
    for name in parameters:
        choose(f"parameter of the rule {rule}", name, [one.name for one in known])
    for one in known:
        if one.default is inspect.Parameter.empty and one.name not in parameters:
            raise OptionError(f"the rule {rule} needs the parameter {one.name}")


# --- what rules have in common


def _within(
    what: str, ranges: dict[X, list[float]], above: float | None, below: float | None
) -> Finding:
    """Whether the values of all seeds at every x are above and below what is wanted."""
    ranges = {x: values for x, values in ranges.items() if values}
    if above is None and below is None:
        raise OptionError("a rule needs a bound: above or below")
    if not ranges:
        return _nothing(what, "here, or not published")
    low, high = above if above is not None else -math.inf, below if below is not None else math.inf
    wanted = _wanted(above, below)
    wrong = [x for x, values in ranges.items() if max(values) <= low or min(values) >= high]
    open_ = [x for x, values in ranges.items() if not (min(values) > low and max(values) < high)]
    if wrong:
        return Finding(REFUTED, f"{what}: {_shown(ranges, wrong)}, not {wanted}")
    if open_:
        seen = _shown(ranges, open_)
        return Finding(NOT_COMPARABLE, f"{what}: {seen}, on both sides of what is wanted, {wanted}")
    return Finding(CONFIRMED, f"{what}: {_shown(ranges, list(ranges))}, {wanted}")


def _shown(ranges: dict[X, list[float]], xs: Sequence[X], most: int = 3) -> str:
    """Some of the ranges: the first, the last, and one between."""
    if len(xs) > most:
        xs = [xs[0], xs[len(xs) // 2], xs[-1]]
    parts = []
    for x in xs:
        low, high = min(ranges[x]), max(ranges[x])
        seen = shown(low) if shown(low) == shown(high) else f"{shown(low)} to {shown(high)}"
        parts.append(f"{seen} at {shown(x)}")
    return ", ".join(parts)


def _wanted(above: float | None, below: float | None) -> str:
    parts = [f"above {shown(above)}"] if above is not None else []
    return " and ".join(parts + ([f"below {shown(below)}"] if below is not None else []))


def _common(*series: Series) -> list[X]:
    """Where all series have a value."""
    return [x for x in series[0].xs if all(one.at(x) for one in series[1:])]


def _places(xs: list[X], at: X) -> list[X]:
    match at:
        case "every":
            return xs
        case "smallest":
            return xs[:1]
        case "largest":
            return xs[-1:]
        case _:
            return [x for x in xs if x == at]


def _nothing(what: str, where: str) -> Finding:
    return Finding(NOT_COMPARABLE, f"{what}: not measured {where}")
