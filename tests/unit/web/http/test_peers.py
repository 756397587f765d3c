"""The caller of a request, whatever its headers claim."""

from asyncio import BaseTransport
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from holdfast.bayeux.wire.caller import Caller
from holdfast.web.http.peers import Peers, parse

PROXY = "10.0.0.1"
STRANGER = "198.51.100.9"
CERTIFICATE = {
    "subject": ((("organizationName", "Ladies"), ("commonName", "ada")), (("commonName", "x"),))
}


class Transport(BaseTransport):
    def __init__(self, peer: object, **extra: object) -> None:
        super().__init__({"peername": peer, **extra})


def asked(peers: Peers, peer: object, *headers: tuple[str, str], **extra: Any) -> Caller:
    name = (peer, 4711) if isinstance(peer, str) and peer else peer
    return peers.caller(CIMultiDictProxy(CIMultiDict(headers)), Transport(name, **extra))


def forwarded(*values: str, peer: str = PROXY, trusted: tuple[str, ...] = (PROXY,)) -> Caller:
    return asked(Peers(trusted), peer, *(("X-Forwarded-For", value) for value in values))


def test_the_peer_is_the_caller_without_proxies() -> None:
    caller = asked(Peers(), STRANGER)
    assert (caller.address, caller.network) == (STRANGER, STRANGER)
    assert not caller.is_proxied


def test_clients_that_show_nothing_but_their_address_are_one_caller() -> None:
    peers = Peers(shows_headers=False)
    caller = asked(peers, STRANGER, ("Cookie", "a=b"))
    assert asked(peers, STRANGER) is caller
    assert asked(peers, PROXY).address == PROXY
    assert (caller.address, caller.network, dict(caller.headers)) == (STRANGER, STRANGER, {})
    secure = asked(peers, STRANGER, sslcontext=True, peercert=CERTIFICATE)
    assert secure.is_secure
    assert ("commonName", "ada") in secure.tls_subject
    assert not asked(peers, STRANGER).is_secure


def test_clients_are_told_apart_where_extensions_see_their_headers() -> None:
    peers = Peers()
    caller = asked(peers, STRANGER, ("Cookie", "a=b"))
    assert asked(peers, STRANGER) is not caller
    assert caller.cookies("a") == ["b"]


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded"])
def test_the_forwarding_headers_of_an_untrusted_peer_are_ignored(header: str) -> None:
    lies = [("X-Forwarded-For", "1.2.3.4"), ("Forwarded", "for=1.2.3.4;proto=https")]
    caller = asked(Peers((PROXY,), header), STRANGER, *lies, ("X-Forwarded-Proto", "https"))
    assert caller.address == STRANGER
    assert not caller.is_proxied
    assert not caller.is_secure


def test_the_last_address_that_is_no_trusted_proxy_is_the_caller() -> None:
    assert forwarded("203.0.113.7").address == "203.0.113.7"
    assert forwarded("1.2.3.4, 203.0.113.7").address == "203.0.113.7"
    assert forwarded("1.2.3.4", "203.0.113.7").address == "203.0.113.7"
    inner = ("10.0.0.0/8",)
    assert forwarded("1.2.3.4, 203.0.113.7, 10.9.9.9", trusted=inner).address == "203.0.113.7"
    assert forwarded("203.0.113.7").is_proxied


def test_the_first_address_is_the_caller_without_a_budget_if_all_are_proxies() -> None:
    caller = forwarded("10.1.1.1, 10.2.2.2", trusted=("10.0.0.0/8",))
    assert (caller.address, caller.network) == ("10.1.1.1", "")


@pytest.mark.parametrize(
    "said", ["", "unknown", "_hidden", "203.0.113.7,", "1.2.3.4, -", "999.1.1.1"]
)
def test_a_proxy_that_names_no_client_is_the_caller(said: str) -> None:
    caller = forwarded(said)
    assert (caller.address, caller.network) == (PROXY, "")


def test_only_the_configured_forwarding_header_counts() -> None:
    both = [("X-Forwarded-For", "1.1.1.1"), ("Forwarded", "for=2.2.2.2")]
    assert asked(Peers((PROXY,)), PROXY, *both).address == "1.1.1.1"
    assert asked(Peers((PROXY,), "Forwarded"), PROXY, *both).address == "2.2.2.2"


@pytest.mark.parametrize(
    "said",
    [
        "for=203.0.113.7",
        "For=203.0.113.7;proto=http;by=10.0.0.1",
        'for="203.0.113.7:4711"',
        "for=1.2.3.4, for=203.0.113.7",
        'for="1.2.3.4, for=203.0.113.7',
        'for="203.0.113.7',
    ],
)
def test_a_forwarded_header_is_read_from_its_end_whatever_quotes_a_client_opened(said: str) -> None:
    caller = asked(Peers((PROXY,), "Forwarded"), PROXY, ("Forwarded", said))
    assert caller.address == "203.0.113.7"


