"""Logs of a broker on standard error: one JSON object per line, or text for people.

What is logged with ``extra={"topic": name}`` has these fields of its own.
"""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import TextIO

_USUAL = {*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"}


def configure(level: str, log_format: str, stream: TextIO | None = None) -> None:
    """Log everything from a level on; of other libraries, warnings and errors."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("tamis").setLevel(level.upper())


class JsonLines(logging.Formatter):
    """Records as JSON: time, level, logger, message, and the fields of the record."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["error"] = "".join(traceback.format_exception(*record.exc_info))
        return json.dumps(line, default=str)


class TextLines(logging.Formatter):
    """Records as text: time, level, message, and the fields as ``name=value``."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and the lines of an error."""
        fields = "".join(f" {name}={value!r}" for name, value in _fields(record).items())
        text = f"{_moment(record)} {record.levelname:7} {record.getMessage()}{fields}"
        if record.exc_info:
            text += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip()
        return text


def _moment(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in record.__dict__.items() if name not in _USUAL}
