"""Connections of a server that leaves go on at its successor."""

import asyncio
import os
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from holdfast.settings import Settings
from holdfast.web.doors.adoption import adopt
from holdfast.web.http.addresses import Address
from tests.abuse.attacker import PING, frame
from tests.store.store_process import until
from tests.web.doors.stage import LIMIT_S, House, Stage, Talk, door, stage
from tests.web.requests import CONNECT, HANDSHAKE, PUBLISH, SUBSCRIBE, encode, post, post_messages
from tests.web.rig import Rig, without_faults
from tests.web.test_faults import UPGRADE

HELLO = post_messages(HANDSHAKE, cookie="")
SAY = post_messages(PUBLISH)
GET = b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"
DONE = b'"successful":true'


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def greet(house: Stage) -> None:
    """Give the successor the session that the old server has, as the store would."""
    if any(each.is_websocket for each in house.talks):
        client = house.new.rig.connect()
        await client.send(UPGRADE + frame(encode(HANDSHAKE)))
        [session] = house.new.rig.bayeux.state.sessions
        await client.send(frame(encode({**SUBSCRIBE, "clientId": session.client_id})))
        client.transport.lose()
        await client.settle()
    else:
        await house.new.rig.connect().send(HELLO)


def of(client: Talk, *messages: Mapping[str, object]) -> bytes:
    """A frame with messages of the client's session."""
    return frame(encode(*[{**each, "clientId": client.client_id} for each in messages]))


async def move(house: Stage) -> None:
    """Hand all connections over; none is closed."""
    await greet(house)
    await house.leave()
    await house.new_serves()
    count = len(house.old.listener.lanes())
    done, adopted = await house.hand_over()
    assert (done.passed, done.closed, adopted) == (count, 0, count)
    assert (len(house.old.listener.lanes()), len(house.new.listener.lanes())) == (0, count)


async def opened(house: Stage, **options: Any) -> Talk:
    """A socket with a session."""
    client = await house.connect(**options)
    client.is_websocket = True
    client.send(UPGRADE + frame(encode(HANDSHAKE)))
    said = await client.until(b"}]")
    client.client_id = said.partition(b'"clientId":"')[2].partition(b'"')[0].decode()
    return client


async def answered(client: Talk, message_id: object) -> None:
    await client.until(b'"id":"%b"' % str(message_id).encode())
    assert DONE in await client.until(b"}]")


async def test_a_connection_between_two_requests_goes_on() -> None:
    async with stage() as house:
        client = await house.connect()
        assert (await client.ask(HELLO)).status == 200
        await move(house)
        assert DONE in (await client.ask(SAY)).body


@pytest.mark.slow
async def test_connections_outlive_any_number_of_servers() -> None:
    async with AsyncExitStack() as stack:
        house = await stack.enter_async_context(stage())
        client, other = await house.connect(), await house.connect()
        await client.ask(HELLO)
        await other.ask(GET)
        for _ in range(20):
            await move(house)
            assert DONE in (await client.ask(SAY)).body
            assert (await other.ask(GET)).body == b"ok\n"
            house.old.listener.stop_accepting()
            rig = await stack.enter_async_context(Rig())
            house.old, house.new = house.new, House(rig, house.new.listening)


async def test_connections_without_a_request_so_far_go_on() -> None:
    async with stage() as house:
        client = await house.connect()
        await asyncio.sleep(0.01)
        await move(house)
        assert (await client.ask(HELLO)).status == 200


@pytest.mark.parametrize("request_", [GET, post(b"{}", path="/publish")])
async def test_a_connection_goes_on_after_requests_that_aiohttp_handled(request_: bytes) -> None:
    async with stage() as house:
        client = await house.connect()
        for _ in range(2):
            assert (await client.ask(request_)).status < 500
        head, _, body = request_.partition(b"\r\n\r\n")
        client.send(head + b"\r\n\r\n")
        await asyncio.sleep(0.01)
        client.send(body)
        assert (await client.response()).status < 500
        await move(house)
        assert (await client.ask(request_)).status < 500


@pytest.mark.parametrize("part", [1, 30, -5])
async def test_a_request_that_has_begun_is_completed_at_the_successor(part: int) -> None:
    async with stage() as house:
        client = await house.connect()
        await client.ask(HELLO)
        head_end = SAY.index(b"\r\n\r\n") + 4
        part = min(part % len(SAY), head_end - 1)
        client.send(SAY[:part])
        await asyncio.sleep(0.01)
        house.patience_s = 0.05
        await move(house)
        client.send(SAY[part:])
        assert DONE in (await client.response()).body


BODY = encode({"channel": "/news", "data": "x" * 100_000})


