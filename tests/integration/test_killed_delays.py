"""Delayed messages are delivered once and when they are due, although the server is killed."""

import time
from pathlib import Path
from typing import Any

from tests.integration.successors import following
from tests.integration.test_killed_point_to_point import TIMEOUT_S, Client
from tests.serving import Server

CHANNEL = "/later"


def reader(server: Server) -> Client:
    client = Client(server, ack=True, delivery={"session": "joe/1"})
    (reply,) = client.send("/meta/subscribe", subscription=CHANNEL)
    assert reply["successful"], reply
    return client


def delay(client: Client, data: object, ms: int) -> None:
    (reply,) = client.send(CHANNEL, data=data, ext={"delivery": {"delay": ms}})
    assert reply["successful"], reply


def fetch_all(client: Client, count: int) -> list[Any]:
    """The data of all events until there are so many, and of those that come right after them."""
    ends_at, found, ack = time.monotonic() + TIMEOUT_S, [], 0
    while time.monotonic() < ends_at:
        *events, reply = client.connect(ack)
        found += [each["data"] for each in events if "data" in each]
        ack = reply["ext"]["ack"]
        if len(found) >= count:
            ends_at = min(ends_at, time.monotonic() + 1.0)
        time.sleep(0.05)
    return found


def test_delayed_messages_survive_kills_keep_their_times_and_come_once(tmp_path: Path) -> None:
    with following(tmp_path, max_interval=60_000) as servers:
        reader(servers.last)
        boss = Client(servers.last)
        for number, ms in enumerate((1, 2000, 500, 3_600_000)):
            delay(boss, number, ms)
        # Killed when the first message is due: before, while or after it is delivered.
        servers.kill()
        time.sleep(2)
        # Killed again while those are delivered that became due in the meantime.
        servers.kill()
        assert fetch_all(reader(servers.last), 3) == [0, 2, 1]
