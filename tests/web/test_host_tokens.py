"""The operators' tokens are the same on all hosts, whichever of them got a new one."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from holdfast.compose.host_tokens import HostTokens
from holdfast.web.admin.tokens import FORMER, OPERATOR_FILE, READER_FILE, Role, open_tokens, rotate


class FakeStore:
    """What all hosts read and write."""

    def __init__(self) -> None:
        self.tokens: dict[str, bytes] = {}

    async def write_tokens(self, tokens: Mapping[str, bytes], *, over: bool) -> None:
        for name, text in tokens.items():
            if not text:
                self.tokens.pop(name, None)
            elif over or name not in self.tokens:
                self.tokens[name] = text


class Host:
    def __init__(self, directory: Path, store: FakeStore) -> None:
        directory.mkdir()
        self.directory, self._store = directory, store
        self._tokens = HostTokens(directory, store)

    async def look(self) -> None:
        await self._tokens.look(dict(self._store.tokens))

    @property
    def operator(self) -> str:
        return open_tokens(self.directory).operator


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@pytest.fixture
def hosts(tmp_path: Path, store: FakeStore) -> list[Host]:
    found = [Host(tmp_path / name, store) for name in "abc"]
    for each in found:
        open_tokens(each.directory)
    return found


async def look_at_all(hosts: list[Host]) -> None:
    for each in hosts * 3:
        await each.look()


async def test_hosts_that_start_together_have_the_tokens_of_one(hosts: list[Host]) -> None:
    before = {each.operator for each in hosts}
    await look_at_all(hosts)
    [operator] = {each.operator for each in hosts}
    assert operator in before
    assert (hosts[1].directory / OPERATOR_FILE).stat().st_mode & 0o777 == 0o600


async def test_a_host_that_comes_later_gets_the_tokens_of_the_others(
    hosts: list[Host], store: FakeStore, tmp_path: Path
) -> None:
    await look_at_all(hosts)
    late = Host(tmp_path / "late", store)
    open_tokens(late.directory)
    await look_at_all([late, *hosts])
    assert {each.operator for each in (late, *hosts)} == {hosts[0].operator}


async def test_a_token_that_is_replaced_on_one_host_is_replaced_on_all(hosts: list[Host]) -> None:
    await look_at_all(hosts)
    before = hosts[0].operator
    rotate(hosts[1].directory, Role.OPERATOR, overlap_s=60)
    new = hosts[1].operator
    await look_at_all(hosts)
    assert {each.operator for each in hosts} == {new}
    former = [open_tokens(each.directory).former[Role.OPERATOR].token for each in hosts]
    assert former == [before] * 3
    rotate(hosts[2].directory, Role.OPERATOR, overlap_s=0)
    await look_at_all(hosts)
    assert not any((each.directory / FORMER[Role.OPERATOR]).exists() for each in hosts)


async def test_a_file_that_is_gone_comes_back(hosts: list[Host]) -> None:
    await look_at_all(hosts)
    before = hosts[0].operator
    (hosts[1].directory / OPERATOR_FILE).unlink()
    await look_at_all(hosts)
    assert hosts[1].operator == before


async def test_an_emptied_store_takes_no_token_away(hosts: list[Host], store: FakeStore) -> None:
    await look_at_all(hosts)
    before = hosts[0].operator
    store.tokens.clear()
    await look_at_all(hosts)
    assert {each.operator for each in hosts} == {before}
    assert store.tokens[OPERATOR_FILE].decode().strip() == before
    assert READER_FILE in store.tokens
