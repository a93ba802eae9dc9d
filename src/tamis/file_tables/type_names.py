"""The names of Arrow's types as messages write them: those of Spark SQL."""

import pyarrow as pa

_NAMES = {
    pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint",
    pa.uint8(): "smallint", pa.uint16(): "int", pa.uint32(): "bigint", pa.uint64(): "decimal(20,0)",
    pa.float32(): "float", pa.float64(): "double", pa.bool_(): "boolean", pa.null(): "void",
    pa.date32(): "date", pa.date64(): "date",
}  # fmt: skip


def type_name(kind: pa.DataType) -> str:
    """How Spark SQL writes a type."""
    types = pa.types
    if types.is_dictionary(kind):
        return type_name(kind.value_type)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "string"
    if types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_list(kind) or types.is_large_list(kind) or types.is_list_view(kind):
        return f"array<{type_name(kind.value_type)}>"
    if types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{type_name(field.type)}' for field in kind)}>"
    if types.is_map(kind):
        return f"map<{type_name(kind.key_type)},{type_name(kind.item_type)}>"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return "binary"
    return _NAMES.get(kind, str(kind))
