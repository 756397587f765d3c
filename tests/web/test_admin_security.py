"""The administration keeps strangers out, and answers any request in its own form within bounds."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from holdfast.delivery.basics import error_codes
from holdfast.web.admin import application, faults, ndjson
from holdfast.web.admin.resources import ROUTES
from holdfast.web.admin.tokens import Role
from tests.web.admin import API, JSON, LINES, OPERATOR, READER, Admin, admin_of
from tests.web.fake_operations import FakeOperations, a_letter, a_session

pytestmark = pytest.mark.untraced

DENIED = "user.security.authentication.accessDenied"
NOT_ALLOWED = "user.security.authorization.notAuthorized"
ILLEGAL = "user.illegalArgument"
LETTER = f"{7:019}"
# Values for the parameters of a path.
PLACES = {
    **{"result": "dead", "subject": "joe", "number": "1", "id": LETTER, "fingerprint": "f1"},
    "host": "a",
}


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    admin = await admin_of(FakeOperations([a_session()], [a_letter(n) for n in range(1, 10)]))
    yield admin
    await admin.client.close()


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Basic {OPERATOR}",
        OPERATOR,
        f"Bearer {OPERATOR[:-1]}",
        f"Bearer {OPERATOR}x",
        f"Bearer {OPERATOR.upper()}",
        f"Bearer {OPERATOR} {OPERATOR}",
        f"Bearer {OPERATOR},{OPERATOR}",
        "Bearer null",
        "Bearer \xff\xfe",
        "Bearer " + "x" * 4000,
    ],
)
@pytest.mark.parametrize("path", ["/sessions", "/nothing/here"])
async def test_requests_without_a_valid_token_are_refused(
    admin: Admin, authorization: str | None, path: str
) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    refused = await admin.ask("GET", path, token=None, headers=headers)
    assert (refused.status, refused.code) == (401, DENIED)
    assert refused.headers["WWW-Authenticate"].startswith("Bearer ")


async def test_tokens_in_cookies_and_queries_are_ignored(admin: Admin) -> None:
    headers = {"Cookie": f"token={OPERATOR}; Authorization=Bearer {OPERATOR}"}
    for query in ("", f"?token={OPERATOR}", f"?access_token={OPERATOR}"):
        assert (
            await admin.ask("GET", f"/sessions{query}", token=None, headers=headers)
        ).status == 401
    answer = await admin.ask("GET", "/sessions")
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
async def test_each_route_requires_its_role(admin: Admin, route: Any) -> None:
    path = route.path.format_map(PLACES)
    assert (await admin.ask(route.method, path, token=None)).status == 401
    read = await admin.ask(route.method, path, token=READER)
    if route.role is Role.OPERATOR:
        assert (read.status, read.code) == (403, NOT_ALLOWED)
        assert admin.operations.changes == []
        assert (await admin.ask(route.method, path)).status not in (401, 403)
    else:
        assert read.status in (200, 400, 404)
        assert admin.operations.changes == []


def test_routes_that_change_something_require_the_role_of_operators() -> None:
    for route in ROUTES:
        assert (route.role is Role.READER) == (route.method == "GET"), route.path


@pytest.mark.parametrize(
    ("origin", "is_own"),
    [
        ("https://evil.example", False),
        ("null", False),
        ("http://127.0.0.1:1", False),
        ("http://{host}.evil.example", False),
        ("http://evil.example/{host}", False),
        ("http://{host}", True),
        ("HTTP://{host}", True),
    ],
)
async def test_pages_of_other_origins_cannot_change_anything(
    admin: Admin, origin: str, is_own: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    host = f"{admin.client.host}:{admin.client.port}"
    headers = {"Origin": origin.format(host=host)}
    tried = await admin.ask("DELETE", "/sessions/joe/1", headers=headers)
    assert tried.status == (204 if is_own else 403)
    assert bool(admin.operations.changes) is is_own
    refused = f"a request from the origin {headers['Origin']} was refused"
    assert any(refused in line for line in caplog.messages) is not is_own
    read = await admin.ask("GET", "/sessions", headers=headers)
    preflight = await admin.ask("OPTIONS", "/sessions", headers=headers, token=None)
    assert preflight.status == 401
    for answer in (tried, read, preflight):
        assert not [name for name in answer.headers if name.startswith("Access-Control-")]


async def test_every_response_has_security_headers(admin: Admin) -> None:
    for token, path in ((OPERATOR, "/sessions"), (None, "/sessions"), (OPERATOR, "/nothing")):
        headers = (await admin.ask("GET", path, token=token)).headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["Server"] == "Holdfast"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "", 404),
        ("GET", "/", 404),
        ("GET", "/sessions/", 404),
        ("GET", "/sessions/joe/1/queue/2", 404),
        ("GET", "/../../etc/passwd", 404),
        ("GET", "/%2e%2e/%2e%2e/etc/passwd", 404),
        ("PATCH", "/sessions", 405),
        ("POST", "/sessions/joe/1", 405),
        ("PUT", "/openapi.json", 405),
        ("HEAD", "/sessions", 405),
    ],
)
async def test_unknown_paths_get_a_refusal_in_json(
    admin: Admin, method: str, path: str, status: int
) -> None:
    refused = await admin.ask(method, path)
    assert refused.status == status
    if method != "HEAD":
        assert error_codes.find(refused.code) is not None
    if status == 405:
        assert refused.headers["Allow"]


@pytest.mark.parametrize("path", ["", "/", "/api", "/api/v2/sessions"])
async def test_every_path_of_the_administration_needs_a_token(admin: Admin, path: str) -> None:
    async with admin.client.get("/admin" + path) as response:
        assert response.status == 401


@pytest.mark.parametrize(
    "path",
    [
        "/sessions?limit=0",
        "/sessions?limit=501",
        "/sessions?limit=-1",
        "/sessions?limit=1e9",
        "/sessions?limit=1&limit=2",
        "/sessions?state=ASLEEP",
        "/sessions?held=perhaps",
        "/sessions?cursor=%00",
        "/sessions?cursor=" + "x" * 4097,
        "/sessions?prefix=%0d%0aSet-Cookie:x",
        "/sessions?unknown=1",
        "/sessions/joe/1?subject=ann",
        "/sessions/joe/one",
        "/sessions/joe/1.0",
        "/sessions/joe/+1",
        "/sessions/joe/1_0",
        "/sessions/joe/01",
        "/sessions/joe/0",
        "/sessions/joe/" + "9" * 30,
        "/sessions/" + "j" * 129 + "/1",
        "/sessions/jo%0ae/1",
        "/sessions/jo%2fe/1",
        "/sessions/jo%00e/1",
        "/sessions/joe/1/queue?limit=101",
        "/dead-letters?since=yesterday",
        "/dead-letters?since=-1",
        "/dead-letters?code=user.*",
        "/dead-letters?fingerprint=..%2f",
        "/dead-letters?channel=" + "c" * 1025,
        "/dead-letters/7",
        "/dead-letters/" + "7" * 20,
        "/dead-letters/" + "7" * 18 + "*",
        "/dead-letters/" + "7" * 18 + "%0a",
        "/dead-letters/export?limit=1",
        "/replays/a%20b",
        "/replays/*",
        "/commands",
        "/commands?command=",
        "/audit?limit=many",
    ],
)
async def test_parameters_beyond_their_bounds_are_refused(admin: Admin, path: str) -> None:
    refused = await admin.ask("GET", path)
    assert (refused.status, refused.code) == (400, ILLEGAL)
    assert len(refused.body) < 500


@pytest.mark.parametrize(
    "subject", ["*", "jo*", "j..e", "joe:1", "joe%", "joe';--", "jöe", "[a-z]"]
)
async def test_names_in_paths_cannot_lead_elsewhere(admin: Admin, subject: str) -> None:
    admin.operations.by_key[f"{subject}/1"] = a_session(f"{subject}/1")
    quoted = "".join(f"%{byte:02x}" for byte in subject.encode())
    assert (await admin.ask("GET", f"/sessions/{quoted}/1")).json["key"] == f"{subject}/1"
    await admin.ask("DELETE", f"/sessions/{quoted}/1")
    assert [*admin.operations.by_key] == ["joe/1"]


HOLD = "/sessions/joe/1/hold"
PURGE = "/dead-letters/purge"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", HOLD, b""),
        ("PUT", HOLD, b"null"),
        ("PUT", HOLD, b"[]"),
        ("PUT", HOLD, b'"reason"'),
        ("PUT", HOLD, b'{"reason":"x"'),
        ("PUT", HOLD, b'{"reason":"x"} {}'),
        ("PUT", HOLD, b'{"reason":"\xff"}'),
        ("PUT", HOLD, b'{"reason":"\\u0000"}'),
        ("PUT", HOLD, b'{"reason":"a\\u001b[2J"}'),
        ("PUT", HOLD, b'{"reason":7}'),
        ("PUT", HOLD, b'{"reason":"x","until":"7"}'),
        ("PUT", HOLD, b'{"reason":"x","until":7.5}'),
        ("PUT", HOLD, b'{"reason":"x","until":-7}'),
        ("PUT", HOLD, b'{"reason":"x","until":253402300800000}'),
        ("PUT", HOLD, b'{"reason":"x","until":18446744073709551616}'),
        ("PUT", HOLD, b'{"reason":"x","until":NaN}'),
        ("PUT", HOLD, b'{"reason":"x","who":"somebody"}'),
        ("PUT", HOLD, orjson.dumps({"reason": "x" * 1025})),
        ("PUT", HOLD, b"[" * 100_000),
        ("PUT", HOLD, b'{"a":' * 20_000),
        ("POST", PURGE, b'{"dry_run":"false","all":true}'),
        ("POST", PURGE, b'{"dry_run":0,"all":true}'),
        ("POST", PURGE, b'{"dry_run":true,"all":1}'),
        ("POST", PURGE, b'{"dry_run":true,"filter":{"chanel":"/x"}}'),
        ("POST", PURGE, b'{"dry_run":true,"filter":{"ids":["7"]}}'),
        ("POST", PURGE, b'{"dry_run":true,"filter":{"ids":"%d"}}' % 7),
        ("POST", PURGE, orjson.dumps({"dry_run": True, "filter": {"ids": [LETTER] * 1001}})),
        ("POST", "/replays", b'{"dry_run":true,"all":true,"options":{"rate":0}}'),
        ("POST", "/replays", b'{"dry_run":true,"all":true,"options":{"rate":1e9}}'),
        ("POST", "/replays", b'{"dry_run":true,"all":true,"options":{"stop_at":NaN}}'),
        ("POST", "/replays", b'{"dry_run":true,"all":true,"options":{"stop_at":1.5}}'),
        ("POST", "/replays", b'{"dry_run":true,"all":true,"options":{"speed":1}}'),
        ("POST", "/commands", b'{"value":"x"}'),
        ("POST", "/commands", orjson.dumps({"command": "?" + "x" * 5000})),
    ],
)
async def test_bodies_beyond_their_bounds_are_refused(
    admin: Admin, method: str, path: str, body: bytes
) -> None:
    refused = await admin.ask(method, path, data=body, headers=JSON)
    assert (refused.status, refused.code) == (400, ILLEGAL)
    assert len(refused.body) < 500
    assert admin.operations.changes == []
    assert len(admin.operations.by_id) == 9


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
        {"Content-Type": "application/json", "Content-Encoding": "identity, gzip"},
        {"Content-Type": "application/json", "Content-Encoding": "br"},
    ],
)
async def test_bodies_of_another_kind_are_refused(admin: Admin, headers: dict[str, str]) -> None:
    refused = await admin.ask("PUT", HOLD, data=b'{"reason":"x"}', headers=headers)
    assert refused.status in (400, 415)
    assert error_codes.find(refused.code) is not None if refused.status == 415 else True
    assert admin.operations.changes == []


async def test_a_body_that_a_route_does_not_take_is_refused(admin: Admin) -> None:
    refused = await admin.ask("DELETE", "/sessions/joe/1", data=b"{}", headers=JSON)
    assert (refused.status, refused.code) == (400, ILLEGAL)
    assert "joe/1" in admin.operations.by_key


async def test_a_huge_body_is_refused_before_its_end(admin: Admin) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(10_000):
            sent += 64 * 1024
            yield b" " * 64 * 1024
            await asyncio.sleep(0)

    try:
        refused = await admin.ask("PUT", HOLD, data=endless(), headers=JSON)
    except OSError:
        pass
    else:
        assert (refused.status, refused.code) == (413, "user.maxSizeExceed")
    assert sent < 64 * 1024 * 1024
    assert admin.operations.changes == []


async def test_a_stalled_body_is_given_up(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ndjson, "_TIMEOUT_S", 0.02)
    stuck = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await stuck.wait()

    for method, path, kind in (("PUT", HOLD, JSON), ("POST", "/dead-letters/import", LINES)):
        refused = await admin.ask(method, path, data=slow(), headers=kind)
        assert (refused.status, refused.code) == (408, "communication.timeout")


async def test_an_import_line_beyond_the_limit_is_refused(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ndjson, "_LONGEST_LINE", 1000)
    refused = await admin.ask("POST", "/dead-letters/import", data=b"x" * 5000, headers=LINES)
    assert (refused.status, refused.code) == (413, "user.maxSizeExceed")


async def test_an_address_that_sends_wrong_tokens_is_soon_throttled(admin: Admin) -> None:
    statuses = [(await admin.ask("GET", "/sessions", token=f"guess{n}")).status for n in range(15)]
    assert statuses == [401] * 10 + [429] * 5
    refused = await admin.ask("GET", "/sessions", token="guess")
    assert refused.code == "resource.exhaust"
    assert refused.headers["Retry-After"] == "5"
    # Another client behind the same proxy is not locked out.
    assert (await admin.ask("GET", "/sessions")).status == 200
    admin.clock.now += 5
    assert (await admin.ask("GET", "/sessions", token="guess")).status == 401
    assert (await admin.ask("GET", "/sessions", token="guess")).status == 429


async def test_operators_are_throttled_too(admin: Admin) -> None:
    burst = int(application._SIGNED_IN.burst)
    for _ in range(burst):
        assert (await admin.ask("GET", "/held-channels", token=READER)).status == 200
    assert (await admin.ask("GET", "/held-channels", token=READER)).status == 429
    assert (await admin.ask("GET", "/held-channels")).status == 200
    admin.clock.now += 1
    assert (await admin.ask("GET", "/held-channels", token=READER)).status == 200


@pytest.mark.parametrize("name", ["", " ann", "a\tb", "ann/admin", "x" * 65, "ann\xe9", "<b>"])
async def test_an_invalid_operator_name_is_refused(admin: Admin, name: str) -> None:
    refused = await admin.ask("DELETE", HOLD, headers={"X-Operator": name})
    if name == " ann":
        # White space around a header's value is not part of it.
        assert refused.status == 200
    else:
        assert (refused.status, refused.code) == (400, ILLEGAL)


async def test_a_name_gives_no_rights(admin: Admin) -> None:
    headers = {"X-Operator": "operator"}
    assert (await admin.ask("DELETE", HOLD, token=READER, headers=headers)).status == 403


async def test_tokens_do_not_appear_in_logs(admin: Admin, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        await admin.ask("GET", "/sessions")
        await admin.ask("GET", f"/nothing?token={OPERATOR}")
        await admin.ask("GET", "/sessions", token="wrong-secret")
        admin.operations.fault = RuntimeError("boom")
        await admin.ask("GET", "/sessions")
    # The test's own server has an access log, ours has none.
    lines = [each.getMessage() for each in caplog.records if each.name.startswith("holdfast.")]
    assert lines == [
        "a wrong token came from 127.0.0.1 to the administration",
        "an administrative request failed",
    ]


def test_error_codes_are_those_of_xmlblaster() -> None:
    for module in (faults,):
        for name, value in vars(module).items():
            if name.isupper() and isinstance(value, str) and not name.startswith("_"):
                assert error_codes.find(value) is not None, value
    assert API == "/admin/api/v1"
