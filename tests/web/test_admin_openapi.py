"""The OpenAPI description of the administration is complete and consistent."""

import re
from collections.abc import Iterator
from threading import get_ident
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from holdfast.web.admin import openapi, resources
from holdfast.web.admin.application import make_admin
from holdfast.web.admin.handlers import handlers
from holdfast.web.admin.openapi import describe
from holdfast.web.admin.paths import API
from holdfast.web.admin.resources import ROUTES
from holdfast.web.admin.tokens import Tokens
from tests.web.admin import Clock, admin_of, routes_to
from tests.web.fake_operations import FakeOperations, a_letter, a_session

DOCUMENT = describe(ROUTES, "/admin" + API)
OPERATIONS = [
    (method, path, operation)
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
]
TYPES = {"object", "array", "string", "integer", "number", "boolean", "null"}


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from nodes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from nodes(inner)


def test_every_route_is_described_and_nothing_else() -> None:
    routes = [each.route for each in handlers([FakeOperations()])]
    served = {(route.method.lower(), route.path) for route in routes}
    assert served == {(method, path) for method, path, _ in OPERATIONS}
    assert len(ROUTES) == len(served)


def test_the_document_is_json_with_what_openapi_asks_for() -> None:
    assert orjson.loads(orjson.dumps(DOCUMENT)) == DOCUMENT
    assert DOCUMENT["openapi"].startswith("3.1")
    assert DOCUMENT["info"].keys() >= {"title", "version"}
    (scheme,) = DOCUMENT["security"][0]
    assert DOCUMENT["components"]["securitySchemes"][scheme]["scheme"] == "bearer"
    ids = [operation["operationId"] for _, _, operation in OPERATIONS]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z_]+", each) for each in ids)


def test_references_and_schemas_match() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    found = {node["$ref"] for node in nodes(DOCUMENT) if "$ref" in node}
    assert found
    used = {reference.removeprefix("#/components/schemas/") for reference in found}
    assert used == schemas.keys()


def test_types_are_those_of_json_schema() -> None:
    kinds = [node.get("type", "object") for node in nodes(DOCUMENT["components"]["schemas"])]
    assert {kind for kind in kinds if isinstance(kind, str)} <= TYPES
    for name, schema in DOCUMENT["components"]["schemas"].items():
        assert set(schema.get("required", [])) <= schema["properties"].keys(), name
        assert schema["type"] == "object"


@pytest.mark.parametrize(
    ("method", "path", "operation"), OPERATIONS, ids=lambda each: str(each)[:40]
)
def test_parameters_are_described(method: str, path: str, operation: dict[str, Any]) -> None:
    parameters = {(each["name"], each["in"]): each for each in operation["parameters"]}
    assert len(parameters) == len(operation["parameters"])
    in_path = {name for name, place in parameters if place == "path"}
    assert in_path == set(re.findall(r"\{(\w+)\}", path))
    for each in parameters.values():
        assert each["required"] or each["in"] == "query"
        assert each["schema"].get("type") in TYPES
    assert operation["summary"].endswith(".")
    assert "default" in operation["responses"]
    assert operation["responses"].keys() & {"200", "204"}
    assert ("requestBody" in operation) <= (method in ("put", "post"))


async def test_the_document_is_made_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made_in: list[int] = []
    monkeypatch.setattr(openapi, "describe", lambda *_: made_in.append(get_ident()))
    await resources.Description().description()
    assert made_in not in ([], [get_ident()])
    assert all(each.params.__pydantic_complete__ for each in ROUTES)


async def test_responses_match_their_descriptions() -> None:
    admin = await admin_of(FakeOperations([a_session()], [a_letter(7)]))
    try:
        asked = await admin.ask("GET", "/openapi.json")
        assert asked.json == DOCUMENT
        schemas = asked.json["components"]["schemas"]
        for path, name in (
            ("/sessions/joe/1", "Session"),
            (f"/dead-letters/{7:019}", "Letter"),
            ("/dead-letters/groups", "Groups"),
        ):
            told = (await admin.ask("GET", path)).json
            assert (
                told.keys() == schemas[name]["properties"].keys() == set(schemas[name]["required"])
            )
    finally:
        await admin.client.close()


@pytest.mark.parametrize("place", ["/x", "/x/y"])
async def test_the_administration_can_be_mounted_anywhere(place: str) -> None:
    application, tokens = web.Application(), Tokens("o" * 40, "r" * 40)
    application.add_subapp(place, make_admin(routes_to(FakeOperations()), tokens, Clock()))
    async with TestClient(TestServer(application)) as client:
        headers = {"Authorization": f"Bearer {'o' * 40}"}
        async with client.get(f"{place}{API}/held-channels", headers=headers) as response:
            assert response.status == 200
        async with client.get(f"{API}/held-channels", headers=headers) as response:
            assert response.status == 404
