"""The browser's identity in a cookie."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from holdfast.settings import Settings
from holdfast.web.http.cookies import BrowserCookie, is_cookieless

COOKIE = BrowserCookie(Settings())
IDENTITY = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    "header",
    [
        f"BAYEUX_BROWSER={IDENTITY}",
        f'BAYEUX_BROWSER="{IDENTITY}"',
        f"  BAYEUX_BROWSER = {IDENTITY}  ",
        f"a=b; BAYEUX_BROWSER={IDENTITY}; c=d",
        f"a=b;BAYEUX_BROWSER={IDENTITY};c=d",
        f";;; ; BAYEUX_BROWSER={IDENTITY}",
        f'a="x\\"y"; BAYEUX_BROWSER={IDENTITY}',
        f"$Version=1; BAYEUX_BROWSER={IDENTITY}; $Path=/",
        f"{'x' * 4000}=y; BAYEUX_BROWSER={IDENTITY}",
    ],
)
def test_the_identity_is_found_wherever_it_stands_in_the_header(header: str) -> None:
    assert COOKIE.find([header]) == (IDENTITY,)


@pytest.mark.parametrize(
    "lines",
    [
        [f"BAYEUX_BROWSER=<junk>; BAYEUX_BROWSER={IDENTITY}"],
        [f"BAYEUX_BROWSER=; BAYEUX_BROWSER=a=b; BAYEUX_BROWSER={IDENTITY}; BAYEUX_BROWSER=<x>"],
        [f"BAYEUX_BROWSER={'a' * 65}; BAYEUX_BROWSER={IDENTITY}; BAYEUX_BROWSER={IDENTITY}"],
        ["BAYEUX_BROWSER=<junk>", f"BAYEUX_BROWSER={IDENTITY}"],
        ["theme=dark", f"a=b; BAYEUX_BROWSER={IDENTITY}"],
        [f"{'BAYEUX_BROWSER=<junk>; ' * 300}BAYEUX_BROWSER={IDENTITY}"],
    ],
)
def test_cookies_that_other_hosts_put_first_do_not_hide_the_identity(lines: list[str]) -> None:
    assert COOKIE.find(lines) == (IDENTITY,)


def test_several_identities_are_found_in_order_up_to_a_limit() -> None:
    assert COOKIE.find(["BAYEUX_BROWSER=b; BAYEUX_BROWSER=a; BAYEUX_BROWSER=b"]) == ("b", "a")
    many = "; ".join(f"BAYEUX_BROWSER={number}" for number in range(1000))
    assert COOKIE.find([many]) == tuple(map(str, range(16)))


@pytest.mark.parametrize("space", ["\x85", "\xa0", "\u2000", "\u3000", "\x1c", "\v", "\n"])
def test_odd_white_space_is_part_of_a_cookie_name(space: str) -> None:
    """Any page of the domain may set a cookie of such a name, but no `__Host-` cookie."""
    cookie = BrowserCookie(Settings(browser_cookie_name="__Host-B", browser_cookie_secure=True))
    for forged in (f"{space}__Host-B=x", f"__Host-B{space}=x"):
        assert cookie.find([forged, "__Host-B=y"]) == ("y",)


@pytest.mark.parametrize(
    "header",
    [
        "",
        ";",
        "=",
        "BAYEUX_BROWSER",
        "BAYEUX_BROWSER=",
        'BAYEUX_BROWSER=""',
        "BAYEUX_BROWSER=a b",
        "BAYEUX_BROWSER=a,b",
        "BAYEUX_BROWSER=<script>",
        "BAYEUX_BROWSER=\N{LATIN SMALL LETTER E WITH ACUTE}",
        "BAYEUX_BROWSER=\udcff",
        "BAYEUX_BROWSER=a\x00b",
        f"BAYEUX_BROWSER={'a' * 65}",
        f"bayeux_browser={IDENTITY}",
        f"BAYEUX_BROWSER2={IDENTITY}",
        f"xBAYEUX_BROWSER={IDENTITY}",
        f"a=BAYEUX_BROWSER={IDENTITY}",
        f"BAYEUX_BROWSER=a=b; x={IDENTITY}",
    ],
)
def test_values_that_the_server_never_sets_are_no_identities(header: str) -> None:
    assert COOKIE.find([header]) == ()


def test_a_request_without_a_cookie_has_no_identity() -> None:
    assert COOKIE.find([]) == ()


def test_the_cookie_is_by_default_hidden_from_scripts_and_valid_for_the_whole_site() -> None:
    assert COOKIE.header(IDENTITY) == f"BAYEUX_BROWSER={IDENTITY}; Path=/; HttpOnly"


def test_every_attribute_of_the_cookie_is_written() -> None:
    settings = Settings(
        browser_cookie_name="B",
        browser_cookie_domain="example.org",
        browser_cookie_path="/cometd",
        browser_cookie_max_age=0,
        browser_cookie_secure=True,
        browser_cookie_http_only=False,
        browser_cookie_same_site="Lax",
        browser_cookie_partitioned=True,
    )
    cookie = BrowserCookie(settings)
    assert cookie.header("x") == (
        "B=x; Path=/cometd; Domain=example.org; Max-Age=0; Secure; SameSite=Lax; Partitioned"
    )


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "__Host-BAYEUX_BROWSER"),
        ({"browser_cookie_domain": "holdfast.test"}, "BAYEUX_BROWSER"),
        ({"browser_cookie_path": "/cometd"}, "BAYEUX_BROWSER"),
        ({"browser_cookie_secure": False}, "BAYEUX_BROWSER"),
        ({"browser_cookie_name": "own"}, "own"),
        ({"browser_cookie_name": "__Secure-own", "browser_cookie_path": "/x"}, "__Secure-own"),
    ],
)
def test_the_cookie_over_tls_has_a_host_prefix_only_if_browsers_accept_it(
    settings: dict[str, Any], name: str
) -> None:
    cookie = BrowserCookie(Settings(tls_cert=Path("cert"), tls_key=Path("key"), **settings))
    is_secure = settings.get("browser_cookie_secure", True)
    assert (cookie.name, "; Secure" in cookie.header("x")) == (name, is_secure)


def test_an_identity_that_was_set_is_found_again() -> None:
    pair = COOKIE.header(IDENTITY).partition(";")[0]
    assert COOKIE.find([pair]) == (IDENTITY,)


@given(st.lists(st.text(st.characters(exclude_categories=()), max_size=200), max_size=3))
def test_any_header_is_read(lines: list[str]) -> None:
    for found in COOKIE.find(lines):
        assert found.isascii()
        assert 0 < len(found) <= 64


PROGRAM = {"Host": "holdfast.test", "User-Agent": "node", "Sec-Fetch-Mode": "cors"}


def test_a_client_without_cookies_and_browser_headers_is_cookieless() -> None:
    assert is_cookieless(CIMultiDict(PROGRAM))


@pytest.mark.parametrize(
    "said",
    [
        {"cookie": f"BAYEUX_BROWSER={IDENTITY}"},
        {"cookie": ""},
        {"origin": "null"},
        {"referer": "http://holdfast.test/"},
        {"sec-fetch-site": "same-origin"},
    ],
)
def test_a_client_with_a_cookie_or_browser_headers_is_not_cookieless(
    said: dict[str, str],
) -> None:
    assert not is_cookieless(CIMultiDict(PROGRAM | said))
