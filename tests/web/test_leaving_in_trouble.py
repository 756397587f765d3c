"""A server leaves, or goes on as before, whatever its clients and its store do meanwhile."""

import os
import signal
import time
from pathlib import Path

import orjson
import pytest

from holdfast.store.format.keys import RedisKeys
from holdfast.supervisor.control import Say
from tests.abuse.attacker import BUSY, HANDSHAKE, Person, Wire, request
from tests.store.servers import ValkeyServer
from tests.web.played_supervisor import LIMIT_S, PlayedSupervisor

# Far more than any client may delay a leave; and what a stop waits for.
SLOW_S, SLOW_LOGIN_S = 60.0, 8.0
KEYS = RedisKeys("holdfast")
HESITANT = {"extension": ["tests.conversations.policies:hesitation"]}


def handshake_that_takes(seconds: float) -> bytes:
    return request(orjson.dumps([{**HANDSHAKE, "ext": {"seconds": seconds}}]))


def test_a_leave_does_not_wait_for_slow_logins(tmp_path: Path) -> None:
    with PlayedSupervisor(tmp_path, HESITANT) as played, Wire(played.url) as slow:
        slow.send(handshake_that_takes(SLOW_S))
        successor, _ = played.prepare()
        begun_at = time.monotonic()
        assert played.leave()["say"] == Say.LEFT
        assert time.monotonic() - begun_at < SLOW_S / 2
        [reply] = slow.answer().messages()
        assert reply["error"] == BUSY
        assert reply["advice"]["reconnect"] == "handshake"
        assert played.open(successor)["say"] == Say.READY
        assert played.go(successor) == 0
        slow.send(handshake_that_takes(0))
        assert slow.answer().messages()[0]["successful"]


@pytest.mark.slow
def test_a_server_goes_on_if_its_store_is_frozen_when_it_leaves(tmp_path: Path) -> None:
    with PlayedSupervisor(tmp_path, {}) as played, Person(played.url) as person:
        person.subscribe("/news")
        played.prepare()
        [file] = tmp_path.rglob("valkey.pid")
        os.kill(int(file.read_text()), signal.SIGSTOP)
        try:
            assert played.leave()["say"] == Say.FAILED
            # What need not be stored passes.
            assert person.publish("/news", 1).messages()[-1]["successful"]
        finally:
            os.kill(int(file.read_text()), signal.SIGCONT)
        played.restart()
        assert person.publish("/news", 2).messages()[-1]["successful"]


def test_a_store_without_memory_takes_what_a_leave_writes(tmp_path: Path) -> None:
    with (
        ValkeyServer() as valkey,
        PlayedSupervisor(tmp_path, {"redis": valkey.url}) as played,
        Person(played.url) as person,
        Person(played.url) as other,
    ):
        person.subscribe("/news")
        other.publish("/news", "passing")
        valkey.set(maxmemory="1", maxmemory_policy="noeviction")
        played.restart()
        [event, reply] = person.connect().messages()
        assert (event["data"], reply["successful"]) == ("passing", True)


def test_a_successor_gives_up_if_the_store_refuses_it(tmp_path: Path) -> None:
    with (
        ValkeyServer() as valkey,
        PlayedSupervisor(tmp_path, {"redis": valkey.url}) as played,
        Person(played.url) as person,
    ):
        person.subscribe("/news")
        successor, _ = played.prepare()
        played.leave()
        valkey.set(min_replicas_to_write="1")
        begun_at = time.monotonic()
        said = played.open(successor)
        assert said["why"].startswith("the store is unavailable: NOREPLICAS")
        assert time.monotonic() - begun_at < SLOW_S
        successor.kill()
        valkey.set(min_replicas_to_write="0")
        assert played.take_back()["say"] == Say.BACK
        assert person.publish("/news", 1).messages()[-1]["successful"]


def test_a_server_that_cannot_start_once_it_has_opened_the_store_leaves_it_to_the_one_before(
    tmp_path: Path,
) -> None:
    with (
        ValkeyServer() as valkey,
        PlayedSupervisor(tmp_path, {"redis": valkey.url}) as played,
        Person(played.url) as person,
    ):
        person.subscribe("/news")
        successor, _ = played.prepare()
        played.leave()
        valkey.ask("HDEL", KEYS.given, 0)
        opened = played.open(successor)
        assert "slice 0 of 1 is missing" in opened["why"]
        assert successor.process.wait(LIMIT_S) == 2
        assert played.take_back()["say"] == Say.BACK
        assert person.publish("/news", 1).messages()[-1]["successful"]


def test_a_server_ends_if_another_one_had_the_store_before_it_takes_it_back(
    tmp_path: Path,
) -> None:
    with (
        ValkeyServer() as valkey,
        PlayedSupervisor(tmp_path, {"redis": valkey.url}) as played,
        Person(played.url) as person,
    ):
        person.subscribe("/news")
        successor, _ = played.prepare()
        assert played.leave()["say"] == Say.LEFT
        successor.kill()
        valkey.ask("HSET", KEYS.meta, "epoch", "seed-99.standby0")
        valkey.ask("HDEL", KEYS.meta, "lease", "holder")
        said = played.take_back()
        assert (said["say"], said["ends"]) == (Say.FAILED, True)
        assert "another server has opened the store meanwhile" in said["why"]
        assert played.server.process.wait(LIMIT_S) == 0
        assert valkey.ask("HGET", KEYS.meta, "epoch") == b"seed-99.standby0"


@pytest.mark.slow
def test_a_server_ends_if_it_cannot_have_a_frozen_store_again(tmp_path: Path) -> None:
    with ValkeyServer() as valkey, PlayedSupervisor(tmp_path, {"redis": valkey.url}) as played:
        successor, _ = played.prepare()
        assert played.leave()["say"] == Say.LEFT
        successor.kill()
        valkey.freeze()
        said = played.take_back()
        assert (said["say"], said["ends"]) == (Say.FAILED, True)
        assert played.server.process.wait(LIMIT_S) == 0


def test_a_server_that_is_stopped_while_it_leaves_stops_in_order(tmp_path: Path) -> None:
    with (
        PlayedSupervisor(tmp_path, HESITANT) as played,
        Person(played.url) as person,
        Wire(played.url) as slow,
    ):
        slow.send(handshake_that_takes(SLOW_LOGIN_S))
        successor, _ = played.prepare()
        played.send_leave()
        played.server.process.terminate()
        assert played.server.process.wait(LIMIT_S) == 0
        successor.kill()
        played.start()
        with Wire(played.url) as again:
            again.send(request(orjson.dumps([person.message("/news", data=1)]), person.headers))
            assert again.answer().messages()[-1]["successful"]
