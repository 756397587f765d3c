"""Tokens on disk, buckets in memory, and the administration over a real listener."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Barrier

import orjson
import pytest
from aiohttp import ClientConnectionResetError, ClientError, ClientSession, UnixConnector, web

from holdfast.bayeux.limits.buckets import Rate
from holdfast.store.letters.filter import LetterFilter
from holdfast.web.admin import ndjson
from holdfast.web.admin.throttle import Throttle
from holdfast.web.admin.tokens import Role, Tokens, TokensUnusable, open_tokens
from holdfast.web.answering.heads import Heads
from holdfast.web.front.connection_limit import ConnectionLimit
from holdfast.web.front.listener import Listener
from holdfast.web.http.addresses import Address
from tests.web.admin import API, LINES, OPERATOR, READER, Clock, application_of
from tests.web.fake_operations import FakeOperations, a_letter
from tests.web.rig import Rig


def test_tokens_are_created_once_and_only_their_owner_can_read_them(tmp_path: Path) -> None:
    made = open_tokens(tmp_path)
    assert made.made == tmp_path / "admin-token"
    for name, token in (("admin-token", made.operator), ("reader-token", made.reader)):
        path = tmp_path / name
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.read_text() == token + "\n"
        assert len(token) >= 43
    again = open_tokens(tmp_path)
    assert (again.operator, again.reader, again.made) == (made.operator, made.reader, None)
    assert made.operator != made.reader


def test_workers_that_start_together_find_whole_tokens(tmp_path: Path) -> None:
    for number in range(30):
        data = tmp_path / str(number)
        data.mkdir()
        together = Barrier(4)

        def start(data: Path = data, together: Barrier = together) -> tuple[str, str]:
            together.wait(10.0)
            found = open_tokens(data)
            return found.operator, found.reader

        with ThreadPoolExecutor(4) as pool:
            workers = [pool.submit(start) for _ in range(4)]
            assert len({each.result() for each in workers}) == 1
        assert {each.name for each in data.iterdir()} == {"admin-token", "reader-token"}


def test_only_a_missing_token_is_created_again(tmp_path: Path) -> None:
    first = open_tokens(tmp_path)
    (tmp_path / "admin-token").unlink()
    second = open_tokens(tmp_path)
    assert second.made is not None
    assert second.reader == first.reader
    assert second.operator != first.operator


def test_the_mode_does_not_depend_on_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        open_tokens(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "admin-token").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("content", "mode", "word"),
    [
        ("", 0o600, "32 to 256"),
        ("short", 0o600, "32 to 256"),
        ("x" * 300, 0o600, "32 to 256"),
        ("x" * 20 + " " + "y" * 20, 0o600, "32 to 256"),
        ("\xe9" * 40, 0o600, "32 to 256"),
        ("x" * 40, 0o604, "chmod 600"),
    ],
)
def test_unfit_tokens_are_refused(tmp_path: Path, content: str, mode: int, word: str) -> None:
    path = tmp_path / "reader-token"
    path.write_text(content)
    path.chmod(mode)
    with pytest.raises(TokensUnusable, match=word) as caught:
        open_tokens(tmp_path)
    assert not content or content not in str(caught.value)


def test_the_roles_need_different_tokens(tmp_path: Path) -> None:
    for name in ("admin-token", "reader-token"):
        (tmp_path / name).write_text("x" * 40)
        (tmp_path / name).chmod(0o600)
    with pytest.raises(TokensUnusable, match="the same"):
        open_tokens(tmp_path)


def test_a_missing_directory_is_named_in_the_error(tmp_path: Path) -> None:
    with pytest.raises(TokensUnusable, match="No such file"):
        open_tokens(tmp_path / "nowhere")


def test_tokens_do_not_show_themselves() -> None:
    tokens = Tokens(OPERATOR, READER)
    assert OPERATOR not in repr(tokens)
    assert READER not in repr(tokens)
    assert tokens.role(OPERATOR) is Role.OPERATOR
    assert tokens.role(READER) is Role.READER
    assert tokens.role("") is None
    assert tokens.role("\udcff") is None


def test_a_bucket_refills_over_time() -> None:
    throttle = Throttle(Rate(burst=2, per_s=0.5))
    assert [throttle.take("a", 0.0) for _ in range(3)] == [0.0, 0.0, 2.0]
    assert throttle.take("b", 0.0) == 0.0
    assert throttle.take("a", 1.0) == 1.0
    assert throttle.take("a", 2.0) == 0.0
    assert [throttle.take("a", 1000.0) for _ in range(3)] == [0.0, 0.0, 2.0]


def test_the_table_of_buckets_is_bounded() -> None:
    throttle = Throttle(Rate(burst=1, per_s=1), max_buckets=10)
    for number in range(1000):
        throttle.take(f"10.0.{number // 256}.{number % 256}", 0.0)
    assert len(throttle) <= 10


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("2001:db8::1", "2001:db8::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),
        ("10.0.0.1", "10.0.0.2", False),
        ("", "", True),
    ],
)
def test_addresses_of_one_network_share_a_bucket(one: str, other: str, is_same: bool) -> None:
    throttle = Throttle(Rate(burst=1, per_s=1))
    throttle.take(one, 0.0)
    assert (throttle.take(other, 0.0) > 0.0) is is_same


@asynccontextmanager
async def listening(address: Address, operations: FakeOperations) -> AsyncIterator[str]:
    """The administration over a listener of the server, with the fast lane."""
    application = application_of(operations, Clock())
    listener = Listener(application, address, ConnectionLimit(100), shutdown_timeout_s=0.0)
    try:
        yield await listener.open(address.listen(), Rig().endpoint, Heads())
    finally:
        await listener.close()


async def test_the_administration_works_over_connections_of_the_server(
    tmp_path: Path,
) -> None:
    operations = FakeOperations([], [a_letter(1, data="x" * 300_000)])
    headers = {"Authorization": f"Bearer {OPERATOR}"}
    async with (
        listening(Address("127.0.0.1", 0), operations) as url,
        ClientSession(url, headers=headers) as http,
    ):
        async with http.get(f"{API}/dead-letters/export") as response:
            exported = await response.read()
        assert orjson.loads(exported)["data"] == "x" * 300_000
        operations.by_id.clear()
        path = f"{API}/dead-letters/import"
        async with http.post(path, data=exported * 3, headers=LINES) as response:
            assert await response.json() == {
                "imported": 1, "repeated": 2, "refused": 0, "refusals": [],
            }  # fmt: skip


async def test_the_administration_can_be_served_over_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    async with (
        listening(Address("", 0, path), FakeOperations()),
        ClientSession("http://localhost", connector=UnixConnector(str(path))) as http,
    ):
        headers = {"Authorization": f"Bearer {READER}"}
        async with http.get(f"{API}/sessions", headers=headers) as response:
            assert await response.json() == {"items": [], "cursor": None}


@pytest.mark.slow
async def test_an_export_whose_reader_left_before_it_began_is_not_a_fault(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(response: web.StreamResponse, request: web.BaseRequest) -> None:
        raise ClientConnectionResetError("Cannot write to closing transport")

    headers = {"Authorization": f"Bearer {OPERATOR}"}
    async with (
        listening(Address("127.0.0.1", 0), FakeOperations()) as url,
        ClientSession(url, headers=headers) as http,
    ):
        monkeypatch.setattr(web.StreamResponse, "prepare", fail)
        with pytest.raises(ClientError):
            await http.get(f"{API}/dead-letters/export")
    assert caplog.records == []


async def test_an_export_that_is_not_read_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ndjson, "_TIMEOUT_S", 0.05)
    taken = 0

    class Endless(FakeOperations):
        async def export(self, filter: LetterFilter, who: str) -> AsyncIterator[bytes]:
            nonlocal taken
            while True:
                taken += 1
                yield b"x" * 100_000

    headers = {"Authorization": f"Bearer {OPERATOR}"}
    async with (
        listening(Address("127.0.0.1", 0), Endless()) as url,
        ClientSession(url, headers=headers) as http,
        http.get(f"{API}/dead-letters/export") as response,
    ):
        seen = -1
        while taken != seen:
            seen = taken
            await asyncio.sleep(0.1)
        with pytest.raises(ClientError):
            await response.read()
    assert caplog.records == []


async def test_an_import_that_breaks_off_is_not_a_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    operations = FakeOperations()
    head = (
        f"POST {API}/dead-letters/import HTTP/1.1\r\nHost: x\r\n"
        f"Authorization: Bearer {OPERATOR}\r\n"
        "Content-Type: application/x-ndjson\r\nContent-Length: 1000000\r\n\r\n"
    )
    async with listening(Address("127.0.0.1", 0), operations) as url:
        port = int(url.rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head.encode() + orjson.dumps(a_letter(1)) + b"\n{")
        await writer.drain()
        async with asyncio.timeout(60):
            while not operations.by_id:  # noqa: ASYNC110 - a fake
                await asyncio.sleep(0.01)
        writer.close()
        await writer.wait_closed()
        await asyncio.sleep(0.05)
    assert [*operations.by_id] == [f"{1:019}"]
    assert caplog.records == []
