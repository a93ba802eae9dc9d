"""The files that a path names, and their format, which the extension says."""

import glob
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from tamis.errors import FileError, MissingDependency
from tamis.file_tables.text_types import STRING, settled, type_of_texts
from tamis.file_tables.text_values import text_reader

FORMATS = ("parquet", "json", "jsonl", "csv", "xml")
CODECS = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
TABLE = "table:"  # begins the name of a table of Spark's catalog
CORRUPT = "_corrupt_record"  # the column for the text of a row that cannot be read

_ADDRESS = re.compile(r"^[a-z][a-z0-9+.-]+:", re.IGNORECASE)
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class InputFiles(NamedTuple):
    """Files to read, in the order in which they are read."""

    name: str  # as the user names them
    format: str
    files: list[Path]
    partitions: list[dict[str, str | None]]  # for each file, what the folders around it say
    columns: pa.Schema  # of the partitions

    def partition_values(self, number: int) -> list[Any]:
        """The values of the columns of partitions, for one file."""
        texts = self.partitions[number]
        found = []
        for field in self.columns:
            text = texts[field.name]
            found.append(None if text is None else text_reader(field.type, is_inferred=False)(text))
        return found


def find_files(name: str) -> InputFiles:
    """The files of a path: one file, those of a folder, or those of a pattern."""
    if name.startswith(TABLE) or (_ADDRESS.match(name) and not name.startswith("file:")):
        raise MissingDependency(
            f"{name} can only be read by Spark; leave out --local, and install PySpark: "
            "pip install 'tamis[spark]'"
        )
    path = Path(re.sub(r"^file:(//)?", "", name)).expanduser()
    roots = [path] if path.exists() else sorted(Path(one) for one in _globbed(str(path)))
    if not roots:
        raise FileError(f"{path.absolute()} does not exist")
    found = [one for root in roots for one in _files(root, root)]
    partitions = [_partitions(file, root) for file, root in found]
    files = [file.absolute() for file, _ in found]
    return InputFiles(
        name, format_of(name, [str(file) for file in files]), files, partitions,
        _partition_columns(name, partitions),
    )  # fmt: skip


def _globbed(pattern: str) -> Iterator[str]:
    """The paths of a pattern, which may have alternatives: ``{a,b}``."""
    choice = re.search(r"\{([^{}]*)\}", pattern)
    if choice is None:
        yield from glob.glob(pattern)  # noqa: PTH207 - a pattern
        return
    for one in choice[1].split(","):
        yield from _globbed(pattern[: choice.start()] + one + pattern[choice.end() :])


def _files(place: Path, root: Path) -> Iterator[tuple[Path, Path]]:
    """The files of a folder, and of the folders in it that are partitions: ``day=2024-05-01``."""
    if not place.is_dir():
        yield place, root
        return
    inside = sorted(one for one in place.iterdir() if not one.name.startswith((".", "_")))
    for one in inside:
        if one.is_file() or (one.is_dir() and "=" in one.name):
            yield from _files(one, root)


def _partitions(file: Path, root: Path) -> dict[str, str | None]:
    if file == root:
        return {}
    found: dict[str, str | None] = {}
    for part in file.parent.relative_to(root).parts:
        name, _, text = part.partition("=")
        found[unquote(name)] = None if text == _NO_VALUE else unquote(text)
    return found


def _partition_columns(name: str, partitions: list[dict[str, str | None]]) -> pa.Schema:
    names = list(partitions[0]) if partitions else []
    if any(list(one) != names for one in partitions):
        raise FileError(
            f"{name}: the folders of its files name different columns; read them separately"
        )
    types = [type_of_texts(one[column] for one in partitions) for column in names]
    return pa.schema(
        [(column, settled(kind) or STRING) for column, kind in zip(names, types, strict=True)]
    )


def format_of(name: str, files: Sequence[str]) -> str:
    """The format that all files have."""
    found = sorted({extension(file) for file in files}) or [extension(name)]
    if found == [""]:  # files without extensions, in a folder that may have one
        found = [extension(name)]
    known = " ".join(f".{each}" for each in FORMATS)
    if len(found) > 1:
        listed = ", ".join(each or "none" for each in found)
        raise FileError(
            f"{name} has files with several extensions ({listed}); choose those to read by a "
            "pattern, such as *.parquet, or give their format"
        )
    if found[0][1:] not in FORMATS:
        problem = f"the extension {found[0]!r} is unknown" if found[0] else "no extension"
        if not files:
            problem = "it has no files"
        raise FileError(f"{name}: {problem}; files end in {known}, or give their format")
    return found[0][1:]


def extension(path: str) -> str:
    """The extension of a file, without that of its compression: ``.csv`` of ``a.csv.gz``."""
    suffixes = PurePosixPath(path.rstrip("/")).suffixes
    if suffixes and suffixes[-1].lower() in CODECS:
        suffixes.pop()
    return suffixes[-1].lower() if suffixes else ""
