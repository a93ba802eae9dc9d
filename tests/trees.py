"""Tree matchers of small subscriptions, what their trees look like, and what events visit."""

import numpy as np

from tamis import Matcher, Schema

ATTRIBUTES = Schema({f"a{n}": "int" for n in range(1, 6)})
BARE = {"collapse": False, "successors": "none"}
AT_ONCE = {"young": 0}  # annotate as soon as there is something


def matcher(subscriptions, schema=ATTRIBUTES, **options):
    made = Matcher(schema, engine="tree", options=options)
    made.subscribe_many(subscriptions)
    return made


def vectors(rows):
    """Subscriptions written as the paper writes them: a value or * for each attribute."""
    return {
        number: " AND ".join(
            f"a{place} = {value}" for place, value in enumerate(row.split(), 1) if value != "*"
        )
        for number, row in enumerate(rows, 1)
    }


def outline(matched, which):
    """path -> (test or subscriptions, successors) of one of the trees of a matcher."""
    engine = matched._held.engine
    handles = engine._slots._handles
    found = {}
    for path, view in engine.outline()[which].items():
        slots = np.array(sorted(view.slots), np.int64)
        held = sorted(matched._held.subscriptions.ids_of(handles[slots]))
        found[path] = (view.test or held, view.successors)
    return found


def shape(matched, which):
    """path -> test or subscriptions."""
    return {path: view for path, (view, _) in outline(matched, which).items()}


def state(matched):
    trees = ("general", "equality", "annotated")
    return matched._held.engine.statistics(), [shape(matched, which) for which in trees]


def event(*values):
    return {f"a{place}": value for place, value in enumerate(values, 1) if value is not None}


def visits(matched, *events):
    matched._held.engine.reset_visited()
    for one in events:
        matched.match(one)
    return matched._held.engine.visited


def workload(count, seed=1, attributes=5, values=3, care=0.6):
    chance = np.random.default_rng(seed)
    wanted = chance.integers(1, values + 1, (count, attributes))
    rows = np.where(chance.random((count, attributes)) < care, wanted.astype(str), "*")
    rows[(rows == "*").all(axis=1), 0] = "1"
    return vectors(" ".join(row) for row in rows.tolist())


def all_events(values=3, attributes=5):
    grid = np.indices((values,) * attributes).reshape(attributes, -1).T + 1
    return [event(*row) for row in grid.tolist()]
