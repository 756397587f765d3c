"""Connections of a server that leaves go on at its successor."""

from tests.abuse.attacker import frame
from tests.web.doors.stage import Stage, stage
from tests.web.requests import HANDSHAKE, PUBLISH, encode, post_messages
from tests.web.test_faults import UPGRADE

HELLO = post_messages(HANDSHAKE, cookie="")
SAY = post_messages(PUBLISH)


async def greet(house: Stage) -> None:
    """Give the successor the session that the old server has, as the store would."""
    talk = house.new.rig.connect()
    await talk.send(HELLO)


async def test_a_connection_between_two_requests_goes_on_at_the_successor() -> None:
    async with stage() as house:
        client = await house.connect()
        assert (await client.ask(HELLO)).status == 200
        await greet(house)
        await house.leave()
        await house.new_serves()
        done, adopted = await house.hand_over()
        assert (done.passed, done.closed, adopted) == (1, 0, 1)
        said = await client.ask(SAY)
        assert b'"successful":true' in said.body
        assert (len(house.old.listener.lanes()), len(house.new.listener.lanes())) == (0, 1)


async def test_a_socket_goes_on_at_the_successor() -> None:
    async with stage() as house:
        client = await house.connect()
        client.send(UPGRADE + frame(encode(HANDSHAKE)))
        await client.until(b'"successful":true')
        await client.until(b"}]")
        await greet(house)
        await house.leave()
        await house.new_serves()
        done, adopted = await house.hand_over()
        assert (done.passed, done.closed, adopted) == (1, 0, 1)
        client.send(frame(encode(PUBLISH)))
        said = await client.until(b"}]")
        assert said.startswith(b"\x81")
        assert b'"successful":true' in said
