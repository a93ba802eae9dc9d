"""Records of arrays, which kernels take as one pointer.

numba passes a named tuple field by field, an array as seven numbers or more: a hundred and more
arguments, which are passed on in every call and copied at every use, and the compiler has to sort
that out. A record is unpacked once, when Python calls the kernel, and is a pointer from then on.

Even that takes most of a microsecond, because numba looks at the names and types of all fields. A
*packed* record is laid out in memory once, for many calls, each of which is given its address.

Without the compiler, records and packed records are the named tuples that they are in Python.
"""

import threading
from array import array
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

config: Any = numba.config  # its settings are made when it is imported
C = TypeVar("C", bound=type[Any])
R = TypeVar("R", bound=tuple[Any, ...])


class RecordType(types.Type):
    """The type of a record in compiled code; it has the names and types of its fields."""

    def __init__(self, name: str, fields: tuple[tuple[str, types.Type], ...]) -> None:
        self.fields = fields
        self.places = {field: place for place, (field, _) in enumerate(fields)}
        super().__init__(name=f"{name}({', '.join(f'{field}={kind}' for field, kind in fields)})")


def record(made: C) -> C:
    """Let kernels take a class of named tuples as records; fields are arrays or whole numbers."""

    def typed(value: Any, context: Any) -> RecordType:
        fields = []
        for name, part in zip(made._fields, value, strict=True):
            kind: Any = typeof_impl(part, context)
            if isinstance(part, np.ndarray):
                # Also where memory is read-only, as in a mapped file: one kernel for both.
                kind = kind.copy(readonly=False)
            fields.append((name, kind))
        return RecordType(made.__name__, tuple(fields))

    typeof_impl.register(made)(typed)
    return made


class PackedRecordType(RecordType):
    """The type of a packed record in compiled code, where it is used like any record."""


class PackedRecord(array):  # type: ignore[type-arg]  # it has no parameters when it runs
    """The memory of a packed record.

    Each type of record has a class of its own, because numba's dispatcher recognises the type by
    the class, which takes a tenth of a microsecond.
    """

    kind: PackedRecordType
    record: Any  # keeps the arrays alive


def packed(value: R) -> R:
    """A packed record for many calls of kernels, which has the arrays of a record, not copies."""
    if config.DISABLE_JIT:
        return value
    numbers: list[int] = []
    for part in value:
        if isinstance(part, np.ndarray):  # as numba lays out an array without reference counting
            data = part.__array_interface__["data"][0]
            numbers += [0, 0, part.size, part.itemsize, data, *part.shape, *part.strides]
        else:
            numbers.append(part)
    found = _class_of(numba.typeof(value))("q", numbers)
    found.record = value
    return cast(R, found)


_classes: dict[RecordType, type[PackedRecord]] = {}
_classes_lock = threading.Lock()


def _class_of(kind: RecordType) -> type[PackedRecord]:
    with _classes_lock:
        if kind not in _classes:
            name = f"Packed{kind.name.partition('(')[0]}"
            members = {"kind": PackedRecordType(name, kind.fields)}
            _classes[kind] = type(name, (PackedRecord,), members)
        return _classes[kind]


@typeof_impl.register(PackedRecord)
def _kind_of_packed(value: PackedRecord, _context: Any) -> PackedRecordType:
    return value.kind


@register_model(PackedRecordType)
@register_model(RecordType)
class _RecordModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: RecordType) -> None:
        parts = [manager.lookup(part).get_value_type() for _, part in kind.fields]
        super().__init__(manager, kind, ir.LiteralStructType(parts).as_pointer())


@infer_getattr
class _RecordFields(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, kind: RecordType, name: str) -> types.Type | None:  # type: ignore[override]  # a constant there
        place = kind.places.get(name)
        return None if place is None else kind.fields[place][1]


@lower_getattr_generic(RecordType)
def _field(_context: Any, builder: Any, kind: RecordType, value: Any, name: str) -> Any:
    return builder.load(cgutils.gep_inbounds(builder, value, 0, kind.places[name]))


@unbox(RecordType)
def _unpacked(kind: RecordType, value: Any, c: Any) -> NativeValue:
    """Write the fields, whose types numba's dispatcher has checked, to memory on the stack."""
    builder, api = c.builder, c.pyapi
    adapter = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(ir.IntType(32), [api.pyobj, api.voidptr]),
        "numba_adapt_ndarray",
    )
    found = cgutils.alloca_once(builder, c.context.get_value_type(kind).pointee)
    failed: Any = cgutils.false_bit
    for place, (_, part) in enumerate(kind.fields):
        item = api.tuple_getitem(value, place)
        address = cgutils.gep_inbounds(builder, found, 0, place)
        if isinstance(part, types.Array):
            wrong = builder.call(adapter, [item, builder.bitcast(address, api.voidptr)])
            failed = builder.or_(failed, cgutils.is_not_null(builder, wrong))
        else:
            native = c.unbox(part, item)
            failed = builder.or_(failed, native.is_error)
            builder.store(native.value, address)
    return NativeValue(found, is_error=failed)


@unbox(PackedRecordType)
def _address(kind: PackedRecordType, value: Any, c: Any) -> NativeValue:
    """The address of a packed record, whose memory is never resized."""
    buffer = c.pyapi.alloca_buffer()
    wrong = c.pyapi.get_buffer(value, buffer)
    pointer = c.context.get_value_type(kind)
    found = c.builder.load(c.builder.bitcast(buffer, pointer.as_pointer()))  # its first field
    c.pyapi.release_buffer(buffer)
    return NativeValue(found, is_error=cgutils.is_not_null(c.builder, wrong))