@pytest.mark.parametrize("cut", [5, 1000, 60_000])
@pytest.mark.parametrize("path", ["/publish", "/cometd"])
async def test_a_body_that_has_begun_is_completed_at_the_successor(path: str, cut: int) -> None:
    async with stage() as house:
        client = await house.connect()
        await client.ask(HELLO)
        body = BODY if path == "/publish" else encode({**PUBLISH, "data": "x" * 100_000})
        request = post(body, ["Expect: 100-continue"], path=path)
        client.send(request[: request.index(b"\r\n\r\n") + 4])
        assert (await client.response()).status == 100
        client.send(body[:cut])
        await asyncio.sleep(0.01)
        house.patience_s = 0.05
        await move(house)
        client.send(body[cut:] + GET)
        assert (await client.response()).status < 500
        assert (await client.response()).body == b"ok\n"


CHUNKED = b"POST /publish HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("cut", [0, 2, 9, -8, -1])
async def test_a_body_in_chunks_that_has_begun_is_completed_at_the_successor(cut: int) -> None:
    async with stage() as house:
        client = await house.connect()
        body = b"%x\r\n%b\r\n3;a=b\r\n   \r\n0\r\n\r\n" % (len(BODY), BODY)
        cut %= len(body)
        client.send(CHUNKED + body[:cut])
        await asyncio.sleep(0.01)
        house.patience_s = 0.05
        await move(house)
        client.send(body[cut:] + GET)
        assert DONE in (await client.response()).body
        assert (await client.response()).body == b"ok\n"


@pytest.mark.slow
async def test_a_request_that_cannot_be_handed_over_is_to_be_repeated() -> None:
    async with stage() as house:
        client = await house.connect()
        client.send(CHUNKED + b"5;" + b"x" * 2000)
        await asyncio.sleep(0.01)
        house.patience_s = 0.05
        await house.leave()
        await house.new_serves()
        done, _ = await house.hand_over(0.1)
        assert (done.passed, done.closed) == (0, 1)
        refused = await client.response()
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert await client.is_closed()


async def test_a_request_that_is_completed_in_time_is_answered_by_the_old_server() -> None:
    async with stage() as house:
        client = await house.connect()
        await client.ask(HELLO)
        client.send(SAY[:-5])
        await asyncio.sleep(0.01)
        leaving = asyncio.create_task(house.old.leaving.pause(LIMIT_S))
        await asyncio.sleep(0.02)
        assert not leaving.done()
        client.send(SAY[-5:])
        assert DONE in (await client.response()).body
        await leaving
        await move(house)


async def test_bytes_sent_while_nothing_is_read_are_handled_by_the_successor() -> None:
    async with stage() as house:
        client = await house.connect()
        await client.ask(HELLO)
        await greet(house)
        await house.leave()
        client.send(SAY + SAY + SAY[:20])
        await house.new_serves()
        await house.hand_over()
        client.send(SAY[20:])
        for _ in range(3):
            assert DONE in (await client.response()).body


async def test_a_client_that_left_meanwhile_is_noticed_by_the_successor() -> None:
    async with stage() as house:
        client = await house.connect()
        await client.ask(HELLO)
        await greet(house)
        await house.leave()
        client.writer.close()
        await client.writer.wait_closed()
        await house.new_serves()
        await house.hand_over()
        await until(lambda: house.new.listener.lanes() == [])
        assert len(house.new.rig.room) == len(house.old.rig.room) == 0


async def test_a_client_of_aiohttp_notices_nothing() -> None:
    async with stage() as house, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{house.old.port}/healthz"
        headers = {"Host": "h"}
        async with session.get(url, headers=headers) as response:
            assert await response.text() == "ok\n"
        await move(house)
        async with session.get(url, headers=headers) as response:
            assert await response.text() == "ok\n"
        assert len(house.new.listener.lanes()) == 1


async def test_a_socket_goes_on() -> None:
    async with stage() as house:
        client = await opened(house)
        await move(house)
        client.send(of(client, PUBLISH))
        await answered(client, PUBLISH["id"])
        client.send(frame(b"hi", PING))
        await client.until(b"\x8a\x02hi")


async def test_messages_are_pushed_at_once_over_a_socket_that_went_on() -> None:
    async with stage() as house:
        client = await opened(house)
        client.send(of(client, CONNECT))
        await answered(client, CONNECT["id"])
        await move(house)
        await asyncio.sleep(0.01)
        house.new.rig.server.publish("/news", "hello")
        assert b'"data":"hello"' in await client.until(b"}]")


