"""The journal has the outcome of every message, over restarts too."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from holdfast.journal.frame import decode
from holdfast.journal.schema import SETTLED, Event, Kind
from holdfast.journal.unfold import unfold
from holdfast.store.format.keys import RedisKeys
from tests.integration.talker import Talker
from tests.serving import Server, kill_orphans_in

Start = Callable[[], Server]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    servers: list[Server] = []

    def start() -> Server:
        servers.append(Server({"journal": True, "data": str(tmp_path)}))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()
    kill_orphans_in(tmp_path)


def journal(data: Path) -> list[Event]:
    """All events, of frames whose numbers have no gap."""
    store = Redis(unix_socket_path=str(data / "store.sock"))
    entries: Any = store.xrange(RedisKeys("holdfast").journal("holdfast"))
    store.close()
    assert [int(fields[b"seq"]) for _, fields in entries] == [*range(1, len(entries) + 1)]
    return [event for _, fields in entries for event in unfold(decode(fields[b"frame"]))]


def books(events: list[Event]) -> dict[str, int | None]:
    return {event.what or "": event.number for event in events if event.kind == Kind.BOOKS}


def test_the_journal_continues_after_a_restart_and_agrees_with_the_books(
    start: Start, tmp_path: Path
) -> None:
    server = start()
    plain, named = Talker(server.url), Talker(server.url)
    plain.handshake()
    named.handshake(ext={"ack": True, "delivery": {"session": "joe/1"}})
    for talker in (plain, named):
        talker.connect(advice={"timeout": 0})
        talker.send("/meta/subscribe", subscription="/a")
    for n in range(3):
        plain.send("/a", data=n)
    plain.connect(advice={"timeout": 0})
    got = named.connect(ext={"ack": 0}, advice={"timeout": 0})
    assert [each["data"] for each in got if each["channel"] == "/a"] == [0, 1, 2]
    assert server.stop() == 0
    again = start()
    named.go_to(again.url)
    batch = got[-1]["ext"]["ack"] if "ext" in got[-1] else got[0]["ext"]["ack"]
    named.connect(ext={"ack": batch}, advice={"timeout": 0})
    assert again.stop() == 0
    last = start()
    events = journal(tmp_path)
    assert last.stop() == 0
    kinds = Counter(event.kind for event in events)
    assert sum(event.copies or 0 for event in events) == 6
    assert sum(kinds[kind] for kind in SETTLED) == 6
    assert (kinds[Kind.WRITTEN], kinds[Kind.HANDED], kinds[Kind.ACKED]) == (3, 3, 3)
    assert [e.what for e in events if e.kind == Kind.NODE] == ["start", "stop"] * 2 + ["start"]
    assert books(events) == {
        "restored": 0,
        "accepted": 0,
        "acked": 3,
        "dead": 0,
        "expired": 0,
        "discarded": 0,
        "moved": 0,
        "open": 0,
    }


def test_entries_of_a_session_that_is_gone_are_journalled_and_counted_as_discarded(
    start: Start, tmp_path: Path
) -> None:
    server = start()
    named = Talker(server.url)
    named.handshake(ext={"ack": True, "delivery": {"session": "joe/1"}})
    named.connect(advice={"timeout": 0})
    named.send("/meta/subscribe", subscription="/a")
    assert named.send("/a", data=1)[0]["successful"]
    server.process.kill()
    server.process.wait()
    store = Redis(unix_socket_path=str(tmp_path / "store.sock"))
    # As if the session had ended just before the kill, with the message on its way to the store.
    assert store.hdel(RedisKeys("holdfast").sessions, "joe/1") == 1
    store.close()
    assert start().stop() == 0
    last = start()
    events = journal(tmp_path)
    assert last.stop() == 0
    [end] = [event for event in events if event.kind in SETTLED]
    assert (end.kind, end.receiver, end.code) == ("discarded", "joe/1", "session_ended")
    counted = [(e.what, e.number) for e in events if e.what in ("restored", "discarded", "open")]
    # Those of the run that found the entry; the other runs had none.
    of_the_finder = [("restored", 1), ("discarded", 1), ("open", 0)]
    assert counted == [("restored", 0), *of_the_finder, ("restored", 0)]
