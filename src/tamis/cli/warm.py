"""``tamis warm``: compiles all kernels now, so that no first use has to wait for it."""

import argparse
import json
from pathlib import Path

from tamis.cli.options import add_json
from tamis.errors import FileError, counted

_DESCRIPTION = """\
Compile what tamis compiles on first use, and keep it in files. Run it when an image is built:
whoever uses tamis there finds the compiled code, also with another account, without a home and
where nothing can be written. It fits one kind of processor and one version of Python, numba and
numpy; elsewhere tamis compiles anew.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "warm",
        help="compile everything now, as when an image is built",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--to",
        metavar="FOLDER",
        help="keep it there, for processes with NUMBA_CACHE_DIR=FOLDER (default: in the package "
        "if it can be written, else in the user's folder for caches)",
    )
    parser.add_argument(
        "--only",
        choices=("matching", "papers", "relations"),
        help="compile only what the default engine, the engines of the papers, or covering needs",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Compile, and say where it is kept, how many kernels there are and how long it took."""
    from tamis.kernels import kernel_cache
    from tamis.kernels.compilations import compilations
    from tamis.rehearsal import REHEARSALS

    with kernel_cache.writing_to(_place(options.to)) as folder:
        for name, rehearse in REHEARSALS.items():
            if options.only in {None, name}:
                rehearse()
                kernel_cache.write(kernel_cache.done(name), b"", folder)
    kept = sum(1 for _ in folder.glob(f"*{kernel_cache.SUFFIX}"))
    bytes_ = sum(file.stat().st_size for file in folder.iterdir())
    count, seconds = compilations.count, compilations.seconds
    if options.json:
        report = {
            "folder": str(folder), "kernels": kept, "bytes": bytes_, "compiled": count,
            "seconds": round(seconds, 3),
        }  # fmt: skip
        print(json.dumps(report))
        return
    print(f"{counted(kept, 'kernel')}, {bytes_ / 1e6:.1f} MB, in {folder}")
    print(f"{counted(count, 'kernel')} compiled in {seconds:.1f} s, the others were there")


def _place(given: str | None) -> Path:
    """The folder below which kernels are kept."""
    from tamis.kernels import kernel_cache

    if given is not None:
        folder = kernel_cache.below(Path(given))
        if not kernel_cache.can_be_written(folder):
            raise FileError(f"--to {given}: files cannot be written there")
        return folder
    if kernel_cache.can_be_written(kernel_cache.package_folder()):
        return kernel_cache.package_folder()
    usual = kernel_cache.usual_folder()
    if usual is not None:
        return usual.parent
    raise FileError(
        "there is no folder in which compiled code could be kept; name one with --to FOLDER, and "
        "set NUMBA_CACHE_DIR=FOLDER for the processes that are to use it"
    )