@pytest.mark.parametrize("at", [1, 3, 40])
async def test_a_frame_that_has_begun_is_completed_at_the_successor(at: int) -> None:
    async with stage() as house:
        client = await opened(house)
        said = of(client, PUBLISH)
        client.send(said[:at])
        await asyncio.sleep(0.01)
        house.patience_s = 0.05
        await move(house)
        client.send(said[at:])
        await answered(client, PUBLISH["id"])


@pytest.mark.parametrize("size", [0, 300_000])
async def test_a_message_in_fragments_is_completed_at_the_successor(size: int) -> None:
    async with stage() as house:
        client = await opened(house)
        text = b" " * size + encode({**PUBLISH, "clientId": client.client_id})
        text, rest = text[size:], text[:size]
        first, second = (
            frame(rest + text[:9], is_final=False),
            frame(text[9:20], 0x00, is_final=False),
        )
        client.send(first + second + frame(b"hi", PING))
        await client.until(b"\x8a\x02hi")
        third = frame(text[20:30], 0x00, is_final=False)
        client.send(third[:5])
        await asyncio.sleep(0.01)
        house.patience_s = 0.05
        await move(house)
        client.send(third[5:] + frame(text[30:], 0x00))
        await answered(client, PUBLISH["id"])


@pytest.mark.slow
async def test_a_slow_reader_gets_everything_before_its_socket_goes_on() -> None:
    async with stage() as house:
        client = await slow_socket(house)
        await greet(house)
        house.patience_s = 0.05
        await house.leave()
        await house.new_serves()
        moving = asyncio.create_task(house.hand_over(0.02))
        await asyncio.sleep(0.05)
        assert not moving.done()
        for _ in range(MANY):
            await client.until(b'"data":"' + BIG.encode() + b'"')
        done, _ = await moving
        assert (done.passed, done.closed) == (1, 0)
        await answered(client, "one")
        await answered(client, "two")


BIG = "x" * 500_000
MANY = 12


async def slow_socket(house: Stage) -> Talk:
    """A socket whose client does not read, and has sent more meanwhile."""
    narrow = socket.socket()
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    narrow.setblocking(False)
    await asyncio.get_running_loop().sock_connect(narrow, ("127.0.0.1", house.old.port))
    client = await opened(house, host=None, port=None, sock=narrow, limit=4096)
    client.send(of(client, CONNECT, SUBSCRIBE))
    await answered(client, SUBSCRIBE["id"])
    for _ in range(MANY):
        house.old.rig.server.publish("/news", BIG)
    await asyncio.sleep(0.05)
    client.send(of(client, {**PUBLISH, "id": "one"}) + of(client, {**PUBLISH, "id": "two"}))
    await asyncio.sleep(0.05)
    return client


def widen(client: Talk) -> None:
    """Let its system take more at once: through a narrow window, some need many seconds."""
    client.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)


@pytest.mark.slow
async def test_what_is_not_handed_over_in_time_is_closed() -> None:
    async with stage() as house:
        client = await slow_socket(house)
        house.patience_s = 0.05
        await house.leave()
        await house.new_serves()
        house.last_limit_s = 0.1
        done, adopted = await house.hand_over()
        assert (done.passed, done.closed, adopted) == (0, 1, 0)
        widen(client)
        for _ in range(MANY):
            await client.until(b'"data":"' + BIG.encode() + b'"')
        assert b"\x88\x15\x03\xf4the server restarts" in await client.until(b"restarts")
        assert await client.is_closed()


@pytest.mark.slow
async def test_messages_that_wait_for_a_slow_reader_are_handled_if_the_server_is_taken_back() -> (
    None
):
    async with stage() as house:
        client = await slow_socket(house)
        house.patience_s = 0.05
        await house.leave()
        reading = asyncio.create_task(client.until(b"never"))
        await asyncio.sleep(0.1)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        assert b'"id":"one"' not in client.data
        await house.old.leaving.take_back()
        widen(client)
        for each in ("one", "two"):
            await answered(client, each)


async def test_a_socket_that_the_successor_refuses_is_closed_without_a_response() -> None:
    async with stage() as house:
        client = await opened(house)
        await house.leave()
        endpoint = house.new.rig.endpoint
        object.__setattr__(endpoint, "options", Settings(transports=["long-polling"]))
        await house.new_serves()
        await house.hand_over()
        assert await client.is_closed()
        assert client.data == b""


