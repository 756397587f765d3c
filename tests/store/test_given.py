"""What a process has in memory goes to the one that opens the store next, and to no other."""

from collections.abc import Iterator, Sequence

import pytest

from holdfast.delivery.messages.given import Given, GivenEntry, GivenKind
from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.messages.message import Message
from holdfast.store.format.given_records import slices
from holdfast.store.given_slices import GivenSlices, GivenUnreadable
from tests.store.servers import ValkeyServer
from tests.store.store_process import StoreProcess, message, store_process


def refused(name: str, error: object) -> None:
    raise AssertionError(f"{name}: {error}")


def session(key: str, *messages: Message) -> Given:
    entries = [GivenEntry(Mark(each.id), each) for each in messages]
    return Given(GivenKind.SESSION, key, {"left": {"client": f"id of {key}"}}, entries)


async def taken(at: StoreProcess) -> Sequence[Given]:
    return await GivenSlices(at.store).take(refused)


async def names(at: StoreProcess) -> list[str]:
    return [*at.hash(at.store.keys.given)]


async def test_the_next_process_gets_what_was_given(
    at: StoreProcess, shared_valkey: ValkeyServer
) -> None:
    passing = message(1)
    passing.is_durable, passing.is_initial, passing.generation = False, True, 2
    await GivenSlices(at.store).write([session("a/-1", passing, message(2)), session("b/-2")])
    await at.store.give()
    async with store_process(shared_valkey) as successor:
        first, second = await taken(successor)
        assert (first.key, second.key, second.entries) == ("a/-1", "b/-2", [])
        assert first.fields == {"left": {"client": "id of a/-1"}}
        found = [entry.message for entry in first.entries if entry.message is not None]
        assert [each.wire for each in found] == [passing.wire, message(2).wire]
        assert [(each.is_durable, each.is_initial, each.generation) for each in found] == [
            (False, True, 2),
            (True, False, 0),
        ]
        await GivenSlices(successor.store).drop()
        assert await names(successor) == []
        assert await taken(successor) == ()


async def test_a_process_that_dies_before_it_serves_leaves_it_to_the_next_one(
    at: StoreProcess, shared_valkey: ValkeyServer
) -> None:
    await GivenSlices(at.store).write([session("a/-1")])
    await at.store.give()
    for _ in range(3):
        async with store_process(shared_valkey) as successor:
            assert [each.key for each in await taken(successor)] == ["a/-1"]


async def test_it_never_rises_again_after_another_process_has_had_the_store(
    at: StoreProcess, shared_valkey: ValkeyServer
) -> None:
    await GivenSlices(at.store).write([session("a/-1")])
    await at.store.give()
    async with store_process(shared_valkey):
        # An earlier release, which does not know what was given, serves for a while.
        pass
    async with store_process(shared_valkey) as successor:
        assert await taken(successor) == ()


async def test_it_counts_only_if_it_is_complete(
    at: StoreProcess, shared_valkey: ValkeyServer
) -> None:
    def failing() -> Iterator[Given]:
        yield from (session(f"a/-{n}", message(n, "x" * 10_000)) for n in range(100))
        raise RuntimeError("as the test wants it")

    with pytest.raises(RuntimeError):
        await GivenSlices(at.store).write(failing())
    assert await names(at) != []
    await at.store.give()
    async with store_process(shared_valkey) as successor:
        assert await taken(successor) == ()


async def test_a_process_that_goes_on_removes_what_it_gave(
    at: StoreProcess, shared_valkey: ValkeyServer
) -> None:
    given = GivenSlices(at.store)
    await given.write([session("a/-1")])
    await given.drop()
    await given.write([session("b/-1")])
    await at.store.give()
    async with store_process(shared_valkey) as successor:
        assert [each.key for each in await taken(successor)] == ["b/-1"]


async def test_a_lost_slice_and_another_form_are_told_apart_from_nothing(
    at: StoreProcess, shared_valkey: ValkeyServer
) -> None:
    await GivenSlices(at.store).write([session("a/-1")])
    await at.store.give()
    key = at.store.keys.given
    async with store_process(shared_valkey) as successor:
        at.server.ask("HDEL", key, "0")
        with pytest.raises(GivenUnreadable, match="slice 0 of 1"):
            await taken(successor)
        at.server.ask("HSET", key, "count", f"2 1 {at.store.epoch}")
        with pytest.raises(GivenUnreadable, match="form 2"):
            await taken(successor)


def test_slices_are_short_and_a_message_is_written_once() -> None:
    messages = [message(n, "x" * 1000) for n in range(1000)]
    made = list(slices(session(f"a/-{n}", *messages) for n in range(5)))
    sizes = [len(each) for each in made]
    assert max(sizes) <= 256 * 1024
    assert 1_000_000 < sum(sizes) < 1_300_000


async def test_an_unreadable_record_leaves_the_others(
    at: StoreProcess, shared_valkey: ValkeyServer
) -> None:
    await GivenSlices(at.store).write([session("a/-1", message(1)), session("b/-2")])
    await at.store.give()
    key, found = at.store.keys.given, at.server.ask("HGET", at.store.keys.given, "0")
    at.server.ask("HSET", key, "0", found.replace(b'"v":1', b'"v":9'))
    told: list[str] = []
    async with store_process(shared_valkey) as successor:
        left = await GivenSlices(successor.store).take(lambda name, _: told.append(name))
    assert [each.key for each in left] == ["b/-2"]
    assert told == [f"message {message(1).id}", "session a/-1"]
