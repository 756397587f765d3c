"""A client learns by a cookie which host has its session, so that a proxy can lead it there."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.settings import Settings
from holdfast.web.forwarding.far_shard import FarShard
from holdfast.web.forwarding.newcomers import Newcomers
from holdfast.web.forwarding.request_door import Door, DoorParts
from holdfast.web.host_links.stickiness import OwnSessions, telling
from holdfast.web.http.host_cookie import HostCookie
from tests.abuse.attacker import frame
from tests.web.forwarding.stage import FAR, TURNS, Pair
from tests.web.requests import (
    CLIENT_ID,
    COOKIE,
    HANDSHAKE,
    SUBSCRIBE,
    client_ids,
    encode,
    post,
    post_messages,
)
from tests.web.rig import FrontEnd, Rig
from tests.web.test_faults import UPGRADE

DOOR, HOME = "a.example", "b.example"
SUBSCRIPTION = {**SUBSCRIBE, "subscription": "/x"}
FRONT_ENDS = [FrontEnd.FAST_LANE, FrontEnd.ORDINARY, FrontEnd.PLAIN_AIOHTTP]


class Hosts(Pair):
    """A door on one host, and another host, each of which may have the sessions."""

    def __init__(self, front_end: FrontEnd, options: Settings | None = None) -> None:
        options = options or Settings()
        self.cookie = HostCookie(options, DOOR)
        self.home_of_sessions: int | None = FAR
        # The host that has the other shard.
        self.host = HOME
        super().__init__(1 << 16, front_end=front_end, host_cookie=self.cookie, options=options)

    def _door(self, rig: Rig) -> Door:
        self.far = FarShard(FAR, rig._clock)
        self.far.on_answer = telling(self.cookie, lambda: self.host)
        own = OwnSessions(rig.scheduler, self.cookie)
        subject_of = Newcomers(None).subject_of
        limits = rig.bayeux.state.request_limits

        def shard_of(_: int) -> int | None:
            return self.home_of_sessions

        far = {FAR: self.far}
        return Door(
            DoorParts(own, client_ids(), shard_of, far, subject_of, limits, lambda *_: False)
        )

    async def cookies(self, *requests: bytes) -> list[str]:
        """Return what a new connection is told to remember by the last of these requests."""
        client = self.connect()
        for each in requests:
            client.send_now(each)
            await client.settle(TURNS)
        responses = client.heard().responses
        assert len(responses) == len(requests)
        return responses[-1].headers.get("set-cookie", "").splitlines()


@asynccontextmanager
async def hosts(
    front_end: FrontEnd = FrontEnd.FAST_LANE, options: Settings | None = None
) -> AsyncIterator[Hosts]:
    both = Hosts(front_end, options)
    async with both.home, both.door:
        both.link()
        yield both


def with_host(host: str) -> str:
    """The cookies of a client that was told this host."""
    return f"{COOKIE}; HOLDFAST_HOST={host}"


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize("is_far", [True, False])
async def test_a_client_learns_the_host_of_its_session_once(
    front_end: FrontEnd, is_far: bool
) -> None:
    async with hosts(front_end) as both:
        own = HOME if is_far else DOOR
        both.home_of_sessions = FAR if is_far else None
        greeting = await both.cookies(post_messages(HANDSHAKE, cookie=COOKIE))
        assert greeting == [f"HOLDFAST_HOST={own}; Path=/; HttpOnly"]
        subscribe = post_messages(SUBSCRIPTION, cookie=with_host(own))
        assert await both.cookies(subscribe, subscribe) == []


@pytest.mark.parametrize("front_end", FRONT_ENDS)
async def test_a_new_client_gets_both_cookies(front_end: FrontEnd) -> None:
    async with hosts(front_end) as both:
        both.home_of_sessions = None
        identity, host = sorted(await both.cookies(post_messages(HANDSHAKE, cookie="")))
        assert identity.startswith("BAYEUX_BROWSER=")
        assert host.startswith(f"HOLDFAST_HOST={DOOR};")


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize(
    "shown",
    ["a.example", "", "nowhere", "b.example.", '"', "\xff" * 300, "b.example b.example"],
)
async def test_a_wrong_host_is_corrected_and_changes_nothing_else(
    front_end: FrontEnd, shown: str
) -> None:
    async with hosts(front_end) as both:
        await both.cookies(post_messages(HANDSHAKE))
        request = post_messages(SUBSCRIPTION, cookie=with_host(shown))
        client = both.connect()
        client.send_now(request)
        await client.settle(TURNS)
        [response] = client.heard().responses
        assert b'"successful":true' in response.body
        assert response.headers["set-cookie"].startswith(f"HOLDFAST_HOST={HOME};")


@pytest.mark.parametrize("front_end", FRONT_ENDS)
async def test_a_client_learns_that_its_session_has_moved(front_end: FrontEnd) -> None:
    async with hosts(front_end) as both:
        await both.cookies(post_messages(HANDSHAKE))
        both.host = "c.example"
        request = post_messages(SUBSCRIPTION, cookie=with_host(HOME))
        assert await both.cookies(request) == ["HOLDFAST_HOST=c.example; Path=/; HttpOnly"]
        # The next response on the same connection has none.
        right = post_messages(SUBSCRIPTION, cookie=with_host("c.example"))
        assert await both.cookies(request, right) == []


@pytest.mark.parametrize("front_end", FRONT_ENDS)
async def test_while_nobody_knows_the_host_clients_keep_what_they_have(
    front_end: FrontEnd,
) -> None:
    async with hosts(front_end) as both:
        await both.cookies(post_messages(HANDSHAKE))
        both.host = ""
        assert await both.cookies(post_messages(SUBSCRIPTION, cookie=with_host("old"))) == []


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize("is_far", [True, False])
async def test_a_program_that_keeps_no_cookies_is_told_by_its_handshake_alone(
    front_end: FrontEnd, is_far: bool
) -> None:
    async with hosts(front_end) as both:
        both.home_of_sessions = FAR if is_far else None
        told = await both.cookies(post_messages(HANDSHAKE, cookie=""))
        assert [each.partition("=")[0] for each in sorted(told)] == [
            "BAYEUX_BROWSER",
            "HOLDFAST_HOST",
        ]
        assert await both.cookies(post_messages(SUBSCRIPTION, cookie="")) == []


async def test_a_page_of_another_origin_gets_the_cookie_beside_its_headers() -> None:
    async with hosts(options=Settings(allow_origin=["https://page.example"])) as both:
        headers = ["Origin: https://page.example", f"Cookie: {COOKIE}"]
        client = both.connect()
        client.send_now(post(encode(HANDSHAKE), ["Content-Type: application/json", *headers]))
        await client.settle(TURNS)
        [response] = client.heard().responses
        assert response.headers["access-control-allow-origin"] == "https://page.example"
        assert response.headers["set-cookie"].startswith(f"HOLDFAST_HOST={HOME};")


async def test_a_page_that_loads_scripts_gets_the_cookie() -> None:
    transports = [*ConnectionType]
    async with hosts(options=Settings(transports=transports)) as both:
        await both.cookies(post_messages(HANDSHAKE))
        message = f'[{{"channel":"/meta/subscribe","clientId":"{CLIENT_ID}","subscription":"/x"}}]'
        query = "".join(f"%{byte:02x}" for byte in message.encode())
        lines = [
            f"GET /cometd?jsonp=f&message={query} HTTP/1.1",
            *("Host: h", "Sec-Fetch-Site: same-origin", "Sec-Fetch-Dest: script"),
            *(f"Cookie: {COOKIE}", "", ""),
        ]
        [told] = await both.cookies("\r\n".join(lines).encode())
        assert told.startswith(f"HOLDFAST_HOST={HOME};")


def upgrade(cookies: str) -> bytes:
    return UPGRADE[:-2] + (f"Cookie: {cookies}\r\n\r\n" if cookies else "\r\n").encode()


async def upgraded(both: Hosts, cookies: str) -> bytes:
    client = both.connect()
    client.send_now(upgrade(cookies))
    await client.settle(TURNS)
    assert b"101 " in client.transport.written
    return bytes(client.transport.written)


@pytest.mark.parametrize("front_end", FRONT_ENDS)
async def test_a_socket_is_told_where_the_session_of_its_browser_will_be(
    front_end: FrontEnd,
) -> None:
    async with hosts(front_end) as both:
        both.cookie.host_of_newcomer = lambda speaker: HOME if speaker.browsers else ""
        told = f"Set-Cookie: HOLDFAST_HOST={HOME};".encode()
        for cookies in (COOKIE, with_host("c.example")):
            assert told in await upgraded(both, cookies)
        new = await upgraded(both, "")
        assert told in new
        # A new browser gets its identity, too.
        assert b"Set-Cookie: BAYEUX_BROWSER=" in new


async def test_a_socket_keeps_a_cookie_that_has_led_it_here_or_is_right() -> None:
    async with hosts() as both:
        both.cookie.host_of_newcomer = lambda _: HOME
        for host in (DOOR, HOME):
            assert b"HOLDFAST_HOST" not in await upgraded(both, with_host(host))
        both.cookie.host_of_newcomer = lambda _: ""
        assert b"HOLDFAST_HOST" not in await upgraded(both, COOKIE)


async def test_what_is_said_over_a_socket_sets_no_cookie() -> None:
    async with hosts() as both:
        client = both.connect()
        client.send_now(upgrade(with_host("elsewhere")))
        await client.settle(TURNS)
        client.send_now(frame(encode(HANDSHAKE)))
        await client.settle(TURNS)
        assert b'"successful":true' in client.transport.written
        assert b"HOLDFAST_HOST" not in client.transport.written


async def test_the_cookie_has_the_attributes_of_the_one_of_browsers() -> None:
    options = Settings(
        browser_cookie_path="/bayeux",
        browser_cookie_secure=True,
        browser_cookie_same_site="None",
        browser_cookie_partitioned=True,
    )
    async with hosts(options=options) as both:
        [told] = await both.cookies(post_messages(HANDSHAKE))
        attributes = "Path=/bayeux; Secure; HttpOnly; SameSite=None; Partitioned"
        assert told == f"HOLDFAST_HOST={HOME}; {attributes}"


async def test_without_a_list_of_hosts_no_cookie_names_one() -> None:
    async with Rig() as rig:
        client = rig.connect()
        client.send_now(post_messages(HANDSHAKE, cookie=f"{COOKIE}; HOLDFAST_HOST=x"))
        await client.settle()
        [response] = client.heard().responses
        assert "set-cookie" not in response.headers
