"""``tamis simulate``: networks of brokers in virtual time, with faults, checked by an oracle."""

import argparse
import json
import shlex
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.argument_types import positive, seed
from tamis.cli.options import add_json
from tamis.errors import FileError, RoutingError, counted
from tamis.semantics import NAMES

if TYPE_CHECKING:
    from tamis.routing.simulation.campaign import CampaignSummary, FailedScenario
    from tamis.routing.simulation.scenario import Scenario
    from tamis.routing.simulation.scenario_generator import ScenarioOptions
    from tamis.routing.simulation.strategy_costs import StrategyCosts

_DESCRIPTION = """\
Simulate what can happen in a network of brokers: clients come, subscribe, publish and go; messages
are lost, doubled or late; brokers pause, crash and return. An oracle checks that every client gets
exactly what it must get. A seed determines everything, so a simulation can be repeated. If one
fails, it is made as small as possible and printed step by step, and the exit code is 1.
"""

SEEDS = 200
ALL = "all"


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    from tamis.routing.simulation.scenario import FAULT_LEVELS
    from tamis.routing.simulation.topology import SHAPES
    from tamis.routing.strategies import STRATEGIES

    parser = commands.add_parser(
        "simulate",
        help="simulate a network of brokers, with faults",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--seeds", type=positive, default=SEEDS, metavar="N",
        help=f"number of simulations (default: {SEEDS})",
    )  # fmt: skip
    what.add_argument("--seed", type=seed, metavar="K", help="run only the simulation of this seed")
    what.add_argument("--replay", metavar="FILE", help="run the simulation that --save wrote")
    parser.add_argument(
        "--from", type=seed, default=0, dest="first", metavar="K", help="first seed (default: 0)"
    )
    parser.add_argument(
        "--brokers", type=positive, metavar="N", help="number of brokers (default: 3 to 7)"
    )
    parser.add_argument(
        "--topology", choices=SHAPES, default="random",
        help="how brokers are connected (default: random, one of the others)",
    )  # fmt: skip
    parser.add_argument(
        "--strategy", choices=(*STRATEGIES, ALL), default=ALL,
        help="how brokers route (default: all, in turn)", metavar="NAME",
    )  # fmt: skip
    parser.add_argument(
        "--faults", choices=(*FAULT_LEVELS, ALL), default=ALL,
        help="none, lossy (brokers never lose contact), crashing, or all in turn (default)",
    )  # fmt: skip
    parser.add_argument(
        "--semantics", choices=(*NAMES, ALL), default=ALL,
        help="what a missing attribute means (default: all, in turn)",
    )  # fmt: skip
    parser.add_argument(
        "--save", metavar="FILE", help="file for a simulation that fails, for --replay"
    )
    parser.add_argument(
        "--measures", action="store_true",
        help="compare the costs of the strategies, in one larger network without faults",
    )  # fmt: skip
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the simulations and print a summary."""
    if options.save is not None and not Path(options.save).parent.is_dir():
        raise FileError(f"{options.save} cannot be written: its folder does not exist")
    if options.measures:
        _measure(options)
        return
    from tamis.routing.simulation.campaign import CampaignSummary
    from tamis.routing.simulation.campaign import run as run_all

    summary = CampaignSummary()
    begin = time.monotonic()
    try:
        run_all(_with_progress(options), summary=summary)
    except KeyboardInterrupt:
        print("\n".join(_lines(summary, time.monotonic() - begin)))
        raise
    seconds = time.monotonic() - begin
    failure = summary.failure
    if failure is not None and options.save is not None:
        failure.scenario.save(options.save)
    if options.json:
        print(json.dumps(summary.to_dict() | {"seconds": round(seconds, 3)}))
    else:
        print("\n".join([*_lines(summary, seconds), *_failure_lines(failure, options)]))
    if failure is not None:
        sys.stdout.flush()
        raise RoutingError(f"seed {failure.scenario.seed}: {failure.violation}")


# --- simulations


def _with_progress(options: argparse.Namespace) -> "Iterator[Scenario]":
    """The chosen scenarios, with a progress bar on a terminal."""
    from tqdm import tqdm

    found, total = _scenarios(options)
    silent = options.json or not sys.stderr.isatty()
    yield from tqdm(found, total=total, unit="seed", leave=False, disable=silent)


def _scenarios(options: argparse.Namespace) -> "tuple[Iterable[Scenario], int]":
    from tamis.routing.simulation.campaign import scenarios
    from tamis.routing.simulation.scenario import load

    if options.replay is not None:
        return [load(options.replay)], 1
    seeds = range(options.first, options.first + options.seeds)
    if options.seed is not None:
        seeds = range(options.seed, options.seed + 1)
    return scenarios(seeds, _scenario_options(options)), len(seeds)


def _scenario_options(options: argparse.Namespace) -> "ScenarioOptions":
    from tamis.routing.simulation.scenario_generator import ScenarioOptions

    return ScenarioOptions(
        strategy=options.strategy,
        semantics=options.semantics,
        faulty=options.faults,
        topology=options.topology,
        brokers=options.brokers,
    )


def _lines(summary: "CampaignSummary", seconds: float) -> list[str]:
    """The summary as lines of text."""
    counts = summary.to_dict()
    faults = ", ".join(
        f"{count:,} {name}" for name, count in sorted(summary.faults.items()) if count
    )
    rate = f"{summary.seeds / seconds:,.0f} per second" if seconds else "at once"
    return [
        f"{counted(summary.seeds, 'seed')} in {seconds:,.1f} s, {rate}",
        f"messages between brokers {counts['messages']:,}",
        f"faults injected          {faults or 'none'}",
        f"requests of clients      {counts['requests']:,}, {counts['refusals']:,} refused",
        f"publications             {counts['publications']:,}",
        f"deliveries               {counts['deliveries']:,}",
        f"lost where a link failed {counts['excused']:,}",
        f"longest queue of a link  {counts['longest_queue']:,}",
        f"violations               {counts['violations']:,}",
    ]


def _failure_lines(failure: "FailedScenario | None", options: argparse.Namespace) -> list[str]:
    """The steps of a failing simulation, and the command that repeats it."""
    if failure is None:
        return []
    command = shlex.join(["tamis", "simulate", *_replay_arguments(failure.scenario, options)])
    return [
        "",
        "the smallest simulation that fails in this way:",
        *failure.trace,
        "",
        f"repeat it with: {command}",
    ]


def _replay_arguments(scenario: "Scenario", options: argparse.Namespace) -> Iterator[str]:
    file = options.save or options.replay
    if file is not None:
        yield from ("--replay", file)
        return
    yield from ("--seed", str(scenario.seed), "--strategy", scenario.strategy)
    yield from ("--faults", scenario.faulty, "--semantics", scenario.semantics)
    if options.topology != "random":
        yield from ("--topology", options.topology)
    if options.brokers is not None:
        yield from ("--brokers", str(options.brokers))


# --- measures


def _measure(options: argparse.Namespace) -> None:
    from tqdm import tqdm

    from tamis.routing.simulation import strategy_costs
    from tamis.routing.strategies import STRATEGIES

    wanted = STRATEGIES if options.strategy == ALL else (options.strategy,)
    semantics = "sql" if options.semantics == ALL else options.semantics
    shape = "tree" if options.topology == "random" else options.topology
    silent = options.json or not sys.stderr.isatty()
    found = [
        strategy_costs.measure_costs(
            strategy_costs.large_scenario(
                options.seed or options.first, strategy, semantics=semantics, topology=shape,
                brokers=options.brokers or strategy_costs.BROKERS,
                subscriptions=strategy_costs.SUBSCRIPTIONS,
                publications=strategy_costs.PUBLICATIONS,
            )
        )
        for strategy in tqdm(wanted, unit="strategy", leave=False, disable=silent)
    ]  # fmt: skip
    if options.json:
        print(json.dumps([one.to_dict() for one in found]))
    else:
        print("\n".join(_table(found)))


def _table(found: "list[StrategyCosts]") -> Iterator[str]:
    columns: list[tuple[str, Any]] = [
        ("table", lambda one: one.table_size),
        ("largest", lambda one: max(one.tables.values(), default=0)),
        ("control", lambda one: sum(_control(one))),
        ("carried", lambda one: one.carried.total()),
        ("needless", lambda one: one.false_positives),
        ("delivered", lambda one: one.deliveries),
    ]
    yield f"{'strategy':<26}" + "".join(f"{title:>11}" for title, _ in columns)
    for one in found:
        yield f"{one.strategy:<26}" + "".join(f"{value(one):>11,}" for _, value in columns)
    yield ""
    yield "table: subscriptions held by all brokers; largest: by the broker that holds most"
    yield "control: messages about subscriptions and advertisements between brokers"
    yield "carried: publications sent over links; needless: those that no client wanted"


def _control(one: "StrategyCosts") -> Iterator[int]:
    for kind in ("Advertise", "Unadvertise", "Subscribe", "Unsubscribe", "Ack"):
        yield one.sent[kind]
