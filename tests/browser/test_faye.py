"""Faye in a real browser, with the extension: reloads and dead servers cost it no message."""

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page, Route

from tests.browser.mortal import Mortal
from tests.clients.node_client import MODULES, SWITCHED_ON
from tests.clients.publishing import Publisher
from tests.serving import Servers

CHANNEL = "/orders"
# Faye is a global, as from a script tag; the modules are those of the server.
_PAGE = """<!doctype html>
<title>Faye</title>
<link rel="icon" href="data:,">
<ol></ol>
<script src="faye-browser-min.js"></script>
<script type="module">
    import {FayeExtension} from "/static/js/faye.js";
    import {keep, recall} from "/static/js/storage.js";

    const transport = new URL(location.href).hash.slice(1);
    window.client = new Faye.Client("/cometd", {retry: 0.1});
    if (transport !== "websocket") {
        client.disable("websocket");
    }
    window.holdfast = new FayeExtension({session: "shop/1"}, {storage: sessionStorage});
    client.addExtension(holdfast);
    // Its books are kept by the browser, so that no reload can hide anything.
    window.done = recall(localStorage, "done") ?? [];
    const orders = client.subscribe("/orders", ({number, last}) => {
        done.push(number);
        keep(localStorage, "done", done);
        window.isComplete ||= last;
    });
    const power = client.subscribe("/power", (volt, message) => holdfast.reply(message, 2 * volt));
    await Promise.all([orders, power]);
    window.isSubscribed = true;
</script>
"""


@pytest.fixture
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mortal]:
    mortal = Mortal(tmp_path_factory.mktemp("faye") / "data", {"max_queue": 100_000})
    yield mortal
    mortal.stop()


@pytest.fixture
def page(profile: BrowserContext) -> Page:
    def serve(route: Route) -> None:
        if route.request.url.endswith(".js"):
            script = (MODULES / "faye" / "client" / "faye-browser-min.js").read_text("utf-8")
            route.fulfill(body=script, content_type="text/javascript")
        else:
            place = parse_qs(urlsplit(route.request.url).query).get("server", [""])[0]
            text = _PAGE.replace('"/cometd"', f'"{place}/cometd"')
            text = text.replace('"/static/', f'"{place}/static/')
            route.fulfill(body=text, content_type="text/html")

    profile.route("**/__test__/**", serve)
    return profile.new_page()


@pytest.mark.parametrize("transport", ["websocket", "long-polling"])
def test_a_page_hears_each_message_once_over_reloads_and_deaths_of_the_server(
    page: Page, mortal: Mortal, transport: str
) -> None:
    page.goto(f"{mortal.alive.url}/__test__/page.html#{transport}")
    _works(page)
    publisher = Publisher("one", mortal.alive.url, CHANNEL, rate=50.0, keeps_connection=True)
    with publisher:
        for deed in (page.reload, mortal.kill, page.reload):
            _hears_more(page)
            deed()
            if deed == mortal.kill:
                mortal.start()
        _hears_more(page)
    page.wait_for_function("() => window.isComplete")
    done = page.evaluate("done")
    assert [each for each in done if each not in publisher.unsure] == [
        each for each in range(publisher.count) if each not in publisher.unsure
    ]
    assert len(done) == len({*done})


def test_a_page_asks_and_replies(page: Page, mortal: Mortal) -> None:
    page.goto(f"{mortal.alive.url}/__test__/page.html#websocket")
    _works(page)
    assert page.evaluate("holdfast.ask('/power', 21)") == 42
    error = "holdfast.ask('/nothing', 1).catch(({code, message}) => [code, message])"
    assert page.evaluate(error) == [404, "404:/nothing:no_responders"]
    assert page.evaluate("holdfast.delivery.session") == "client/shop/1"


def test_a_page_of_another_site_handshakes_by_callback_polling(
    page: Page, servers: Servers
) -> None:
    site = "http://127.0.0.1:1234"
    server = servers.with_settings({**SWITCHED_ON, "allow_origin": [site]})
    page.goto(f"{site}/__test__/page.html?server={server.url}#websocket")
    _works(page)
    assert page.evaluate("holdfast.ask('/power', 21)") == 42
    page.wait_for_function("() => client._dispatcher.connectionType === 'websocket'")
    assert page.evaluate("holdfast.ask('/power', 22)") == 44


def _works(page: Page) -> None:
    page.wait_for_function("() => window.isSubscribed")


def _hears_more(page: Page) -> None:
    _works(page)
    page.wait_for_function(f"() => done.length > {page.evaluate('done.length')} + 20")
