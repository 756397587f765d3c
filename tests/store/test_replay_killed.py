"""A server is killed in the middle of a replay; the next one with the same data continues it."""

import json
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.talker import Talker
from tests.serving import Server

MANY = 300
TIMEOUT_S = 60.0


class Person(Talker):
    """A receiver that acknowledges what it gets, and continues with the next server."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.got: list[int] = []
        self._ack = 0
        self.handshake(version="1.0", ext={"ack": True, "delivery": {"session": "joe/1"}})
        self.send("/meta/subscribe", subscription="/orders")
        self.take()

    def move(self, url: str) -> None:
        self._url = f"{url}/cometd"

    def take(self) -> list[dict[str, Any]]:
        """The events that there are now; the next connect acknowledges them."""
        answer = self.connect(advice={"timeout": 0}, ext={"ack": self._ack})
        self._ack = answer[-1]["ext"]["ack"]
        events = [each for each in answer if "data" in each]
        self.got += [event["data"] for event in events]
        return events

    def refuse(self, events: list[dict[str, Any]]) -> None:
        seqs = [event["ext"]["delivery"]["seq"] for event in events]
        verdicts = [{"seq": seq, "errorCode": "user.update.error"} for seq in seqs]
        self.send("/service/delivery", data=verdicts)


def _ask(url: str, data: Path, path: str, body: object = None) -> Any:
    token = (data / "admin-token").read_text().strip()
    request = urllib.request.Request(
        f"{url}/admin/api/v1{path}",
        None if body is None else json.dumps(body).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def _until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def _refuse_all(joe: Person) -> None:
    """Publish messages and refuse them: the latest first, then the first ones in reverse."""
    for at in range(0, MANY, 150):
        joe.send_all([{"channel": "/orders", "data": n} for n in range(at, at + 150)])
    events = {event["data"]: event for event in joe.take()}
    for part in range(200, MANY), range(99, -1, -1), range(100, 200):
        joe.refuse([events[n] for n in part])
    joe.got.clear()


@pytest.mark.slow
def test_a_replay_continues_in_order_and_without_gaps_after_its_server_was_killed(
    data: Path,
) -> None:
    first = Server({"data": str(data)})
    try:
        joe = Person(first.url)
        _refuse_all(joe)
        options = {"rate": 100, "canary": 0}
        wanted = {"filter": {"receiver": "joe/1"}, "options": options, "dry_run": False}
        id = _ask(first.url, data, "/replays", wanted)["id"]
        _until(lambda: _ask(first.url, data, f"/replays/{id}")["sent"] > 50)
        joe.take()
        joe.take()
        # The last ack is on its way to the store for a moment.
        time.sleep(0.1)
        taken = len(joe.got)
        first.process.kill()
    finally:
        first.stop()
    second = Server({"data": str(data)})
    try:
        joe.move(second.url)

        def is_done() -> bool:
            joe.take()
            return bool(_ask(second.url, data, f"/replays/{id}")["state"] == "done")

        _until(is_done)
        job = _ask(second.url, data, f"/replays/{id}")
    finally:
        second.stop()
    again = len(joe.got) - MANY
    assert 0 < taken < MANY
    # The last batch was not acknowledged: it is redelivered, as always.
    assert joe.got[:taken] + joe.got[taken + again :] == [*range(MANY)]
    assert joe.got[taken : taken + again] == joe.got[taken - again : taken]
    assert (job["total"], job["sent"], job["acked"], job["died_again"]) == (MANY, MANY, MANY, 0)