async def test_the_file_of_a_unix_socket_stays_for_the_successor(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with stage() as house:
        address = Address("", 0, path)
        with address.listen()[0] as listening:
            for each in (house.old, house.new):
                each.listening = listening
                each.listener._address = address
            house.old.listener.stop_accepting()
            await house.old.open()
            reader, writer = await asyncio.open_unix_connection(str(path))
            house.talks.append(client := Talk(reader, writer))
            await client.ask(HELLO)
            await house.leave()
            await house.new.open()
            await house.hand_over()
            await house.old.listener.close()
            assert DONE in (await client.ask(HELLO)).body
            assert path.is_socket()


async def test_packets_of_an_unknown_kind_do_no_harm() -> None:
    async with stage() as house:
        client = await house.connect()
        await client.ask(HELLO)
        await greet(house)
        await house.leave()
        await house.new_serves()
        ours, theirs = door()
        before = descriptors()
        with socket.socket() as unknown:
            socket.send_fds(ours, [b'{"kind":"other"}'], [unknown.fileno()])
        ours.send(b"nothing at all")
        adopting = asyncio.create_task(adopt(theirs, {"main": house.new.listener}))
        await asyncio.sleep(0.01)
        assert descriptors() == before
        done = await house.old.leaving.hand_over(ours, limit_s=LIMIT_S, last_limit_s=LIMIT_S)
        assert (done.passed, await adopting) == (1, 1)
        assert DONE in (await client.ask(SAY)).body


@pytest.mark.slow
async def test_everything_goes_on_at_the_old_server_if_it_is_taken_back() -> None:
    async with stage() as house:
        client, other = await opened(house), await house.connect()
        half = await house.connect()
        await other.ask(GET)
        half.send(GET[:10])
        await asyncio.sleep(0.01)
        house.patience_s = 0.05
        await house.leave()
        client.send(of(client, PUBLISH))
        other.send(GET)
        newcomer = await house.connect()
        newcomer.send(GET)
        await asyncio.sleep(0.05)
        assert len(house.old.listener.lanes()) == 3
        await house.old.leaving.take_back()
        await answered(client, PUBLISH["id"])
        assert (await other.response()).status == 200
        assert (await newcomer.response()).status == 200
        half.send(GET[10:])
        assert (await half.response()).status == 200
        await move(house)
        assert (await half.ask(GET)).status == 200


async def test_the_rest_is_closed_if_the_door_breaks() -> None:
    async with stage() as house:
        clients = [await house.connect() for _ in range(40)]
        for client in clients:
            await client.ask(GET)
        await house.leave()
        ours, theirs = door()
        theirs.close()
        leaving = house.old.leaving.hand_over(ours, limit_s=LIMIT_S, last_limit_s=LIMIT_S)
        async with asyncio.timeout(LIMIT_S):
            done = await leaving
        assert (done.passed, done.closed) == (0, 40)
        for client in clients:
            assert await client.is_closed()


@pytest.mark.slow
async def test_a_slow_reader_gets_everything_although_the_successor_has_left_meanwhile() -> None:
    async with stage() as house:
        client, other = await slow_socket(house), await house.connect()
        await other.ask(GET)
        house.patience_s = 0.05
        await house.leave()
        ours, theirs = door()
        theirs.close()
        leaving = house.old.leaving.hand_over(ours, limit_s=LIMIT_S, last_limit_s=LIMIT_S)
        moving = asyncio.create_task(leaving)
        assert await other.is_closed()
        await asyncio.sleep(0.1)
        assert not moving.done()
        widen(client)
        for _ in range(MANY):
            await client.until(b'"data":"' + BIG.encode() + b'"')
        await client.until(b"the server restarts")
        async with asyncio.timeout(LIMIT_S):
            done = await moving
        assert (done.passed, done.closed) == (0, 2)


async def test_a_successor_without_room_closes_connections() -> None:
    async with stage() as house:
        clients = [await house.connect() for _ in range(3)]
        for client in clients:
            await client.ask(GET)
        house.new.rig.room._limit = 2
        await house.leave()
        await house.new_serves()
        done, adopted = await house.hand_over()
        assert (done.passed, adopted) == (3, 2)
        assert await clients[2].is_closed()
        assert (await clients[0].ask(GET)).status == 200


@pytest.mark.slow
async def test_no_descriptor_is_left_behind() -> None:
    async with stage() as house:
        await house.new_serves()
        # An event loop opens some for itself.
        await (await house.connect()).ask(GET)
        await house.end_talks()
        await until(lambda: not house.old.listener.lanes() and not house.new.listener.lanes())
        await asyncio.sleep(0.05)
        before = descriptors()
        clients = [await house.connect() for _ in range(20)] + [await opened(house)]
        for client in clients[:20]:
            await client.ask(GET)
        during = descriptors()
        assert during >= before + 2 * 21
        await house.leave()
        with without_faults():
            await house.hand_over()
            await until(lambda: descriptors() == during)
        await house.end_talks()
        await until(lambda: descriptors() == before)
