"""Which pages may talk to the server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from holdfast.web.http.origins import Origins, OriginTrust

HOST = "holdfast.test"
NAMED = Origins(("https://friend.example", "http://other.example:8000", "https://[2001:db8::1]"))
ANY = Origins(("*",))


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://holdfast.test", HOST),
        ("https://holdfast.test", HOST),
        ("http://holdfast.test:80", HOST),
        ("https://holdfast.test:443", HOST),
        ("HTTPS://HoldFast.Test", HOST),
        ("http://holdfast.test", "HOLDFAST.test:80"),
        ("http://holdfast.test:8080", "holdfast.test:8080"),
        ("http://[::1]:8080", "[::1]:8080"),
        ("ws://holdfast.test", HOST),
    ],
)
def test_pages_of_the_server_are_its_own_however_their_origin_is_spelt(
    origin: str, host: str
) -> None:
    assert Origins().trust(origin, host) is OriginTrust.OWN
    assert NAMED.trust(origin, host) is OriginTrust.OWN
    assert NAMED.headers(origin, host) == {}


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "http://",
        "holdfast.test",
        "//holdfast.test",
        "http://holdfast.test:81",
        "http://holdfast.test:443",
        "https://holdfast.test:80",
        "http://holdfast.test.evil.test",
        "http://evil-holdfast.test",
        "http://sub.holdfast.test",
        "http://holdfast.test@evil.test",
        "http://user@holdfast.test",
        "http://holdfast.test/",
        "http://holdfast.test/path",
        "http://holdfast.test?query",
        "http://holdfast.test#fragment",
        "http://holdfast.test.",
        "http://holdfast.test:",
        "http://holdfast.test:080",
        " http://holdfast.test",
        "http://holdfast.test http://evil.test",
        "http://evil.test,http://holdfast.test",
        "ftp://holdfast.test",
        "file://holdfast.test",
        "javascript://holdfast.test",
        "chrome-extension://holdfast.test",
        "data:text/html,x",
        "http://[::1",
        "http://friend.example",
        "https://friend.example.evil.test",
        "https://friend.example:444",
        "http://other.example",
        "http://holdfast.test\N{KELVIN SIGN}",
        "http://holdfast.test\udcff",
        "https://\N{FULLWIDTH LATIN SMALL LETTER F}riend.example",
    ],
)
def test_other_origins_are_foreign(origin: str) -> None:
    assert NAMED.trust(origin, HOST) is OriginTrust.FOREIGN
    assert NAMED.headers(origin, HOST) == {}
    assert NAMED.preflight_headers(origin, HOST) == {}


def test_no_page_is_the_servers_own_without_a_host() -> None:
    assert NAMED.trust("http://holdfast.test", None) is OriginTrust.FOREIGN


@pytest.mark.parametrize(
    "origin",
    [
        "https://friend.example",
        "https://friend.example:443",
        "HTTPS://FRIEND.example",
        "http://other.example:8000",
        "https://[2001:db8::1]",
    ],
)
def test_named_origins_may_send_credentials(origin: str) -> None:
    assert NAMED.trust(origin, HOST) is OriginTrust.ALLOWED
    assert NAMED.headers(origin, HOST) == {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Credentials": "true",
    }


@pytest.mark.parametrize("origin", ["null", "http://evil.test", "", "http://evil.test/x"])
def test_a_wildcard_never_allows_credentials(origin: str) -> None:
    assert ANY.trust(origin, HOST) is OriginTrust.ALLOWED
    assert ANY.headers(origin, HOST) == {"Access-Control-Allow-Origin": "*"}


def test_a_named_origin_keeps_its_credentials_beside_a_wildcard() -> None:
    both = Origins(("*", "https://friend.example"))
    assert both.headers("https://friend.example", HOST)["Access-Control-Allow-Credentials"]
    assert both.headers("https://evil.test", HOST) == {"Access-Control-Allow-Origin": "*"}


def test_an_unusable_configured_origin_does_not_match_null() -> None:
    odd = Origins(("*", "https://b\N{LATIN SMALL LETTER U WITH DIAERESIS}cher.example"))
    assert odd.headers("null", HOST) == {"Access-Control-Allow-Origin": "*"}


def test_the_headers_of_a_preflight_name_the_allowed_methods_and_headers() -> None:
    headers = NAMED.preflight_headers("https://friend.example", HOST)
    assert headers["Access-Control-Allow-Methods"] == "POST, GET, OPTIONS"
    assert headers["Access-Control-Allow-Headers"] == "Content-Type"


def test_an_origin_that_only_matches_in_lower_case_unicode_is_foreign() -> None:
    origins = Origins(("https://kind.example",))
    assert origins.trust("https://\N{KELVIN SIGN}ind.example", HOST) is OriginTrust.FOREIGN


@given(st.text(max_size=60), st.one_of(st.none(), st.text(max_size=30)))
def test_any_text_as_origin_and_host_is_judged(origin: str, host: str | None) -> None:
    trust = NAMED.trust(origin, host)
    headers = NAMED.headers(origin, host)
    assert bool(headers) == (trust is OriginTrust.ALLOWED)
    assert all(value.isascii() for value in headers.values())


OWN_PAGE, FRIENDS_PAGE, EVIL = f"http://{HOST}", "https://friend.example", "http://evil.test"
SAID = [
    ([], OriginTrust.UNKNOWN),
    ([("Origin", OWN_PAGE)], OriginTrust.OWN),
    ([("Origin", FRIENDS_PAGE)], OriginTrust.ALLOWED),
    ([("Origin", EVIL)], OriginTrust.FOREIGN),
    ([("Origin", "")], OriginTrust.FOREIGN),
    # An origin counts more than the other headers.
    ([("Origin", EVIL), ("Sec-Fetch-Site", "same-origin")], OriginTrust.FOREIGN),
    ([("Origin", FRIENDS_PAGE), ("Sec-Fetch-Site", "cross-site")], OriginTrust.ALLOWED),
    ([("Origin", EVIL), ("Referer", OWN_PAGE)], OriginTrust.FOREIGN),
    ([("Sec-Fetch-Site", "same-origin")], OriginTrust.OWN),
    ([("Sec-Fetch-Site", "same-origin"), ("Referer", EVIL)], OriginTrust.OWN),
    # A link in a mail is opened from no page.
    ([("Sec-Fetch-Site", "none")], OriginTrust.UNKNOWN),
    ([("Sec-Fetch-Site", "cross-site")], OriginTrust.FOREIGN),
    ([("Sec-Fetch-Site", "cross-site"), ("Referer", FRIENDS_PAGE)], OriginTrust.ALLOWED),
    ([("Sec-Fetch-Site", "same-site"), ("Referer", f"{OWN_PAGE}/a/b?c#d")], OriginTrust.OWN),
    ([("Sec-Fetch-Site", "")], OriginTrust.FOREIGN),
    ([("Referer", f"{OWN_PAGE}/a")], OriginTrust.OWN),
    ([("Referer", FRIENDS_PAGE)], OriginTrust.ALLOWED),
    ([("Referer", f"{EVIL}/{OWN_PAGE}")], OriginTrust.FOREIGN),
    ([("Referer", "")], OriginTrust.UNKNOWN),
    # Of several values of one header, none is believed.
    ([("Origin", OWN_PAGE), ("Origin", EVIL)], OriginTrust.FOREIGN),
    ([("Origin", OWN_PAGE), ("Origin", OWN_PAGE)], OriginTrust.FOREIGN),
    ([("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", "none")], OriginTrust.FOREIGN),
    ([("Referer", OWN_PAGE), ("Referer", EVIL)], OriginTrust.FOREIGN),
]


@pytest.mark.parametrize(("said", "trust"), SAID)
def test_the_trust_of_a_page_follows_from_origin_fetch_site_and_referer(
    said: list[tuple[str, str]], trust: OriginTrust
) -> None:
    assert NAMED.trust_of(CIMultiDict([("Host", HOST), *said])) is trust
