"""The browser's identity in a cookie."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from app.web.cookies import BrowserCookie, is_cookieless

COOKIE = BrowserCookie()
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
        f"BAYEUX_BROWSER={IDENTITY}; BAYEUX_BROWSER=other",
        f"{'x' * 4000}=y; BAYEUX_BROWSER={IDENTITY}",
    ],
)
def test_the_identity_is_found_wherever_it_stands(header: str) -> None:
    assert COOKIE.find(header) == IDENTITY


@pytest.mark.parametrize(
    "header",
    [
        None,
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
def test_what_was_never_given_out_is_no_identity(header: str | None) -> None:
    assert COOKIE.find(header) is None


def test_the_cookie_is_hidden_from_scripts_and_of_the_whole_site_if_nothing_else_is_said() -> None:
    assert COOKIE.header(IDENTITY) == f"BAYEUX_BROWSER={IDENTITY}; Path=/; HttpOnly"


def test_everything_that_can_be_said_of_the_cookie_is_said() -> None:
    cookie = BrowserCookie(
        name="__Host-B",
        domain="example.org",
        path="/cometd",
        max_age=0,
        secure=True,
        http_only=False,
        same_site="Lax",
        partitioned=True,
    )
    assert cookie.header("x") == (
        "__Host-B=x; Path=/cometd; Domain=example.org; Max-Age=0; Secure; SameSite=Lax; Partitioned"
    )


def test_what_is_set_is_found_again() -> None:
    pair = COOKIE.header(IDENTITY).partition(";")[0]
    assert COOKIE.find(pair) == IDENTITY


@given(st.text(st.characters(exclude_categories=()), max_size=200))
def test_no_header_is_too_odd_to_be_read(header: str) -> None:
    found = COOKIE.find(header)
    assert found is None or (found.isascii() and 0 < len(found) <= 64)


PROGRAM = {"Host": "holdfast.test", "User-Agent": "node", "Sec-Fetch-Mode": "cors"}


def test_a_program_is_known_by_what_it_does_not_say() -> None:
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
def test_who_sends_a_cookie_or_what_browsers_send_is_no_program_without_one(
    said: dict[str, str],
) -> None:
    assert not is_cookieless(CIMultiDict(PROGRAM | said))
