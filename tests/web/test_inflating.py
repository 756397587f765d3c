"""Compressed bodies: they are inflated in turns with other work, and their inflated size counts."""

from random import Random

import pytest

from tests.web.requests import HANDSHAKE, encode, gzipped, post, post_messages
from tests.web.rig import Client, Rig

HELLO = post_messages(HANDSHAKE, cookie="")
# Random blanks compress badly, unlike the content of a compression bomb.
BLANKS = bytes(Random(1).choices(b" \t\r\n", k=200_000))
# Small on the wire, two megabytes inside.
LARGE = post(gzipped(BLANKS + b" " * 1_800_000 + encode(HANDSHAKE)), ["Content-Encoding: gzip"])
# The room for all unfinished requests.
ALL = 256 * 1024 * 1024


def statuses(client: Client) -> list[int]:
    return [response.status for response in client.heard().responses]


async def test_others_are_answered_while_a_body_is_inflated() -> None:
    async with Rig() as rig:
        sender, other = rig.connect(), rig.connect()
        sender.send_now(LARGE)
        other.send_now(HELLO)
        await other.settle(10)
        assert (statuses(sender), statuses(other)) == ([], [200])
        await sender.settle(60)
        assert statuses(sender) == [200]


@pytest.mark.parametrize(("room", "status"), [(2_500_000, 200), (1_000_000, 503)])
async def test_inflated_bytes_count_as_unfinished(room: int, status: int) -> None:
    async with Rig() as rig:
        intake = rig.endpoint.intake
        intake.take(ALL - room)
        client = rig.connect()
        client.send_now(LARGE)
        await client.settle(60)
        assert statuses(client) == [status]
        assert intake.used == ALL - room


async def test_an_incomplete_body_is_not_inflated() -> None:
    async with Rig() as rig:
        client = rig.connect()
        await client.send(LARGE[:-1])
        assert 0 < rig.endpoint.intake.used < len(LARGE)
        client.send_now(LARGE[-1:])
        await client.settle(60)
        assert (statuses(client), rig.endpoint.intake.used) == ([200], 0)


async def test_bodies_are_inflated_by_a_server_that_did_not_run_for_long() -> None:
    async with Rig() as rig:
        # The clock of the core did not run either.
        rig._now = -3600.0
        client = rig.connect()
        client.send_now(LARGE)
        await client.settle(60)
        assert statuses(client) == [200]
