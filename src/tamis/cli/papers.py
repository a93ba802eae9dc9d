"""``tamis papers``: the tables and figures of the papers, run again, with a verdict on each."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.options import add_json
from tamis.cli.output_folders import output_folder
from tamis.errors import FileError, OptionError, did_you_mean

if TYPE_CHECKING:
    from tamis.papers.run import RunStep
    from tamis.papers.verdicts import Record

OUT = "tamis-papers"
COMMAND = "tamis papers"
RESULTS, PAGE, MARKDOWN, CELLS = "results.jsonl", "index.html", "papers.md", "measurements.jsonl"

_DESCRIPTION = """\
Measure what the tables and figures of the four papers show, with engines that follow the papers,
and decide for each claim, from the measurements and by a rule that is named, whether it is
confirmed, refuted or not comparable.

The output folder gets results.jsonl (one line for each table or figure), index.html (for any
browser, with the published points in the pictures), papers.md, and measurements.jsonl (what was
measured so far, with which --resume goes on). A folder that an earlier run wrote is replaced.

The default takes about half an hour on two cores, --quick less than two minutes; --full has the
papers' own sizes and takes hours.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "papers",
        help="run the papers' tables and figures again, with a verdict on each",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    scale = parser.add_mutually_exclusive_group()
    scale.add_argument(
        "--quick", dest="scale", action="store_const", const="quick", default="default",
        help="tiny sizes, to see that everything works; verdicts mean little",
    )  # fmt: skip
    scale.add_argument(
        "--full", dest="scale", action="store_const", const="full", help="the papers' own sizes"
    )
    parser.add_argument(
        "--only", metavar="NAME", action="append", default=[],
        help="only this experiment (count-table-1) or paper (count); can be repeated",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="print the experiments, run nothing")
    parser.add_argument(
        "--resume", action="store_true", help="go on with an interrupted run of the same folder"
    )
    parser.add_argument(
        "--from", dest="source", metavar="FILE",
        help="run nothing: decide and write everything again from the results of an earlier run",
    )  # fmt: skip
    parser.add_argument(
        "--out", default=OUT, metavar="DIR", help=f"folder for the results (default: {OUT})"
    )
    parser.add_argument(
        "--markdown", metavar="FILE",
        help="write the Markdown to this file as well, and the results beside it (.jsonl)",
    )  # fmt: skip
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the experiments, write the results and print the verdicts."""
    from tamis.papers.experiment import experiment

    if options.source and (options.resume or options.scale != "default"):
        raise OptionError("--from runs nothing, so --quick, --full and --resume do not go with it")
    names = chosen(options.only)
    if options.list:
        for name in names:
            found = experiment(name)
            print(f"{name:<26} {found.paper}, {found.figure}: {found.title}")
        return
    begin = time.monotonic()
    files = (RESULTS, PAGE, MARKDOWN, CELLS)
    with output_folder(Path(options.out), COMMAND, files, _is_ours) as out:
        if options.source:
            records = judged_again(Path(options.source), names)
        else:
            records = measured(options, names, out)
        write_results(out / RESULTS, records)
        write_pages(out, records)
    if options.markdown:
        write_markdown(Path(options.markdown), records)
    summary = {
        "command": COMMAND, "scale": options.scale, "seconds": round(time.monotonic() - begin, 1),
        "results": [
            {key: record[key] for key in ("name", "paper", "figure", "claim", "verdict", "why")}
            for record in records
        ],
        "page": str(out / PAGE),
    }  # fmt: skip
    print(json.dumps(summary) if options.json else "\n".join(_lines(summary)))


def chosen(only: Sequence[str]) -> list[str]:
    """The experiments that are asked for, all if nothing is."""
    from tamis.papers.experiment import experiment_names

    names = experiment_names()
    if not only:
        return names
    wanted: list[str] = []
    for one in only:
        found = [name for name in names if name == one or name.partition("-")[0] == one.lower()]
        if not found:
            papers = sorted({name.partition("-")[0] for name in names})
            hint = did_you_mean(one, [*names, *papers]) or f"papers are {', '.join(papers)}"
            raise OptionError(f"--only {one}: no such experiment; {hint}")
        wanted += found
    return [name for name in names if name in wanted]


def measured(options: argparse.Namespace, names: Sequence[str], out: Path) -> "list[Record]":
    """The records of experiments, measured now or, with --resume, earlier."""
    from tamis.papers.experiment import experiment
    from tamis.papers.run import CellFile, cells_of, rehearse, run_experiment

    experiments = [experiment(name) for name in names]
    total = len({
        cell for one in experiments for cell in cells_of(one, one.scales[options.scale])
    })  # fmt: skip
    cells = CellFile(out / CELLS, resume=options.resume)
    with ExitStack() as stack:
        watch = _watch(stack, total, silent=options.json or not sys.stderr.isatty())
        for one in experiments:
            rehearse(one, options.scale, cells)
        return [run_experiment(one, options.scale, cells, watch) for one in experiments]


def _watch(stack: ExitStack, total: int, *, silent: bool) -> "Callable[[RunStep], None]":
    """A bar that shows what is measured; nothing in a pipe, or beside JSON."""
    from tqdm import tqdm

    bar = stack.enter_context(tqdm(total=total, unit="case", leave=False, disable=silent))
    started = False

    def watch(step: "RunStep") -> None:
        nonlocal started
        bar.update(1 if started else 0)
        started = True
        bar.set_description(f"{step.experiment.name}, {step.case}, seed {step.seed}")

    return watch


def judged_again(source: Path, names: Sequence[str]) -> "list[Record]":
    """The records of an earlier run, with verdicts that are computed anew."""
    from tamis.papers.run import read_lines
    from tamis.papers.verdicts import judge

    try:
        records = [judge(found) for found in read_lines(source) if found.get("name") in names]
    except (KeyError, TypeError, AttributeError) as error:
        raise FileError(f"{source} has no results of {COMMAND}: {error!r}") from None
    if not records:
        raise FileError(f"{source} has no results of {COMMAND}")
    return records


def write_results(path: Path, records: "Sequence[Record]") -> None:
    """Write one line for each table or figure."""
    _write(path, "".join(json.dumps(record) + "\n" for record in records))


def write_pages(out: Path, records: "Sequence[Record]") -> None:
    from tamis.papers.markdown import results_markdown
    from tamis.papers.page import results_page

    results_page(records).write(out / PAGE)
    _write(out / MARKDOWN, results_markdown(records))


def write_markdown(path: Path, records: "Sequence[Record]") -> None:
    from tamis.papers.markdown import results_markdown

    _write(path, results_markdown(records))
    write_results(path.with_suffix(".jsonl"), records)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}") from None


def _is_ours(out: Path) -> bool:
    return (out / CELLS).exists() or (out / MARKDOWN).exists()


def _lines(summary: dict[str, Any]) -> list[str]:
    """The verdicts as lines of text."""
    lines = []
    for result in summary["results"]:
        lines.append(f"{result['paper'] + ', ' + result['figure']:<24} {result['verdict']}")
        lines.append(f"    {result['claim']}")
    lines += ["", f"{summary['seconds']:g} s; page: {summary['page']}"]
    return lines
