"""Exactly once, whatever dies: the stream is killed at random moments and started again.

After each kill subscriptions change, so a micro-batch that is done again would show it if it were
matched with other subscriptions than before. TAMIS_KILLS asks for more kills than the few of every
run.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tamis import Matcher

pytestmark = pytest.mark.spark

KILLS = int(os.environ.get("TAMIS_KILLS", "2"))
FILES, EVENTS = 3 * KILLS + 6, 200  # files, one for a micro-batch, and events of a file
SCHEMA = {"id": "int", "kind": "string", "value": "double"}
STREAMER = Path(__file__).with_name("streamer.py")


def event(number: int, chance: random.Random) -> dict[str, object]:
    made: dict[str, object] = {"id": number, "value": round(chance.uniform(0, 100), 1)}
    if chance.random() < 0.9:
        made["kind"] = chance.choice("abcdef")
    return made


def change(version: int, chance: random.Random) -> list[dict[str, object]]:
    """Subscriptions that come, are replaced, go, and one that cannot be used."""
    rows: list[dict[str, object]] = [
        {
            "id": f"s{chance.randrange(60)}",
            "filter": f"kind = '{chance.choice('abcdef')}' AND value < {chance.randrange(100)}",
        }
        for _ in range(60 if version == 0 else 8)
    ]
    if version:
        rows += [{"id": f"s{chance.randrange(60)}", "op": "delete"} for _ in range(4)]
        rows.append({"id": "s1", "filter": "valve < 3"})
    return rows


def put(path: Path, rows: list[dict[str, object]]) -> None:
    aside = path.with_name(f".{path.name}")
    aside.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    aside.rename(path)


def start(root: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, str(STREAMER), str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # so that the JVM and the workers can be killed with it
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("started"):
            break
    return process


def kill(process: subprocess.Popen[str], root: Path, chance: random.Random) -> bool:
    """After some micro-batches and a moment, the driver or all; False if it was done before."""
    commits = root / "checkpoint/tamis/commits"
    wanted = len(list(commits.glob("*.json"))) + chance.randrange(4)
    while process.poll() is None and len(list(commits.glob("*.json"))) < wanted:
        time.sleep(0.02)  # to look again, not to be in time
    time.sleep(chance.uniform(0, 2))  # any moment is the right one
    if process.poll() is not None:
        return False
    if chance.random() < 0.3:
        os.kill(process.pid, signal.SIGKILL)
        time.sleep(0.5)  # the JVM may go on for a moment
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return True


def subscriptions_at(root: Path, version: int) -> dict[str, str]:
    """What the change files of a version come to, as naively as can be."""
    record = json.loads((root / f"checkpoint/tamis/versions/{version:08}.json").read_text())
    held: dict[str, str] = {}
    for name in sorted(record["position"]):
        for line in (root / "changes" / name).read_text().splitlines():
            row = json.loads(line)
            if row.get("op") == "delete":
                held.pop(row["id"], None)
            elif "valve" not in row["filter"]:
                held[row["id"]] = row["filter"]
    return held


def files_of_batches(root: Path) -> dict[int, set[Path]]:
    """From Spark's own logs.

    A file is a step of the source. A query that died between noting the step and noting the batch
    leaves a step to the next batch, which then has two.
    """
    steps: dict[int, set[Path]] = {}
    for log in (root / "checkpoint/sources/0").glob("[0-9]*"):
        for line in log.read_text().splitlines()[1:]:
            entry = json.loads(line)
            path = Path(entry["path"].removeprefix("file://"))
            steps.setdefault(entry["batchId"], set()).add(path)
    ends = {
        int(log.name): json.loads(log.read_text().splitlines()[-1])["logOffset"]
        for log in (root / "checkpoint/offsets").glob("[0-9]*")
    }
    found: dict[int, set[Path]] = {}
    before = -1
    for batch, end in sorted(ends.items()):
        found[batch] = set().union(*(steps[step] for step in range(before + 1, end + 1)))
        before = end
    assert set().union(*found.values()) == set((root / "events").iterdir())
    return found


def expected(root: Path) -> Counter[tuple[int, int, str]]:
    """(batch, event, subscription), from what Spark and tamis have noted about each batch."""
    found: Counter[tuple[int, int, str]] = Counter()
    for batch, paths in files_of_batches(root).items():
        rows = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
        pin = json.loads((root / f"checkpoint/tamis/batches/{batch:08}.json").read_text())
        matcher = Matcher(SCHEMA, engine="naive")
        matcher.subscribe_many(subscriptions_at(root, pin["version"]))
        for row in rows:
            found.update((batch, row["id"], one) for one in matcher.match(row))
    return found


def test_nothing_is_lost_and_nothing_comes_twice(tmp_path):
    chance = random.Random(20261115)  # noqa: S311 - which moments, not which secrets
    (tmp_path / "events").mkdir()
    (tmp_path / "changes").mkdir()
    for file in range(FILES):
        rows = [event(file * EVENTS + n, chance) for n in range(EVENTS)]
        put(tmp_path / f"events/{file:05}.json", rows)
        # The file source takes the oldest first.
        os.utime(tmp_path / f"events/{file:05}.json", (1e9 + file, 1e9 + file))
    put(tmp_path / "changes/0000.jsonl", change(0, chance))

    kills = 0
    for attempt in range(1, 4 * KILLS):
        process = start(tmp_path)
        if kills == KILLS or not kill(process, tmp_path, chance):
            break
        kills += 1
        put(tmp_path / f"changes/{attempt:04}.jsonl", change(attempt, chance))
    output, _ = process.communicate()
    assert process.returncode == 0, output[-3000:]
    assert kills >= min(KILLS, 2)

    folders = sorted((tmp_path / "out/matches").iterdir())
    batches = sorted(int(folder.name.removeprefix("batch=")) for folder in folders)
    assert batches == sorted(files_of_batches(tmp_path))
    found: Counter[tuple[int, int, str]] = Counter()
    for folder in folders:
        batch = int(folder.name.removeprefix("batch="))
        table = pq.read_table(folder, partitioning=None).to_pydict()
        pairs = zip(table["event_id"], table["subscription"], strict=True)
        found.update((batch, *pair) for pair in pairs)
    wanted = expected(tmp_path)
    assert found == wanted
    assert len(found) > FILES
    assert list((tmp_path / "out/_aside").iterdir()) == []
    if kills == KILLS:
        versions = {
            json.loads((tmp_path / f"checkpoint/tamis/batches/{b:08}.json").read_text())["version"]
            for b in batches
        }
        assert len(versions) > 1  # subscriptions did change on the way
    print(f"{kills} kills, {FILES * EVENTS} events, {sum(found.values())} matches, 0 differences")  # noqa: T201 - for the long run
