"""A replaced token of the administration is in force at once, and ends what used the old one."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import ClientError, web
from aiohttp.test_utils import TestClient, TestServer

from holdfast.compose import serving
from holdfast.compose.token_watch import TokenWatch
from holdfast.delivery.basics.ignoring import ignore
from holdfast.store.letters.filter import LetterFilter
from holdfast.web.admin.application import OpenRequests, make_admin
from holdfast.web.admin.tokens import (
    FILES,
    FORMER,
    FormerToken,
    Role,
    Tokens,
    TokensUnusable,
    open_tokens,
    rotate,
)
from tests.web.admin import API, OPERATOR, READER, Clock, routes_to
from tests.web.fake_operations import FakeOperations
from tests.web.people import Person, ServerAndClients, server_and_clients, settings, until
from tests.web.test_login_operators import who

NEW = "new-" + "n" * 39


def token_of(home: Path, role: Role = Role.OPERATOR) -> str:
    return (home / "data" / FILES[role]).read_text().strip()


def showing(home: ServerAndClients, token: str) -> Person:
    return home.person(**{"Authorization": f"Bearer {token}"})


async def becomes(person: Person, answer: object) -> None:
    async def is_so() -> bool:
        return await who(person) == answer

    await until(is_so)


@pytest.mark.parametrize("role", Role)
async def test_a_rotated_token_is_in_force_and_the_old_one_is_not(
    tmp_path: Path, role: Role
) -> None:
    async with server_and_clients(tmp_path) as home:
        old = showing(home, token_of(tmp_path, role))
        assert await who(old) == role.title
        rotate(tmp_path / "data", role, 0)
        new = showing(home, token_of(tmp_path, role))
        assert await who(new) == role.title
        assert await who(old) == 401
        others = [each for each in Role if each is not role]
        assert await who(showing(home, token_of(tmp_path, others[0]))) == others[0].title


async def test_a_token_that_an_operator_writes_is_in_force_and_an_unusable_one_is_not(
    tmp_path: Path,
) -> None:
    async with server_and_clients(tmp_path) as home:
        old, file = token_of(tmp_path), tmp_path / "data" / "admin-token"
        file.write_text("short")
        reader = tmp_path / "data" / "reader-token"
        reader.write_text(NEW)
        await becomes(showing(home, NEW), "reader")
        assert await who(showing(home, old)) == "operator"
        file.write_text(NEW)
        reader.write_text(f"{NEW}-2")
        await becomes(showing(home, f"{NEW}-2"), "reader")


async def test_during_an_overlap_both_tokens_are_valid(tmp_path: Path) -> None:
    async with server_and_clients(tmp_path) as home:
        old = showing(home, token_of(tmp_path))
        rotate(tmp_path / "data", Role.OPERATOR, 60)
        new = showing(home, token_of(tmp_path))
        await becomes(new, "operator")
        assert await who(old) == "operator"
        # Another rotation ends the overlap.
        rotate(tmp_path / "data", Role.OPERATOR, 0)
        await becomes(new, 401)
        assert await who(old) == 401
    with_former = tmp_path / "data" / FORMER[Role.OPERATOR]
    assert not with_former.exists()


async def test_who_removes_the_former_token_ends_the_overlap(tmp_path: Path) -> None:
    async with server_and_clients(tmp_path) as home:
        old = showing(home, token_of(tmp_path))
        rotate(tmp_path / "data", Role.OPERATOR, 3600)
        new = showing(home, token_of(tmp_path))
        await becomes(new, "operator")
        assert await who(old) == "operator"
        (tmp_path / "data" / FORMER[Role.OPERATOR]).unlink()
        await becomes(old, 401)
        assert await who(new) == "operator"


async def test_the_tokens_of_both_roles_change_places(tmp_path: Path) -> None:
    async with server_and_clients(tmp_path) as home:
        tokens = {role: token_of(tmp_path, role) for role in Role}
        operator = home.person()
        await operator.handshake(token=tokens[Role.OPERATOR])
        # Whether the server looks at them together or one after the other.
        (tmp_path / "data" / FILES[Role.OPERATOR]).write_text(tokens[Role.READER])
        (tmp_path / "data" / FILES[Role.READER]).write_text(tokens[Role.OPERATOR])
        await becomes(showing(home, tokens[Role.READER]), "operator")
        await becomes(showing(home, tokens[Role.OPERATOR]), "reader")
        # Nobody keeps a role that is no longer the token's.
        await until(operator.is_out)


async def test_sessions_that_used_the_old_token_end(tmp_path: Path) -> None:
    # Nobody has to log in here, so that operators may name their sessions.
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(serving(settings(tmp_path)))
        home = ServerAndClients(url, tmp_path)
        old, other = token_of(tmp_path), token_of(tmp_path, Role.READER)
        people = [home.person() for _ in range(3)]
        for each in people:
            stack.push_async_callback(each.http.close)
        operator, named, reader = people
        await operator.handshake(token=old)
        await named.handshake("ann/1", token=old)
        await reader.handshake(token=other)
        for each in people:
            await each.connect()
            assert (await each.reply("/meta/subscribe", subscription="/sys/alert"))["successful"]
        held = asyncio.create_task(operator.connect(20_000))
        rotate(tmp_path / "data", Role.OPERATOR, 0)
        answer = await asyncio.wait_for(held, 15)
        assert not answer[-1]["successful"]
        await until(named.is_out)
        assert not await reader.is_out()
        denied = await operator.handshake(token=old)
        assert not denied["successful"]
        assert (await operator.handshake(token=token_of(tmp_path)))["successful"]


async def test_sessions_that_used_the_old_token_end_when_its_overlap_does(tmp_path: Path) -> None:
    async with server_and_clients(tmp_path) as home:
        operator = home.person()
        await operator.handshake(token=token_of(tmp_path))
        rotate(tmp_path / "data", Role.OPERATOR, 3)
        await becomes(showing(home, token_of(tmp_path)), "operator")
        assert not await operator.is_out()
        await until(operator.is_out)


class Endless(FakeOperations):
    """An export that goes on for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.is_begun = asyncio.Event()

    async def export(self, filter: LetterFilter, who: str) -> AsyncIterator[bytes]:
        yield b"{}"
        self.is_begun.set()
        await asyncio.Event().wait()
        yield b"{}"


