"""The first connection of a store link: credentials, and stores that are refused."""

import logging
import socket
from functools import partial

import pytest

from holdfast.store.links.connection import StoreUnavailable, StoreUnreachable
from tests.slowness import times_slower
from tests.store.caller import Caller, calling, until
from tests.store.servers import ValkeyServer


async def test_a_store_that_cannot_be_reached_is_refused(valkey: ValkeyServer) -> None:
    valkey.kill()
    with pytest.raises(StoreUnreachable, match="cannot be reached"):
        await Caller(valkey.url).link.open()


async def test_a_store_that_does_not_answer_is_refused(valkey: ValkeyServer) -> None:
    valkey.freeze()
    with pytest.raises(StoreUnavailable, match="does not answer"):
        await Caller(valkey.url, timeout_s=0.1).link.open()


async def test_a_replica_is_refused(valkey: ValkeyServer) -> None:
    valkey.ask("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(StoreUnavailable, match="replica"):
        await Caller(valkey.url).link.open()


async def test_a_wrong_password_is_refused_and_not_in_the_error(
    shared_valkey: ValkeyServer,
) -> None:
    url = shared_valkey.url.replace("//", "//joe:wr0ng@")
    with pytest.raises(StoreUnavailable, match="WRONGPASS") as refused:
        await Caller(url).link.open()
    assert "wr0ng" not in str(refused.value)


async def test_user_password_and_database_come_from_the_url(valkey: ValkeyServer) -> None:
    valkey.ask("ACL", "SETUSER", "joe", "on", ">s3c/ret", "~*", "+@all")
    url = valkey.url.replace("//", "//joe:s3c%2Fret@") + "?db=3"
    async with calling(url) as caller:
        assert await caller.link.ask("ACL", "WHOAMI") == b"joe"
        assert await caller.link.ask("CLIENT", "GETNAME") == b"holdfast"
        await caller.link.ask("SET", "key", 1)
    assert valkey.ask("DBSIZE") == 0


async def test_a_password_without_a_user_is_that_of_the_default_user(valkey: ValkeyServer) -> None:
    valkey.ask("CONFIG", "SET", "requirepass", "secret")
    with pytest.raises(StoreUnavailable, match="NOAUTH"):
        await Caller(valkey.url).link.open()
    async with calling(valkey.url.replace("//", "//:secret@")) as caller:
        assert await caller.link.ask("ACL", "WHOAMI") == b"default"


def _accepts(valkey: ValkeyServer) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        return connection.connect_ex(str(valkey.directory / "s")) == 0


@pytest.mark.slow
async def test_the_first_connection_waits_for_a_store_that_loads_its_data(
    valkey: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    valkey.ask("EVAL", "for i = 1, 3000 do redis.call('set', i, i) end", 0)
    valkey.ask("SAVE")
    valkey.kill()
    with caplog.at_level(logging.INFO):
        delay = str(round(300 * times_slower(most=5.0)))
        valkey.launch(key_load_delay=delay, loading_process_events_interval_bytes="1024")
        await until(partial(_accepts, valkey))
        async with calling(valkey.url) as caller:
            assert await caller.link.ask("DBSIZE") == 3000
    assert "is not ready: LOADING" in caplog.text
