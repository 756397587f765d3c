"""The outbox in a browser: what it holds leaves when the server is back, on each transport."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page

from tests.browser.mortal import Mortal

pytestmark = pytest.mark.usefixtures("cometd_js")

# A page without a named session, whose server forgets it when it is killed.
_PAGE = """async (transport) => {
    const {CometD} = await import("/static/cometd/cometd.js");
    const {Outbox} = await import("/static/js/outbox.js");
    window.cometd = new CometD();
    ["websocket", "long-polling", "callback-polling"]
        .filter((name) => name !== transport)
        .forEach((name) => cometd.unregisterTransport(name));
    cometd.configure({url: new URL("/cometd", location.href).href, backoffIncrement: 50});
    window.outbox = new Outbox(cometd, {name: transport});
    window.accepted = [];
    window.ordered = 0;
    window.order = () => {
        const number = ++ordered;
        outbox.publish("/orders", number).then(() => accepted.push(number));
    };
    // One request is on its way, so cometd.js lets the order wait; when the server says that it
    // does not know the session, cometd.js drops what waits.
    cometd.addListener("/meta/connect", ({successful}) => {
        if (!successful) {
            cometd.publish("/typing", {});
            order();
        }
    });
    const isThere = new Promise((resolve) => {
        cometd.addListener("/meta/connect", ({successful}) => successful && resolve());
    });
    cometd.handshake();
    await isThere;
}"""


@pytest.fixture
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mortal]:
    mortal = Mortal(tmp_path_factory.mktemp("outbox") / "data", {})
    yield mortal
    mortal.stop()


@pytest.mark.parametrize("transport", ["long-polling", "websocket"])
def test_what_is_published_while_the_server_is_killed_leaves_when_it_is_back(
    profile: BrowserContext, mortal: Mortal, transport: str
) -> None:
    page = profile.new_page()
    page.goto(f"{mortal.alive.url}/static/js/example.html")
    page.evaluate(_PAGE, transport)
    page.evaluate("order()")
    _all_are_accepted(page)
    mortal.kill()
    page.evaluate("order()")
    page.wait_for_function("() => ordered > 2")
    mortal.start()
    _all_are_accepted(page)
    page.evaluate("order()")
    _all_are_accepted(page)


def _all_are_accepted(page: Page) -> None:
    page.wait_for_function("() => cometd.getStatus() === 'connected'")
    page.wait_for_function("() => outbox.entries.length === 0 && accepted.length === ordered")
    assert page.evaluate("accepted") == list(range(1, page.evaluate("ordered") + 1))
