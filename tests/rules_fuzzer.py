"""Files of rules with wrong contents and right checksums, each opened in a process of its own.

    python tests/rules_fuzzer.py --trials 500 --seed 1

prints how many of them were refused, said the same as before, said something else, or ended the
process. Only the first two are fine. Something else is fine where the mutation changed what the
file says (`CONTENT`): which filters there are, not how they are found.
"""

import argparse
import copy
import json
import os
import random
import signal
import sys
import tempfile
import zlib
from collections import Counter
from pathlib import Path

import numpy as np

from stocks import SMALL, stock_filters, stock_rows
from tamis import FileError, Matcher, ParseError
from tamis import container as containers
from tamis.container import open_container, write

EVENTS = [dict(zip(SMALL, row, strict=True)) for row in stock_rows(5, 40)]
FEW = [*stock_filters(5, 150), "TRUE", "FALSE", "s LIKE '%7' OR x > i", "NOT i IN (1, 2, 3)",
       "s IN ('T1', 'T2', 'T9') AND i < 40", "(i < 3 OR x > 2) AND (s > 'T3' OR b)",
       "s RLIKE 'T[13]' AND x IS NULL", "s IS NULL OR i IN (4, 5)"]  # fmt: skip
# So many references that none has a name, with clusters that are found by values.
MANY = [f"i = {n % 60} AND x > {n / 7:.3f}" for n in range(3000)]
MANY += [f"s = 'T{n % 50}' AND x < {n / 9:.3f} AND i > {n % 7}" for n in range(3000)]
MANY += [*FEW, *(f"s <> 'T{n}' AND i <> {n}" for n in range(100))]

# What is said by these is not decided by anything else in the file.
CONTENT = {
    "segment.programs.refs", "segment.programs.named", "segment.programs.slots",
    "segment.steps.tested", "segment.steps.operands", "segment.steps.targets",
    "segment.cuts.keys", "segment.cuts.data", "segment.cuts.offsets", "segment.cuts.at",
    "segment.in.attributes", "segment.in.at", "segment.in.members",
    "segment.out.attributes", "segment.out.at", "segment.out.members",
    "segment.tests.sources", "segment.handles", "always.handles", "always.answers",
    "subscriptions.ids", "subscriptions.ids.offsets", "subscriptions.filters",
    "subscriptions.filters.offsets", "subscriptions.order", "header",
}  # fmt: skip


def said_by(path):
    """All that a file says."""
    matcher = Matcher.load(path)
    names = list(matcher)
    said = [
        names,
        [matcher.match(event) for event in EVENTS[:8]],
        matcher.match_batch(EVENTS).to_pydict(),
        matcher.match_batch(EVENTS, output="counts").to_pydict(),
        [str(matcher.get(name)) for name in names[::97]],
        [matcher.match(event) for event in EVENTS[:8]],
    ]
    for name in names[::3]:
        matcher.unsubscribe(name)
    matcher.explain()
    said.append(matcher.match_batch(EVENTS).to_pydict())
    matcher.save(path)  # everything is compiled again
    return [*said, matcher.match_batch(EVENTS).to_pydict()]


# --- mutations


def mutated(array, arrays, draw):
    """An array that is a little different."""
    array = array.copy()
    flat, size = array.reshape(-1), array.size
    way = draw.choice(["one", "one", "one", "swap", "cut", "grow", "kind", "turn", "other", "all"])
    if way == "one" and size:
        limits = np.iinfo(array.dtype)
        place = draw.randrange(size)
        near = int(flat[place]) + draw.choice([-8, -1, 1, 2, 8, 64])
        choices = [0, 1, -1, limits.min, limits.max, size, size - 1, near, near, near,
                   int(flat[draw.randrange(size)]), draw.randint(-100, 100_000)]  # fmt: skip
        flat[place] = min(max(draw.choice(choices), limits.min), limits.max)
    elif way == "swap" and size:
        one, other = draw.randrange(size), draw.randrange(size)
        flat[[one, other]] = flat[[other, one]]
    elif way == "cut":
        return flat[: draw.randrange(size + 1)].copy()
    elif way == "grow":
        return np.concatenate([flat, flat[-1:], np.zeros(draw.randrange(3), array.dtype)])
    elif way == "kind":
        return array.astype(draw.choice(["u1", "i1", "i4", "i8", "u4", "u8", "f8"]))
    elif way == "turn":
        return flat.reshape(-1, 1) if draw.random() < 0.5 else flat[::-1].reshape(array.shape)
    elif way == "other":
        return arrays[draw.choice(sorted(arrays))].copy()
    elif way == "all":
        flat[:] = draw.choice([0, 1, -1, 5]) if array.dtype.kind == "i" else draw.randrange(256)
    return array


