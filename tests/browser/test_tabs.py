"""Tabs of one browser with all extensions, which lose the network, a page and the server."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext

from tests.browser.conftest import OpenPage
from tests.browser.mortal import Mortal
from tests.browser.publishing import publish
from tests.browser.test_cometd import TRANSPORTS, bayeux, tell
from tests.clients.node_client import SWITCHED_ON

TABS = 5
# Remembers finished messages, as a page does that will be loaded again.
ARRIVE = """async ({session, ...options}) => {
    const {DeliveryExtension} = await import("/static/js/delivery.js");
    const delivery = new DeliveryExtension({session}, {storage: sessionStorage});
    window.me = visit({...options, delivery});
    return me.arrive();
}"""


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mortal]:
    # Only one tab of a browser has its connect held; the others ask this often.
    settings = {**SWITCHED_ON, "multi_session_interval": 200}
    mortal = Mortal(tmp_path_factory.mktemp("tabs") / "data", settings)
    yield mortal
    mortal.stop()


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_five_tabs_get_every_message_once_over_a_reload_and_a_restart(
    transport: str,
    mortal: Mortal,
    open_page: OpenPage,
    profile: BrowserContext,
    other_profile: BrowserContext,
) -> None:
    server = mortal.alive
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

    publish(other, options["channel"], "six")
    mortal.kill()
    mortal.start()
    publish(other, options["channel"], "seven")
    assert [tell(tab, "hear", 2) for tab in tabs] == [["six", "seven"]] * TABS
