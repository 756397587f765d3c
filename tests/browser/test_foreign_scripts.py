"""A page of another site loads scripts from this server, in the browser of one of its users.

Over plain HTTP, such a page can have the browser hide its origin. The tests use host names, because
Chromium trusts the addresses of this machine like TLS.
"""

import json
import urllib.request
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import OpenPage
from tests.browser.test_cometd import arrive, tell
from tests.clients.node_client import SWITCHED_ON
from tests.serving import Server, Servers

HANDSHAKE = {
    "channel": "/meta/handshake",
    "version": "1.0",
    "supportedConnectionTypes": ["callback-polling"],
    "ext": {"ack": True, "delivery": {"session": "joe/1"}},
}
LOAD = """([url, policy]) => new Promise((resolve) => {
    const script = document.createElement("script");
    window.told = resolve;
    script.referrerPolicy = policy;
    script.src = url;
    script.onerror = () => resolve(null);
    document.head.append(script);
})"""


@pytest.fixture
def server(servers: Servers) -> Server:
    # No page has this origin, which has another port; but it gives the server a name.
    return servers.with_settings({**SWITCHED_ON, "allow_origin": ["http://holdfast.test"]})


@pytest.fixture
def place(server: Server) -> str:
    """The address of the server by a host name, over plain HTTP."""
    return f"http://holdfast.test:{urlsplit(server.url).port}"


def load(page: Page, place: str, policy: str) -> object:
    """The replies that a script passes to this page, or nothing if the browser got no script."""
    message = quote(json.dumps([HANDSHAKE]))
    url = f"{place}/cometd?jsonp=told&message={message}"
    told: object = page.evaluate(LOAD, [url, policy])
    return told


def created(server: Server) -> list[str]:
    """The server's count of the sessions that were created."""
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=60) as response:
        lines = response.read().decode().splitlines()
    return [line for line in lines if line.startswith("holdfast_sessions_created_total")]


@pytest.mark.parametrize("policy", ["no-referrer", "origin", "unsafe-url"])
def test_a_script_of_a_foreign_page_creates_no_session_with_any_referrer_policy(
    policy: str, place: str, server: Server, open_page: OpenPage
) -> None:
    foreign, before = open_page("http://evil.test"), created(server)
    with foreign.expect_request(lambda request: "/cometd?" in request.url) as asked:
        assert load(foreign, place, policy) is None
    said = asked.value.all_headers()
    assert "sec-fetch-site" not in said
    assert ("referer" in said) is (policy != "no-referrer")
    assert created(server) == before


def test_a_page_of_the_server_is_served_over_plain_http_if_it_sends_a_referrer(
    place: str, open_page: OpenPage
) -> None:
    own = open_page(place)
    assert load(own, place, "no-referrer") is None
    assert load(own, place, "same-origin") is not None
    assert arrive(own, f"{place}/cometd", transport="callback-polling")["isWelcome"]
    assert tell(own, "listen", "/scripts")
    assert tell(own, "say", "/scripts", "hello")
    assert tell(own, "hear", 1) == ["hello"]
    assert tell(own, "leave")


_IMPORT = """async (server) => {
    try {
        const {CometD} = await import(`${server}/static/cometd/cometd.js`);
        const {Outbox} = await import(`${server}/static/js/outbox.js`);
        return new Outbox(new CometD()).entries.length;
    } catch (error) {
        return error.name;
    }
}"""


@pytest.mark.usefixtures("cometd_js")
@pytest.mark.parametrize(
    ("origin", "found"), [("http://shop.test", 0), ("http://evil.test", "TypeError")]
)
def test_pages_of_allowed_origins_alone_import_the_modules(
    servers: Servers, open_page: OpenPage, origin: str, found: object
) -> None:
    server = servers.with_settings({"allow_origin": ["http://shop.test"]})
    assert open_page(origin).evaluate(_IMPORT, server.url) == found
