"""The OpenAPI 3.1 description of everything that is answered, made from the table of operations."""

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from tamis.broker.web.operations import OPERATIONS, Operation, Parameter
from tamis.broker.web.shapes import Problem

_IN_PATH: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "topic": (
        "the name of the topic",
        {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,200}$"},
    ),
    "peer": ("the name of the broker", {"type": "string", "minLength": 1}),
    "publisher": (
        "what the publisher calls itself, among those of the account",
        {"type": "string", "minLength": 1, "maxLength": 200},
    ),
    "subscription": (
        "the id of the subscription, among those of the account",
        {"type": "string", "minLength": 1},
    ),
}
_REFUSALS = {
    400: "The request is not as expected; a bad filter has its line and its column",
    401: "The broker does not know who asks",
    403: "The account may not do this",
    404: "There is no such topic, subscription or peer",
    408: "The body did not come in time",
    409: "It conflicts with what is there already",
    413: "The body, or the filter, is too large",
    415: "No events are read from a body of this type",
    429: "The account has, or sends, as much as it may",
    503: "Not now: the disk is behind or full, or the broker is stopping",
}
_OF_ALL = (400, 401, 403, 404, 413, 429, 503)


@functools.cache
def description(version: str) -> bytes:
    """The description as JSON."""
    shapes = sorted(set(_shapes(OPERATIONS)) | {Problem}, key=lambda shape: shape.__name__)
    schemas, components = msgspec.json.schema_components(
        shapes, ref_template="#/components/schemas/{name}"
    )
    refs = dict(zip(shapes, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation, refs)
    page = {
        "openapi": "3.1.0",
        "info": {"title": "tamis broker", "version": version},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "password": {"type": "http", "scheme": "basic"},
            },
        },
        "security": [{}, {"token": []}, {"password": []}],
    }
    return msgspec.json.encode(page)


def _shapes(operations: Iterable[Operation]) -> Iterable[type]:
    for operation in operations:
        for shape in (*operation.body.values(), *operation.answer.values()):
            if isinstance(shape, type):
                yield shape


def _described(operation: Operation, refs: Mapping[type, Any]) -> dict[str, Any]:
    inside = [
        Parameter(name, *_IN_PATH[name], "path")
        for name in re.findall(r"\{(\w+)\}", operation.path)
    ]
    answers: dict[str, Any] = {
        str(operation.status): {"description": "Done", **_content(operation.answer, refs)}
    }
    problem = {"application/json": {"schema": refs[Problem]}}
    for status in sorted({*_OF_ALL, *operation.refusals, *((408,) if operation.body else ())}):
        answers[str(status)] = {"description": _REFUSALS[status], "content": problem}
    described: dict[str, Any] = {
        "summary": operation.says,
        "operationId": operation.handler.__name__,
        "parameters": [_parameter(one) for one in (*inside, *operation.parameters)],
        "responses": answers,
    }
    if operation.body:
        described["requestBody"] = {"required": True, **_content(operation.body, refs)}
    return described


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.says,
        "required": parameter.place == "path",
        "schema": parameter.schema,
    }


def _content(shapes: Mapping[str, Any], refs: Mapping[type, Any]) -> dict[str, Any]:
    if not shapes:
        return {}
    return {
        "content": {
            kind: {"schema": refs[shape] if isinstance(shape, type) else shape}
            for kind, shape in shapes.items()
        }
    }
