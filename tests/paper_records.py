"""Small records with given measurements, for tests of rules, verdicts and pages."""

from typing import Any


def record(
    values: dict[tuple[str, int | float | str], list[float | None]],
    claims: list[dict[str, Any]],
    **more: Any,
) -> dict[str, Any]:
    """A record that measured `time` of lines at some x, by seed."""
    seeds = max(map(len, values.values()), default=1)
    return {
        "name": "count-table-1", "paper": "COUNT", "figure": "Table 1", "title": "A table",
        "claim": "one is faster", "verdict": "", "why": "", "claims": claims, "setup": "Measured.",
        "today": "Still.", "facts": {}, "scale": "quick", "cases": [1], "x": "subscriptions",
        "seeds": list(range(seeds)), "parameters": {}, "measures": {"time": "ms"},
        "measurements": [
            {"line": line, "measure": "time", "x": x, "values": found}
            for (line, x), found in values.items()
        ],
        "published": {}, "pictures": [], "seconds": 1.0,
        "environment": {
            "tamis": "0", "python": "3", "processor": "none", "cores": 1, "load": 0.0,
            "libraries": {"numpy": "2"},
        },
    } | more  # fmt: skip
