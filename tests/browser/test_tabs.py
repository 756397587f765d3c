"""Tabs of one browser with all extensions at once, which lose their network and are reloaded."""

from typing import Any

import pytest
from playwright.sync_api import BrowserContext

from tests.browser.conftest import OpenPage
from tests.browser.publishing import publish
from tests.browser.test_cometd import TRANSPORTS, bayeux, tell
from tests.serving import Server, Servers

TABS = 5
pytestmark = pytest.mark.timeout(60)

# Remembers what it has finished, as a page does that will be loaded again.
ARRIVE = """async ({session, ...options}) => {
    const {DeliveryExtension} = await import("/static/js/delivery.js");
    const delivery = new DeliveryExtension({session}, {storage: sessionStorage});
    window.me = visit({...options, delivery});
    return me.arrive();
}"""


@pytest.fixture
def server(servers: Servers) -> Server:
    # One tab of a browser has its poll held; the others ask so often.
    return servers.with_settings({"multi_session_interval": 200})


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_five_tabs_hear_everything_once(
    transport: str,
    server: Server,
    open_page: OpenPage,
    profile: BrowserContext,
    other_profile: BrowserContext,
) -> None:
    options = {"url": bayeux(server), "transport": transport, "channel": f"/tabs/{transport}"}
    tabs = [open_page(server.url) for _ in range(TABS)]

    def enter(number: int) -> dict[str, Any]:
        more = {"session": f"{transport}-{number}/1", "withAck": True, "withReload": True}
        welcome: dict[str, Any] = tabs[number].evaluate(ARRIVE, {**options, **more})
        return welcome

    assert all(enter(number)["acknowledges"] for number in range(TABS))
    other = other_profile.new_page()
    other.goto(f"{server.url}/healthz")
    publish(other, options["channel"], "one")
    assert [tell(tab, "hear", 1) for tab in tabs] == [["one"]] * TABS

    profile.set_offline(True)
    publish(other, options["channel"], "two")
    profile.set_offline(False)
    publish(other, options["channel"], "three")
    assert [tell(tab, "hear", 2) for tab in tabs] == [["two", "three"]] * TABS

    here = tabs[0].url
    tabs[0].goto("about:blank")
    publish(other, options["channel"], "four")
    tabs[0].goto(here)
    tabs[0].wait_for_function("window.isReady")
    assert enter(0)["isReload"]
    publish(other, options["channel"], "five")
    assert [tell(tab, "hear", 2) for tab in tabs] == [["four", "five"]] * TABS
