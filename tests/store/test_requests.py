"""What is kept of requests changes in the same step as the messages that answer or end them."""

from holdfast.delivery.messages.storing import PersistOutcome
from tests.store.model import address
from tests.store.store_process import StoreProcess, message

ONE, TWO = address(1), address(2)


async def test_a_request_is_kept_until_its_reply_is(at: StoreProcess) -> None:
    at.store.save_requests({ONE: b"one", TWO: b"two", f"{ONE} joe/1": b"null"})
    await at.answered()
    assert await at.store.loading().requests() == {
        ONE: b"one",
        TWO: b"two",
        f"{ONE} joe/1": b"null",
    }
    keep(at, 1, {ONE: b"", f"{ONE} joe/1": b""})
    await at.answered()
    assert at.queue("ann/1") == {1: ""}
    assert await at.store.loading().requests() == {TWO: b"two"}


async def test_a_reply_that_the_store_refuses_leaves_its_request(at: StoreProcess) -> None:
    at.store.save_requests({ONE: b"one"})
    await at.answered()
    at.server.set(maxmemory="1")
    keep(at, 1, {ONE: b""})
    await at.answered()
    at.server.set(maxmemory="0")
    assert at.kept == {1: [PersistOutcome.REFUSED]}
    assert await at.store.loading().requests() == {ONE: b"one"}


async def test_a_request_that_changes_behind_its_message_in_the_same_turn_is_kept_as_it_is_last(
    at: StoreProcess,
) -> None:
    keep(at, 1, {ONE: b"asked", TWO: b"asked"})
    at.store.save_requests({ONE: b""})
    at.store.save_requests({TWO: b"granted"})
    await at.answered()
    assert await at.store.loading().requests() == {TWO: b"granted"}


def keep(at: StoreProcess, n: int, fields: dict[str, bytes]) -> None:
    answers = at.kept.setdefault(n, [])
    at.store.keep(message(n), ["ann/1"], answers.append, fields)
