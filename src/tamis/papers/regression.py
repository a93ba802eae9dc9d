"""The slope of a line through points, both axes logarithmic, with its confidence interval."""

import math
from collections.abc import Sequence

# The 97.5 % quantile of Student's t by degrees of freedom; beyond them, that of the normal
# distribution is near enough.
_QUANTILES = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_NORMAL = 1.96


def fitted_slope(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The slope by least squares on logarithms, and how far its 95 % interval goes either way.

    >>> slope, margin = fitted_slope([(1, 2), (10, 20), (100, 200)])
    >>> round(slope, 6), round(margin, 6)
    (1.0, 0.0)
    """
    logs = [(math.log(x), math.log(y)) for x, y in points]
    number = len(logs)
    mean_x = sum(x for x, _ in logs) / number
    mean_y = sum(y for _, y in logs) / number
    spread = sum((x - mean_x) ** 2 for x, _ in logs)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in logs) / spread
    left = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in logs)
    freedom = number - 2
    quantile = _QUANTILES[freedom - 1] if freedom <= len(_QUANTILES) else _NORMAL
    return slope, quantile * math.sqrt(left / freedom / spread)
