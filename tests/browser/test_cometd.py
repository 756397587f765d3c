"""cometd.js in a real browser, with its cookies, origins and reloads."""

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import TIMEOUT_MS, Certificate, OpenPage
from tests.clients.node_client import SWITCHED_ON
from tests.serving import Server, Servers

TRANSPORTS = ["websocket", "long-polling", "callback-polling"]


def bayeux(server: Server) -> str:
    return f"{server.url}/cometd"


def arrive(page: Page, url: str, **options: Any) -> dict[str, Any]:
    """Let a visitor handshake and connect; it is `window.me` from then on."""
    script = "async (options) => { window.me = visit(options); return me.arrive(); }"
    welcome: dict[str, Any] = page.evaluate(script, {"url": url, **options})
    return welcome


def tell(page: Page, method: str, *args: Any) -> Any:
    """Call a method of the visitor, and fail if it takes too long."""
    return page.evaluate(
        """([method, args, timeout]) => Promise.race([
            me[method](...args),
            new Promise((_, reject) => setTimeout(
                () => reject(new Error(`${method} takes too long`)), timeout)),
        ])""",
        [method, list(args), TIMEOUT_MS],
    )


@pytest.mark.parametrize("with_ack", [False, True], ids=["plain", "ack"])
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_page_subscribes_publishes_and_receives_over_each_transport(
    transport: str, with_ack: bool, server: Server, open_page: OpenPage
) -> None:
    page = open_page(server.url)
    channel = f"/browser/{transport}/{with_ack}"

    welcome = arrive(page, bayeux(server), transport=transport, withAck=with_ack)
    assert welcome["transport"] == transport
    assert welcome["acknowledges"] is with_ack

    assert tell(page, "listen", channel)
    assert tell(page, "say", channel, {"text": "grüße 😀"})
    assert tell(page, "hear", 1) == [{"text": "grüße 😀"}]
    assert tell(page, "sayAll", channel, list(range(50))) == [True] * 50
    heard = tell(page, "hear", 50)
    # Otherwise a busy server answers the connect and the publishes, and one may pass the other.
    is_ordered = with_ack or transport == "websocket"
    assert (heard if is_ordered else sorted(heard)) == list(range(50))
    assert tell(page, "leave")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_session_survives_a_reload_of_its_page(
    transport: str, server: Server, open_page: OpenPage
) -> None:
    page, other = open_page(server.url), open_page(server.url)
    channel = f"/browser/reload/{transport}"
    options = {"transport": transport, "withAck": True, "withReload": True, "channel": channel}
    before = arrive(page, bayeux(server), **options)
    # Another tab of the same browser, with the same cookie, but no long polling.
    arrive(other, bayeux(server), transport="websocket")
    tell(other, "say", channel, "before")
    assert tell(page, "hear", 1) == ["before"]

    here = page.url
    page.goto("about:blank")
    tell(other, "say", channel, "while nobody looked")
    page.goto(here)
    page.wait_for_function("window.isReady")

    after = arrive(page, bayeux(server), **options)
    assert after["isReload"]
    assert after["id"] == before["id"]
    tell(other, "say", channel, "after")
    heard = tell(page, "hearUntil", "after")
    # The page may have been gone before it could acknowledge the first message.
    assert [text for text in heard if text != "before"] == ["while nobody looked", "after"]
    assert heard[1:].count("before") == 0


class TestOtherSites:
    """A page of another site, whose browser keeps cookies of third parties apart, if at all."""

    SITE = "https://elsewhere.test"

    def test_a_page_that_keeps_no_cookie_does_not_flood_the_server_with_handshakes(
        self, servers: Servers, open_page: OpenPage
    ) -> None:
        site = "http://elsewhere.test"
        server = servers.with_settings({"allow_origin": [site]})
        page = open_page(site)
        handshakes: list[str] = []
        page.on("request", lambda request: handshakes.append(request.url))
        script = "(options) => { visit(options).arrive(); }"
        with page.expect_request("**/cometd/connect"):
            page.evaluate(script, {"url": bayeux(server), "transport": "long-polling"})
        # Time enough for dozens of rounds of handshake and refused connect; pauses are random.
        page.wait_for_timeout(700)
        assert len([url for url in handshakes if url.endswith("/handshake")]) <= 3

    @pytest.fixture
    def server_for_others(self, servers: Servers, certificate: Certificate) -> Server:
        return servers.with_settings(
            {
                **SWITCHED_ON,
                "allow_origin": [self.SITE],
                "tls_cert": str(certificate.chain),
                "tls_key": str(certificate.key),
                "browser_cookie_same_site": "None",
                "browser_cookie_secure": True,
                "browser_cookie_partitioned": True,
            }
        )

    @pytest.mark.parametrize("transport", TRANSPORTS)
    def test_a_page_of_another_site_is_served_over_tls_with_a_partitioned_cookie(
        self, transport: str, server_for_others: Server, open_page: OpenPage
    ) -> None:
        page = open_page(self.SITE)
        assert arrive(page, bayeux(server_for_others), transport=transport)["isWelcome"]
        channel = f"/browser/elsewhere/{transport}"
        tell(page, "listen", channel)
        tell(page, "say", channel, "hello from elsewhere")
        assert tell(page, "hear", 1) == ["hello from elsewhere"]
        assert tell(page, "leave")


class TestOtherOrigins:
    """A page of one site uses a server of another."""

    @pytest.fixture
    def open_server(self, servers: Servers) -> Server:
        return servers.with_settings({"allow_origin": ["http://127.0.0.1:1234"]})

    @pytest.mark.parametrize("transport", ["websocket", "long-polling"])
    def test_a_page_of_an_allowed_origin_is_served(
        self, transport: str, open_server: Server, open_page: OpenPage
    ) -> None:
        page = open_page("http://127.0.0.1:1234")
        assert arrive(page, bayeux(open_server), transport=transport)["isWelcome"]
        tell(page, "listen", "/browser/abroad")
        tell(page, "say", "/browser/abroad", "hello from abroad")
        assert tell(page, "hear", 1) == ["hello from abroad"]
        assert tell(page, "leave")

    @pytest.mark.parametrize("origin", ["http://127.0.0.1:4321", "http://elsewhere.test"])
    @pytest.mark.parametrize("transport", ["websocket", "long-polling"])
    def test_a_page_of_a_foreign_origin_is_refused(
        self, transport: str, origin: str, open_server: Server, open_page: OpenPage
    ) -> None:
        page = open_page(origin)
        assert not arrive(page, bayeux(open_server), transport=transport)["isWelcome"]