async def test_a_stream_for_a_token_that_is_no_longer_valid_breaks_off() -> None:
    tokens, operations = Tokens(OPERATOR, READER), Endless()
    opened = OpenRequests(tokens)
    application = web.Application()
    admin = make_admin(routes_to(operations), tokens, Clock(), open_requests=opened)
    application.add_subapp("/admin", admin)
    async with TestClient(TestServer(application)) as client:

        async def export(token: str) -> None:
            headers = {"Authorization": f"Bearer {token}"}
            async with client.get(f"{API}/dead-letters/export", headers=headers) as response:
                await response.read()

        streams = []
        for token in (OPERATOR, READER):
            streams.append(asyncio.create_task(export(token)))
            await asyncio.wait_for(operations.is_begun.wait(), 60)
            operations.is_begun.clear()
        tokens.replace({Role.OPERATOR: (NEW, None)})
        opened.end_invalid()
        with pytest.raises(ClientError):
            await asyncio.wait_for(streams[0], 60)
        assert not streams[1].done()
        tokens.replace({Role.OPERATOR: (READER, None), Role.READER: (NEW, None)})
        opened.end_invalid()
        with pytest.raises(ClientError):
            await asyncio.wait_for(streams[1], 60)


# The tokens themselves


def test_a_former_token_and_its_warrants_are_valid_until_their_time() -> None:
    now_s = 100.0
    tokens = Tokens(OPERATOR, READER, wall_s=lambda: now_s)
    warrant = tokens.warrant(OPERATOR)
    tokens.replace({Role.OPERATOR: (NEW, FormerToken(OPERATOR, 110.0))})
    assert (tokens.role(OPERATOR), tokens.role(NEW)) == (Role.OPERATOR, Role.OPERATOR)
    assert tokens.role_by_warrant(warrant) is Role.OPERATOR
    now_s = 110.0
    assert (tokens.role(OPERATOR), tokens.role(NEW)) == (None, Role.OPERATOR)
    assert tokens.role_by_warrant(warrant) is None
    assert tokens.role_by_warrant(tokens.warrant(NEW)) is Role.OPERATOR


def test_both_roles_never_have_the_same_token() -> None:
    tokens = Tokens(OPERATOR, READER)
    with pytest.raises(TokensUnusable):
        tokens.replace({Role.OPERATOR: (READER, None)})
    assert (tokens.role(OPERATOR), tokens.role(READER)) == (Role.OPERATOR, Role.READER)


def test_a_token_that_is_replaced_while_the_server_starts_is_in_force(tmp_path: Path) -> None:
    tokens = open_tokens(tmp_path)
    rotate(tmp_path, Role.OPERATOR, 0)
    watch = TokenWatch(tmp_path, tokens, cast("Any", None), ignore)
    assert watch.look()
    assert tokens.operator == (tmp_path / FILES[Role.OPERATOR]).read_text().strip()
    assert not watch.look()


def test_a_token_that_is_shown_as_soon_as_it_is_written_ends_what_used_the_former_one(
    tmp_path: Path,
) -> None:
    tokens = open_tokens(tmp_path)
    watch = TokenWatch(tmp_path, tokens, cast("Any", None), ignore)
    assert not watch.look()
    rotate(tmp_path, Role.OPERATOR, 0)
    assert tokens.role((tmp_path / FILES[Role.OPERATOR]).read_text().strip()) is Role.OPERATOR
    # Then it ends sessions.
    assert watch.look()
    assert not watch.look()


def test_an_overlap_outlives_a_restart(tmp_path: Path) -> None:
    old = open_tokens(tmp_path).operator
    rotate(tmp_path, Role.OPERATOR, 60)
    assert open_tokens(tmp_path).role(old) is Role.OPERATOR
    former = tmp_path / FORMER[Role.OPERATOR]
    assert former.stat().st_mode & 0o777 == 0o600
    former.write_text(f"{old}\n{time.time() - 1}\n")
    assert open_tokens(tmp_path).role(old) is None


@pytest.mark.parametrize("text", ["", "x", "x y", f"{OPERATOR} soon", f"short {time.time() + 60}"])
def test_an_unreadable_former_token_is_invalid(tmp_path: Path, text: str) -> None:
    open_tokens(tmp_path)
    former = tmp_path / FORMER[Role.OPERATOR]
    former.touch(0o600)
    former.write_text(text)
    tokens = open_tokens(tmp_path)
    assert (tokens.former, tokens.role(OPERATOR)) == ({}, None)


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes files for others")
def test_a_token_that_root_rotates_stays_readable_for_its_owner(tmp_path: Path) -> None:
    open_tokens(tmp_path)
    os.chown(tmp_path / "admin-token", 4711, 4712)
    rotate(tmp_path, Role.OPERATOR, 60)
    for name in (FILES[Role.OPERATOR], FORMER[Role.OPERATOR]):
        found = (tmp_path / name).stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (4711, 4712, 0o600)


def test_a_token_that_others_can_read_is_not_rotated(tmp_path: Path) -> None:
    open_tokens(tmp_path)
    (tmp_path / "admin-token").chmod(0o644)
    with pytest.raises(TokensUnusable, match="chmod 600"):
        rotate(tmp_path, Role.OPERATOR, 0)
