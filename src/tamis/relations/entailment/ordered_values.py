"""Values of ordered types as whole numbers, and what constants cut them into.

Every type but strings is a stretch of whole numbers in disguise: truth values are 0 and 1, moments
microseconds, doubles the numbers of their bits in order (nan last), decimals their digits without
the point. So a comparison with a constant is true below, at or above a place, nothing lies between
neighbours, and every stretch that is not empty has a value to show.
"""

import math
import struct
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from tamis.predicates.keys import double_key
from tamis.schema import Domain, IntRange
from tamis.timestamps import FIRST, LAST
from tamis.types import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, Kind, Type

_EXACT = Context(prec=200)
_DOUBLE, _BITS = struct.Struct("<d"), struct.Struct("<q")


def _number(value: float) -> int:
    """The number of a double: its key, without the gaps where -0.0 and other nans would be."""
    if math.isnan(value):
        return _INFINITY + 1
    key = double_key(value)
    return key if key >= 0 else key + 1


_INFINITY = double_key(math.inf)


class Order:
    """The values of one type, in their order, as the whole numbers from `low` to `high`."""

    def __init__(self, kind: Type, domain: Domain | None = None) -> None:
        self.kind = kind
        self.is_double = kind.kind is Kind.DOUBLE
        self.unit = Decimal(1).scaleb(kind.scale) if kind.kind is Kind.DECIMAL else None
        self.low, self.high = self._ends(domain)

    def _ends(self, domain: Domain | None) -> tuple[int, int]:
        if isinstance(domain, IntRange):
            return domain.low, domain.high
        match self.kind.kind:
            case Kind.BOOL:
                return 0, 1
            case Kind.INT32:
                return INT32_MIN, INT32_MAX
            case Kind.DOUBLE:
                return _number(-math.inf), _number(math.nan)
            case Kind.DECIMAL:
                return -(10**self.kind.digits) + 1, 10**self.kind.digits - 1
            case _:
                return INT64_MIN, INT64_MAX

    def around(self, constant: Any) -> tuple[int, int]:
        """The first number that is not below a constant, and the first that is above it."""
        if self.is_double:
            number = _number(constant)
            return number, number + 1
        if isinstance(constant, bool):
            return int(constant), int(constant) + 1
        if isinstance(constant, float):  # beside a 32-bit number, which every double can hold
            if not math.isfinite(constant):
                place = self.low if constant < 0 else self.high + 1
                return place, place
            return math.ceil(constant), math.floor(constant) + 1
        if self.unit is not None:
            constant = _EXACT.multiply(Decimal(constant), self.unit)
        if isinstance(constant, Decimal):
            above = int(constant.to_integral_value(ROUND_FLOOR)) + 1
            return int(constant.to_integral_value(ROUND_CEILING)), above
        return constant, constant + 1

    def value(self, number: int) -> Any:
        """The value that a number stands for."""
        match self.kind.kind:
            case Kind.BOOL:
                return bool(number)
            case Kind.DOUBLE:
                if number > _INFINITY:
                    return math.nan
                bits = number if number >= 0 else (number - 1) ^ INT64_MAX
                return _DOUBLE.unpack(_BITS.pack(bits))[0]
            case Kind.DECIMAL:
                return Decimal(number).scaleb(-self.kind.scale, _EXACT)
            case _:
                return number

    def pleasant(self, low: int, high: int) -> int:
        """A number of a stretch whose value people like to read."""
        if self.is_double:
            return self._pleasant_double(low, high)
        if self.kind.kind is Kind.TIMESTAMP:  # within the calendar, if it can be
            low, high = (max(low, FIRST), min(high, LAST)) if low <= LAST else (low, high)
            low = min(low, high)
        return 0 if low <= 0 <= high else (low if low > 0 else high)

    def _pleasant_double(self, low: int, high: int) -> int:
        if low <= 0 <= high:  # the number of 0.0
            return 0
        for number in (low, high):
            near = self.value(number)
            if math.isfinite(near) and abs(near) < 2**53:
                below, above = math.floor(near), math.ceil(near)
                for whole in (above, below, below + 1, above - 1):
                    if low <= _number(float(whole)) <= high:
                        return _number(float(whole))
        return low
