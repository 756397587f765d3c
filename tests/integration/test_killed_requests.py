"""Requests between named sessions are answered although the server is killed meanwhile."""

import time
from pathlib import Path
from typing import Any

from tests.integration.successors import following
from tests.integration.test_killed_point_to_point import TIMEOUT_S, Client, HasUrl, Json

POWER = "/data/power"


class Person(Client):
    """A named session; its next connect acknowledges what it got."""

    def __init__(self, server: HasUrl, name: str, request: bool | str) -> None:
        self._batch = 0
        self.ret = ""
        super().__init__(server, ack=True, delivery={"session": name}, request=request)

    def send(self, channel: str, **fields: Any) -> list[Json]:
        answer = super().send(channel, **fields)
        if channel == "/meta/handshake":
            self.ret = answer[0]["ext"]["ret"]
        return answer

    def events(self, **ext: object) -> list[Json]:
        asked: Json = {"connectionType": "long-polling", "advice": {"timeout": 0}}
        answer = self.send("/meta/connect", ext={"ack": self._batch, **ext}, **asked)
        self._batch = answer[-1]["ext"]["ack"]
        return [each for each in answer if "data" in each]

    def events_soon(self) -> list[Json]:
        """The events of the first connect that gets any."""
        ends_at, found = time.monotonic() + TIMEOUT_S, self.events()
        while not found and time.monotonic() < ends_at:
            found = self.events()
        return found


def publish(person: Person, channel: str, data: object, **ext: object) -> Json:
    (reply,) = [each for each in person.send(channel, data=data, ext=ext) if "successful" in each]
    return reply


def test_a_request_ends_when_the_next_server_finds_no_responder_left(
    tmp_path: Path,
) -> None:
    with following(tmp_path, channels={"/data/*": {"durable": True}}) as servers:
        ann = Person(servers.last, "ann/1", request=True)
        passing = Client(servers.last)
        passing.send("/meta/subscribe", subscription=POWER)
        reply_to = f"{ann.ret}/4000001"
        assert publish(ann, POWER, "?", replyTo=reply_to, timeout=120_000)["successful"]
        # The store answers this after the request before it.
        ann.send("/meta/subscribe", subscription="/own")

        servers.kill()
        ann = Person(servers.last, "ann/1", request=ann.ret)
        (error,) = ann.events_soon()
        assert (error["channel"], error["error"]) == (reply_to, f"404:{POWER}:no_responders")
