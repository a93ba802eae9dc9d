"""The values of one type in their order, and the cuts between them.

A *cut* lies right before a value, or after all of them; a set of values is made of intervals
between cuts (`value_sets`). Cuts are whole numbers or bytes that compare as the values do:

* whole numbers, moments (microseconds) and truth values (0 and 1) are their own cuts
* doubles are numbered in their order: -infinity comes first, 0.0 and -0.0 are 0, NaN comes last
* decimals are their digits without the point
* strings are their UTF-8 bytes, which are in the order of code points

Nothing lies between neighbours: the cut after 4 is the one before 5, the cut after a double is the
one before the next double, and the cut after ``'a'`` is the one before ``'a\\0'``. So cuts that no
value lies between are the same cut.
"""

import functools
import math
import struct
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from tamis.predicates.keys import double_key
from tamis.schema import Attribute, Domain, IntRange
from tamis.timestamps import FIRST, LAST
from tamis.types import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, Kind, Type

Cut = Any  # int, or bytes for strings: cuts are only compared with cuts of the same order

_AFTER_STRINGS = b"\xff"  # no UTF-8 text begins with this byte
_EXACT = Context(prec=200)
_DOUBLE, _BITS = struct.Struct("<d"), struct.Struct("<q")


def _number(value: float) -> int:
    """The number of a double: its key, without the gaps where -0.0 and other nans would be."""
    if math.isnan(value):
        return _INFINITY + 1
    key = double_key(value)
    return key if key >= 0 else key + 1


_INFINITY = double_key(math.inf)


def _effort(value: float) -> tuple[bool, int]:
    """How hard a double is to write."""
    return not math.isfinite(value), len(repr(value))


class ValueOrder:
    """The values of a type, or of a domain of it, from the cut `start` to the cut `end`."""

    def __init__(self, kind: Type, domain: Domain | None = None) -> None:
        self.kind = kind
        self.domain = domain
        self.is_string = kind.kind is Kind.STRING
        self.is_double = kind.kind is Kind.DOUBLE
        self._unit = Decimal(1).scaleb(kind.scale) if kind.kind is Kind.DECIMAL else None
        self.start, self.end = self._ends()

    def _ends(self) -> tuple[Cut, Cut]:
        if isinstance(self.domain, IntRange):
            return self.domain.low, self.domain.high + 1
        match self.kind.kind:
            case Kind.STRING:
                return b"", _AFTER_STRINGS
            case Kind.BOOL:
                return 0, 2
            case Kind.INT32 | Kind.DATE | Kind.MONTHS:
                return INT32_MIN, INT32_MAX + 1
            case Kind.DOUBLE:
                return _number(-math.inf), _number(math.nan) + 1
            case Kind.DECIMAL:
                return -(10**self.kind.digits) + 1, 10**self.kind.digits
            case _:
                return INT64_MIN, INT64_MAX + 1

    def around(self, constant: Any) -> tuple[Cut, Cut]:
        """The cuts before and after a constant; they are equal if it is not a value of the type."""
        if self.is_string:
            cut = constant.encode("utf-8", "surrogatepass")
            return cut, cut + b"\0"
        if self.is_double:
            number = _number(constant)
            return number, number + 1
        if isinstance(constant, bool):
            return int(constant), int(constant) + 1
        if isinstance(constant, float):  # compared with a 32-bit number, which a double can hold
            if not math.isfinite(constant):
                cut = self.start if constant < 0 else self.end
                return cut, cut
            return math.ceil(constant), math.floor(constant) + 1
        if self._unit is not None:
            constant = _EXACT.multiply(Decimal(constant), self._unit)
        if isinstance(constant, Decimal):
            above = int(constant.to_integral_value(ROUND_FLOOR)) + 1
            return int(constant.to_integral_value(ROUND_CEILING)), above
        return constant, constant + 1

    def value(self, cut: Cut) -> Any:
        """The value right after a cut."""
        match self.kind.kind:
            case Kind.STRING:
                return cut.decode("utf-8", "surrogatepass")
            case Kind.BOOL:
                return bool(cut)
            case Kind.DOUBLE:
                if cut > _INFINITY:
                    return math.nan
                bits = cut if cut >= 0 else (cut - 1) ^ INT64_MAX
                return _DOUBLE.unpack(_BITS.pack(bits))[0]
            case Kind.DECIMAL:
                return Decimal(cut).scaleb(-self.kind.scale, _EXACT)
            case _:
                return cut

    def following(self, cut: Cut) -> Cut:
        """The cut after the value that a cut lies before."""
        return cut + b"\0" if self.is_string else cut + 1

    def bound(self, cut: Cut) -> tuple[Any, bool]:
        """A value that a cut lies next to, and whether the cut lies after it.

        Of two doubles the one with fewer digits is chosen, so that a bound of 5.0 stays one; and a
        finite one before infinity or NaN, which have no text.
        """
        if self.is_string:
            return (self.value(cut[:-1]), True) if cut[-1:] == b"\0" else (self.value(cut), False)
        if self.is_double:
            choices = (self.value(cut), False), (self.value(cut - 1), True)
            return min(choices, key=lambda choice: _effort(choice[0]))
        return self.value(cut), False

    def values(self, low: Cut, high: Cut, most: int) -> list[Any] | None:
        """The values between two cuts, None if there are more than `most`."""
        if not self.is_string:
            return None if high - low > most else [self.value(cut) for cut in range(low, high)]
        found: list[Any] = []
        while low != high:
            if len(found) == most or not high.startswith(low):
                return None
            found.append(self.value(low))
            low += b"\0"
            if low > high:
                return None
        return found

    def readable(self, low: Cut, high: Cut) -> Cut:
        """The cut before a value between two cuts that people like to read."""
        if self.is_string:
            return low
        last = high - 1
        if self.is_double:
            return self._readable_double(low, last)
        if self.kind.kind is Kind.TIMESTAMP:  # within the calendar, if possible
            low, last = (max(low, FIRST), min(last, LAST)) if low <= LAST else (low, last)
            low = min(low, last)
        return 0 if low <= 0 <= last else (low if low > 0 else last)

    def _readable_double(self, low: int, last: int) -> int:
        if low <= 0 <= last:  # the number of 0.0
            return 0
        for number in (low, last):
            near = self.value(number)
            if math.isfinite(near) and abs(near) < 2**53:
                below, above = math.floor(near), math.ceil(near)
                for whole in (above, below, below + 1, above - 1):
                    if low <= _number(float(whole)) <= last:
                        return _number(float(whole))
        return low


@functools.lru_cache(maxsize=1_000)
def value_order(kind: Type, domain: Domain | None = None) -> ValueOrder:
    """The one order of a type and a domain."""
    return ValueOrder(kind, domain)


def order_of(attribute: Attribute) -> ValueOrder:
    """The order of the values of an attribute."""
    return value_order(attribute.type, attribute.domain)
