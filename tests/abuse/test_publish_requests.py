"""`POST /publish` under attack: it allows nothing that other ways in refuse."""

import orjson
import pytest

from tests.abuse.attacker import Answer, request
from tests.abuse.conftest import MakeTarget
from tests.abuse.target import Target
from tests.abuse.test_origins import DENIED, FOREIGN, FOREIGN_WITHOUT_ORIGIN, SEVERAL_ORIGINS, ask

PATH = "POST /publish"
MESSAGE = {"channel": "/a", "data": 1}
ONE = orjson.dumps([MESSAGE])
CREATED = "holdfast_sessions_created_total"
LINES = {"Content-Type": "application/x-ndjson"}


def publish(target: Target, body: bytes = ONE, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ask(target, request(body, named, method=PATH))


@pytest.mark.parametrize(
    "headers",
    [*({"Origin": each} for each in FOREIGN), *SEVERAL_ORIGINS, *FOREIGN_WITHOUT_ORIGIN],
)
@pytest.mark.parametrize("content_type", ["application/json", "text/plain", LINES["Content-Type"]])
def test_a_foreign_page_publishes_nothing(
    content_type: str, headers: dict[str, str], target: Target
) -> None:
    before = target.metric(CREATED)
    said = {"Content-Type": content_type, "Cookie": "BAYEUX_BROWSER=x", **headers}
    answer = ask(target, request(ONE, said, method=PATH))
    assert (answer.status, answer.error()) == DENIED
    assert target.metric(CREATED) == before


def test_a_name_that_is_not_the_servers_is_refused(target: Target) -> None:
    answer = publish(target, Host="rebound.example")
    assert (answer.status, answer.error()) == (421, "421:host_name:host_unknown")


@pytest.mark.parametrize(
    ("rate", "kind", "message"),
    [
        ({"budget_handshakes": 1}, "handshakes", MESSAGE),
        ({"budget_publishes": 1}, "publishes", MESSAGE),
        ({"budget_bytes": 100}, "bytes", {"channel": "/a", "data": "x" * 300}),
        ({"budget_requests": 1}, "requests", MESSAGE),
    ],
)
def test_the_budgets_of_an_address_hold(
    target_with: MakeTarget, rate: dict[str, int], kind: str, message: dict[str, object]
) -> None:
    target = target_with(trusted_proxies=["127.0.0.1"], **rate)
    before = target.metric("holdfast_budgets_exceeded_total", kind=kind)

    answers = [
        publish(target, orjson.dumps([message]), X_Forwarded_For="203.0.113.77") for _ in range(30)
    ]

    refused = [answer for answer in answers if answer.status != 200]
    assert {answer.status for answer in refused} == {429}
    assert all(int(answer.headers["retry-after"]) > 0 for answer in refused)
    assert target.metric("holdfast_budgets_exceeded_total", kind=kind) > before
    assert publish(target, X_Forwarded_For="198.51.100.77").status == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[" * 100_000, 413),
        (b'{"channel":"/a","data":' + b"[" * 600 + b"]" * 600 + b"}", 400),
        (b"[" + b",".join([b'{"channel":"/a","data":1}'] * 5001) + b"]", 413),
        (b'{"channel":"/a","data":[' + b"0," * 70_000 + b"0]}", 413),
        (b"{}\n" * 5001, 413),
    ],
)
def test_a_body_beyond_the_limits_is_refused_before_it_costs_anything(
    target: Target, body: bytes, status: int
) -> None:
    before = target.metric("holdfast_messages_published_total")
    answer = ask(target, request(body, LINES if body[:2] == b"{}" else {}, method=PATH))
    assert answer.status == status
    assert target.metric("holdfast_messages_published_total") == before


def test_a_client_that_leaves_in_the_middle_leaves_no_session(target: Target) -> None:
    body = orjson.dumps([{"channel": "/a", "data": "x" * 1000}] * 1000)
    for _ in range(5):
        with target.wire() as wire:
            wire.send(request(body, {}, method=PATH))
    assert publish(target).status == 200
    target.until_metric("holdfast_sessions", 0)


def test_no_message_turns_the_request_into_another_client(target: Target) -> None:
    with target.person() as person:
        stolen = {"channel": "/meta/disconnect", "clientId": person.client_id}
        answer = publish(target, orjson.dumps([stolen, {**MESSAGE, "clientId": person.client_id}]))
        first, second = answer.messages()
        assert first["error"] == "403:denied_by_security_policy:publish_denied"
        assert second["successful"]
        assert person.publish("/a", 1).messages()[0]["successful"]
