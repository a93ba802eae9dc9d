"""What is wrong with a row that could not be read: the column and the value, if it is one."""

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from tamis.errors import counted
from tamis.file_tables import csv_files, json_files, xml_files
from tamis.file_tables.record_columns import ValueFault
from tamis.file_tables.type_names import type_name
from tamis.names import path_text

SHOWN = 200  # characters of a row that a reason has
_VALUE = 60  # characters of a value


class RowFormat(NamedTuple):
    """What rows of text were read with: format, columns and whether their types were inferred."""

    format: str
    schema: pa.Schema
    is_inferred: bool

    def reasons(self, texts: Sequence[str]) -> list[str]:
        """Why rows cannot be read: the first value that does not fit, or what is wrong with it."""
        if self.format == "xml":
            return self._of_xml(texts)
        if self.format == "unknown":
            return [_reason("", text) for text in texts]
        return [_reason(self._problem(text), text) for text in texts]

    def _problem(self, text: str) -> str:
        if self.format == "csv":
            _, faults = csv_files.columns_of([text], self.schema, is_inferred=self.is_inferred)
            return self._of_csv(faults.get(0))
        row = json_files.parsed(text)
        if isinstance(row.value, list):
            return ", it is an empty array" if not row.value else ""
        if not isinstance(row.value, dict):
            return f", it is not valid JSON{_place(text)}" if row.value is None else ""
        _, faults = json_files.columns_of([row], self.schema, is_inferred=self.is_inferred)
        return _of_value(faults.get(0))

    def _of_xml(self, texts: Sequence[str]) -> list[str]:
        """The reasons for elements, or for whole files: Spark gives the file for each bad row."""
        waiting: dict[str, Iterator[str]] = {}
        for text in texts:
            if text not in waiting:
                waiting[text] = self._of_elements(text)
        return [next(waiting[text], _reason("", text)) for text in texts]

    def _of_elements(self, text: str) -> Iterator[str]:
        records, is_whole = xml_files.records_of_text(text, "event")
        _, faults = xml_files.columns_of(records, self.schema, is_inferred=self.is_inferred)
        for row, fault in sorted(faults.items()):
            yield _reason(_of_value(fault), xml_files.text_of(records[row]))
        while not is_whole:
            yield _reason(", it is not well-formed XML", text)

    def _of_csv(self, fault: ValueFault | None) -> str:
        if fault is not None and not fault.path:
            fields = counted(fault.value, "field")
            return f", it has {fields}, and the header has {len(self.schema)}"
        return _of_value(fault)


UNKNOWN = RowFormat("unknown", pa.schema([]), is_inferred=True)


def _reason(problem: str, text: str) -> str:
    short = text if len(text) <= SHOWN else text[:SHOWN] + "..."
    return f"the row cannot be read{problem}: {short}"


def _of_value(fault: ValueFault | None) -> str:
    if fault is None or not fault.path:
        return ""
    value = fault.value
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
    short = text if len(text) <= _VALUE else f"{text[:_VALUE]}..."
    return f", column {path_text(fault.path)} is {short}, expected {type_name(fault.kind)}"


def _place(text: str) -> str:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f" ({error.msg.lower()} at character {error.pos + 1})"
    except (ValueError, RecursionError):
        return ""
    return ""
