"""Webhooks call public addresses, others if the settings say so, and never the deployment's own."""

import socket
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

import pytest

from holdfast.web.outgoing.allowed_addresses import (
    AddressDenied,
    AllowedAddresses,
    CheckedResolver,
    OwnPlaces,
)

OWN = OwnPlaces({8080, 8081}, {("192.0.2.7", 6379)})
PUBLIC = AllowedAddresses(OWN, allows_private=False)
PRIVATE = AllowedAddresses(OWN, allows_private=True)
INNER = [
    *("127.0.0.1", "127.9.9.9", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
    *("100.64.0.1", "198.18.0.1", "::1", "fc00::1", "fe80::1%eth0"),
    # Addresses of IPv4 as IPv6 writes them: mapped, NAT64, 6to4 and Teredo.
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"),
    "2001:0:4136:e378:8000:63bf:80ff:fffe",
    # Those of the past, of translators, and of no use yet.
    *("::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b:1::7f00:1", "fec0::1", "4000::1"),
]


@pytest.mark.parametrize("ip", INNER)
def test_inner_addresses_are_called_only_if_the_settings_say_so(ip: str) -> None:
    with pytest.raises(AddressDenied, match="allow_private"):
        PUBLIC.check(ip, 443)
    PRIVATE.check(ip, 443)


@pytest.mark.parametrize("ip", ["8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8"])
def test_public_addresses_are_called(ip: str) -> None:
    PUBLIC.check(ip, 443)


@pytest.mark.parametrize("ip", ["0.0.0.0", "::", "224.0.0.1", "ff02::1", "::ffff:0.0.0.0"])
def test_what_is_no_host_is_never_called(ip: str) -> None:
    for allowed in (PUBLIC, PRIVATE):
        with pytest.raises(AddressDenied, match="is not the address of a host"):
            allowed.check(ip, 443)


@pytest.mark.parametrize(
    ("ip", "port"),
    [
        *(("127.0.0.1", 8080), ("127.1.2.3", 8081), ("::ffff:127.0.0.1", 8081)),
        *(("192.0.2.7", 6379), ("::ffff:192.0.2.7", 6379)),
    ],
)
def test_the_deployment_itself_is_never_called(ip: str, port: int) -> None:
    with pytest.raises(AddressDenied, match="belongs to this deployment"):
        PRIVATE.check(ip, port)
    PRIVATE.check(ip, port + 10)


def test_an_address_of_a_link_can_be_this_machine() -> None:
    for _, name in socket.if_nameindex():
        found = _address_of_link(name)
        if found is not None:
            with pytest.raises(AddressDenied, match="belongs to this deployment"):
                PRIVATE.check(f"{found}%{name}", 8080)
            PRIVATE.check(f"{found}%{name}", 8090)


def _address_of_link(interface: str) -> str | None:
    """The address of this interface that only its link knows."""
    for line in Path("/proc/net/if_inet6").read_text().splitlines():
        number, _, _, _, _, name = line.split()
        if name == interface and number.startswith("fe80"):
            return str(IPv6Address(int(number, 16)))
    return None


async def test_a_name_leads_only_to_its_allowed_addresses() -> None:
    found = ["10.0.0.1", "8.8.8.8"]

    async def resolve(host: str, port: int, family: socket.AddressFamily) -> list[Any]:
        return [{"hostname": host, "host": ip, "port": port, "family": family} for ip in found]

    resolver = CheckedResolver(resolve, PUBLIC)
    assert [each["host"] for each in await resolver.resolve("a.example", 443)] == ["8.8.8.8"]
    found.remove("8.8.8.8")
    with pytest.raises(AddressDenied):
        await resolver.resolve("a.example", 443)
