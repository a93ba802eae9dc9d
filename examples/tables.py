"""Events in an Arrow table, matches in another: joined back to see who gets what."""

import pyarrow as pa

import tamis

events = pa.table(
    {
        "symbol": ["IBM", "DELL", "IBM", "AMD"],
        "price": [101.5, 20.0, 99.0, None],
        "at": pa.array([0, 60, 120, 180], pa.timestamp("s", "UTC")),
    }
)
rules = pa.table(
    {
        "id": [1, 2, 3],
        "filter": [
            "symbol = 'IBM' AND price > 100",
            "price IS NULL",
            "at >= '1970-01-01 00:01:00'",
        ],
    }
)

matcher = tamis.Matcher(events.schema)
matcher.subscribe_many(rules)
pairs = matcher.match_batch(events)
for event, rule in zip(*pairs.to_pydict().values(), strict=True):
    print(f"rule {rule} <- {events.slice(event, 1).to_pylist()[0]}")
print(matcher.match_batch(events, output="counts").to_pydict())
