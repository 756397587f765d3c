"""The reader: a second connection for questions that must not delay writes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast.store.format.scripts import LETTERS_COUNT
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.reader import Reader, fields_of
from tests.store.caller import until
from tests.store.fake_store import FakeServer, fake_store
from tests.store.servers import ValkeyServer, primary_at

pytestmark = pytest.mark.valkey


@asynccontextmanager
async def reading(store: FakeServer | ValkeyServer) -> AsyncIterator[Reader]:
    reader = Reader(primary_at(store.url))
    try:
        yield reader
    finally:
        reader.close()


async def test_it_connects_for_the_first_question_and_stays_connected() -> None:
    async with fake_store() as store, reading(store) as reader:
        assert store.connections == []
        store.answers = [b"+1\r\n", b"+2\r\n"]
        assert [await reader.ask("ECHO", number) for number in (1, 2)] == [b"1", b"2"]
        assert len(store.connections) == 1


async def test_questions_at_the_same_time_get_their_own_answers() -> None:
    async with fake_store() as store, reading(store) as reader:
        store.answers = [b"+1\r\n", b"+2\r\n", b"+3\r\n"]
        questions = [reader.ask("ECHO", 1), reader.ask_all(("ECHO", 2), ("ECHO", 3))]
        assert await asyncio.gather(*questions) == [b"1", [b"2", b"3"]]
        assert store.heard == [["ECHO 1"], ["ECHO 2", "ECHO 3"]]


async def test_an_answer_that_nobody_waits_for_any_more_goes_to_no_other_question() -> None:
    async with fake_store() as store, reading(store) as reader:
        given_up = asyncio.create_task(reader.ask("ECHO", 1))
        await until(lambda: store.heard == [["ECHO 1"]])
        given_up.cancel()
        await asyncio.wait([given_up])
        store.answers = [b"+2\r\n"]
        assert await reader.ask("ECHO", 2) == b"2"
        assert len(store.connections) == 2


async def test_it_connects_again_after_the_connection_was_lost() -> None:
    async with fake_store() as store, reading(store) as reader:
        store.answers = [b"+1\r\n"]
        assert await reader.ask("ECHO", 1) == b"1"
        lost = asyncio.create_task(reader.ask("ECHO", 2))
        await until(lambda: ["ECHO 2"] in store.heard)
        store.connections[-1].transport.abort()
        with pytest.raises(StoreUnavailable, match="the store cannot be read: closed"):
            await lost
        store.answers = [b"+3\r\n"]
        assert await reader.ask("ECHO", 3) == b"3"


async def test_it_connects_anew_if_the_store_was_found_elsewhere_meanwhile() -> None:
    async with fake_store() as former, fake_store() as store:
        primary = primary_at(former.url)
        reader = Reader(primary)
        former.answers, store.answers = [b"+1\r\n"], [b"+2\r\n"]
        assert await reader.ask("ECHO", 1) == b"1"
        # Another connection has been led there. This one may get no answer any more.
        primary.address = primary_at(store.url).address
        former.answers = [b"+3\r\n"]
        assert await reader.ask("ECHO", 3) == b"3"
        assert len(former.connections) == 2
        reader.close()


async def test_a_store_that_refuses_a_question_answers_the_next_one(
    shared_valkey: ValkeyServer,
) -> None:
    async with reading(shared_valkey) as reader:
        with pytest.raises(StoreUnavailable, match="unknown command"):
            await reader.ask("NONSENSE")
        assert await reader.ask("ECHO", "a") == b"a"


async def test_a_store_that_cannot_be_reached_is_said_to_be_unavailable(
    valkey: ValkeyServer,
) -> None:
    valkey.kill()
    async with reading(valkey) as reader:
        with pytest.raises(StoreUnavailable, match="cannot be read: cannot be reached"):
            await reader.ask("PING")


async def test_it_runs_a_script_that_the_store_has_forgotten(valkey: ValkeyServer) -> None:
    async with reading(valkey) as reader:
        for _ in range(2):
            assert await reader.run(LETTERS_COUNT, ["index"], ["1", "2"]) == [0]
            valkey.ask("SCRIPT", "FLUSH")


def test_the_fields_of_an_entry_are_names_and_values_in_turn() -> None:
    assert fields_of([b"a", b"1", b"b", b"2"]) == {b"a": b"1", b"b": b"2"}
