"""Answers: values as JSON, errors as JSON with the right status."""

import logging
import math
from typing import Any

import msgspec
from aiohttp import hdrs, web

from tamis.broker.errors import status_and_code
from tamis.broker.web.shapes import Problem
from tamis.errors import Busy, ExpressionError, TamisError

logger = logging.getLogger(__name__)

JSON = "application/json"
_encode = msgspec.json.Encoder().encode
_NO_STORE = "no-store"  # answers are of this moment


def json_answer(value: object, status: int = 200) -> web.Response:
    """A value as JSON."""
    return text_answer(_encode(value), JSON, status)


def text_answer(text: bytes, kind: str, status: int = 200) -> web.Response:
    """A text of this type."""
    headers = {hdrs.CONTENT_TYPE: kind, hdrs.CACHE_CONTROL: _NO_STORE}
    return web.Response(body=text, status=status, headers=headers)


def nothing() -> web.Response:
    """That it is done, and there is nothing to say."""
    return web.Response(status=204)


def problem_of(error: Exception) -> tuple[int, Problem, dict[str, str]]:
    """The status, the body and the headers of the answer to a request that failed."""
    if isinstance(error, web.HTTPException):
        kept: dict[str, str] = {}
        if hdrs.ALLOW in error.headers:
            kept[hdrs.ALLOW] = error.headers[hdrs.ALLOW]
        return error.status, Problem(_code(error.reason), _sentence(error)), kept
    if isinstance(error, TamisError):
        status, code = status_and_code(error)
        place: dict[str, Any] = {}
        if isinstance(error, ExpressionError):
            place = {"line": error.line, "column": error.column}
        if status < 500 or isinstance(error, Busy):
            return status, Problem(code, str(error), **place), _headers(status, error)
    logger.error("a request failed", exc_info=error)
    return 500, Problem("failed", "the broker failed; its log says why"), {}


def _headers(status: int, error: TamisError) -> dict[str, str]:
    if status == 401:
        return {hdrs.WWW_AUTHENTICATE: 'Bearer realm="tamis", Basic realm="tamis"'}
    wait = getattr(error, "retry_after", None)
    if wait is None and isinstance(error, Busy):
        wait = 1
    return {} if wait is None else {hdrs.RETRY_AFTER: str(math.ceil(wait))}


def _code(reason: str) -> str:
    return reason.lower().replace(" ", "-")


def _sentence(error: web.HTTPException) -> str:
    match error.status:
        case 404:
            return "there is nothing at this path; /openapi.json lists what there is"
        case 405:
            return "this path takes other methods only"
        case _:
            return error.text or error.reason
