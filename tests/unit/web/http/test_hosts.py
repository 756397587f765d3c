"""Which names a server answers to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.web.http.hosts import Hosts, name_of

PORTS = st.one_of(st.just(""), st.integers(0, 70_000).map(":{}".format))


@given(st.ip_addresses(v=4), PORTS)
def test_an_ipv4_address_is_always_a_host_of_ours(ip: object, port: str) -> None:
    assert Hosts().are_ours(f"{ip}{port}")


@pytest.mark.slow
@given(st.ip_addresses(v=6), PORTS)
def test_an_ipv6_address_is_a_host_of_ours_only_in_brackets(ip: object, port: str) -> None:
    assert Hosts().are_ours(f"[{ip}]{port}")
    assert not Hosts().are_ours(f"[{ip}")


@pytest.mark.slow
@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=30))
def test_a_host_that_ends_like_ours_is_ours_only_below_a_name_with_a_star(text: str) -> None:
    hosts = Hosts(["ours.example", "*.club.example"])
    assert not hosts.are_ours(f"{text}x.example")
    assert hosts.are_ours(f"{text}ours.example") is (text == "")
    if ":" not in text and "[" not in text:
        assert hosts.are_ours(f"{text}.club.example")


def test_a_star_alone_matches_every_host_but_a_star_below_a_name_not_the_name() -> None:
    assert Hosts(["*"]).are_ours("whatever.example")
    assert not Hosts(["*.club.example"]).are_ours("club.example")


@pytest.mark.slow
def test_decisions_on_hosts_are_cached_up_to_a_limit() -> None:
    hosts = Hosts(["ours.example"])
    for number in range(5000):
        assert not hosts.are_ours(f"{number}.example")
        assert hosts.are_ours("ours.example")
    assert hosts._is_known.cache_info().currsize <= 1024


def test_a_request_without_a_host_is_accepted() -> None:
    assert Hosts().are_ours(None)


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("https://www.example.org", "www.example.org"),
        ("https://Www.example.org:8443", "www.example.org"),
        ("https://192.0.2.1:8443", None),
        ("http://[2001:db8::1]", None),
        ("push.example.org", "push.example.org"),
        ("127.0.0.1", None),
    ],
)
def test_the_host_name_of_a_setting_is_found(place: str, name: str | None) -> None:
    assert name_of(place) == name
