"""The list of hosts: what it accepts, and what it says of what it does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.settings.host_list import HostAddress, HostList


def error_of(*items: str) -> str:
    with pytest.raises(ValueError) as caught:
        HostList.parse(items)
    return str(caught.value)


@pytest.mark.parametrize(
    ("item", "name", "written"),
    [
        ("a.example:8443", "a.example", "a.example:8443"),
        (" Host-1.Example:1 ", "host-1.example", "host-1.example:1"),
        ("holdfast-0:65535", "holdfast-0", "holdfast-0:65535"),
        ("192.0.2.7:8443", "192.0.2.7", "192.0.2.7:8443"),
        ("[2001:DB8:0::7]:8443", "2001:db8::7", "[2001:db8::7]:8443"),
    ],
)
def test_a_host_has_one_name_however_it_is_written(item: str, name: str, written: str) -> None:
    (host,) = HostList.parse([item]).hosts
    assert (host.name, str(host)) == (name, written)


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("a.example", "has no port"),
        ("2001:db8::7:8443", "no brackets"),
        ("[2001:db8::7]", "has no port"),
        (":8443", "is no name"),
        ("a.example:0", "from 1 to 65535"),
        ("a.example:65536", "from 1 to 65535"),
        ("a.example:٣", "from 1 to 65535"),
        ("a.example:+1", "from 1 to 65535"),
        ("https://a.example:8443", "no brackets"),
        ("a_b:8443", "is no name"),
        ("-a:8443", "is no name"),
        ("a..b:8443", "is no name"),
        ("a" * 64 + ":8443", "is no name"),
        (".".join(["a" * 50] * 6) + ":8443", "is no name"),
        ("300.0.2.7:8443", "is no address"),
        ("a.7:8443", "is no address"),
        ("[192.0.2.7]:8443", "is no address"),
        ("[fe80::1%eth0]:8443", "is no address"),
    ],
)
def test_what_is_no_host_is_refused_with_the_reason(item: str, said: str) -> None:
    message = error_of(item)
    assert said in message
    assert item in message or item.rpartition(":")[0] in message


def test_a_list_has_1_to_64_hosts() -> None:
    names = [f"h{number}:1" for number in range(65)]
    assert len(HostList.parse(names[:64]).hosts) == 64
    assert error_of(*names) == "name 1 to 64 hosts, not 65"
    assert error_of() == "name 1 to 64 hosts, not 0"


def test_two_hosts_of_one_name_are_refused_whatever_their_ports() -> None:
    assert error_of("a:1", "b:1", "A:2") == "a is named twice: each host needs a name of its own"
    assert error_of("[::1]:1", "[0::1]:2").startswith("::1 is named twice")


def test_the_own_host_is_found_however_it_is_written() -> None:
    hosts = HostList.parse(["a.example:8443", "[::1]:8444"])
    assert hosts.own("A.Example") == "a.example"
    assert hosts.own("[0::1]") == hosts.own("::1") == "::1"
    assert hosts.address("::1") == HostAddress("::1", 8444)
    with pytest.raises(ValueError, match=r"b\.example is not in hosts: a\.example, ::1"):
        hosts.own("b.example")


@pytest.mark.slow
@given(st.text(max_size=30))
def test_any_text_is_a_host_or_a_value_error(text: str) -> None:
    try:
        (host,) = HostList.parse([text]).hosts
    except ValueError:
        return
    assert HostList.parse([str(host)]).hosts == (host,)