def test_a_client_that_uses_tls_to_the_proxy_is_secure() -> None:
    proto = ("X-Forwarded-Proto", "https")
    address = ("X-Forwarded-For", "203.0.113.7")
    assert asked(Peers((PROXY,)), PROXY, address, proto).is_secure
    assert not asked(Peers((PROXY,)), PROXY, address).is_secure
    assert not asked(
        Peers((PROXY,)), PROXY, address, ("X-Forwarded-Proto", "https, http")
    ).is_secure
    element = ("Forwarded", "for=203.0.113.7;proto=https")
    assert asked(Peers((PROXY,), "Forwarded"), PROXY, element).is_secure


def test_a_unix_socket_has_no_address_and_is_trusted_if_configured() -> None:
    client = ("X-Forwarded-For", "203.0.113.7")
    alone = asked(Peers(), "", client)
    assert (alone.address, alone.network, alone.is_proxied) == ("", "", False)
    assert asked(Peers(("unix",)), "", client).address == "203.0.113.7"


@pytest.mark.parametrize("here", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
def test_requests_from_this_machine_have_no_budget(here: str) -> None:
    assert asked(Peers(), here).network == ""
    # Those that a proxy forwards from there have one.
    assert forwarded("127.0.0.1").network == "127.0.0.1"


def test_ipv6_addresses_with_the_same_first_64_bits_are_one_network() -> None:
    assert asked(Peers(), "2001:db8:1:2:3::4").network == "2001:db8:1:2::/64"
    assert asked(Peers(), "2001:db8:1:2:ffff::1").network == "2001:db8:1:2::/64"
    assert asked(Peers(), "2001:db8:1:3::4").network == "2001:db8:1:3::/64"
    assert forwarded("[2001:db8::1]:443").address == "2001:db8::1"


def test_an_address_is_recognised_however_it_is_written() -> None:
    assert asked(Peers(), "::ffff:203.0.113.7").address == "203.0.113.7"
    assert asked(Peers((PROXY,)), f"::ffff:{PROXY}", ("X-Forwarded-For", "1.1.1.1")).is_proxied
    assert forwarded("203.0.113.7:4711").address == "203.0.113.7"
    assert asked(Peers(), "fe80::1%eth0").address == "fe80::1"


def test_the_tls_subject_is_that_of_the_clients_certificate_and_never_of_a_proxys() -> None:
    tls = {"sslcontext": object(), "peercert": CERTIFICATE}
    subject = asked(Peers(), STRANGER, **tls).tls_subject
    assert subject == (("organizationName", "Ladies"), ("commonName", "ada"), ("commonName", "x"))
    assert asked(Peers(), STRANGER, sslcontext=object(), peercert=None).tls_subject == ()
    # A proxy's own certificate is not the client's.
    assert forwarded("203.0.113.7").tls_subject == ()
    assert asked(Peers((PROXY,)), PROXY, **tls).tls_subject == ()


def test_headers_are_found_in_any_case_and_never_printed() -> None:
    caller = asked(Peers(), STRANGER, ("Authorization", "Basic c2VjcmV0"))
    assert caller.headers["authorization"] == "Basic c2VjcmV0"
    assert "c2VjcmV0" not in repr(caller)


def test_all_cookies_of_the_same_name_are_found() -> None:
    caller = asked(Peers(), STRANGER, ("Cookie", 'a=1; s="x.y"; b=2;s=z; sx=3; s'))
    assert caller.cookies("s") == ["x.y", "z", ""]
    assert asked(Peers(), STRANGER).cookies("s") == []


@pytest.mark.slow
@given(st.lists(st.text(st.characters(codec="latin-1", exclude_characters="\r\n")), max_size=4))
def test_the_address_that_a_proxy_appends_counts_whatever_the_client_wrote(lies: list[str]) -> None:
    said = ",".join([*lies, "203.0.113.7"])
    assert forwarded(said).address == "203.0.113.7"
    element = ",".join([*lies, "for=203.0.113.7"])
    caller = asked(Peers((PROXY,), "Forwarded"), PROXY, ("Forwarded", element))
    assert caller.address == "203.0.113.7"


@pytest.mark.slow
@given(st.text(max_size=50))
def test_any_text_is_an_address_or_none(text: str) -> None:
    address = parse(text)
    assert address is None or parse(str(address)) == address