def mutated_meta(meta, draw):
    """A header of which one part is different."""
    meta = copy.deepcopy(dict(meta))
    place = meta
    while True:
        keys = sorted(place) if isinstance(place, dict) else range(len(place))
        key = draw.choice(list(keys))
        if isinstance(place[key], dict | list) and place[key] and draw.random() < 0.9:
            place = place[key]
            continue
        old = place[key]
        choices = [None, 0, -1, 2**40, 1.5, "", "a", "aa&", "aa|", "int", "string", "bool", [], {}]
        if isinstance(old, str):
            choices += [old[:-1], old + "a", old.replace("&", "|"), old[::-1]] * 2
        if isinstance(old, int):
            choices += [old + 1, old - 1] * 3
        place[key] = draw.choice(choices)
        return meta


def mutated_sections(content, draw):
    """A file in whose list of sections one entry is different; its checksums are right."""
    length, _ = containers._LENGTHS.unpack_from(content, containers._START.size)
    header = json.loads(content[containers._BEFORE_JSON :][:length])
    old_base = -(-(containers._BEFORE_JSON + length) // 64) * 64
    body = content[old_base:]
    entry = draw.choice(header["sections"])
    field = draw.choice(["dtype", "shape", "offset", "length", "name"])
    other = draw.choice(header["sections"])
    entry[field] = draw.choice([other[field], entry[field], None, 0, -64, 2**62, "i8", [1, 2]])
    if isinstance(entry["length"], int) and isinstance(entry["offset"], int):
        part = body[max(entry["offset"], 0) :][: max(entry["length"], 0)]
        entry["crc32"] = zlib.crc32(part)
    text = json.dumps(header).encode()
    base = -(-(containers._BEFORE_JSON + len(text)) // 64) * 64
    start = containers._START.pack(containers.MAGIC, containers.VERSION)
    start += containers._LENGTHS.pack(len(text), base + len(body))
    start += containers._SUM.pack(zlib.crc32(text, zlib.crc32(start))) + text
    return start + b"\0" * (base - len(start)) + body


def write_mutant(sound, path, draw):
    """Write a mutant of a sound file; returns what was changed."""
    opened = open_container(sound)
    arrays = {name: opened.array(name) for name in opened}
    what = draw.choice(["header", "sections", *sorted(arrays), *sorted(arrays)])
    if what == "sections":
        path.write_bytes(mutated_sections(sound.read_bytes(), draw))
    else:
        meta = mutated_meta(opened.meta, draw) if what == "header" else opened.meta
        if what in arrays:
            arrays[what] = mutated(arrays[what], arrays, draw)
        write(path, meta, arrays)
        containers._trusted.clear()  # it was not written by `save`
    return what


# --- trials


def verdict(path, expected):
    """What opening a file in another process leads to."""
    read, written = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(300)
        try:
            found = "same" if said_by(path) == expected else "different"
        except FileError as error:
            is_clear = str(path) in str(error) or "save the file again" in str(error)
            found = "refused" if is_clear else f"refused without a name: {error}"
        except ParseError:  # a text that is not a filter any more
            found = "refused"
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the verdict
            found = f"{type(error).__name__}: {error}"
        os.write(written, found[:1000].encode())
        os._exit(0)
    os.close(written)
    with os.fdopen(read) as answers:
        found = answers.read()
    status = os.waitpid(child, 0)[1]
    return found if status == 0 else f"ended by signal {os.WTERMSIG(status)}"


def run(trials, seed):
    """Try mutants; counts of what came of them, and those that are not fine."""
    draw = random.Random(seed)  # noqa: S311 - not for secrets
    counts, bad = Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        sounds = []
        for number, texts in enumerate((FEW, MANY)):
            kind = (str, int)[number]
            sounds.append(Path(folder) / f"sound{number}.tamis")
            matcher = Matcher(SMALL)
            matcher.subscribe_many({kind(7 * n % 10_007): text for n, text in enumerate(texts)})
            matcher.save(sounds[-1])
        again = Path(folder) / "again.tamis"
        expected = []
        for sound in sounds:
            again.write_bytes(sound.read_bytes())
            expected.append(said_by(again))
        for _ in range(trials):
            number, path = draw.randrange(2), Path(folder) / "mutant.tamis"
            what = write_mutant(sounds[number], path, draw)
            found = verdict(path, expected[number])
            counts[found if found in {"same", "different", "refused"} else "other"] += 1
            if found not in {"same", "refused"} and (found != "different" or what not in CONTENT):
                bad.append(f"{what} of file {number}: {found}")
    return counts, bad


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found, wrong = run(options.trials, options.seed)
    sys.stdout.write(json.dumps({"counts": found, "bad": wrong}, indent=1) + "\n")
    sys.exit(bool(wrong))
