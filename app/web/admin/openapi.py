"""The OpenAPI 3.1 document, made from the table of routes."""

from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from holdfast.web.admin.faults import Failure
from holdfast.web.admin.route import PLACE, Lines, Route

_REFERENCE = "#/components/schemas/{model}"
_JSON, _LINES = "application/json", "application/x-ndjson"
_MODES: dict[str, JsonSchemaMode] = {"answer": "serialization", "body": "validation"}
_TITLE = "Holdfast's administration"
_DESCRIPTION = (
    "Times are milliseconds since 1970, sizes bytes. Changes need the role of an operator; "
    "the header X-Operator may name who makes them."
)


@cache
def describe(routes: tuple[Route, ...], prefix: str) -> dict[str, Any]:
    """Return the OpenAPI description of these routes."""
    schemas = _Schemas(routes)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": _TITLE, "version": "1", "description": _DESCRIPTION},
        "servers": [{"url": prefix}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas.definitions,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


class _Schemas:
    """Schemas of all types that the routes name, each defined once."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        wanted: dict[tuple[str, Any], Any] = {("answer", _key(Failure)): Failure}
        for route in routes:
            wanted["answer", _key(route.answer)] = route.answer
            wanted["body", _key(route.body)] = route.body
        self._by_type, found = TypeAdapter.json_schemas(
            [
                (key, _MODES[key[0]], TypeAdapter(kind))
                for key, kind in wanted.items()
                if kind not in (None, Lines)
            ],
            ref_template=_REFERENCE,
        )
        self.definitions: dict[str, Any] = found["$defs"]

    def content(self, use: str, kind: object) -> dict[str, Any]:
        """Return the content of an answer, or of a body."""
        if kind is Lines:
            return {_LINES: {"schema": {"type": "string"}}}
        return {_JSON: {"schema": self._by_type[(use, _key(kind)), _MODES[use]]}}


def _key(kind: object) -> str:
    return repr(kind)


def _operation(route: Route, schemas: _Schemas) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "description": f"Requires the role `{route.role.title}`.",
        "parameters": _parameters(route),
        "responses": {
            "default": {
                "description": "The request failed.",
                "content": schemas.content("answer", Failure),
            },
        },
    }
    if route.answer is None:
        operation["responses"]["204"] = {"description": "The request succeeded."}
    else:
        content = schemas.content("answer", route.answer)
        operation["responses"]["200"] = {
            "description": "The request succeeded.",
            "content": content,
        }
    if route.body is not None:
        content = schemas.content("body", route.body)
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameters(route: Route) -> list[dict[str, Any]]:
    schema = route.params.model_json_schema()
    required, in_path = schema.get("required", []), PLACE.findall(route.path)
    parameters = []
    for name, kind in schema.get("properties", {}).items():
        shown = _without_null(kind)
        description = shown.pop("description", "")
        parameters.append(
            {
                "name": name,
                "in": "path" if name in in_path else "query",
                "required": name in required,
                "description": description,
                "schema": shown,
            }
        )
    return parameters


def _without_null(kind: dict[str, Any]) -> dict[str, Any]:
    """Remove null from the schema: a missing parameter is not null."""
    shown = dict(kind)
    for choice in shown.pop("anyOf", []):
        if choice != {"type": "null"}:
            shown = {**choice, **shown}
    if shown.get("default", ...) is None:
        del shown["default"]
    return shown
