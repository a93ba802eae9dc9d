"""Kernels of decimals: columns of numbers, each all digits of a decimal as a whole number.

0.30 of the type decimal(10, 2) is 30. Numbers are 64-bit ones as long as no result can be too long
for that, which the largest of them tells, and Python's own beyond. Results are those of
`arithmetic`, digit for digit.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tamis.language import ast
from tamis.language.functions.function import Kernel
from tamis.types import INT, INT32, MAX_DECIMAL_DIGITS, SHORT_DECIMAL_DIGITS, Kind, Type

Array = np.ndarray[Any, Any]

_MOST = 2**63 - 1
_PRODUCT_DIGITS = MAX_DECIMAL_DIGITS + 1  # that Spark keeps of a product before it rounds
_QUOTIENT_SCALE = MAX_DECIMAL_DIGITS + 1  # digits after the point of a quotient before it rounds


# --- numbers


def narrowed(found: Any) -> Array:
    """Numbers as 64-bit ones, if they all fit; numpy makes an int of a single object."""
    is_array = isinstance(found, np.ndarray | np.generic)
    numbers: Array = np.asarray(found) if is_array else np.array(found, object)
    if numbers.dtype != object or largest(numbers) > _MOST:
        return numbers
    return numbers.astype(np.int64)


def largest(numbers: Array) -> int:
    """The largest absolute value among numbers."""
    if not numbers.size:
        return 0
    return max(int(numbers.max()), -int(numbers.min()))


def shifted(numbers: Array, places: int) -> Array:
    """Numbers with `places` zeros after them."""
    if places <= 0:
        return numbers
    by = 10**places
    if numbers.dtype != object and by <= _MOST and largest(numbers) * by <= _MOST:
        return numbers * np.int64(by)
    return narrowed(numbers.astype(object) * by)


def rounded(numbers: Array, places: int) -> Array:
    """Numbers without their last digits, rounded half away from zero."""
    if places <= 0:
        return numbers
    by = 10**places
    if places > SHORT_DECIMAL_DIGITS or largest(numbers) + by // 2 > _MOST:
        numbers = numbers.astype(object)
    half = by // 2
    size = (np.abs(numbers) + half) // by
    return narrowed(np.where(numbers < 0, -size, size))


def rescaled(numbers: Array, source: int, wanted: int) -> Array:
    """Numbers of one scale in another one."""
    return (
        shifted(numbers, wanted - source) if wanted >= source else rounded(numbers, source - wanted)
    )


def fitting(numbers: Array, of: Type) -> tuple[Array, Any]:
    """Numbers, and where they have no more digits than their type."""
    if numbers.dtype != object and of.digits > SHORT_DECIMAL_DIGITS:
        return numbers, np.array(True)
    bound = 10**of.digits
    found = (numbers < bound) & (numbers > -bound)  # the lowest of 64 bits has no absolute value
    return numbers, np.asarray(found, np.bool_)


def doubles(numbers: Array, scale: int) -> Array:
    """Numbers as doubles, rounded correctly."""
    if numbers.dtype != object and scale <= 22 and largest(numbers) < 2**53:
        return numbers / np.float64(10**scale)
    return np.asarray(_quotient_of_wholes(numbers.astype(object), 10**scale), np.float64)


_quotient_of_wholes = np.frompyfunc(lambda x, by: x / by, 2, 1)  # Python rounds it correctly


# --- sums, products, quotients


def operation(call: ast.Call) -> Kernel | None:
    """The kernel of an operator on two decimals."""
    left, right = (argument.type for argument in call.arguments)
    compute = _OPERATIONS[call.name]

    def kernel(x: Array, y: Array) -> tuple[Array, Any]:
        return compute(x, y, left, right, call.type)

    return kernel


def _sum(sign: int) -> Callable[..., tuple[Array, Any]]:
    def compute(x: Array, y: Array, left: Type, right: Type, of: Type) -> tuple[Array, Any]:
        scale = max(left.scale, right.scale)
        x, y = shifted(x, scale - left.scale), shifted(y, scale - right.scale)
        if largest(x) + largest(y) > _MOST:
            x = x.astype(object)
        return fitting(rescaled(narrowed(x + y if sign > 0 else x - y), scale, of.scale), of)

    return compute


def _product(x: Array, y: Array, left: Type, right: Type, of: Type) -> tuple[Array, Any]:
    scale = left.scale + right.scale
    if largest(x) * largest(y) <= _MOST:
        return fitting(rescaled(narrowed(x * y), scale, of.scale), of)
    made = _wide_product(x.astype(object), y.astype(object))
    return fitting(rescaled(narrowed(made), scale, of.scale), of)


def _cut_product(x: int, y: int) -> int:
    product = x * y
    size = abs(product)
    beyond = len(str(size)) - _PRODUCT_DIGITS
    if beyond <= 0:
        return product
    by: int = 10**beyond
    size = (size + by // 2) // by * by
    return size if product >= 0 else -size


_wide_product = np.frompyfunc(_cut_product, 2, 1)


def _quotient(x: Array, y: Array, left: Type, right: Type, of: Type) -> tuple[Array, Any]:
    places = _QUOTIENT_SCALE - left.scale + right.scale
    divisor = np.where(y == 0, 1, y)
    made = _wide_quotient(x.astype(object), divisor.astype(object), places)
    found, fits = fitting(rounded(narrowed(made), _QUOTIENT_SCALE - of.scale), of)
    return found, fits & (y != 0)


def _cut_quotient(x: int, y: int, places: int) -> int:
    size, by = abs(x), abs(y)
    if places >= 0:
        size *= 10**places
    else:
        by *= 10**-places
    whole = (2 * size + by) // (2 * by)
    return whole if (x < 0) == (y < 0) else -whole


_wide_quotient = np.frompyfunc(_cut_quotient, 3, 1)


def _remainder(x: Array, y: Array, left: Type, right: Type, of: Type) -> tuple[Array, Any]:
    scale = max(left.scale, right.scale)
    x, y = shifted(x, scale - left.scale), shifted(y, scale - right.scale)
    divisor = np.where(y == 0, 1, y)
    if x.dtype.hasobject or divisor.dtype.hasobject:
        rest = np.abs(x.astype(object)) % np.abs(divisor.astype(object))
        rest = narrowed(np.where(x < 0, -rest, rest))
    else:
        rest = np.fmod(x, divisor)
    found, fits = fitting(rescaled(rest, scale, of.scale), of)
    return found, fits & (y != 0)


_OPERATIONS: dict[str, Callable[..., tuple[Array, Any]]] = {
    "+": _sum(1), "-": _sum(-1), "*": _product, "/": _quotient, "%": _remainder,
}  # fmt: skip


# --- conversions


def cast(call: ast.Call) -> Kernel | None:
    """The kernel of a conversion between whole numbers, decimals and doubles."""
    source, wanted = call.arguments[0].type, call.type
    if wanted.kind is Kind.DECIMAL and (source.is_integer or source.kind is Kind.DECIMAL):
        return lambda x: fitting(rescaled(x, source.scale, wanted.scale), wanted)
    if source.kind is not Kind.DECIMAL:
        return None
    if wanted.kind is Kind.DOUBLE:
        return lambda x: doubles(x, source.scale)
    if wanted in {INT, INT32} and call.name == "cast":
        return lambda x: _wrapped(_towards_zero(x, source.scale), wanted)
    return None


def _towards_zero(numbers: Array, places: int) -> Array:
    by = 10**places
    if numbers.dtype != object and by > _MOST:
        return np.zeros_like(numbers)
    down = numbers // by
    return narrowed(np.where((numbers < 0) & (down * by != numbers), down + 1, down))


def _wrapped(numbers: Array, of: Type) -> Array:
    half = 2**31 if of == INT32 else 2**63
    if numbers.dtype == object:
        return ((numbers + half) % (2 * half) - half).astype(np.int64)
    return numbers.astype(np.int32).astype(np.int64) if of == INT32 else numbers


# --- rounding


def rounding(call: ast.Call, places: int) -> Kernel:
    """The kernel of `round` of decimals."""
    scale, of = call.arguments[0].type.scale, call.type

    def kernel(x: Array, _places: Array) -> tuple[Array, Any]:
        if places >= 0:
            return fitting(rescaled(x, scale, of.scale), of)
        return fitting(shifted(rounded(x, scale - places), -places), of)

    return kernel


def towards(call: ast.Call, direction: int) -> Kernel:
    """The kernel of `floor`, for the direction -1, and of `ceil`, for 1, of decimals."""
    scale, of = call.arguments[0].type.scale, call.type
    by = 10**scale

    def kernel(x: Array) -> tuple[Array, Any]:
        numbers = x if by <= _MOST and largest(x) < _MOST else x.astype(object)
        whole = numbers // by if direction < 0 else -(-numbers // by)
        return fitting(narrowed(whole), of)

    return kernel
