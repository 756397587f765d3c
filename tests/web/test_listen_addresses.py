"""The addresses of a host, not its name, decide who can reach a listener."""

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.listen_addresses import find_addresses
from holdfast.settings import Settings

Answers = Callable[[Mapping[str, Sequence[str]]], None]


def of(**given: Any) -> Settings:
    return Settings(**given)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Answers:
    """Sets the addresses that names are resolved to."""

    def answer(known: Mapping[str, Sequence[str]]) -> None:
        async def look_up(host: Any, port: int, **_: Any) -> list[Any]:
            if host not in known:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            return [
                (socket.AF_INET6 if ":" in ip else socket.AF_INET, 1, 6, "", (ip, port))
                for ip in known[host]
            ]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)

    return answer


PRIVATE = [["127.0.0.1"], ["::1"], ["127.0.0.1", "::1", "127.9.9.9"]]
PUBLIC = [
    *(["192.0.2.1"], ["127.0.0.1", "192.0.2.1"], ["::1", "2001:db8::1"]),
    *(["0.0.0.0"], ["::"], ["fe80::1%eth0"], []),
]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "here.example"])
@pytest.mark.parametrize("ips", PRIVATE, ids=",".join)
async def test_a_loopback_host_serves_the_administration_too(
    names: Answers, host: str, ips: Sequence[str]
) -> None:
    names({host: ips})
    addresses = await find_addresses(of(host=host))
    assert addresses.has_admin_on_main
    assert addresses.main.ips == tuple(ips)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "here.example"])
@pytest.mark.parametrize("ips", PUBLIC, ids=",".join)
async def test_a_host_beyond_loopback_requires_open_and_serves_no_administration(
    names: Answers, host: str, ips: Sequence[str]
) -> None:
    names({host: ips})
    with pytest.raises(CannotStart, match="set open to admit everybody"):
        await find_addresses(of(host=host))
    assert not (await find_addresses(of(host=host, open=True))).has_admin_on_main


async def test_an_empty_host_listens_at_every_address(names: Answers) -> None:
    names({None: ["0.0.0.0", "::"]})  # type: ignore[dict-item]
    with pytest.raises(CannotStart, match="set open"):
        await find_addresses(of(host=""))


@pytest.mark.parametrize(
    ("ips", "is_private"), [*((ips, True) for ips in PRIVATE), *((ips, False) for ips in PUBLIC)]
)
async def test_an_address_for_operators_takes_the_administration_off_the_main_one(
    names: Answers, ips: Sequence[str], is_private: bool
) -> None:
    names({"127.0.0.1": ["127.0.0.1"], "ops.example": ips})
    addresses = await find_addresses(of(admin="ops.example:9000"))
    assert not addresses.has_admin_on_main
    assert addresses.admin is not None
    assert addresses.admin.is_private is is_private
    assert (addresses.admin.ips, addresses.admin.port) == (tuple(ips), 9000)


async def test_a_unix_socket_is_private_whatever_the_host_is(names: Answers) -> None:
    names({})
    addresses = await find_addresses(of(host="0.0.0.0", unix=Path("socket")))
    assert addresses.has_admin_on_main


@pytest.mark.parametrize("given", [{"host": "none.example", "open": True}, {"admin": "none:1"}])
async def test_an_unknown_host_is_named_in_the_error(names: Answers, given: dict[str, Any]) -> None:
    names({"127.0.0.1": ["127.0.0.1"]})
    with pytest.raises(CannotStart, match="none"):
        await find_addresses(of(**given))
