"""`POST /publish`: scripts publish without a session of their own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from holdfast.compose import serving
from tests.unit.login.signing import token
from tests.web.people import Json, Person, ServerAndClients, keys, server_and_clients, settings

pytestmark = pytest.mark.untraced

LINES = "application/x-ndjson"
RIGHTS = """
[[rule]]
who = ["*"]
may = ["all"]
channels = ["/rooms/**", "/service/**"]
"""


@asynccontextmanager
async def open_server(home: Path, **given: Any) -> AsyncIterator[ServerAndClients]:
    """A server without a login."""
    async with serving(settings(home, **given)) as url:
        made = ServerAndClients(url, home)
        yield made
        for person in made.people:
            await person.http.close()


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[ServerAndClients]:
    async with open_server(tmp_path) as home:
        yield home


async def publish(person: Person, *messages: Json, **options: Any) -> tuple[int, list[Json]]:
    async with person.http.post("/publish", data=orjson.dumps(messages), **options) as response:
        return response.status, await response.json(content_type=None)


async def metric(person: Person, name: str) -> float:
    async with person.http.get("/metrics") as response:
        text = await response.text()
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


async def subscriber(home: ServerAndClients, *channels: str) -> Person:
    person = home.person()
    await person.handshake()
    for channel in channels:
        assert (await person.reply("/meta/subscribe", subscription=channel))["successful"]
    await person.connect()
    return person


async def test_a_message_is_published_and_has_a_result(home: ServerAndClients) -> None:
    ann = await subscriber(home, "/orders")

    status, results = await publish(
        home.person(), {"channel": "/orders", "data": {"n": 1}, "id": 7}
    )

    assert (status, results) == (200, [{"channel": "/orders", "id": "7", "successful": True}])
    event, _ = await ann.connect()
    assert (event["channel"], event["data"]) == ("/orders", {"n": 1})


async def test_an_option_beside_the_data_is_refused_by_its_name(home: ServerAndClients) -> None:
    message = {"channel": "/orders", "data": 1}
    status, [wrong, right] = await publish(home.person(), {**message, "persistent": True}, message)
    assert (status, right["successful"]) == (200, True)
    fault = "user.publish,persistent belongs into ext.delivery"
    assert wrong["error"] == f"400:{fault}:delivery_invalid"


async def test_the_body_is_json_whatever_its_content_type(home: ServerAndClients) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    body = b'{"channel": "/orders", "data": "a=1&message=2"}'
    async with home.person().http.post("/publish", data=body, headers=headers) as response:
        assert response.status == 200


async def test_a_publisher_with_options_gets_the_id_that_receivers_see(
    home: ServerAndClients,
) -> None:
    ann = await subscriber(home, "/orders")

    _, (result,) = await publish(
        home.person(), {"channel": "/orders", "data": 1, "ext": {"delivery": {"priority": 9}}}
    )

    event, _ = await ann.connect()
    assert result["ext"]["delivery"]["id"] == event["ext"]["delivery"]["id"]
    assert event["ext"]["delivery"]["priority"] == 9


async def test_json_lines_are_published_in_order_and_answered_by_lines(
    home: ServerAndClients,
) -> None:
    ann = await subscriber(home, "/orders")
    body = b"\r\n".join(b'{"channel": "/orders", "data": %d}' % n for n in range(300)) + b"\n\n"

    headers = {"Content-Type": f"{LINES}; charset=utf-8"}
    async with home.person().http.post("/publish", data=body, headers=headers) as response:
        assert (response.status, response.content_type) == (200, LINES)
        lines = (await response.text()).splitlines()

    assert [orjson.loads(line)["successful"] for line in lines] == [True] * 300
    *events, _ = await ann.connect()
    assert [event["data"] for event in events] == list(range(300))


@pytest.mark.parametrize(
    "body",
    [
        b'{"channel": "/orders", "data": [1\n2]}',
        b'{"channel": "/orders", "data": 1}, {"channel": "/orders", "data": 2}',
        b'{"channel": "/orders", "data": "1\n2"}',
    ],
)
async def test_each_line_has_one_whole_message(home: ServerAndClients, body: bytes) -> None:
    ann = await subscriber(home, "/orders")
    headers = {"Content-Type": LINES}
    async with home.person().http.post("/publish", data=body, headers=headers) as response:
        assert response.status == 400
    assert len(await ann.connect()) == 1


async def test_each_message_has_a_result_of_its_own(home: ServerAndClients) -> None:
    ann = await subscriber(home, "/orders")

    status, results = await publish(
        home.person(),
        {"channel": "/orders", "data": 1},
        {"channel": "/meta/subscribe", "subscription": "/orders"},
        {"channel": "/orders/*", "data": 2},
        {"channel": "/orders"},
        {"data": 3},
        {"channel": "/orders", "data": 4, "clientId": "another's"},
    )

    assert status == 200
    assert [result.get("error") for result in results] == [
        None,
        "403:denied_by_security_policy:publish_denied",
        "405::channel_invalid",
        "400::data_missing",
        "400::channel_missing",
        None,
    ]
    *events, _ = await ann.connect()
    assert [event["data"] for event in events] == [1, 4]


@pytest.mark.parametrize(
    ("message", "status"),
    [
        ({"channel": "/orders/*", "data": 2}, 405),
        ({"channel": "/meta/handshake"}, 403),
        ({"channel": "/meta/connect", "id": 1}, 403),
        ({"channel": "/orders"}, 400),
        ({"channel": "/orders", "data": 1, "ext": {"delivery": {"priority": 10}}}, 400),
    ],
)
async def test_the_status_is_an_error_if_nothing_was_published(
    home: ServerAndClients, message: Json, status: int
) -> None:
    before = await metric(home.person(), "holdfast_sessions_created_total")

    found, (result,) = await publish(home.person(), message)

    assert (found, result["successful"]) == (status, False)
    assert await metric(home.person(), "holdfast_sessions_created_total") == before + 1


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"{", "application/json", 400),
        (b"7", "application/json", 400),
        (b"\n\n", LINES, 400),
        (b'{"channel":"/a","data":1}\n{"channel"\n', LINES, 400),
        (b'{"channel":"/a","data":1}', "multipart/form-data", 415),
    ],
)
async def test_a_request_that_cannot_be_read_publishes_nothing(
    home: ServerAndClients, body: bytes, content_type: str, status: int
) -> None:
    ann = await subscriber(home, "/a")

    headers = {"Content-Type": content_type}
    async with home.person().http.post("/publish", data=body, headers=headers) as response:
        assert response.status == status

    assert [each["channel"] for each in await ann.connect()] == ["/meta/connect"]


async def test_a_message_that_no_receiver_could_read_is_refused_alone(
    home: ServerAndClients,
) -> None:
    body = rb'[{"channel":"/a","id":1,"data":"\ud83d"},{"channel":"/a","data":1}]'

    async with home.person().http.post("/publish", data=body) as response:
        bad, good = await response.json(content_type=None)

    assert bad == {"channel": "/a", "id": "1", "successful": False, "error": "400::text_invalid"}
    assert good["successful"]


@pytest.mark.parametrize("content_type", ["application/json", LINES])
async def test_ids_of_printable_ascii_come_back_unchanged(
    home: ServerAndClients, content_type: str
) -> None:
    ids = ["0b5a4f1e-6f0c-4d5e-9a53-0d8a4f8f6f10", "".join(map(chr, range(0x20, 0x7F)))]
    body = b"\n".join(orjson.dumps({"channel": "/a", "data": 1, "id": each}) for each in ids)
    if content_type != LINES:
        body = b"[" + body.replace(b"\n", b",") + b"]"

    headers = {"Content-Type": content_type}
    async with home.person().http.post("/publish", data=body, headers=headers) as response:
        lines = (await response.text()).splitlines()

    results = [orjson.loads(line) for line in lines]
    if content_type != LINES:
        [results] = results
    assert [(each["id"], each["successful"]) for each in results] == [(each, True) for each in ids]


async def test_a_publish_leaves_no_session_and_no_cookie(home: ServerAndClients) -> None:
    person = home.person()

    async with person.http.post("/publish", json={"channel": "/a", "data": 1}) as response:
        assert response.status == 200
        assert "Set-Cookie" not in response.headers

    assert await metric(person, "holdfast_sessions ") == 0
    assert await metric(person, 'holdfast_sessions_ended_total{reason="disconnect"}') == 1


async def test_rights_decide_as_for_any_client(tmp_path: Path) -> None:
    async with server_and_clients(tmp_path, rights=RIGHTS) as home:
        ada = home.person(Authorization=f"Bearer {token()}")

        status, results = await publish(
            ada, {"channel": "/rooms/1", "data": 1}, {"channel": "/halls/1", "data": 1}
        )

        assert status == 200
        assert [result["successful"] for result in results] == [True, False]
        assert results[1]["error"].startswith("403:denied_by_rights:")
        nobody = home.person()
        status, (result,) = await publish(nobody, {"channel": "/rooms/1", "data": 1, "id": "x"})
        assert (status, result["error"], result["id"]) == (
            403,
            "403:no_credentials:handshake_denied",
            "x",
        )


@pytest.mark.parametrize("shown", ["wrong", "", "\N{SNOWMAN}"])
async def test_a_wrong_token_is_refused_as_in_a_handshake_whether_others_log_in_or_not(
    home: ServerAndClients, tmp_path: Path, shown: str
) -> None:
    asks_for_logins = keys(tmp_path, login_anonymous=True, data=tmp_path / "other")
    async with server_and_clients(tmp_path, **asks_for_logins) as strict:
        no_login, wrong = "403:no_login:handshake_denied", "403::handshake_denied"
        for server, error in ((home, no_login), (strict, wrong)):
            script = server.person(Authorization=f"Bearer {shown}")

            status, (result,) = await publish(script, {"channel": "/rooms/1", "data": 1})
            reply = await server.person().handshake(token=shown)

            assert (status, result["successful"]) == (403, False)
            assert result["error"] == reply["error"] == error


async def test_bytes_that_are_no_text_are_a_wrong_token(home: ServerAndClients) -> None:
    address = urlsplit(home.url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    writer.write(
        b"POST /publish HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Authorization: Bearer \xff\r\nContent-Length: 27\r\n\r\n"
        b'{"channel": "/a","data": 1}'
    )
    assert (await reader.readline()).split()[1] == b"403"
    writer.close()


async def test_the_operators_token_opens_a_server_with_or_without_a_login(
    home: ServerAndClients, tmp_path: Path
) -> None:
    async with server_and_clients(tmp_path, **keys(tmp_path, data=tmp_path / "other")) as strict:
        for server, data in ((home, "data"), (strict, "other")):
            shown = (tmp_path / data / "admin-token").read_text().strip()
            script = server.person(Authorization=f"Bearer {shown}")
            assert (await publish(script, {"channel": "/a", "data": 1}))[0] == 200


async def test_a_server_without_a_login_ignores_users_and_passwords(home: ServerAndClients) -> None:
    # They may be for a proxy in front of the server.
    script = home.person(Authorization="Basic YTpi")
    assert (await publish(script, {"channel": "/rooms/1", "data": 1}))[0] == 200
    assert (await script.handshake(user="a", password="b"))["successful"]


async def test_receivers_see_the_subject_of_the_token(tmp_path: Path) -> None:
    async with server_and_clients(tmp_path) as home:
        ann = home.person()
        await ann.handshake(token=token(sub="ann"))
        await ann.reply("/meta/subscribe", subscription="/rooms/1")
        await ann.connect()

        await publish(
            home.person(Authorization=f"Bearer {token()}"), {"channel": "/rooms/1", "data": 1}
        )

        event, _ = await ann.connect()
        assert event["ext"]["delivery"]["sender"].startswith("client/ada/-")


async def test_messages_that_wait_for_a_subject_do_not_go_to_its_scripts(tmp_path: Path) -> None:
    async with server_and_clients(tmp_path) as home:
        script = home.person(Authorization=f"Bearer {token()}")
        destination = {"name": "client/ada", "forceQueuing": True}

        for number in (1, 2):
            letter = {"destinations": [destination], "content": number}
            assert (await publish(script, {"channel": "/service/ptp", "data": letter}))[0] == 200

        ada = home.person()
        await ada.handshake(session="ada/1", token=token())
        events = [*await ada.connect(), *await ada.connect()]
        assert {event["data"] for event in events if "data" in event} == {1, 2}


async def test_one_worker_has_all_buckets_as_a_proxy_learns(home: ServerAndClients) -> None:
    async with home.person().http.get("/cluster/map") as response:
        assert response.status == 200
        assert await response.json() == {"v": 1, "ranges": [[0, 999, 0]]}


async def test_only_post_publishes_and_only_with_long_polling_enabled(tmp_path: Path) -> None:
    async with open_server(tmp_path, transports=["websocket"]) as home:
        person = home.person()
        status, (result,) = await publish(person, {"channel": "/a", "data": 1})
        assert (status, result["error"]) == (400, "400::transport_unknown")
        async with person.http.get("/publish") as response:
            assert response.status == 405


async def test_large_bodies_take_turns_and_all_are_published(home: ServerAndClients) -> None:
    ann = await subscriber(home, "/a")
    text = "x" * 5000

    done = await asyncio.gather(
        *(publish(home.person(), {"channel": "/a", "data": text}) for _ in range(8))
    )

    assert [status for status, _ in done] == [200] * 8
    *events, _ = await ann.connect()
    assert len(events) == 8
